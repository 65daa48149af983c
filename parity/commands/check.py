"""``parity check``: every step of every port."""

import contextlib
import gc
import pathlib
import re
from typing import Annotated, Optional

import typer

from transformer_contract.config import PRESETS
from parity_io.errors import InputError, one_of
from parity_io.files import check_writable
from parity import ports
from parity.commands.matrix import check_artefact, check_on_meshes
from parity.commands.options import (
    Json, Port, Require, Words, exit_if_any, exit_if_missing)
from parity.commands.seeds import check_seeds
from parity.commands.shell import told_plainly
from parity.commands.verdict import finish
from parity.numerics.dtypes import DTYPES
from parity.render import overview, terminal


#: The panel of options that ask for something else than is usual.
INSTEAD = "Instead of all that"


def check(
    preset: Annotated[Words, typer.Option(
        "--preset", metavar="NAME", help=f"{', '.join(PRESETS)} or all."
        "  [default: all]")] = None,
    port: Port = None,
    dtype: Annotated[Words, typer.Option(
        "--dtype", metavar="NAME", help=f"{','.join(DTYPES[:2])}, the "
        f"default; {', '.join(DTYPES[2:])}; or all.")] = None,
    device: Annotated[Words, typer.Option(
        "--device", metavar="NAME", help="cpu, cuda, mps, tpu, xpu or all "
        "here.  [default: cpu]")] = None,
    form: Annotated[str, typer.Option(
        metavar="NAME", show_default=False, help="readable, the default; "
        "fast, of NumPy too; or native: the framework's own layers. Steps "
        "that it joins are not seen.")] = "readable",
    gradients: Annotated[bool, typer.Option(
        "--gradients", help="Also the loss's gradient by every weight and "
        "step.")] = False,
    train: Annotated[int, typer.Option(
        "--train", metavar="N", min=0, help="Also N training steps in "
        "lockstep, with dropout, smoothing, schedule, clipping: losses, "
        "weights, moments.")] = 0,
    generate: Annotated[bool, typer.Option(
        "--generate", help="Also searches: greedy, beams, samples; cached and "
        "not.")] = False,
    wide: Annotated[bool, typer.Option(
        "--wide", help="Also models, shapes, values and runs beyond presets.",
    )] = False,
    draws: Annotated[Optional[int], typer.Option(
        "--draws", metavar="N", min=0, help="Also N drawn models: "
        "docs/properties.md.  [default: a few]")] = None,
    seed: Annotated[int, typer.Option(
        "--seed", metavar="S", min=0, max=2**32 - 1,
        help="What the drawn models follow from.")] = 0,
    full_size: Annotated[bool, typer.Option(
        help="Leave out the base at full size, and the trained model.",
    )] = True,
    require: Require = None,
    steps: Annotated[bool, typer.Option(
        "--steps", help="Print a row a step, not a line a component.",
    )] = False,
    json_file: Json = None,
    html_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--html", metavar="FILE", help="Write the report as a page to FILE.",
    )] = None,
    draw: Annotated[Optional[str], typer.Option(
        "--draw", metavar="S:N", rich_help_panel=INSTEAD, help="compares "
        "drawn model N of seed S, as a failing case has it")] = None,
    seeds: Annotated[int, typer.Option(
        "--seeds", metavar="N", min=0, rich_help_panel=INSTEAD,
        help="looks for false alarms over N seeds, threads, older kernels "
        "and oneDNN on and off")] = 0,
    mesh: Annotated[Optional[list[str]], typer.Option(
        "--mesh", metavar="WORDS", rich_help_panel=INSTEAD, help="compares on "
        "a mesh, data=2,model=2 or all")] = None,
    artefact: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="DIR", rich_help_panel=INSTEAD, help="replays a folder of "
        "parity export --to onnx, without a framework")] = None,
):
    """Compare every step of every port with the NumPy reference."""
    given = {
        "preset": preset, "device": device, "gradients": gradients,
        "train": train, "generate": generate, "wide": wide,
        "html": html_file, "steps": steps,
        "form": form != "readable", "draws": draws, "draw": draw}
    if artefact is not None:
        with told_plainly():
            alone("--artefact goes with --json", given, port, dtype, require,
                  seeds, mesh, not full_size)
        return check_artefact(artefact, json_file)
    from parity import compiled
    from parity.check import run as checking
    from parity.check.environment import describe
    with told_plainly():
        known = ports.known_ports()
        presets = ports.split_words(preset or ["all"], PRESETS, "preset")
        if draw:
            alone("--draw goes with --port, --dtype, --form, --device, "
                  "--require, --json and --html", given | {
                      "draw": None, "device": None, "form": False,
                      "html": None, "steps": False}, wide, train)
            presets, full_size = [], False
        names = ports.chosen(port)
        dtypes = ports.split_words(
            dtype or ["float64", "float32"], DTYPES, "dtype")
        every = any("all" in words.replace(",", " ").split()
                    for words in device or ())
        devices = ports.split_words(
            device or ["cpu"], checking.DEVICES, "device")
        required = ports.split_words(require, known, "port") if require else []
        one_of(form, ports.EVERY_FORM, "form")
        if form == "native":
            alone("--form native goes with --preset, --port, --dtype, "
                  "--gradients, --generate, --require, --json and --html",
                  given | {"preset": None, "gradients": False, "form": False,
                           "generate": False, "html": None, "steps": False},
                  mesh, seeds)
        check_writable(json_file, html_file)
        if seeds:
            alone("--seeds goes with --port, --dtype, --require and --json",
                  given, mesh)
            exit_if_missing(required)
            check_seeds(names, dtypes, seeds, json_file)
        exit_if_missing(set(required) - set(names))
        if mesh:
            alone("--mesh goes with one --preset, --port, --dtype, "
                  "--gradients, --train, --generate, --require and --json",
                  given | {"preset": preset and len(presets) > 1, "train": 0,
                           "gradients": False, "generate": False}, seeds)
            exit_if_missing(required)
            check_on_meshes(
                presets[0] if preset else "lesson", names, dtypes, mesh,
                {"gradients": gradients, "training": train,
                 "generation": generate}, json_file)
        out = terminal.console()
        with contextlib.ExitStack() as stack:
            stack.enter_context(compiled.environment(
                {} if wide or train else compiled.quickly()))
            with terminal.progress(out) as progress:
                task = progress.add_task("importing frameworks")
                run = checking.Check(
                    presets, names, dtypes, None if every else devices,
                    full_size,
                    lambda text: progress.update(task, description=text),
                    gradients, train, generate, wide=wide, form=form,
                    subprocesses=len(names) > 1 or bool(compiled.unsure()),
                    draws=drawn_models(draws, seed, draw, preset))
                names = run.port_names
                stack.callback(run.close)
                exit_if_any(one for one in run.report.not_checked
                            if one.port in required
                            and one.port not in run.engines)
                gc.freeze()  # the frameworks' own objects are here to stay
                run.report.environment = describe(run.report, run.devices)
                view = (terminal.Steps(out, names) if steps else
                        overview.Overview(
                            out, names, dtypes, run.devices, form))
                view.begin(presets or [model.name for model in run.drawn])
                for group in run.groups():
                    view.add(group)
                view.end(run.report)
            finish(out, run.report, names, json_file, html_file)


def drawn_models(draws, seed, draw, preset):
    """The Draws that the options ask for.

    Raises:
        InputError: ``draw`` is no seed and number.
    """
    from parity.check.drawn import USUAL, Draws
    if draw is not None:
        if not re.fullmatch(r"\d{1,9}:\d{1,9}", draw):
            raise InputError(
                f"--draw is {draw!r}; give a seed and a number, such as 0:17.")
        seed, number = map(int, draw.split(":"))
        return Draws(seed, (number,), whole=True)
    if draws is None:
        return Draws(seed, range(0 if preset else USUAL))
    return Draws(seed, range(draws), whole=True)


def alone(words, given, *more):
    """Refuse an option that what is asked for does not take.

    Args:
        words: what goes with what, for the sentence.
        given, more: values of the other options; those left out are false.

    Raises:
        InputError: one is given.
    """
    if any(given.values()) or any(more):
        raise InputError(f"{words} alone; leave the other options out.")
