"""The command line: ``parity``.

Exit status: 0 match, 1 divergence, 2 usage or unreadable input, 3 a required
framework is missing, 4 nothing was compared, 70 a mistake in this program.
"""

import contextlib
import gc
import os
import pathlib
import sys
from typing import Annotated, Optional

import typer

from contract.config import PRESETS
from contract.errors import InputError
from contract.files import check_writable, write_json
from parity import ports
from parity.commands import (
    compare, dialects, differences, doctor, faults, ledger, lesson, mutate,
    read, translate)
from parity.commands import train as training
from parity.commands.seeds import check_seeds
from parity.commands.shell import MISSING, Commands, told_plainly
from parity.numerics.dtypes import DTYPES
from parity.render import overview, terminal

app = typer.Typer(
    cls=Commands, add_completion=False, no_args_is_help=False,
    rich_markup_mode=None, pretty_exceptions_enable=False,
    help="One Transformer in NumPy, PyTorch, Keras and JAX: prove that they "
         "agree. Exit status: 0 match, 1 divergence, 2 usage or unreadable "
         "input, 3 a required framework is missing, 4 nothing was compared, "
         "70 a mistake in this program.")

Words = Optional[list[str]]
Json = Annotated[Optional[pathlib.Path], typer.Option(
    "--json", metavar="FILE", help="Write the report as JSON to FILE.")]
Port = Annotated[Words, typer.Option(
    "--port", metavar="NAME", help="torch, keras, jax or all; repeat it or "
    "separate names by commas.  [default: all]")]
Require = Annotated[Words, typer.Option(
    "--require", metavar="NAME", help="Ports that must be installed, else "
    "exit 3.")]


def exit_if_missing(names):
    """Exit with 3 unless every one of these ports can run."""
    exit_if_any(ports.require(names))


def exit_if_any(absent):
    """Exit with 3 if there is a NotChecked, of a port that is required."""
    absent = list(absent)
    for port in absent:
        print(f"parity: {port.port} is required and cannot be checked: "
              f"{port.reason}.", file=sys.stderr)
    if absent:
        raise typer.Exit(MISSING)


#: What is printed where no command is given.
FIRST = """\
One Transformer in NumPy, PyTorch, Keras and JAX, proved to be the same. Try:

  parity check --preset lesson          compare every step of all four
  parity translate "20 November 2026"   ask the trained model
  parity read --serve                   read the four side by side, with values
  parity dump model.py:make --out a     store what your model computes; then
  parity compare a b                    say where two models diverge, and why
  parity doctor                         what is installed here
  parity --help                         every command
"""


@app.callback(invoke_without_command=True)
def main(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option(
        "--version", help="Print the version and end.")] = False,
    quiet: Annotated[bool, typer.Option(
        "--quiet", help="Print nothing but what goes wrong; the exit status "
        "says the rest.")] = False,
):
    """One Transformer, four times."""
    if version:
        print(f"parity {doctor.version()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(FIRST, end="")
    if quiet:
        ctx.with_resource(contextlib.redirect_stdout(
            ctx.with_resource(open(os.devnull, "w", encoding="utf-8"))))


@app.command()
def check(
    preset: Annotated[Words, typer.Option(
        "--preset", metavar="NAME", help=f"{', '.join(PRESETS)} or all; "
        "repeat it or separate names by commas.  [default: all]")] = None,
    port: Port = None,
    dtype: Annotated[Words, typer.Option(
        "--dtype", metavar="NAME", help=f"{', '.join(DTYPES)} or all."
        "  [default: float64,float32]")] = None,
    device: Annotated[Words, typer.Option(
        "--device", metavar="NAME", help="cpu, cuda, mps, tpu, xpu or all "
        "that are here.  [default: cpu]")] = None,
    require: Require = None,
    json_file: Json = None,
    gradients: Annotated[bool, typer.Option(
        "--gradients", help="Also compare the loss's gradient by every weight "
        "and every step, in float64 and float32.")] = False,
    train: Annotated[int, typer.Option(
        "--train", metavar="N", min=0, help="Also train N steps in lockstep, "
        "with dropout, smoothing, schedule, clipping and accumulation, and "
        "compare losses, weights and both moments after each.")] = 0,
    generate: Annotated[bool, typer.Option(
        "--generate", help="Also compare searches, greedy, beams under each "
        "length rule and samples, cached and not, in batches of several "
        "sizes, in float64 and float32.")] = False,
    wide: Annotated[bool, typer.Option(
        "--wide", help="Also compare models, shapes and values that presets "
        "do not have, every pair of choices among them, in float64; and short "
        "training runs of either form, every two conditions together.",
    )] = False,
    list_conditions: Annotated[bool, typer.Option(
        "--list", help="Compare nothing; print every condition and every pair "
        "of choices, with the case that has it.")] = False,
    seeds: Annotated[int, typer.Option(
        "--seeds", metavar="N", min=0, help="Only look for false alarms: "
        "compare small models over N seeds of weights and inputs, with one "
        "thread and two, with the kernels of older processors, and with "
        "oneDNN on and off.")] = 0,
    html_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--html", metavar="FILE", help="Write the report as a page to FILE.",
    )] = None,
    full_size: Annotated[bool, typer.Option(
        help="Also run vaswani2017_base at its full size on the committed "
        "sentences, and the trained model on real dates, in float64 and "
        "float32.")] = True,
    steps: Annotated[bool, typer.Option(
        "--steps", help="Print a row a step, as --json and --html always "
        "have them, not a line a model and a line a component.")] = False,
):
    """Compare every step of every port with the NumPy reference."""
    from parity.check import conditions
    from parity.check import run as checking
    from parity.check.environment import describe
    if list_conditions:
        return terminal.print_conditions(
            terminal.console(), conditions.listed())
    with told_plainly():
        known = ports.known_ports()
        presets = ports.split_words(preset or ["all"], PRESETS, "preset")
        names = ports.split_words(port or ["all"], known, "port")
        dtypes = ports.split_words(
            dtype or ["float64", "float32"], DTYPES, "dtype")
        every = any("all" in words.replace(",", " ").split()
                    for words in device or ())
        devices = ports.split_words(
            device or ["cpu"], checking.DEVICES, "device")
        required = ports.split_words(require, known, "port") if require else []
        check_writable(json_file)
        check_writable(html_file)
        if seeds:
            if (preset or device or gradients or train or generate or wide
                    or html_file or steps):
                raise InputError(
                    "--seeds goes with --port, --dtype, --require and --json "
                    "alone; leave the other options out.")
            exit_if_missing(required)
            check_seeds(names, dtypes, seeds, json_file)
        exit_if_missing(set(required) - set(names))
        out = terminal.console()
        with contextlib.ExitStack() as stack:
            with terminal.progress(out) as progress:
                task = progress.add_task("importing frameworks")
                run = checking.Check(
                    presets, names, dtypes, None if every else devices,
                    full_size,
                    lambda text: progress.update(task, description=text),
                    gradients, train, generate, apart=len(names) > 1, wide=wide)
                stack.callback(run.close)
                exit_if_any(one for one in run.report.not_checked
                            if one.port in required
                            and one.port not in run.engines)
                gc.freeze()  # the frameworks' own objects are here to stay
                run.report.environment = describe(run.report, run.devices)
                view = (terminal.Steps(out, names) if steps else
                        overview.Overview(out, names, dtypes, run.devices))
                view.begin(presets)
                for group in run.groups():
                    view.add(group)
                view.end(run.report)
            finish(out, run.report, names, json_file, html_file)


@app.command()
def vectors(
    paths: Annotated[list[pathlib.Path], typer.Argument(
        metavar="PATH…", help="Vector files, or folders of them.")],
    port: Port = None,
    require: Require = None,
    json_file: Json = None,
):
    """Replay numbers that other systems computed, in float64."""
    from parity.check import vectors as replaying
    from parity.check.environment import describe
    with told_plainly():
        known = ports.known_ports()
        names = ports.split_words(port or ["all"], known, "port")
        required = ports.split_words(require, known, "port") if require else []
        check_writable(json_file)
        exit_if_missing(required)
        out = terminal.console()
        with terminal.progress(out) as progress:
            task = progress.add_task("starting")
            report = replaying.replay(
                paths, names,
                lambda text: progress.update(task, description=text))
            report.environment = describe(report, ["cpu"])
        columns = ["numpy", *names]
        out.print(terminal.rows_table(report.rows, columns))
        terminal.print_summary(out, report, columns)
        finish(out, report, columns, json_file)


@app.command()
def weights(
    check_only: Annotated[bool, typer.Option(
        "--check", help="Write nothing; say what differs and exit 1 if "
        "anything does.")] = False,
    out: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="DIR", help="The folder.  [default: the project's weights/]"
    )] = None,
):
    """Make the shipped weight files and their golden outputs again."""
    from parity.check import golden
    with told_plainly():
        folder = out or golden.FOLDER
        if not check_only:
            golden.make(folder)
            print(f"made {folder}")
            return
        problems = list(golden.problems(folder))
        print("\n".join(problems) or f"{folder} is as it should be")
        raise typer.Exit(1 if problems else 0)


app.command()(training.train)
app.command()(training.curves)
app.command()(translate.translate)
app.command()(translate.tokenizer)
app.command()(faults.faults)
app.command()(mutate.mutate)
app.command()(differences.differences)
app.command()(dialects.dialects)
app.command("import")(dialects.import_)
app.command()(dialects.export)
app.command()(dialects.fetch)
app.command()(dialects.run)
app.command()(read.read)
app.command()(lesson.lesson)
app.command()(compare.dump)
app.command()(compare.compare)
app.command()(ledger.ledger)
app.command()(doctor.doctor)


def finish(out, report, names, json_file, html_file=None):
    """Print how a run ended, write its files and exit with its status."""
    out.print()
    terminal.print_environment(out, report.environment)
    out.print()
    terminal.print_divergences(out, report)
    findings = causes(report)
    for place, finding in enumerate(findings):
        words = "Cause" if place == 0 else "And once that is allowed for"
        out.print(f"{words}: {finding.cause} ({finding.case}, "
                  f"{finding.step}).")
    terminal.print_verdict(out, report)
    if json_file:
        write_json(json_file, report.as_json())
    if html_file:
        from parity.render import report_page
        report_page.write(html_file, report, names, findings)
    raise typer.Exit(report.status)


def causes(report):
    """Which known faults compute what the first to diverge computed.

    They are looked for at the first row of which any are known. A port that
    failed has its traceback, and may do anything if it is asked.
    """
    from parity.check.workers import words_of
    failed = {failure.port for failure in report.failures}
    first = {}
    for row, port, _ in report.divergences():
        if port not in failed:
            first.setdefault((port, row.preset, row.case, row.dtype, row.form),
                             (row, port))
    from parity.causes import rows
    for row, port in first.values():
        if not (diagnosis := rows.diagnosis_for(row)):
            continue
        try:
            return diagnosis.findings(ports.ready(port, form=row.form))
        except Exception as error:  # of a port that also fails at this
            print(f"parity: no cause was looked for: {words_of(error)}.",
                  file=sys.stderr)
            break
    return []
