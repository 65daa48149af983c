"""What a model remembers of a call in attributes of its own, and forgets.

A cache that a module keeps as ``self.cache`` outlives the request that it is
of. Each way of asking begins without what the one before left there.
"""

import contextlib
import copy

import numpy as np

from parity.tracing.holders import attributes
from parity.tracing.trace import tracing_of

#: Values that cannot be changed where they are.
PLAIN = bool, int, float, str, bytes, type(None)

#: Packages of whose classes modules, variables and the like are.
OWN = "torch", "flax", "jax", "keras", "mlx", "tensorflow"

#: Attributes of a module that are a framework's.
THEIRS = "_parameters", "_buffers", "_modules"

#: How deep a value is looked into.
DEEPEST = 6


@contextlib.contextmanager
def forgotten(model, framework):
    """Put back, afterwards, attributes of modules that are plain values,
    arrays that are no parameters, or objects of these.

    Where modules or parameters were made meanwhile, nothing is put back: what
    else was set belongs to them.

    Args:
        model: any model.
        framework: what tracing takes for it.
    """
    tracing = tracing_of(model)
    parts, before = _parts(model, tracing), []
    memo: dict = {}
    for module in parts[0]:
        kept, own = {}, getattr(module, "__dict__", {})
        for name, value in own.items():
            if name not in THEIRS and _leaves(value, framework) is not None:
                with contextlib.suppress(Exception):  # of a foreign object
                    kept[name] = value, copy.deepcopy(value, memo)
        before.append((own, kept, {*own}))
    try:
        yield
    finally:
        now = _parts(model, tracing)
        if [*map(id, parts[0])] == [*map(id, now[0])] and parts[1] == now[1]:
            for own, kept, names in before:
                _restore(own, kept, names, framework)


def _parts(model, tracing):
    """The modules of a model, and the names of its parameters."""
    return ([module for _, module in tracing.modules(model)],
            [*tracing.setters(model)])


def _restore(own, kept, names, framework):
    """Let a module's attributes be what they were."""
    for name in [*own]:
        leaves = None if name in THEIRS else _leaves(own[name], framework)
        if name not in kept:
            if leaves is not None and name not in names:
                del own[name]
            continue
        value, copied = kept[name]
        if own[name] is not value or not _same(
                leaves, _leaves(copied, framework)):
            own[name] = value if _same(_leaves(value, framework), _leaves(
                copied, framework)) else copied


def _same(one, two):
    """Whether two lists of leaves are the same."""
    return one is not None and two is not None and len(one) == len(two) and (
        all(type(a) is type(b) and (np.array_equal(a, b) if isinstance(
            a, np.ndarray) else a == b or a != a) for a, b in zip(one, two)))


def _leaves(value, framework, depth=0):
    """The plain values and arrays that a value is made of; None of what is
    made of anything else, as modules and parameters are."""
    if isinstance(value, PLAIN):
        return [value]
    if depth == DEEPEST or isinstance(value, type) or callable(value):
        return None
    if framework.is_array(value):
        if getattr(value, "requires_grad", False) or not framework.is_seen(
                value):
            return None
        return [framework.to_numpy(value)]
    if isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, dict):
        parts = [*value, *value.values()]
    elif any(each.__module__.partition(".")[0] in OWN
             for each in type(value).__mro__):
        return None
    else:
        parts = [*attributes(value).values()]
        if not parts and not hasattr(value, "__dict__"):
            return None
    found = []
    for part in parts:
        leaves = _leaves(part, framework, depth + 1)
        if leaves is None:
            return None
        found += leaves
    return found
