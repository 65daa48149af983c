"""The report of ``parity check`` as one page that holds all it needs.

The verdict comes first. Each picture has its numbers in a table beneath it, so
nothing is said by a line or a colour alone, and nothing on the page needs a
script, a font or a file from elsewhere.
"""

import dataclasses
import hashlib

import numpy as np
from markupsafe import Markup

from transformer_contract.batch import Batch
from transformer_contract.config import PRESETS
from parity_io.files import write_whole
from parity import ports
from parity.check import port_calls, golden, run, workers
from parity.numerics import dtypes
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import number
from parity.render import maps, markup, pictures, worded
from parity.render.error_charts import charts_of, fitting, icons, percent

#: The date that the attention is shown of, if the shipped file has it.
EXAMPLE = "vendredi 19 avril 2047"

#: How many rows the tables of extremes have, and that of divergences.
SHOWN, LISTED = 12, 100


def write(path, report, port_names, findings=()):
    """Write the page of a report, whole or not at all.

    Args:
        path: a file in a folder that exists.
        report: a check.Report that is complete.
        port_names: the ports that were asked for.
        findings: what parity.diagnosis.diagnose found of the first divergence.
    """
    write_whole(path, page(report, port_names, findings))


def page(report, port_names, findings=()):
    """The page as text; see write."""
    environment = markup.environment(number=number, seconds=seconds)
    charts, left_out = fitting(charts_of(report))
    template = environment.get_template("report-check.html")
    return markup.unbroken(template.render(
        style=Markup(markup.style()),
        report=report, ports=port_names, findings=findings,
        reason=reason, dtypes=dtypes.DTYPES,
        known_ports=columns(report), icons=icons(port_names),
        hashes=hashes(report), charts=charts, left_out=left_out,
        models=models(report, port_names),
        matrices=matrices(report), left=left_unchecked(report),
        attention=attention(report),
        divergences=report.divergences()[:LISTED],
        closest=closest(report), slowest=slowest(report)))


def seconds(time):
    """A time, short, with its unit on its line."""
    if time >= 100:
        return f"{time:.0f}\N{NO-BREAK SPACE}s"
    return (f"{time:.1f}\N{NO-BREAK SPACE}s" if time >= 1
            else f"{1000 * time:.0f}\N{NO-BREAK SPACE}ms")


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
    digests = {name: digest for digest, name in (
        line.split(maxsplit=1) for line
        in sums.read_text("utf-8").splitlines())} if sums.is_file() else {}
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
    devices: dict = {}
    for row in report.rows:
        cells = devices.setdefault(row.device, {}).setdefault(name_of(row), {})
        for port, difference in row.differences.items():
            cells.setdefault((row.dtype, port), MatrixCell()).add(difference)
    return devices


def matrices(report):
    """[(device, [(component, [MatrixCell, by dtype and port])])]."""
    pairs = [(dtype, port) for dtype in dtypes.DTYPES
             for port in columns(report)]
    return [
        (device, [(name, [cells.get(column, MatrixCell())
                          for column in pairs])
                  for name, cells in components.items()])
        for device, components in cells_of(
            report, lambda row: row.component).items()]


def columns(report):
    """The usual ports, and those others that were compared."""
    compared = {port for row in report.rows for port in row.differences}
    return [name for name in ports.known_ports()
            if name in ports.usual_ports() or name in compared]


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
    choices = {"ports": ports.usual_ports(), "presets": tuple(PRESETS),
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
    there = {"numpy": workers.InProcessPort(ports.engine("numpy")),
             **report.engines}
    replies = {name: port.ask("attention", port_calls.forward, model, batch)
               for name, port in there.items()}
    steps, missing = {}, {}
    for name in ("numpy", *columns(report)):
        if name not in replies:
            missing[name] = next(
                (one.reason for one in (*report.not_checked, *report.broken)
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
    for name in ("numpy", *columns(report)):
        theirs = steps.get(name, {}).get(step)
        fits = theirs is not None and theirs.shape == truth[step].shape
        panels.append({
            "port": name, "missing": missing.get(
                name, "" if fits else "it has no such step"),
            "svg": worded.map_of(
                np.asarray(theirs)[0, head], words["target"], words["source"],
                f"{name}: {step}, head {head + 1}", shares=True,
            ) if fits else "",
            "gap": gap(theirs, truth[step]) if fits else ""})
    names = [name for name in truth if name.endswith("attention.weights")]
    return {
        "source": source, "target": target, "step": step, "head": head,
        "panels": panels, "words": words,
        "numbers": truth[step][0, head].tolist(),
        "differences": [
            (name, [gap(steps.get(port, {}).get(name), truth[name])
                    for port in columns(report)]) for name in names]}


def gap(array, truth):
    """The largest difference of two arrays, in words."""
    if array is None or np.shape(array) != truth.shape:
        return "not checked"
    return pictures.number(float(np.abs(array - truth).max()), 2)


# Extremes


def closest(report):
    """What matches and is nearest to its limit: (share, port, row)."""
    return [(percent(difference.share), port, row)
            for row, port, difference in report.closest()
            if difference.verdict != DIVERGENCE][:SHOWN]


def slowest(report):
    """The Times that are longest."""
    return sorted(report.times, key=lambda time: -time.seconds)[:SHOWN]
