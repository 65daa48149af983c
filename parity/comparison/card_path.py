"""Which steps agree, on one line: ``tok ✓ │ blocks.0  ln1 ✗1 … fc2 ✗2``.

Steps come in the order of computation. A step that agrees has ✓. One where a
cause sits has ✗ and the cause's number. The others differ by what comes in,
and have no mark.
"""

import dataclasses
import itertools
import re

from parity_io.errors import visible
from parity.comparison.verdicts import OUTPUT
from parity.numerics.comparator import ZERO
from parity.tracing.trace import WHOLE

AGREES, DIFFERS, NEAR = "✓", "✗", "≈"


@dataclasses.dataclass(frozen=True)
class StepGroup:
    """Steps of one layer, or several layers that are alike.

    Attributes:
        label: "blocks.0" or "blocks.0 … blocks.11"; "" outside of layers.
        steps: (name, mark) of each: "✓", "✗1", "✗?", "≈" or "".
    """

    label: str
    steps: tuple

    @property
    def wrong(self):
        """Whether a cause sits here."""
        return any(_is_wrong(mark) for _, mark in self.steps)

    @property
    def mark(self):
        """The mark that all its steps have, or None."""
        marks = {mark for _, mark in self.steps}
        return marks.pop() if len(marks) == 1 else None


def _is_wrong(mark):
    """Whether a mark says that something is told of its step."""
    return mark.startswith((DIFFERS, NEAR))


def agreeing(rows):
    """{path of a step in a: whether its outputs agree}, as computed."""
    verdicts: dict[str, bool] = {}
    for row in sorted(rows, key=lambda row: row.order):
        if row.part == OUTPUT and row.counted and row.verdict != ZERO:
            verdicts[row.a] = verdicts.get(row.a, True) and not row.diverges
    return verdicts


def groups_of(rows, numbers, differs=DIFFERS):
    """The StepGroups of a comparison's rows.

    Args:
        rows: its PairRows.
        numbers: path of a step in a -> number of its cause, or "?".
        differs: how the first is marked that no cause is told of.
    """
    verdicts = agreeing(rows)
    outer = {path[:place.start()] for path in verdicts
             for place in re.finditer(r"\.", path)}
    marks, first = {}, True
    for path, agrees in verdicts.items():
        if path in numbers:
            marks[path] = f"{DIFFERS}{numbers[path]}"
        elif path not in outer and path != WHOLE:
            marks[path] = AGREES if agrees else differs * (
                first and not numbers)
        first = first and not _is_wrong(marks.get(path, AGREES))
    if not any(map(_is_wrong, marks.values())) and (
            not verdicts.get(WHOLE, True)):
        marks[WHOLE] = differs
    layers = itertools.groupby(marks, key=_layer)
    return _joined([_group(label, [(path, marks[path]) for path in paths])
                    for label, paths in layers])


def _layer(path):
    """The layer that a step is in: its path up to the first number."""
    found = re.match(r"(.*?\.)?\d+(?=\.|$)", path)
    return found[0] if found and found[0] != path else ""


def _group(label, steps):
    """A StepGroup of (path, mark), with names as short as tell them apart."""
    start = len(label) + 1 if label else 0
    paths = [path[start:] for path, _ in steps]
    ends = [re.search(r"(?:[^.]+\.)?[\d#()]+$|[^.]+$", path) for path in paths]
    short = [end[0] if end else path for end, path in zip(ends, paths)]
    return StepGroup(visible(label), tuple(
        (visible(path if short.count(name) > 1 else name), mark)
        for path, name, (_, mark) in zip(paths, short, steps)))


def _joined(groups):
    """The same, neighbouring layers that are alike as one."""
    def alike(group):
        kind = group.mark if group.mark is not None else group.steps
        return re.sub(r"\d+$", "", group.label), kind
    made = []
    for (stem, _), same in itertools.groupby(groups, key=alike):
        first, *more = same
        if stem and more:
            first = StepGroup(
                f"{first.label} … {more[-1].label}", first.steps)
            made.append(first)
        else:
            made += [first, *more]
    return made


def pieces(groups, room):
    """The line as (text, style) in ``room`` columns; style "good" or "bad".

    What stands far from any cause is left out first.
    """
    for level in range(5):
        kept = groups if level < 4 else _near(groups)
        made = [piece for i, group in enumerate(kept) for piece in (
            [(" │ ", "dim")] * bool(i) + _of_group(group, level))]
        if sum(len(text) for text, _ in made) <= room:
            return made
    return _cut(made, room)


def _near(groups):
    """The groups with causes and those beside them; "…" between."""
    keep = {j for i, group in enumerate(groups) if group.wrong
            for j in (i - 1, i)} | {len(groups) - 1}
    made = []
    for i, group in enumerate(groups):
        if i in keep:
            made.append(group)
        elif not made or made[-1].label != "…":
            made.append(StepGroup("…", (("", ""),)))
    return made


def _of_group(group, level):
    """One group as pieces: at level 0 all steps.

    At 1 a long run of alike steps has its ends alone, at 2 what differs by
    what comes in is "…", at 3 what agrees is its last step.
    """
    if group.label and group.mark is not None and not group.wrong:
        return [(group.label, "dim"), *_marked("", group.mark)]
    made = [(f"{group.label}  ", "strong")] if group.label else []
    for mark, steps in itertools.groupby(
            group.steps, key=lambda step: step[1]):
        shown = names = [name for name, _ in steps]
        if _is_wrong(mark):
            shown = names[:1] if level > 2 else names
        elif not mark and level > 1 and group.wrong:
            shown = ["…"]
        elif mark and level > 2 and len(names) > 1:
            shown = [f"… {names[-1]}"]
        elif level and len(names) > 2:
            shown = [f"{names[0]} … {names[-1]}"]
        for name in shown:
            made += [(name, "" if mark else "dim"), *_marked(" ", mark),
                     (" ", "")]
    return made[:-1]


def _marked(space, mark):
    """A mark in its colour."""
    style = {AGREES: "good", NEAR: "warn"}.get(mark, "bad")
    return [(f"{space or ' '}{mark}", style)] if mark else []


def _cut(made, room):
    """Pieces until the room is full, then "…"."""
    kept: list[tuple[str, str]] = []
    used = 0
    for text, style in made:
        if used + len(text) > room - 2:
            return [*kept, (" …", "dim")]
        kept.append((text, style))
        used += len(text)
    return kept
