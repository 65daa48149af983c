"""Where the first NaN or infinity of a run arises, and from what operation.

A NaN spreads to all that follows, so only where the first one stands says
anything. An operation is named if it gives this array from earlier ones, with
the NaN and infinities in the same places.
"""

import dataclasses
import itertools

import ml_dtypes
import numpy as np

from parity.causes.explanation import Explanation
from parity.causes.expressions import MOST, EarlierValue, earlier, label
from parity.causes.fit import FAMILIES, fields_of, side_of
from parity.causes.formulas.family import exact
from parity.comparison.arrays import NOT_FINITE
from parity.numerics.distance import strict_distance
from parity.numerics.softmax import softmax
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import MODULE, WHOLE, is_float

NAN, INFINITY = "NaN", "infinity"

#: How the comparator begins what it says of them.
REASONS = "NaN or infinity", "no finite element"

#: How many numbers of a large array are computed at first.
FEW = 64


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
    for part, step, name, array in _events(trace):
        if not broken(array).any():
            continue
        if is_mask(array):
            masks.append((part, step, name, array))
            continue
        if step.path == WHOLE and part == "input":
            return _given(WHOLE, f"the model's input {name}", array)
        origin = _named(trace, part, step, name, array)
        return origin if origin.operation else _no_mask(trace, masks) or origin
    return _no_mask(trace, masks)


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
        explanations.append(Explanation(
            origin.path, origin.path, f"first {origin.word}",
            origin.operation if side == "a" else "none",
            origin.operation if side == "b" else "none",
            f"{side}'s first {origin.word} stands in {origin.where}, "
            f"{origin.rows()}{words}.", known))
    return explanations


def _no_mask(trace, masks):
    """The Origin of the first -∞ that an operation gave; None without one."""
    origins = (_named(trace, *each) for each in masks)
    return next((each for each in origins if each.operation), None)


def _events(trace):
    """(part, step, name, array) of a run, in the order of computation."""
    events = []
    for step in trace.steps:
        events += [(step.began, "input", step, name, array)
                   for name, array in step.inputs.items()]
        events += [(step.ended, "output", step, name, array)
                   for name, array in step.outputs.items()]
    return [event[1:] for event in sorted(events, key=lambda one: one[0])]


def _origin(path, where, array, operation=""):
    word = NAN if np.isnan(array).any() else INFINITY
    return Origin(path, where, word, array, operation)


def _given(path, where, array):
    return dataclasses.replace(_origin(path, where, array), given=True)


def _named(trace, part, step, name, array):
    """The Origin at an input or an output of a step, with its operation."""
    where = (f"the {part} of {step.path}" if name == part else
             f"the {part} {name} of {step.path}")
    words = set()
    if part == "output" and step.source == MODULE:
        words = set(_of_module(trace, step, name, array))
    words = words or set(_of_values(trace, part, step, array))
    return _origin(step.path, where, array,
                   words.pop() if len(words) == 1 else "")


def gives(numbers, array):
    """Whether numbers in float64 are those of an array, NaN and all.

    What its dtype cannot hold is infinite in it.
    """
    if numbers.shape != array.shape:
        return False
    largest = float(ml_dtypes.finfo(array.dtype).max)
    numbers = np.where(
        np.abs(numbers) > largest, np.sign(numbers) * np.inf, numbers)
    target, finite = exact(array), np.isfinite(array)
    if not np.array_equal(numbers[~finite], target[~finite], equal_nan=True):
        return False
    limit = model_limits(array.dtype.name)[1]
    return not finite.any() or strict_distance(
        numbers[finite], target[finite]) <= limit


def _overflow(array):
    return (f"overflow in {array.dtype.name}, whose largest number is "
            f"{float(ml_dtypes.finfo(array.dtype).max):.3g}")


def _of_module(trace, step, name, array):
    """Yield what a module's formula says of its own NaN or infinity."""
    side = side_of(trace, step.path, name)
    del side.seen[1:]
    seen = side.seen[0]
    if any(broken(value).any() for value in step.inputs.values()):
        return
    for family in FAMILIES:
        for parameters in family.readings(side):
            settings = {field: values[0] for field, values in fields_of(
                family, side, parameters).items()}
            try:
                result = family.compute(seen, parameters, settings)
            except (ValueError, IndexError, TypeError):
                continue
            if gives(result, array):
                finite = np.isfinite(result).all()
                yield (_overflow(array) if finite else
                       "0/0, as the variance and ε are 0"
                       if family.name == "norm" else "")
                return


def _of_values(trace, part, step, array):
    """Yield the operation on earlier values that gives an array."""
    before = [EarlierValue(exact(value), places) for value, places in earlier(
        trace, step, part).values() if value.shape == array.shape][-MOST:]
    for count, operations in ((1, UNARY), (2, BINARY)):
        for values in itertools.product(before, repeat=count):
            for make in operations:
                match, word = _made(make, array, [v.array for v in values])
                if match:
                    names = dict.fromkeys(map(label, values))
                    yield f"{word} ({', and '.join(names)})"
                    return


def _made(make, array, arguments):
    """Whether an operation gives an array, and the words for what is broken.

    Of a large array only some numbers are computed at first.
    """
    if make not in ALONG and array.size > 4 * FEW:
        bad = np.flatnonzero(broken(array))
        some = np.unique(np.concatenate([
            bad[:FEW], np.linspace(0, array.size - 1, FEW).astype(int)]))
        if not gives(make(*(x.reshape(-1)[some] for x in arguments))[0],
                     array.reshape(-1)[some]):
            return False, ""
    result, word = make(*arguments)
    finite = all(np.isfinite(x).all() for x in arguments)
    bad = ~np.isfinite(result)
    older = any(np.array_equal(
        np.broadcast_to(x, bad.shape)[bad], result[bad], equal_nan=True)
        for x in arguments) and bad.any()
    if not (word or finite) or older or not gives(result, array):
        return False, ""  # what is broken was broken before
    return True, word or _overflow(array)


# Operations: (result, what gave NaN or infinity; "" is overflow)

def _logarithm(x):
    return np.log(x), "log of a negative number" if (x < 0).any() else "log 0"


def _root(x):
    return np.sqrt(x), "root of a negative number"


def _inverse_root(x):
    return 1 / np.sqrt(x), (
        "root of a negative number" if (x < 0).any() else "1/√0")


def _reciprocal(x):
    return 1 / x, "1/0"


def _by_zero(x):
    return x / 0, "0/0, or 0 · ∞" if (x == 0).any() else (
        "a division by 0, or a product with ∞")


def _share(x):
    return x / x.sum(-1, keepdims=True) if x.ndim else x, _quotient_word(
        x, x.sum(-1, keepdims=True) if x.ndim else x)


def _standardised(x):
    c = x - x.mean(-1, keepdims=True) if x.ndim else x
    std = np.sqrt((c * c).mean(-1, keepdims=True)) if x.ndim else x
    return c / std, _quotient_word(c, std)


def _length(x):
    norm = np.sqrt((x * x).sum(-1, keepdims=True)) if x.ndim else x
    return x / norm, _quotient_word(x, norm)


def _softmax(x):
    whole = x.ndim and (x == -np.inf).all(-1).any()
    return softmax(x) if x.ndim else x, (
        "∞ - ∞: softmax of a row that is fully masked" if whole else "∞ - ∞")


def _exponential(x):
    return np.exp(x), ""


def _square(x):
    return x * x, ""


def _same(x):
    return x, ""


def _quotient_word(x, y):
    zero = (y == 0)
    if not zero.any():
        return "∞/∞" if np.isinf(y).any() else ""
    return "0/0" if (np.broadcast_to(zero, x.shape) & (x == 0)).any() else (
        "a division by 0")


def _quotient(x, y):
    return x / y, _quotient_word(x, y)


def _difference(x, y):
    both = np.isinf(x) & np.isinf(y)
    return x - y, "∞ - ∞" if both.any() else ""


def _sum(x, y):
    both = np.isinf(x) & np.isinf(y)
    return x + y, "∞ - ∞" if both.any() else ""


def _product(x, y):
    either = np.isinf(x) & (y == 0) | np.isinf(y) & (x == 0)
    return x * y, "0 · ∞" if either.any() else ""


#: Those that compute along rows.
ALONG = _share, _length, _standardised, _softmax
UNARY = (_same, _logarithm, _root, _inverse_root, _reciprocal, _by_zero,
         *ALONG, _exponential, _square)
BINARY = _quotient, _difference, _sum, _product
