"""The result of comparing two models, as plain data.

No framework is imported here, and nothing is rendered.
"""

import dataclasses
import math

from parity.comparison import card_html, card_text
from parity.comparison.card import card_of
from parity.comparison.layers import Layers
from parity.comparison.verdicts import (  # noqa: F401  all are had from here
    FLOAT32, GRADIENT, INCOMPLETE, INHERITED, INPUT, NEW, NOTHING, OUTPUT,
    PARAMETER, UNKNOWN, WITHIN)
from parity.matching.pairs import NameMap
from parity.matching.rearrangement import SAME
from parity.numerics.comparator import DIVERGENCE, MATCH, WORST, ZERO
from parity.numerics.words import listed, number
from parity.tracing.trace import WHOLE

SCHEMA = 1


@dataclasses.dataclass
class PairRow:
    """One pair of arrays, compared.

    Attributes:
        part: PARAMETER, INPUT, OUTPUT or GRADIENT.
        a, b: paths of the steps or parameters.
        a_name, b_name: names of the input or output, else "".
        a_layout, b_layout, by: as in matching.pairs.Pair.
        kind: the kind of a's and b's module, "" for a parameter.
        shape, dtype: of a's array, rearranged.
        error, limit, verdict, reason: as in comparator.Difference.
        order: when it was computed in a's run; 0 for parameters.
        local, local_limit, local_verdict: b's module on a's inputs, or None.
        local_reason: why there is no local error, or why it diverges.
        inherited: the largest error of the step's paired floating inputs, or
            None where none was paired.
        origin: of a divergence: NEW, INHERITED, WITHIN where a part of the
            module diverges already, or UNKNOWN; else "".
        counted: whether a divergence counts in the verdict; false where two
            inputs may not belong together.
        note: a remark, such as NaN on both sides.
        rounding: whether its divergence is shown to be float32's rounding
            inside its step, or what its inputs had of it; of a gradient,
            whether it is no larger than that may make it.
    """

    part: str
    a: str
    b: str
    a_name: str
    b_name: str
    a_layout: str
    b_layout: str
    by: str
    kind: str
    shape: tuple
    dtype: str
    error: float | None
    limit: float
    verdict: str
    reason: str = ""
    order: int = 0
    local: float | None = None
    local_limit: float | None = None
    local_verdict: str = ""
    local_reason: str = ""
    inherited: float | None = None
    origin: str = ""
    counted: bool = True
    note: str = ""
    rounding: bool = False

    @property
    def diverges(self):
        """Whether this row makes the verdict a divergence."""
        return self.counted and DIVERGENCE in (
            self.verdict, self.local_verdict)

    @property
    def layouts(self):
        """How it is stored in each, in words; "" where both are alike."""
        return "; ".join(f"{side}: {layout}" for side, layout in (
            ("a", self.a_layout), ("b", self.b_layout)) if layout != SAME)

    @property
    def name(self):
        """The row's name in a, to be shown."""
        return f"{self.a} · {self.a_name}" if self.a_name else self.a


@dataclasses.dataclass
class Comparison:
    """The result of compare.

    Attributes:
        rows: every PairRow: parameters first, then in the order of computation.
        names: the NameMap that was used.
        notes: remarks, a sentence each.
        a, b: the two models: framework, versions, precision, dtype, hashes,
            folder.
        local: whether local errors were computed.
        of: the content_hash of each of the two Traces.
        left_out: what of the models' outputs could not be compared, in words.
        explanations: the result of causes.explain.explain, if it was called.
        layers: the comparison.layers.Layers that were compared, or None for
            the whole models.
        decided: the verdict that the models' operations gave, or "".
        roundings: "a" and "b" -> (place, dtype, what it costs or None) of each
            line at which a model rounds to something shorter than float64.
        corrected: what the outputs are once every cause is corrected in b, a
            sentence, or "".
        seconds: how long the comparison took, or None.
        partly: which of the outputs are known in part alone, in words.
    """

    rows: list
    names: NameMap
    notes: list
    a: dict
    b: dict
    local: bool
    of: tuple
    left_out: list
    explanations: list = dataclasses.field(default_factory=list)
    layers: Layers | None = None
    decided: str = ""
    roundings: dict = dataclasses.field(default_factory=dict)
    corrected: str = ""
    seconds: float | None = None
    partly: list = dataclasses.field(default_factory=list)

    @property
    def compared(self):
        """How many rows count: no zeros, and pairs that belong together."""
        return sum(row.counted and row.verdict != ZERO for row in self.rows)

    @property
    def divergences(self):
        """The rows that diverge: steps in order of computation, then the rest.

        Where every output agrees these are gradients alone: inner steps that
        differ all the same are no counterparts.
        """
        diverging = [row for row in self.rows if row.diverges]
        if self.outputs_agree:
            diverging = [row for row in diverging if row.part == GRADIENT]
        first = {OUTPUT: 0, INPUT: 0, GRADIENT: 2, PARAMETER: 1}
        return sorted(diverging, key=lambda row: (first[row.part], row.order))

    @property
    def first(self):
        """The first row of a step that diverges, else of a parameter, else of
        a gradient; None where nothing does. float32's rounding comes last."""
        return min(self.divergences, key=lambda row: row.rounding,
                   default=None)

    @property
    def verdict(self):
        """MATCH, DIVERGENCE, FLOAT32, NOTHING, or INCOMPLETE.

        INCOMPLETE: all that was compared matches, but the models' outputs were
        not among it, not wholly, or were zero everywhere; or not all layers
        were. Or all but gradients is float32's rounding, and they are so near
        that they may be: of them nothing is shown to the bit.
        """
        if self.decided and not self._gradients_differ:
            return self.decided
        diverging = self.divergences
        if not all(row.rounding for row in diverging):
            return DIVERGENCE
        if diverging:
            return INCOMPLETE if self._gradients else FLOAT32
        if not any(row.verdict == MATCH and row.part != INPUT
                   for row in self.rows):
            return NOTHING  # only the inputs were compared
        ends = [row for row in self.rows if row.part == OUTPUT
                and row.a == WHOLE and row.b == WHOLE
                and row.verdict == MATCH]
        return (MATCH if ends and not self.left_out and not self._partial
                and not self.partly else INCOMPLETE)

    @property
    def outputs_agree(self):
        """Whether all of the models' outputs were compared and match."""
        ends = [row for row in self.rows if row.part == OUTPUT
                and row.a == WHOLE and row.b == WHOLE]
        return (any(row.verdict == MATCH for row in ends)
                and not any(row.diverges for row in ends)
                and not self.left_out and not self._partial)

    @property
    def _gradients_differ(self):
        """Whether a gradient differs, which operations do not tell of."""
        return any(row.part == GRADIENT and row.diverges for row in self.rows)

    @property
    def _partial(self):
        """Whether layers were left out."""
        return self.layers is not None and not self.layers.whole

    @property
    def _gradients(self):
        """The gradients that differ by about as much as float32 makes them."""
        return [row for row in self.rows if row.part == GRADIENT
                and row.diverges and row.rounding]

    @property
    def status(self):
        """The exit status: 0 match, also but for float32 inside, 1 divergence,
        4 nothing, or not all, compared."""
        return {MATCH: 0, FLOAT32: 0, DIVERGENCE: 1}.get(self.verdict, 4)

    def as_json(self):
        """Everything as plain data; an error that is no number is null."""
        def plain(row):
            fields = dataclasses.asdict(row) | {
                "shape": list(row.shape), "diverges": row.diverges}
            return {name: None if isinstance(value, float)
                    and not math.isfinite(value) else value
                    for name, value in fields.items()}
        return {
            "schema": SCHEMA, "verdict": self.verdict,
            "compared": self.compared, "local": self.local,
            "first": self.first and plain(self.first),
            "sentence": self.sentence(), "card": self.card().as_json(),
            "explanations": [each.as_json() for each in self.explanations],
            "a": self.a, "b": self.b, "notes": self.notes,
            "left_out": self.left_out, "partly": self.partly,
            "layers": None if self.layers is None else str(self.layers),
            "only_a": self.names.only_a, "only_b": self.names.only_b,
            "rows": [plain(row) for row in self.rows],
        }

    def card(self):
        """The answer, short, as plain data."""
        return card_of(self)

    def __str__(self):
        """The card, in at most 80 columns."""
        return card_text.text(self.card())

    __repr__ = __str__

    def _repr_html_(self):
        """The card, as a notebook shows it."""
        return card_html.html(self.card())

    def sentence(self):
        """The verdict in a sentence or two."""
        verdict, first = self.verdict, self.first
        left = (self.layers.rest()
                if self.layers is not None and self._partial else "")
        if verdict == NOTHING:
            return ("Nothing was compared: no pair of arrays has any numbers "
                    "but zeros.")
        if verdict == INCOMPLETE and self._gradients:
            return (f"{self._in_float32()} That their gradients differ by "
                    "float32's rounding alone is likely and not shown: "
                    "compare these in two models without float32 inside.")
        if verdict == INCOMPLETE and left:
            return f"{self._all}. {left}"
        if verdict == INCOMPLETE and self.partly:
            return (f"{self._all}, but of the models' outputs not all numbers "
                    f"are known: {'; '.join(self.partly)}.")
        if verdict == INCOMPLETE and self.left_out:
            return (f"{self._all}, but not all "
                    f"of the models' outputs were compared: {self._left_out}.")
        if verdict == INCOMPLETE:
            return (f"{self._all}, but the "
                    "models' outputs were not compared.")
        if verdict == MATCH:
            return (f"{self._all}, including "
                    f"the models' outputs{self._rearranged}.")
        rest = left and f" {left}"
        if verdict == FLOAT32:
            return self._in_float32() + rest
        return _sentence(first, self.rows) + rest

    @property
    def _all(self):
        """That all that was compared matches, in words."""
        return ("The one array compared matches" if self.compared == 1
                else f"All {self.compared} arrays compared match")

    @property
    def _rearranged(self):
        """Which of the outputs are stored otherwise in one model, in words."""
        words = [f"{row.a_name} ({row.layouts})" for row in self.rows
                 if row.part == OUTPUT and row.a == WHOLE and row.layouts]
        return f", rearranged: {'; '.join(words)}" if words else ""

    @property
    def _left_out(self):
        """What of the outputs was not compared, or the first of it."""
        more = len(self.left_out) - 3
        return "; ".join(self.left_out[:3]) + (
            f"; and {more} more" if more > 0 else "")

    def _in_float32(self):
        """Where float32 is inside, and how far the outputs are apart."""
        if self.decided:
            largest = max((row.error for row in self.rows
                           if row.part == OUTPUT and row.a == WHOLE
                           and row.error is not None), default=0.0)
            return ("The models are equal but for float32 inside: as they are"
                    f" their outputs differ by {number(largest)}.")
        places = dict.fromkeys(
            path for each in self.explanations
            for path in (each.a, *(one for one, _ in each.also)))
        names = [*places] if len(places) < 4 else [
            *[*places][:3], f"{len(places) - 3} more"]
        largest = max(row.error for row in self.rows if row.diverges
                      and row.part != GRADIENT and row.error is not None)
        return (f"The models are equal but for float32 inside {listed(names)}: "
                f"the largest error is {number(largest)}." + (
                    f" Not compared of their outputs: {self._left_out}."
                    if self.left_out else ""))


def _sentence(first, rows):
    """The first divergence in words."""
    reason = "" if first.reason.startswith(WORST) else first.reason
    error = reason if first.error is None else (
        f"error {number(first.error)}, limit {number(first.limit)}"
        + (f"; {reason}" if reason else ""))
    if first.verdict != DIVERGENCE:
        error = (f"local error {number(first.local)}, limit "
               f"{number(first.local_limit)}")
    words = {PARAMETER: "the parameter", GRADIENT: "the gradient by",
             INPUT: "the input", OUTPUT: "the output"}[first.part]
    where = first.a if not first.a_name else f"{first.a_name} of {first.a}"
    if first.part == OUTPUT and first.a_name == "output":
        words, where = "the output of", first.a
    if first.part == INPUT and first.a_name == "input":
        words, where = "the input of", first.a
    if first.part == OUTPUT and first.a_name.startswith("output."):
        words = "the"
    text = f"The first divergence is {words} {where}"
    text += (f" ({first.b} in b)" if first.b != first.a else "") + f": {error}."
    if first.part == INPUT and first.a != WHOLE and any(
            row.part == OUTPUT and row.order < first.order for row in rows):
        text += (" Every step compared before it matches, so the models "
                 "differ between those steps and this input.")
    wrong = [row.a for row in rows if row.part == PARAMETER and row.diverges]
    parameters = [path for path in wrong if first.part == OUTPUT and (
        first.a == WHOLE
        or path.startswith(first.a.partition("#")[0] + "."))]
    if parameters:
        text += f" Its parameter {parameters[0]} differs too."
    elif first.origin == NEW:
        text += " Given a's inputs it differs too: the fault is in this step."
    return text


def describe(trace):
    """A trace's description, as plain data."""
    return {"framework": trace.framework, "versions": trace.versions,
            "precision": trace.precision, "dtype": trace.dtype,
            "steps": len(trace.steps), "parameters": len(trace.parameters),
            "inputs_hash": trace.inputs_hash,
            "parameters_hash": trace.parameters_hash,
            "folder": trace.origin, "notes": trace.notes}
