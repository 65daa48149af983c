"""Whether an answer is right: held against what is right, as a port is.

The answer ran in a process of its own (parity.course.answering); here are only
its record and the reference.
"""

import dataclasses

import numpy as np

from parity_io.errors import visible
from parity.causes import catalogue
from parity.causes.hint import Hint
from parity.course.record import Other
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.distance import strict_distance

RIGHT, WRONG, UNUSABLE = 0, 1, 2

#: The longest of what is quoted.
LONGEST = 200

#: Below this relative error it is rounding that differs, and no pattern.
ROUNDING = 1e-6


#: So many roundings of a narrower dtype make no other answer.
ROUNDINGS = 100

#: In how many digits a row is shown: the first in which it differs.
DIGITS = (6, 9, 12, 17)

#: How many numbers of a row are shown, got and expected.
ROW = 5


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is said of an answer, and what more, step by step.

    Attributes:
        status: RIGHT, WRONG or UNUSABLE.
        sentence: what is so.
        numbers: lines of what it gives and what is right, where it is wrong.
        hint: a sentence on the mistake, as far as it is known.
        unknown: whether it gives a wrong value of which nothing is known.
    """

    status: int
    sentence: str
    numbers: str = ""
    hint: str = ""
    unknown: bool = False


def judged(exercise, path, record):
    """The Verdict on the record of the answer in a file."""
    calls, answers = exercise.inputs(), record["answers"]
    if "stage" in record:
        return Verdict(*stop(exercise, path, record, calls))
    if record.get("imports"):
        names = quote(", ".join(map(str, record["imports"])))
        return Verdict(WRONG, (
            f"{exercise.number} is not judged: the answer imports {names}, "
            "where what is right stands; write it without them."))
    if record.get("uses"):
        names = quote(", ".join(map(str, record["uses"])))
        return Verdict(WRONG, (
            f"{exercise.number} is not judged: the answer uses {names}, which "
            "does what the task asks for; write it out."))
    truths = [exercise.right(*arguments) for arguments in calls]
    if len(answers) != len(truths):
        return Verdict(
            WRONG, "the answer was ended before it could be judged.")
    for place, (answer, truth) in enumerate(zip(answers, truths), start=1):
        if problem := difference(answer, truth, exercise):
            more = hints(exercise, calls, record, truths, place - 1)
            return Verdict(WRONG, (
                f"{exercise.number} is not right yet. On inputs {place} of "
                f"{len(calls)}, {shown(exercise, calls[place - 1])}: "
                f"{problem}."), numbers_of(answer, truth), more, not more)
    changed = record.get("changed")
    if changed is not None:
        return Verdict(WRONG, (
            f"{exercise.number} is not right yet. What it returns is, but it "
            f"changes {parameter(exercise, changed)}, which is the caller's; "
            "work on a copy."))
    return Verdict(RIGHT, (f"{exercise.number} is right: {len(calls)} inputs, "
                           "each within the limit."))


def hints(exercise, calls, record, truths, place):
    """What is known of the mistake in the answers, in sentences, or "".

    Args:
        record: of the answers, and which argument they change.
        place: which of them is the first that is not right.
    """
    answers, changed = record["answers"], record.get("changed")
    answer, truth = answers[place], truths[place]
    said = []
    if changed is not None:
        said.append(f"It changes {parameter(exercise, changed)}, which is the "
                    "caller's; work on a copy.")
    if answer is None:
        said.append("None is what a function returns that ends without "
                    "'return'; one of its ways does.")
    if isinstance(answer, str) and exercise.names and (
            answer not in exercise.names):
        said.append(f"{quote(repr(answer))} is none of the names that the "
                    "task gives.")
    shaped = list(map(reshaped, answers, truths))
    if changed is None and (
            known := mistake_of(exercise, calls, shaped)):
        said.append(known)
    elif not difference(shaped[place], truth, exercise):
        said.append("Only the shape is wrong: the numbers are right.")
    elif is_of_another_dtype(shaped[place], truth):
        said.append(f"Only the dtype is wrong: {shaped[place].dtype} is "
                    f"returned, and {truth.dtype} is asked for.")
    elif changed is None and (known := mistake_of(
            exercise, [calls[place]], [shaped[place]], True)):
        said.append(f"On inputs {place + 1} it gives what a mistake gives, "
                    f"on others it does not. {known}")
    elif known := hint(answer, truth, exercise.limit):
        said.append(known.strip())
    return " ".join(said)


def reshaped(answer, truth):
    """An array in the shape of what is right, where axes of 1 alone differ."""
    if not (isinstance(answer, np.ndarray) and isinstance(truth, np.ndarray)):
        return answer
    bare, wanted = ([size for size in one.shape if size != 1]
                    for one in (answer, truth))
    return answer.reshape(truth.shape) if bare == wanted else answer


def is_of_another_dtype(answer, truth):
    """Whether an array is right but for its dtype, and what that rounds."""
    if not (isinstance(answer, np.ndarray) and isinstance(truth, np.ndarray)
            and answer.shape == truth.shape and answer.dtype.kind in "biuf"
            and answer.dtype != truth.dtype):
        return False
    got, right = (one.astype(np.float64) for one in (answer, truth))
    if {answer.dtype.kind, truth.dtype.kind} != {"f"}:
        return np.array_equal(got, right)
    fine = max(np.finfo(one.dtype).eps for one in (answer, truth))
    return bool(strict_distance(got, right) <= ROUNDINGS * fine)


def numbers_of(answer, truth):
    """The first row in which two arrays of one shape differ, both in lines.

    Or "", where there is no such row.
    """
    if isinstance(truth, (tuple, list)):
        pairs = zip(answer, truth) if isinstance(answer, (tuple, list)) else ()
        return next(filter(None, (numbers_of(*pair) for pair in pairs)), "")
    if not (isinstance(answer, np.ndarray) and isinstance(truth, np.ndarray)
            and answer.shape == truth.shape and truth.size
            and answer.dtype.kind in "biuf"):
        return ""
    got, right = wide = [np.atleast_1d(one).astype(np.float64)
                         for one in (answer, truth)]
    apart = ~np.isclose(got, right, rtol=1e-9, atol=1e-12, equal_nan=True)
    if not apart.any():
        return ""
    *row, column = np.argwhere(apart)[0].tolist()
    first = max(0, min(column - 1, wide[0].shape[-1] - ROW))
    rows = [one[tuple(row)][first:first + ROW] for one in wide]
    rows = [one.astype(bool) if kind.dtype.kind == "b" else one
            for one, kind in zip(rows, (answer, truth))]
    for digits in DIGITS:
        lines = [[str(value) if one.dtype.kind == "b" else f"{value:.{digits}g}"
                  for value in one] for one in rows]
        if lines[0] != lines[1]:
            break
    at = ", ".join([*map(str, row), f"{first}:{first + len(lines[0])}"]
                   ) if truth.ndim else "0"
    space = max(len(word) for line in lines for word in line)
    return "\n".join(
        [f"The first that differs is in [{at}]:",
         *(f"  {name:9}" + " ".join(word.rjust(space) for word in line)
           for name, line in zip(("got", "expected"), lines))])


def stop(exercise, path, record, calls):
    """(status, sentence) of an answer that stopped at a stage."""
    name, words = visible(path.name), quote(record.get("words", ""))
    stage = record["stage"]
    if stage == "read":
        return UNUSABLE, f"{str(path)!r} cannot be read ({words})."
    if stage == "run":
        line = record.get("line")
        where = f", line {line}," if isinstance(line, int) else ""
        return UNUSABLE, (f"{name}{where} cannot be run: it raises {words}.")
    if stage == "name":
        return UNUSABLE, (
            f"{name} defines no function {exercise.function!r}"
            + (f", but {words}" if words else "")
            + "; keep the name that the task gives.")
    if stage == "unwritten":
        return WRONG, (f"{exercise.function} is not written yet: replace the "
                       "line that raises NotImplementedError.")
    place, line = record.get("place"), record.get("line")
    where = f", line {line}," if isinstance(line, int) else ""
    of = (f" on inputs {place} of {len(calls)}: "
          + shown(exercise, calls[place - 1])
          if place in range(1, len(calls) + 1) else "")
    return WRONG, f"{exercise.function}{where} raises {words}{of}."


def parameter(exercise, place):
    """The name of an argument."""
    names = exercise.parameters
    return f"{names[place]!r}" if place in range(len(names)) else "an argument"


def quote(words):
    """Foreign words on one line, not too many."""
    words = str(words)
    if len(words) > LONGEST:
        words = words[:LONGEST].rsplit(maxsplit=1)[0] + " …"
    return visible(words)


def shown(exercise, arguments):
    """The inputs of a call in a few words, each behind its name."""
    def words(value):
        if isinstance(value, np.ndarray):
            return f"{value.dtype} {list(value.shape)}"
        if callable(value):
            return "a function"
        if len(repr(value)) < 40:
            return repr(value)
        return f"a {type(value).__name__} of {len(value)}"
    return ", ".join(f"{name} {words(value)}" for name, value
                     in zip(exercise.parameters, arguments))


def difference(answer, truth, exercise):
    """In what an answer differs from what is right; "" if in nothing."""
    if isinstance(truth, (tuple, list)):
        return _items_differ(answer, truth, exercise)
    if not isinstance(truth, (np.ndarray, np.floating, float)):
        if isinstance(answer, (np.integer, np.ndarray)) and (
                answer.dtype.kind in "iu" and not answer.shape):
            answer = int(answer)  # a framework's number is an array
        equal = type(answer) is type(truth) and answer == truth
        return "" if equal else f"{quote(repr(answer))}, not {truth!r}"
    truth = np.asarray(truth)
    if isinstance(answer, Other):
        return (f"not an array but {quote(answer.kind)}; a plain NumPy array "
                "is asked for" if truth.ndim else
                f"not a number but {quote(answer.kind)}")
    if isinstance(answer, (float, np.generic)):
        answer = np.asarray(answer)
    if isinstance(answer, np.ndarray):
        answer = _as_wide(answer, truth)
    if isinstance(answer, np.ndarray) and not truth.any():
        if answer.shape == truth.shape and not answer.any():
            return ""  # zeros, which have no relative error
        return "numbers that are not 0, where all should be"
    result = compare(answer, truth, exercise.limit)
    if result.verdict != DIVERGENCE:
        if exercise.zeros and answer[truth == 0].any():
            return "numbers that are not 0, where they have to be exactly 0"
        return ""
    if result.error is None or result.limit == 0:
        return result.reason
    return (f"relative L2 error {result.error:.1e}, limit "
            f"{exercise.limit:.0e}")


def _as_wide(answer, truth):
    """An answer in the dtype of what is right, where both are whole numbers,
    or where it is a wider float than that."""
    whole = answer.dtype.kind in "iu" and truth.dtype.kind == "i"
    wider = (answer.dtype.kind == truth.dtype.kind == "f"
             and answer.itemsize > truth.itemsize == 8)
    return answer.astype(truth.dtype) if whole or wider else answer


def _items_differ(answer, truth, exercise):
    """The same of a tuple of values, or of a list of equal ones."""
    kind, other = type(truth).__name__, getattr(
        answer, "kind", type(answer).__name__)
    if type(answer) is not type(truth):
        return f"{quote(other)} is returned, not a {kind} of {len(truth)}"
    if isinstance(truth, list):
        pairs = [difference(*pair, exercise) for pair in zip(answer, truth)]
        if len(answer) == len(truth) and not any(pairs):
            return ""
        place = next((i for i, pair in enumerate(pairs) if pair), None)
        unlike = ("" if place is None or repr(answer[place]) != repr(
            truth[place]) else f", item {place} of another type")
        return f"{quote(answer)}, not {quote(truth)}{unlike}"
    if len(answer) != len(truth):
        return f"{len(answer)} values are returned, not {len(truth)}"
    for place, (one, other) in enumerate(zip(answer, truth), start=1):
        if problem := difference(one, other, exercise):
            return f"result {place} of {len(truth)}: {problem}"
    return ""


def mistake_of(exercise, calls, answers, alone=False):
    """A sentence on the mistake that gives these very answers, or "".

    Args:
        alone: whether it has to be the only one that does.
    """
    found = []
    for name, function in exercise.mistakes.items():
        with np.errstate(all="ignore"):
            gives = [function(*arguments) for arguments in calls]
        if all(_without_number(answer, one)
               or not difference(answer, one, exercise)
               for answer, one in zip(answers, gives)):
            found.append(name)
    if not found or (alone and len(found) > 1):
        return ""
    cause = next((each for each in catalogue.causes()
                  if each.name == found[0]), None)
    if cause:
        return f"It is a known mistake, “{cause.name}”: {cause.sentence}"
    return f"A known way to get it: {found[0]}."


def _without_number(answer, other):
    """Whether two arrays have NaN everywhere, so that nothing is compared."""
    return all(isinstance(one, np.ndarray) and one.dtype.kind == "f"
               and np.isnan(one).all() for one in (answer, other)
               ) and answer.shape == other.shape


def hint(answer, truth, limit):
    """What two arrays look like beside each other, in a sentence, or ""."""
    arrays = (isinstance(truth, np.ndarray) and truth.dtype.kind == "f"
              and isinstance(answer, np.ndarray) and answer.dtype.kind == "f"
              and answer.size and truth.any()
              and np.isfinite(answer).all() and np.isfinite(truth).all())
    if not arrays:
        return ""
    answer = np.asarray(answer, np.float64)
    error = strict_distance(answer, truth)
    if error < ROUNDING:
        return ""
    text = Hint(answer, truth, error if np.isfinite(error) else None, limit,
                ("your answer", "what is right"), False).text()
    return f" By the numbers: {text}." if text else ""
