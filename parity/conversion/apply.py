"""Put the weights of one model into another, by a mapping."""

import dataclasses

import numpy as np

from parity_io.errors import InputError
from parity.comparison.belonging import check_inputs
from parity.comparison.compare import compare
from parity.conversion.find import FLOOR, outputs_apart
from parity.conversion.weights import Live
from parity.matching.steps import suggest


@dataclasses.dataclass
class Applied:
    """What a mapping made.

    Attributes:
        arrays: of the model that was written to, by name.
        comparison: of both models with these weights, or None where one of
            them is not live.
        error: the largest relative error of an output, or None.
        again: whether the weights, converted back, are equal to the bit.
    """

    arrays: dict
    comparison: object = None
    error: float | None = None
    again: bool | None = None

    @property
    def diverges(self):
        """Whether the outputs were compared and differ."""
        return self.error is not None and not self.error <= FLOOR


def arrays_of(live):
    """The parameters of a live model, also under their second names."""
    arrays = live.names
    return arrays | {second: arrays[first] for second, first
                     in live.trace.aliases.items() if first in arrays}


def apply(mapping, source, target=None, reverse=False):
    """Make one model's weights of another's.

    Args:
        mapping: a Mapping.
        source: A: a Live, or arrays by name; B where it is reversed.
        target: B, likewise, or None. If it is a Live, the weights are put into
            it; what the mapping leaves out stays as it is there.
        reverse: whether to make A's of B's.

    Returns:
        An Applied.

    Raises:
        InputError: the weights are not those of the mapping.
    """
    given = arrays_of(source) if isinstance(source, Live) else source
    own = (arrays_of(target) if isinstance(target, Live) else target) or {}
    side = "a" if reverse else "b"
    if own:
        mapping.checked(own, side)
    if reverse:
        made = mapping.backward(given, own)
    else:
        made = mapping.forward(given)
    tied = getattr(mapping, f"tied_{side}")
    if isinstance(target, Live):
        made = {name: array.astype(target.names[name].dtype)
                for name, array in made.items()}
        target.put(made)
    made = {**own, **made, **{
        name: made[one] for name, one in tied.items() if one in made}}
    applied = Applied(made, again=_equal_back(
        mapping, given, made, reverse))
    if isinstance(source, Live) and isinstance(target, Live):
        mine, other = source.trace, target.run()
        pairs = suggest(mine, other)
        check_inputs(mine, other, pairs)
        applied.comparison = compare(
            mine, other, pairs,
            dtype=None if mine.dtype == other.dtype else other.dtype)
        applied.error = outputs_apart(
            applied.comparison, mine, other)
    return applied


def _equal_back(mapping, given, made, reverse):
    """Whether the way back gives what was given, to the bit; None if there
    is none."""
    try:
        back = (mapping.forward(made) if reverse
                else mapping.backward(made, given))
    except InputError:
        return None
    return all(array.dtype == given[name].dtype
               and np.array_equal(array, given[name], equal_nan=True)
               for name, array in back.items() if name in given)
