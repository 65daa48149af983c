"""The report of ``parity check`` as one page that holds all it needs.

The verdict comes first. Each picture has its numbers in a table beneath it, so
nothing is said by a line or a colour alone, and nothing on the page needs a
script, a font or a file from elsewhere.
"""

import dataclasses
import datetime
import hashlib
import math
import re

import numpy as np
from markupsafe import Markup

from contract.batch import Batch
from contract.config import PRESETS
from contract.files import write_whole
from parity import ports
from parity.check import golden, run, workers
from parity.numerics import dtypes
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import number
from parity.render import maps, markup, pictures


#: The date that the attention is shown of, if the shipped file has it.
EXAMPLE = "vendredi 19 avril 2047"

#: How many rows the tables of extremes have, and that of divergences.
SHOWN, LISTED = 12, 100

#: How many bytes the pictures of steps and their tables may take together.
ROOM = 1_100_000

#: A chart's size in pixels, and the margins around its field.
WIDTH, HEIGHT = 620, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 10, 34


def write(path, report, port_names, findings=()):
    """Write the page of a report, whole or not at all.

    Args:
        path: a file in a folder that exists.
        report: a check.Report that is complete.
        port_names: the ports that were asked for.
        findings: what parity.causes.diagnose found of the first divergence.
    """
    write_whole(path, page(report, port_names, findings))


def page(report, port_names, findings=()):
    """The page as text; see write."""
    environment = markup.environment(number=number, seconds=seconds)
    charts, left_out = fitting(charts_of(report))
    return environment.get_template("report.html").render(
        style=Markup((markup.STATIC / "style.css").read_text("utf-8")),
        report=report, ports=port_names, findings=findings,
        reason=reason, dtypes=dtypes.DTYPES,
        known_ports=ports.known_ports(), icons=icons(port_names),
        when=datetime.datetime.now(datetime.UTC),
        hashes=hashes(report), charts=charts, left_out=left_out,
        models=models(report, port_names),
        matrices=matrices(report), left=left_unchecked(report),
        attention=attention(report),
        divergences=report.divergences()[:LISTED],
        closest=closest(report), slowest=slowest(report))


def seconds(time):
    """A time, short."""
    if time >= 100:
        return f"{time:.0f} s"
    return f"{time:.1f} s" if time >= 1 else f"{1000 * time:.0f} ms"


def reason(difference):
    """Why an error diverges, as the end of a sentence."""
    return f"; {difference.reason}" if difference.reason else ""


# Weights


def hashes(report):
    """[(file, SHA-256, what is known of it)] of the weights that were read."""
    names = list(dict.fromkeys(
        row.preset for row in report.rows
        if row.preset in (*PRESETS, golden.TRAINED)))
    sums = golden.FOLDER / golden.SUMS
    digests = dict(
        reversed(line.split(maxsplit=1)) for line
        in sums.read_text("utf-8").splitlines()) if sums.is_file() else {}
    entries = []
    for name in names:
        path = golden.FOLDER / f"{name}.safetensors"
        if not path.is_file():
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        words = {None: "not listed", digest: "as listed"}.get(
            digests.get(path.name), "NOT AS LISTED")
        entries.append((f"weights/{path.name}", digest, words))
    return entries


# Error by step


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
    models = {}
    cases = ("transformer", run.TRAINED_CASE, run.FULL_SIZE_CASE)
    for row in report.rows:
        if row.case in cases:
            key = row.preset, row.case, row.dtype, row.device
            models.setdefault(key, []).append(row)
    return models


def charts_of(report):
    """A Chart of every whole model."""
    charts = []
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
            words = (f"{len(rows)} steps. Nearest to its limit: {port} at "
                     f"{row.name}, {percent(worst)} of it.")
        bad = [(row, port) for row in rows
               for port, difference in row.differences.items()
               if difference.verdict == DIVERGENCE]
        if bad:
            words = (f"{len(rows)} steps. {bad[0][1]} diverges first at "
                     f"{bad[0][0].name}.")
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
    return known.index(port) if port in known else len(known)


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
    limits = [row.limit for row in rows
              if row.limit and math.isfinite(row.limit)]
    low = math.floor(math.log10(min([*errors, *limits, 1e-16])))
    low = max(low, -20) if errors else -17
    if errors and min(errors) > 1e-12:
        low = math.floor(math.log10(min(errors)))
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
    line = "".join(
        f"{'M' if i == 0 else 'L'}{across(i - .5):.1f} {up(row.limit):.1f}"
        f"H{across(i + .5):.1f}" for i, row in enumerate(rows))
    parts.append(Markup('<path class="limit" d="{}"/>').format(line))
    for port in names:
        points = [(across(i), up(row.differences[port].error))
                  for i, row in enumerate(rows) if port in row.differences]
        parts.append(Markup('<path class="line p{0}" d="M{1}"/>').format(
            place_of(port), "L".join(f"{x:.1f} {y:.1f}" for x, y in points)))
        parts.append(Markup('<path class="mark p{}" d="{}"/>').format(
            place_of(port), "".join(mark(port, x, y) for x, y in points)))
    parts.append(first_wrong(rows, across, up))
    return Markup("").join(parts) + Markup("</svg>")


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
    """The part of a model that a step belongs to, in a word or two."""
    if layer := re.match(r"(enc|dec)oder\.layers\.(\d+)", name):
        return f"{layer[1]} {layer[2]}"
    return {"encoder": "enc", "memory": "enc", "decoder": "dec",
            "decoded": "dec", "source_embedding": "in",
            "source_positions": "in", "target_embedding": "in",
            "target_positions": "in"}.get(name.split(".")[0], "out")


def first_wrong(rows, across, up):
    """A ring and a name at the first step that diverges, if one does."""
    for i, row in enumerate(rows):
        for port, difference in row.differences.items():
            if difference.verdict == DIVERGENCE:
                x, y = across(i), up(difference.error)
                right = x < WIDTH / 2
                return Markup(
                    '<circle class="wrong" cx="{:.1f}" cy="{:.1f}" r="6"/>'
                    '<text class="wrong" x="{:.1f}" y="{:.1f}" '
                    'text-anchor="{}">{}</text>').format(
                        x, y, x + (10 if right else -10),
                        y + (20 if y < HEIGHT / 2 else -12),
                        "start" if right else "end",
                        f"{port}: {row.name}")
    return Markup("")


# The matrix


@dataclasses.dataclass
class MatrixCell:
    """What was found of one component, port, dtype and device."""

    count: int = 0
    wrong: int = 0
    worst: float | None = None

    def add(self, difference):
        """Count a Difference."""
        self.count += 1
        self.wrong += difference.verdict == DIVERGENCE
        part = difference.share
        if part is not None:
            self.worst = max(self.worst or 0.0, part)

    @property
    def verdict(self):
        """In a word."""
        if not self.count:
            return "not checked"
        return DIVERGENCE if self.wrong else MATCH

    @property
    def words(self):
        """The largest share of a limit, or of how many how many diverge."""
        if not self.count:
            return ""
        if self.wrong:
            return f"{self.wrong} of {self.count}"
        return "equal" if self.worst is None else percent(self.worst)


def cells_of(report, name_of):
    """{device: {name: {(dtype, port): MatrixCell}}}."""
    devices = {}
    for row in report.rows:
        cells = devices.setdefault(row.device, {}).setdefault(name_of(row), {})
        for port, difference in row.differences.items():
            cells.setdefault((row.dtype, port), MatrixCell()).add(difference)
    return devices


def matrices(report):
    """[(device, [(component, [MatrixCell, by dtype and port])])]."""
    columns = [(dtype, port) for dtype in dtypes.DTYPES
               for port in ports.known_ports()]
    return [
        (device, [(name, [cells.get(column, MatrixCell())
                          for column in columns])
                  for name, cells in components.items()])
        for device, components in cells_of(
            report, lambda row: row.component).items()]


def models(report, port_names):
    """[(model, dtype, device, [MatrixCell, by port])]."""
    entries = []
    devices = cells_of(report, lambda row: row.preset + (
        ", full size" if row.case == run.FULL_SIZE_CASE else ""))
    for device, names in devices.items():
        for name, cells in names.items():
            for dtype in dtypes.DTYPES:
                if any(key[0] == dtype for key in cells):
                    entries.append((name, dtype, device, [
                        cells.get((dtype, port), MatrixCell())
                        for port in port_names]))
    return entries


def left_unchecked(report):
    """What could be checked and was not, a sentence each."""
    choices = {"ports": ports.known_ports(), "presets": tuple(PRESETS),
               "dtypes": dtypes.DTYPES, "devices": run.DEVICES}
    rows = [row for row in report.rows if row.case != "precision canary"]
    compared = {"ports": {port for row in rows for port in row.differences},
                "presets": {row.preset for row in rows},
                "dtypes": {row.dtype for row in rows},
                "devices": {row.device for row in rows}}
    sentences = []
    for what, names in choices.items():
        selection = report.selection.get(what, compared[what])
        for reason, left in (
                ("not asked for", [n for n in names if n not in selection]),
                ("asked for, but nothing could be compared there",
                 [n for n in selection if n not in compared[what]])):
            if left:
                sentences.append(
                    f"the {what if len(left) > 1 else what[:-1]} "
                    f"{', '.join(left)}: {reason}")
    return sentences


# Attention


def attention(report):
    """The shipped model's attention, a panel for each of the four."""
    config, weights, tokenizer, pairs = golden.trained()
    source, target = next(
        (pair for pair in pairs if pair[0] == EXAMPLE), pairs[0])
    batch = Batch.of_text([source], [target], tokenizer)
    batch = Batch.of_ids(batch.source, batch.target[:, :-1], config.pad_id)
    exact = {name: array.astype(np.float64)
             for name, array in weights.items()}
    model = workers.ModelSpec("attention", config, "float64", "cpu", exact)
    there = {"numpy": workers.Here(ports.engine("numpy")), **report.engines}
    replies = {name: port.ask("attention", workers.forward, model, batch)
               for name, port in there.items()}
    steps, missing = {}, {}
    for name in ("numpy", *ports.known_ports()):
        if name not in replies:
            missing[name] = next(
                (one.reason for one in report.not_checked
                 if one.port == name), "it was not asked for")
        elif (reply := replies[name].result()).failure:
            missing[name] = reply.failure
        else:
            steps[name] = reply.value
    truth = steps["numpy"]
    step = (f"decoder.layers.{config.n_decoder_layers - 1}"
            ".cross_attention.weights")
    head = int(truth[step][0].max(axis=-1).mean(axis=-1).argmax())
    words = {kind: [maps.shown(token) for token in tokenizer.tokens(ids[0])]
             for kind, ids in (("source", batch.source),
                               ("target", batch.target))}
    panels = []
    for name in ("numpy", *ports.known_ports()):
        theirs = steps.get(name, {}).get(step)
        fits = theirs is not None and theirs.shape == truth[step].shape
        panels.append({
            "port": name, "missing": missing.get(
                name, "" if fits else "it has no such step"),
            "svg": maps.drawing(
                np.asarray(theirs)[0, head], words["target"], words["source"],
                f"{name}: {step}", head) if fits else "",
            "gap": gap(theirs, truth[step]) if fits else ""})
    names = [name for name in truth if name.endswith("attention.weights")]
    return {
        "source": source, "target": target, "step": step, "head": head,
        "panels": panels, "words": words,
        "numbers": truth[step][0, head].tolist(),
        "differences": [
            (name, [gap(steps.get(port, {}).get(name), truth[name])
                    for port in ports.known_ports()]) for name in names]}


def gap(array, truth):
    """The largest difference of two arrays, in words."""
    if array is None or np.shape(array) != truth.shape:
        return "not checked"
    return pictures.number(float(np.abs(array - truth).max()), 2)


# Extremes


def closest(report):
    """The comparisons nearest to their limits: (share, port, row)."""
    return [(percent(difference.share), port, row)
            for row, port, difference in report.closest()[:SHOWN]]


def slowest(report):
    """The Times that are longest."""
    return sorted(report.times, key=lambda time: -time.seconds)[:SHOWN]
