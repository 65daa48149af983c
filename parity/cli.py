"""The command line: ``parity``.

A command is imported when it is asked for, so that none waits for what another
needs.

Exit status: 0 match, 1 divergence, 2 usage or unreadable input, 3 a required
framework is missing, 4 nothing was compared, 70 a mistake in this program.
"""

import contextlib
import os
from typing import Annotated

import typer

from parity import compiled
from parity.commands.shell import Commands, Listed

#: What is printed where no command is given.
FIRST = """\
One Transformer in NumPy, PyTorch, Keras and JAX, proved to be the same. Try:

  parity check --preset lesson          compare every step of all four
  parity translate "20 November 2026"   ask the trained model
  parity read --serve                   read the four side by side, with values
  parity compare a.py:make b.py:make    say where two models diverge, and why
  parity invariance model.py:make       in other batches, and with its cache
  parity lesson 3                       attention by hand, one step at a time
  parity doctor                         what is installed here
  parity --help                         every command
"""

#: The commands, by what they are for: module and function -> line in --help.
GROUPS: dict[str, dict[str, str]] = {
    "Debug your own models": {
        "compare.compare": "Say whether two models differ, where and why.",
        "compare.dump": "Store what a model computes, to compare later.",
        "invariance.invariance": "Ask one in other batches, padded, cached.",
        "convert.convert": "Find which weight of one is which of another."},
    "Check the four": {
        "check.check": "Compare every step of every port, and more."},
    "Read and teach": {
        "read.read": "Write pages with the four side by side.",
        "lesson.lesson": "Run a lesson.",
        "exercise.exercise": "Give an exercise, or check an answer.",
        "teach.teach": "Pack lessons for a class."},
    "Use models": {
        "translate.translate": "Answer texts by the models that come along.",
        "train.train": "Train a model, alike in every port."},
    "Models of other systems": {
        "dialects.dialects": "Say how their Transformers differ from ours.",
        "dialects.import_": "Make one of theirs one of ours, for all four.",
        "dialects.run": "Answer texts or sounds with it.",
        "dialects.export": "Write one of ours as they store it."},
    "This machine": {
        "doctor.doctor": "Say what is installed, and what is too old."},
}

#: What belongs to a command and is called by two words, such as check vectors.
PARTS: dict[str, dict[str, str]] = {
    "check.check": {
        "vectors.vectors": "Replay numbers that other systems computed.",
        "matrix.matrix": "Compare what is compiled, exported, on devices.",
        "faults.faults": "Put each known fault into a port, and find it.",
        "shards.shards": "Compare a model where it lies, on many devices.",
        "ledger.ledger": "Compare errors with those recorded.",
        "differences.differences": "Show what frameworks do differently."},
    "train.train": {
        "train.curves": "Draw the learning curves of runs.",
        "quality.quality": "Say how good the models that come along are.",
        "translate.tokenizer": "Train a tokenizer from text.",
        "weights.weights": "Make the files that come along again."},
}


def entries():
    """Yield (name, Listed) of every command, a command's parts behind it."""
    for group, functions in GROUPS.items():
        for function, line in functions.items():
            first = Listed(function, line).name
            parts = [Listed(*each) for each in PARTS.get(function, {}).items()]
            listed = [f"  parity {f'{first} {part.name}':18} {part.line}"
                      for part in parts]
            yield first, Listed(
                function, line, group, "\n".join([
                    "\b", "And, each with a --help of its own:",
                    *listed]) if parts else None)
            for part in parts:
                yield f"{first} {part.name}", part


class Ours(Commands):
    """The commands of GROUPS and PARTS."""

    entries = dict(entries())


app = typer.Typer(
    cls=Ours, add_completion=False, no_args_is_help=False,
    rich_markup_mode=None, pretty_exceptions_enable=False,
    help="One Transformer in NumPy, PyTorch, Keras and JAX: prove that they "
         "agree. Exit status: 0 match, 1 divergence, 2 usage or unreadable "
         "input, 3 a required framework is missing, 4 nothing was compared, "
         "70 a mistake in this program.")


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
        from parity.commands import doctor
        print(f"parity {doctor.version()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(FIRST, end="")
    ctx.with_resource(compiled.environment(
        compiled.keeping(compiled.folder())))
    if quiet:
        ctx.with_resource(contextlib.redirect_stdout(
            ctx.with_resource(open(os.devnull, "w", encoding="utf-8"))))
