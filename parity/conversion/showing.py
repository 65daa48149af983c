"""Whether other inputs would show of which parameter another is made."""

import numpy as np

from parity.conversion.activations import distance
from parity.tracing.recorder import mapped
from parity.tracing.trace import is_float

#: What is said of a doubt that other inputs dispel, and of one that they do
#: not.
GIVE, SAY = ("give inputs that show it",
             "no other inputs that were tried show it, so say in the mapping "
             "how it is made")


def advice(live, doubt):
    """GIVE where other inputs show what those of a model do not, else SAY.

    Args:
        live: a Live with the weights that were found.
        doubt: a Doubt.
    """
    for inputs, keywords in _others(live):
        try:
            before = _outputs(live, inputs, keywords)
            live.put(doubt.instead)
            after = _outputs(live, inputs, keywords)
        except Exception:  # a foreign model may refuse
            continue
        finally:
            live.put(doubt.found)
        if any(one.shape == two.shape and distance(two, one) > doubt.least
               for one, two in zip(before, after)):
            return GIVE
    return SAY


def _others(live):
    """Yield inputs that are drawn anew, and such that are twice as long."""
    framework = live.tracing.framework_for(live.model)
    for longer in (False, True):
        draw = np.random.default_rng(0)

        def other(name, leaf, draw=draw, longer=longer):
            if not framework.is_array(leaf):
                return leaf
            array = framework.to_numpy(leaf)
            made = _drawn(draw, array)
            if longer and array.ndim > 1:
                made = np.concatenate([array, made], 1)
            return framework.to_native(made)
        yield (mapped(live.inputs, "", other),
               mapped(live.keywords, "", other))


def _drawn(draw, array):
    """Numbers of the kind of an array's: ids among its own, masks as they
    are."""
    if array.dtype.kind in "iu" and np.ptp(array) > 1:
        return draw.integers(array.min(), array.max(), array.shape,
                             array.dtype, endpoint=True)
    if is_float(array) and array.size and not np.isin(array, (0, 1)).all():
        return draw.normal(
            0, float(array.astype(np.float64).std()) or 1.0, array.shape
            ).astype(array.dtype)
    return array


def _outputs(live, inputs, keywords):
    """The floating arrays that a model gives."""
    framework = live.tracing.framework_for(live.model)
    found = []

    def visit(name, leaf):
        if framework.is_array(leaf) and framework.is_seen(leaf):
            array = framework.to_numpy(leaf)
            found.extend([array] if is_float(array) else [])
        return leaf
    mapped(live.model(*inputs, **keywords), "", visit)
    return found
