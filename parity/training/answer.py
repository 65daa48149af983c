"""The answer of ``parity.diff_training``: verdict, rows, causes, card."""

import dataclasses

from parity_io.errors import plural, visible
from parity.comparison import card_html, card_text
from parity.comparison.card import Card, CardCause, _plain
from parity.comparison.card_path import AGREES, DIFFERS, StepGroup
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import number
from parity.training.lockstep import QUANTITIES

#: How many notes a card shows.
NOTES = 4


@dataclasses.dataclass
class TrainingComparison:
    """Two training runs, compared step by step.

    Attributes:
        verdict: MATCH, DIVERGENCE or FLOAT32.
        steps: how many steps were taken.
        rows: the lockstep.StepRows of B in lockstep with A.
        causes: cause.TrainingCauses.
        lines: {"a": places.Lines, "b": …}.
        frameworks, optimizers: of a and b.
        apart: how far the weights' changes are apart after the last step when
            each runs by itself, or None where that was not asked.
        notes: remarks, a sentence each.
        seconds: how long it took.
    """

    verdict: str
    steps: int
    rows: list
    causes: list
    lines: dict
    frameworks: tuple
    optimizers: tuple
    apart: float | None = None
    notes: list = dataclasses.field(default_factory=list)
    seconds: float | None = None

    @property
    def status(self):
        """The exit status: 0 match, also but for float32 inside; else 1."""
        return int(self.verdict == DIVERGENCE)

    @property
    def first(self):
        """The first StepRow that differs, or None."""
        if self.verdict == MATCH:
            return None
        return next((row for row in self.rows if row.differs), None)

    def card(self):
        """Its comparison.card.Card."""
        told = [cause for cause in self.causes if cause.what]
        lost = [cause for cause in self.causes if not cause.what]
        numbers = {id(cause): i for i, cause in enumerate(told, 1)}
        return Card(
            self.verdict, self._summary(told, lost), self.seconds,
            self.frameworks,
            tuple(self._cause(numbers.get(id(cause), "?"), cause)
                  for cause in (*told, *lost)),
            tuple(self._path(numbers)) if self.verdict != MATCH else (),
            "", self._first(), "", {}, tuple(map(visible, self._notes())))

    def _summary(self, told, lost):
        """What was found, in a few words."""
        if self.verdict == MATCH:
            return f"{plural(self.steps, 'step')} of training agree"
        proved = sum(bool(cause.proof) for cause in told)
        words = []
        if told:
            words.append(plural(len(told), "cause") + (
                ", proved" if proved == len(told) else
                f", {proved} proved" if proved else ""))
        if lost:
            words.append("cause not identified" if not told else
                         f"{len(lost)} not identified")
        first = self.first or (self.causes and self.causes[0])
        if first:
            words.append(_moment(first.step, first.quantity))
        return " · ".join(words)

    def _cause(self, count, cause):
        """A TrainingCause as a card has it."""
        places = [*cause.places] or [
            (group and self.lines[side].of_group(*group))
            or self.lines[side].of(*cause.topics)
            for side, group in zip("ab", cause.groups or (None, None))]
        where = " · ".join(filter(None, (
            _moment(cause.step, cause.quantity), cause.where)))
        return CardCause(
            "≈" if cause.rounding else count, *map(visible, (
                cause.what, where, cause.in_a, cause.in_b, *places)),
            proof=visible(cause.proof), write=visible(cause.write),
            evidence=tuple(map(visible, cause.evidence)))

    def _path(self, numbers):
        """Which quantities of each step agree, as StepGroups."""
        at: dict = {}
        of: dict = {}
        for cause in self.causes:
            number = numbers.get(id(cause), "?")
            at.setdefault((cause.step, cause.quantity), number)
            of.setdefault(cause.quantity, number)
        for step in range(self.steps + 1):
            marks = []
            for quantity in QUANTITIES:
                rows = [row for row in self.rows
                        if (row.step, row.quantity) == (step, quantity)]
                mark = f"{DIFFERS}{at[step, quantity]}" if (
                    step, quantity) in at else AGREES if not any(
                    row.differs for row in rows) else (
                    f"{DIFFERS}{of.get(quantity, '')}")
                if rows or (step, quantity) in at:
                    marks.append((quantity, mark))
            if marks:
                yield StepGroup(f"step {step}" if step else "start",
                                tuple(marks))

    def _first(self):
        """The first quantity that differs, by how much, and the end."""
        row = self.first
        if row is None:
            return ""
        of = f" of {visible(row.b)}" if row.b else ""
        by = (" (one side has none)" if row.error is None else
              f", {number(row.error)} (limit {number(row.limit)})")
        moment = _moment(row.step, row.quantity)
        end = "" if self.apart is None else (
            f" By themselves they are {number(self.apart)} apart after "
            f"{plural(self.steps, 'step')}.")
        return f"First to differ: {moment}{of}{by}.{end}"

    def _notes(self):
        """What was compared, and the first remarks."""
        if self.verdict == MATCH:
            near = [row for row in self.rows if row.error and row.limit
                    and row.counted and not row.differs]
            if near:
                row = max(near, key=lambda row: row.error / row.limit)
                yield ("Nearest to a limit: "
                       f"{_moment(row.step, row.quantity)}"
                       f"{f' of {row.b}' * bool(row.b)}, "
                       f"{number(row.error)} of {number(row.limit)}.")
        yield from self.notes[:NOTES]
        if len(self.notes) > NOTES:
            yield f"And {plural(len(self.notes) - NOTES, 'more note')}."

    def as_json(self):
        """All of it as plain data."""
        return _plain({
            "verdict": self.verdict, "steps": self.steps,
            "frameworks": self.frameworks, "optimizers": self.optimizers,
            "apart": self.apart, "seconds": self.seconds,
            "notes": self.notes, "card": self.card().as_json(),
            "causes": [dataclasses.asdict(each) for each in self.causes],
            "rows": [dataclasses.asdict(row) for row in self.rows]})

    def __str__(self):
        return card_text.text(self.card())

    __repr__ = __str__

    def _repr_html_(self):
        return card_html.html(self.card())


def _moment(step, quantity):
    """A step's quantity in words."""
    return f"step {step}, {quantity}" if step else f"start, {quantity}"


