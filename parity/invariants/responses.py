"""What became of a model that was asked in several ways, as plain data."""

import dataclasses
import math

import numpy as np

from parity_io.errors import visible
from parity.causes.hint import held
from parity.comparison.arrays import compare_values
from parity.comparison.result import INCOMPLETE, NOTHING
from parity.numerics.comparator import DIVERGENCE, ZERO
from parity.numerics.tolerances import model_limits
from parity.numerics.words import number
from parity.tracing.trace import WHOLE, is_float

BITWISE, ROUNDING, FLOAT32, WRONG = (
    "bitwise", "within rounding", "within float32's rounding", "wrong")

#: From good to bad.
VERDICTS = (NOTHING, BITWISE, ROUNDING, FLOAT32, WRONG)


@dataclasses.dataclass
class Response:
    """What a model answered in one way, against the first.

    Attributes:
        way: how it was asked, in words.
        verdict: BITWISE, ROUNDING, FLOAT32, WRONG or NOTHING.
        error: the largest relative error of the model's outputs, or None.
        limit: the largest error that is rounding.
        step: the first step that parts, by bits or beyond rounding as the
            verdict has it, else "".
        step_error: its error, or None.
        place: which tokens of a cached run are the first that are wrong.
        cause: why, where that is proved; else "".
        source: the line of source of the cause, or "".
        known: what else is known, a sentence each.
        left_out: the names of the model's outputs that could not be compared.
    """

    way: str
    verdict: str
    error: float | None = None
    limit: float = 0.0
    step: str = ""
    step_error: float | None = None
    place: str = ""
    cause: str = ""
    source: str = ""
    known: list = dataclasses.field(default_factory=list)
    left_out: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Responses:
    """All Responses of one model.

    Attributes:
        responses: one Response a way.
        model: framework, versions, precision, dtype, as a trace has them.
        notes: remarks, a sentence each.
        left: those of the notes that say why a way that was named could not
            be asked.
        not_asked: the other ways that could not.
    """

    responses: list
    model: dict
    notes: list = dataclasses.field(default_factory=list)
    left: list = dataclasses.field(default_factory=list)
    not_asked: list = dataclasses.field(default_factory=list)

    @property
    def verdict(self):
        """The worst of all; INCOMPLETE where none is WRONG, and not all that
        was asked could be compared."""
        worst = max((each.verdict for each in self.responses),
                    key=VERDICTS.index, default=NOTHING)
        if worst not in (WRONG, NOTHING) and (self.left or any(
                each.verdict == NOTHING or each.left_out
                for each in self.responses)):
            return INCOMPLETE
        return worst

    @property
    def status(self):
        """The exit status: 0 right, 1 wrong, 4 not all was compared."""
        return {WRONG: 1, NOTHING: 4, INCOMPLETE: 4}.get(self.verdict, 0)

    def as_json(self):
        """Everything as plain data; an error that is no number is null."""
        return {"schema": 1, "verdict": self.verdict, "model": self.model,
                "notes": self.notes, "not_asked": self.not_asked,
                "responses": [
                    {name: None if isinstance(value, float)
                     and not math.isfinite(value) else value
                     for name, value in vars(each).items()}
                    for each in self.responses]}

    def __str__(self):
        """A line a way, what is known, and the verdict."""
        width = max((len(each.way) for each in self.responses), default=0)
        lines = []
        for each in self.responses:
            error = "" if each.error is None else (
                f"{number(each.error)}, limit {number(each.limit)}")
            lines.append(f"{each.way:{width}}  {each.verdict:25}  "
                         f"{error}".rstrip())
            if each.verdict == WRONG and each.step:
                lines.append(f"  first at {each.step}" + (
                    "" if each.step_error is None else
                    f": error {number(each.step_error)}"))
            lines += [f"  {sentence}" for sentence in each.known]
            if each.left_out:
                lines.append(f"  not compared: {', '.join(each.left_out)}")
        beside = (f"; not asked: {', '.join(self.not_asked)}"
                  if self.not_asked else "")
        lines += [*(f"note: {note}" for note in self.notes),
                  f"verdict: {self.verdict}{beside}"]
        return "\n".join(map(visible, lines))


def judged(way, pairs):
    """The Response that pairs of arrays give.

    Args:
        way: how the model was asked.
        pairs: (path, name, expected, actual) of each pair, in order of
            computation; those of WHOLE decide.

    Returns:
        A Response, and the pair at which it parts first, or None.
    """
    response, limit = Response(way, NOTHING), 0.0
    parts: dict = {}
    for pair in pairs:
        path, name, expected, actual = pair
        limits = model_limits(expected.dtype.name)[0]
        bound = 0.0 if math.isnan(limits) else limits
        difference, _ = compare_values(actual, expected, bound,
                                       expected.dtype.name)
        if difference.verdict == ZERO:
            continue  # zero, or NaN everywhere: it proves nothing
        error = (math.inf if difference.error is None
                 else float(difference.error))
        if np.array_equal(expected, actual, equal_nan=is_float(expected)):
            verdict = BITWISE
        elif difference.verdict != DIVERGENCE:
            verdict = ROUNDING
        else:
            verdict = WRONG
        if verdict != BITWISE:
            parts.setdefault(verdict, (pair, error))
        if path == WHOLE:
            response.verdict = max(response.verdict, verdict,
                                   key=VERDICTS.index)
            response.error = max(response.error or 0.0, error)
            limit = max(limit, bound)
    response.limit = limit
    first, response.step_error = parts.get(response.verdict, (None, None))
    if first is None:
        return response, None
    path, name, *arrays = first
    response.step = path if name == "output" else f"{path} · {name}"
    if response.verdict == WRONG and in_float32(first, pairs, response.error):
        response.verdict = FLOAT32
        response.known.append(
            f"{path} hands on weights that float32 can hold, so that it has "
            "float32 inside.")
    return response, first


def in_float32(first, pairs, error):
    """Whether a step in float64 has float32 inside, and parts by no more.

    It shows where the step hands on attention's weights, which add up to 1:
    float32 can hold each of them.

    Args:
        first: the pair at which the two part first.
        pairs: all pairs, (path, name, expected, actual).
        error: the largest relative error of the model's outputs.
    """
    path, _, expected, _ = first
    return expected.dtype == np.float64 and error <= (
        model_limits("float32")[0]) and any(
        other == path and array.dtype == np.float64
        and array.min(initial=0) >= 0 and held(array)
        and np.allclose(array.sum(-1), 1, atol=1e-5)
        for other, _, array, _ in pairs)
