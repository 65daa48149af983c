"""The command line: ``parity``.

Exit status: 0 match, 1 divergence, 2 usage or unreadable input, 3 a required
framework is missing, 4 nothing was compared, 70 a mistake in this program.
"""

import contextlib
import os
from typing import Annotated

import typer

from parity.commands import (
    bench, check, compare, convert, dialects, differences, doctor, exercise,
    faults, invariance, ledger, lesson, matrix, mutate, quality, read, shards,
    translate, vectors, weights)
from parity.commands import train as training
from parity.commands.shell import Commands

app = typer.Typer(
    cls=Commands, add_completion=False, no_args_is_help=False,
    rich_markup_mode=None, pretty_exceptions_enable=False,
    help="One Transformer in NumPy, PyTorch, Keras and JAX: prove that they "
         "agree. Exit status: 0 match, 1 divergence, 2 usage or unreadable "
         "input, 3 a required framework is missing, 4 nothing was compared, "
         "70 a mistake in this program.")

#: What is printed where no command is given.
FIRST = """\
One Transformer in NumPy, PyTorch, Keras and JAX, proved to be the same. Try:

  parity check --preset lesson          compare every step of all four
  parity translate "20 November 2026"   ask the trained model
  parity read --serve                   read the four side by side, with values
  parity dump model.py:make --out a     store what your model computes; then
  parity compare a b                    say where two models diverge, and why
  parity cache model.py:make            token by token, against all at once
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


app.command()(check.check)
app.command()(vectors.vectors)
app.command()(weights.weights)
app.command()(training.train)
app.command()(training.curves)
app.command()(translate.translate)
app.command()(translate.tokenizer)
app.command()(quality.quality)
app.command()(faults.faults)
app.command()(mutate.mutate)
app.command()(differences.differences)
app.command()(convert.convert)
app.command()(dialects.dialects)
app.command("import")(dialects.import_)
app.command()(dialects.export)
app.command()(dialects.fetch)
app.command()(dialects.run)
app.command()(read.read)
app.command()(lesson.lesson)
app.command()(exercise.exercise)
app.command()(compare.dump)
app.command()(compare.compare)
app.command()(invariance.invariance)
app.command()(invariance.cache)
app.command()(ledger.ledger)
app.command()(doctor.doctor)
app.command()(matrix.matrix)
app.command()(shards.shards)
app.command()(bench.bench)
