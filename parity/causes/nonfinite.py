"""Where the first NaN or infinity of a run arises, and from what operation.

A NaN spreads to all that follows, so only where the first one stands says
anything. Of a live model its operations say which of them gave it, and at
which line; of a dump that is not known.
"""

import dataclasses
import importlib

import ml_dtypes
import numpy as np

from parity.causes.explanation import Explanation
from parity.causes.expressions import events
from parity.comparison.arrays import NOT_FINITE
from parity.tracing.trace import WHOLE, is_float

NAN, INFINITY = "NaN", "infinity"

#: How the comparator begins what it says of them.
REASONS = "NaN or infinity", "no finite element"

#: Operations that put what they are given into an array, such as a mask's -∞.
PUTTING = {"where", "full", "put", "pad", "maximum", "minimum", "concatenate"}

@dataclasses.dataclass
class Origin:
    """The first array of a run with a NaN or an infinity.

    Attributes:
        path: of the step, or of the parameter that holds it.
        where: in words, such as "the output of norm".
        word: NAN or INFINITY.
        array: the array.
        operation: in words, such as "0/0"; "" if it is not identified.
        given: whether the model was given it, so that no operation made it.
    """

    path: str
    where: str
    word: str
    array: np.ndarray
    operation: str = ""
    given: bool = False

    def rows(self):
        """In how many rows along the last axis, and the first of them."""
        bad = broken(self.array)
        if bad.ndim < 2:
            return f"in {bad.sum()} of {bad.size} numbers"
        rows = bad.any(-1)
        first = [int(i) for i in np.argwhere(rows)[0]]
        return f"in {rows.sum()} of {rows.size} rows, the first {first}"


def is_reason(row):
    """Whether a PairRow diverges because something is not finite."""
    return row.note == NOT_FINITE or row.reason.startswith(REASONS) or (
        row.local_reason.startswith(REASONS))


def broken(array):
    """Where an array is NaN or infinite; of an array of integers, nowhere."""
    if not is_float(array):
        return np.zeros(array.shape, bool)
    return ~np.isfinite(array)


def is_mask(array):
    """Whether its only infinities are those of a mask, and nothing is NaN."""
    return not (np.isnan(array).any() or (array == np.inf).any())


def first_of(trace):
    """The Origin of a trace's first NaN or infinity; None if it has none.

    -∞ may be a mask, so that it counts only where an operation gave it.
    """
    for name, array in trace.parameters.items():
        if broken(array).any():
            return _given(name, f"the parameter {name}", array)
    masks = []
    for _, (part, path, name), array in events(trace):
        if not broken(array).any():
            continue
        what = part if name == part else f"{part} {name}"
        origin = _origin(path, f"the {what} of {path}", array)
        if is_mask(array):
            masks.append(origin)
            continue
        if path == WHOLE and part == "input":
            return _given(WHOLE, f"the model's input {name}", array)
        return dataclasses.replace(origin, operation=operation_of(trace))
    operation = masks and operation_of(trace)
    return dataclasses.replace(
        masks[0], operation=operation) if operation else None


def told_first(rows, a, b):
    """Explanations of where the first NaN or infinity of each arises."""
    if not any(map(is_reason, rows)):
        return []
    origins = {side: first_of(trace)
               for side, trace in (("a", a), ("b", b))}
    explanations = []
    for side, origin in origins.items():
        if origin is None:
            continue
        known = [] if origin.operation or origin.given else [
            "From which operation is not identified."]
        words = f": {origin.operation}" if origin.operation else ""
        told = origin.operation or origin.where
        explanations.append(Explanation(
            origin.path, origin.path, f"first {origin.word}",
            told if side == "a" else "none", told if side == "b" else "none",
            f"{side}'s first {origin.word} stands in {origin.where}, "
            f"{origin.rows()}{words}.", known))
    return explanations


def _origin(path, where, array):
    word = NAN if np.isnan(array).any() else INFINITY
    return Origin(path, where, word, array)


def _given(path, where, array):
    return dataclasses.replace(_origin(path, where, array), given=True)


# The operation

def operation_of(trace):
    """What gave the first NaN or infinity of a live model, and where, in
    words; "" if that is not known."""
    if trace.given is None:
        return ""
    try:
        runner = importlib.import_module(
            f"parity.operations.{trace.framework}").Runner(*trace.given)
        operation = _arising(runner.run(
            keep=lambda value: any(value.signature.special)))
        if operation is None:
            return ""
        program = runner.run(keep=lambda value: value.number in (
            *operation.operands, *operation.results))
    except Exception:  # a foreign model may refuse
        return ""
    with np.errstate(all="ignore"):
        words = _in_words(operation, *(
            [np.asarray(program.values[each].array) for each in some]
            for some in (operation.operands, operation.results)))
    place = f" at {operation.place}" if operation.place.file else ""
    return f"{words} ({operation.name}{place})"


def _arising(program):
    """The operation that gives the first NaN or infinity, else the first -∞
    that no mask puts there; or None.

    Args:
        program: a Program with the arrays that hold any.
    """
    bad = {value.number: value.array for value in program.values
           if value.array is not None and broken(value.array).any()}
    low = None
    for operation in program.operations:
        had = [bad[each] for each in operation.operands if each in bad and (
            operation.name in PUTTING or bad[each].size > 1)]
        made = [bad[each] for each in operation.results if each in bad]
        if not made or any(np.isnan(each).any() for each in had) or had and (
                not np.isnan(made[0]).any()):
            continue
        if not is_mask(made[0]):
            return _source(program, bad, operation)
        low = low or operation
    return low


def _source(program, bad, operation):
    """The operation that gave what one makes a NaN of, if one did."""
    earlier, makers = operation, [operation]
    while makers:
        earlier = makers[0]
        makers = [maker for each in earlier.operands if each in bad
                  and (maker := program.maker(each)) is not None]
    return operation if any(each in bad for each in earlier.operands) else (
        earlier)


def _in_words(operation, operands, results):
    """What an operation did that gives NaN or infinity, in words."""
    x, y = (*operands, 0.0, 0.0)[:2]
    for each in operands:
        if each.size == 1 and not np.isfinite(each).all():
            return f"{'NaN' if np.isnan(each).any() else '∞'} in the program"
    if operation.name in ("log", "log1p"):
        return "log of a negative number" if (x < 0).any() else "log 0"
    if operation.name in ("sqrt", "rsqrt", "power") and (x <= 0).any():
        return "root of a negative number" if (x < 0).any() else "1/√0"
    if operation.name == "reciprocal":
        return "1/0"
    if operation.name == "divide" and (y == 0).any():
        zero = (np.broadcast_to(y, results[0].shape) == 0) & (x == 0)
        return "0/0" if zero.any() else "a division by 0"
    if any(np.isinf(each).any() for each in operands):
        return {"divide": "∞/∞", "multiply": "0 · ∞",
                "matmul": "0 · ∞, or ∞ - ∞"}.get(operation.name, "∞ - ∞")
    dtype = results[0].dtype
    return (f"overflow in {dtype.name}, whose largest number is "
            f"{float(ml_dtypes.finfo(dtype).max):.3g}")
