"""Errors over the steps of a whole model, drawn as SVG."""

import dataclasses
import math
import re

from markupsafe import Markup

from parity_io.errors import plural
from parity import ports
from parity.check import run
from parity.numerics.comparator import DIVERGENCE

#: How many bytes the pictures of steps and their tables may take together.
ROOM = 1_100_000

#: The two errors of a step of two models, and their colours and marks.
ACCUMULATED, LOCAL = "accumulated", "local"
SERIES = {ACCUMULATED: 0, LOCAL: 1}

#: A chart's size in pixels, and the margins around its field.
WIDTH, HEIGHT = 620, 248
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 28, 34


@dataclasses.dataclass(frozen=True)
class Chart:
    """A whole model's errors, step by step.

    Attributes:
        title, svg: of the picture.
        rows: check.Rows, the table beneath it.
        worst: the largest share of a limit.
        words: what it shows, in a sentence.
        id: for links.
    """

    title: str
    svg: str
    rows: list
    worst: float
    words: str
    id: str

    @property
    def size(self):
        """About how many bytes it takes."""
        return len(self.svg) + sum(
            60 + len(row.name) + 16 * len(row.differences)
            for row in self.rows)


def whole_models(report):
    """{(preset, case, dtype, device): rows} of every whole model."""
    models: dict = {}
    cases = ("transformer", run.TRAINED_CASE, run.FULL_SIZE_CASE)
    for row in report.rows:
        if row.case in cases:
            key = row.preset, row.case, row.dtype, row.device
            models.setdefault(key, []).append(row)
    return models


def charts_of(report):
    """A Chart of every whole model."""
    charts: list = []
    for key, rows in whole_models(report).items():
        preset, case, dtype, device = key
        more = {run.FULL_SIZE_CASE: ", full size",
                run.TRAINED_CASE: ", trained"}.get(case, "")
        worst, port, row = max(
            ((difference.share or 0.0, port, row) for row in rows
             for port, difference in row.differences.items()),
            key=lambda entry: entry[0], default=(0.0, "", None))
        words = "Nothing was compared."
        if row is not None:
            words = (f"{plural(len(rows), 'step')}. Nearest to its "
                     f"limit: {port} at {row.name}, {percent(worst)} of it.")
        bad = [(row, port) for row in rows
               for port, difference in row.differences.items()
               if difference.verdict == DIVERGENCE]
        if bad:
            words = (f"{plural(len(rows), 'step')}. {bad[0][1]} "
                     f"diverges first at {bad[0][0].name}.")
        title = f"{preset}{more}, {dtype}, {device}"
        charts.append(Chart(title, drawing(rows, title), rows, worst, words,
                            f"steps-{len(charts)}"))
    return charts


def percent(part):
    """A share of a limit in percent."""
    if part is None:
        return ""
    if not math.isfinite(part):
        return "no number"
    if part == 0:
        return "0 %"
    if part < 0.001:
        return "under 0.1 %"
    return f"{100 * part:.0f} %" if part >= 0.1 else f"{100 * part:.1f} %"


def fitting(charts):
    """The charts that there is room for, and the titles of the others.

    Those nearest to their limits stay.
    """
    ids, room = set(), ROOM
    for chart in sorted(charts, key=lambda chart: -chart.worst):
        if chart.size <= room:
            room -= chart.size
            ids.add(chart.id)
    return ([chart for chart in charts if chart.id in ids],
            [chart.title for chart in charts if chart.id not in ids])


def place_of(port):
    """A port's number, by which it keeps its colour and mark everywhere."""
    known = ports.known_ports()
    if port in known:
        return known.index(port)
    return SERIES.get(port, len(known))


def mark(port, x, y):
    """A port's mark as a piece of an SVG path: dot, square, triangle, cross."""
    match place_of(port):
        case 0:
            return f"M{x:.1f} {y:.1f}h0"
        case 1:
            return f"M{x - 1.8:.1f} {y - 1.8:.1f}h3.6v3.6h-3.6z"
        case 2:
            return f"M{x - 2.3:.1f} {y + 2:.1f}h4.6l-2.3-4.2z"
        case _:
            return f"M{x - 2:.1f} {y - 2:.1f}l4 4m0-4l-4 4"


def icons(port_names):
    """{port: its mark as a small picture, beside its name in a legend}."""
    return {port: Markup(
        '<svg class="icon" viewBox="0 0 8 8" width="16" height="16" '
        'aria-hidden="true"><path class="mark p{}" d="{}"/></svg>').format(
            place_of(port), mark(port, 4, 4)) for port in port_names}


def drawing(rows, title):
    """Errors over steps as SVG: a line and marks for each port, and limits."""
    names = list(dict.fromkeys(
        port for row in rows for port in row.differences))
    errors = [difference.error for row in rows
              for difference in row.differences.values()
              if difference.error and math.isfinite(difference.error)]
    limits = [limit for row in rows for limit in (row.limit, *(
        difference.limit for difference in row.differences.values()))
              if limit and math.isfinite(limit)]
    low = math.floor(math.log10(min([*errors, *limits, 1e-16])))
    low = max(low, -20) if errors else -17
    if errors and min(errors) > 1e-12:
        low = math.floor(math.log10(min([*errors, *limits])))
    high = math.ceil(math.log10(max([*errors, *limits, 10.0**low])) + 0.1)
    floor = low - 0.08 * (high - low)  # where an error of 0 stands

    def across(i):
        wide = WIDTH - LEFT - RIGHT
        return LEFT + wide * (i + 0.5) / len(rows)

    def up(error):
        if error is None or not math.isfinite(error):
            return TOP + 4.0
        level = math.log10(error) if error > 0 else floor
        level = min(max(level, floor), high)
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - level) / (high - floor)

    parts = [Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
             .format(WIDTH, HEIGHT, f"{title}: error by step on a logarithmic "
                     "scale; the numbers are in the table below")]
    parts.append(axes_of(rows, low, high, across, up))
    parts.append(Markup('<path class="limit" d="{}"/>').format(
        stairs([row.limit for row in rows], across, up)))
    for port in names:  # where it has a limit of its own
        own = [row.differences[port].limit if port in row.differences
               else None for row in rows]
        if any(limit is not None and limit != row.limit
               for limit, row in zip(own, rows)):
            parts.append(Markup('<path class="limit p{}" d="{}"/>').format(
                place_of(port), stairs(own, across, up)))
    for port in names:
        points = [(across(i), up(row.differences[port].error))
                  for i, row in enumerate(rows) if port in row.differences]
        parts.append(Markup('<path class="line p{0}" d="M{1}"/>').format(
            place_of(port), "L".join(f"{x:.1f} {y:.1f}" for x, y in points)))
        parts.append(Markup('<path class="mark p{}" d="{}"/>').format(
            place_of(port), "".join(mark(port, x, y) for x, y in points)))
    parts.append(first_wrong(rows, across, up))
    return Markup("").join(parts) + Markup("</svg>")


def stairs(limits, across, up):
    """Limits as an SVG path: a level piece each step; None is a gap."""
    pieces, before = [], None
    for i, limit in enumerate(limits):
        if limit is not None:
            pieces.append(f"{'M' if before is None else 'L'}"
                          f"{across(i - .5):.1f} {up(limit):.1f}"
                          f"H{across(i + .5):.1f}")
        before = limit
    return "".join(pieces)


def axes_of(rows, low, high, across, up):
    """Powers of ten, and what the steps belong to, with their lines."""
    parts = []
    every = max(1, math.ceil((high - low) / 8))
    for power in range(low, high + 1):
        if (power - low) % every:
            continue
        y = up(10.0**power)
        parts.append(Markup(
            '<path class="grid" d="M{0} {1:.1f}H{2}"/><text x="{3}" '
            'y="{4:.1f}" text-anchor="end">{5}</text>').format(
                LEFT, y, WIDTH - RIGHT, LEFT - 5, y + 3.5, f"1e−{-power}"
                if power < 0 else f"1e{power}"))
    parts.append(Markup(
        '<text x="{}" y="{:.1f}" text-anchor="end">0</text>').format(
            LEFT - 5, up(0) + 3.5))
    parts_of = [part_of(row.name) for row in rows]
    starts = [i for i, part in enumerate(parts_of)
              if i == 0 or part != parts_of[i - 1]]
    bottom = HEIGHT - BOTTOM
    for start, end in zip(starts, [*starts[1:], len(rows)]):
        left, right = across(start - .5), across(end - .5)
        parts.append(Markup(
            '<path class="grid" d="M{0:.1f} {1}V{2}"/>').format(
                left, TOP, bottom + 4))
        words = parts_of[start]
        if right - left >= 6.2 * len(words):
            parts.append(Markup(
                '<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>')
                .format((left + right) / 2, bottom + 16, words))
    parts.append(Markup(
        '<text x="{}" y="{}">steps of the model, in order →</text>').format(
            LEFT, HEIGHT - 3))
    return Markup("").join(parts)


def part_of(name):
    """The part of a model that a step belongs to, in a word or two.

    A layer of any model is named by the word before its number.
    """
    if layer := re.match(r"(enc|dec)oder\.layers\.(\d+)", name):
        return f"{layer[1]} {layer[2]}"
    if layer := re.search(r"(?:^|\.)(\w+)\.(\d+)(?=\.|$| )", name):
        return f"{layer[1]} {layer[2]}"
    return {"encoder": "enc", "memory": "enc", "decoder": "dec",
            "decoded": "dec", "source_embedding": "in",
            "source_positions": "in", "target_embedding": "in",
            "target_positions": "in"}.get(name.split(".")[0], "out")


def first_wrong(rows, across, up):
    """A ring at the first step that diverges, if one does.

    Its name stands above the field, so that it covers no curve.
    """
    for i, row in enumerate(rows):
        for port, difference in row.differences.items():
            if difference.verdict == DIVERGENCE:
                x, y = across(i), up(difference.error)
                return Markup(
                    '<path class="wrong" d="M{0:.1f} {1}V{2:.1f}"/>'
                    '<circle class="wrong" cx="{0:.1f}" cy="{3:.1f}" r="6"/>'
                    '<text class="wrong" x="{0:.1f}" y="{4}" '
                    'text-anchor="{5}">{6}</text>').format(
                        x, TOP - 10, max(y - 6, TOP - 10), y, TOP - 14,
                        "start" if x < WIDTH / 3 else
                        "middle" if x < 2 * WIDTH / 3 else "end",
                        f"{port}: {row.name}")
    return Markup("")
