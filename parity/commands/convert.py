"""The command ``parity convert``."""

import pathlib
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError
from parity_io.files import check_writable
from parity.commands.compare import is_script
from parity.commands.scripts import call_script, running
from parity.commands.shell import DIVERGED, told_plainly

File = Optional[pathlib.Path]


def convert(
    a: Annotated[pathlib.Path, typer.Argument(
        metavar="A", help="The model whose weights they are: "
        "SCRIPT.py:FUNCTION; with --apply also a file of weights.")],
    b: Annotated[File, typer.Argument(
        metavar="B", help="The model that is to have them: likewise.")] = None,
    out: Annotated[File, typer.Option(
        metavar="FILE", help="The mapping to write, as TOML; with --apply "
        "the weights: .safetensors, .npz, or .weights.h5 of a Keras model."
    )] = None,
    apply_file: Annotated[File, typer.Option(
        "--apply", metavar="FILE", help="Apply this mapping: make B's weights "
        "of A's.")] = None,
    reverse: Annotated[bool, typer.Option(
        "--reverse", help="With --apply: make A's weights of B's; A, where "
        "it is given, keeps what B does not have. Give B first.")] = False,
    leave_out: Annotated[Optional[list[str]], typer.Option(
        metavar="NAME", help="A parameter that needs no partner and stays as "
        "it is; repeat it.")] = None,
):
    """Find which parameter of one model is which of another, and convert.

    Both are run on drawn weights, on the inputs that their functions return,
    and a parameter has its place where every step that it feeds agrees. Where
    some have none, FILE is a draft, which is not applied before it is
    corrected. Exit status: 0 all have theirs and the outputs agree, 1 some
    have none or the outputs differ, 2 usage or unreadable input.
    """
    with told_plainly():
        if apply_file is None:
            _find(a, b, out, reverse, leave_out or [])
        else:
            _apply(apply_file, a, b, out, reverse, leave_out)


def called(target):
    """(model, inputs, keywords) of a script's function."""
    if target is None or not is_script(target):
        raise InputError(
            f"{str(target)!r} is no SCRIPT.py:FUNCTION, and a mapping is "
            "found by running both models; give one of each."
            if target else "a mapping is between two models; give A and B as "
            "SCRIPT.py:FUNCTION.")
    return call_script(target)


def _find(a, b, out, reverse, leave_out):
    """Find a mapping, write it and say what there is."""
    from parity.conversion import find, mapping_file
    from parity.render.conversion import found_words
    if reverse:
        raise InputError(
            "--reverse is for applying a mapping; give it with --apply.")
    if out is None:
        raise InputError(
            "a mapping is written to a file; name it with --out, such as "
            "--out mapping.toml.")
    check_writable(out, read=[a, b])
    models = called(a), called(b)
    with running(f"{a} or {b}"):
        found = find.find(*models, leave_out)
    mapping_file.write(found.mapping, out, found.remarks)
    print(found_words(found, out))
    raise typer.Exit(0 if found.complete else DIVERGED)


def _apply(apply_file, a, b, out, reverse, leave_out):
    """Apply a mapping, write the weights and say whether outputs agree."""
    from parity.conversion import apply, mapping_file, weight_files
    from parity.conversion.weights import Live
    from parity.render.conversion import applied_words
    if leave_out:
        raise InputError(
            "--leave-out is for finding a mapping; with --apply, name it in "
            "left_out of the mapping.")
    if out is None and not (b and is_script(a) and is_script(b)):
        raise InputError(
            "nothing would come of it: give --out FILE for the weights, or "
            "both models as SCRIPT.py:FUNCTION, which are then run.")
    check_writable(out, read=[apply_file, a, b])
    mapping = mapping_file.read(apply_file)

    def opened(target):
        if target is None:
            return None
        if not is_script(target):
            return weight_files.read(target)
        model = call_script(target)
        with running(str(target)):
            return Live(*model)
    source, target = opened(a), opened(b)
    if out:
        keras = isinstance(target, Live) and target.trace.framework == "keras"
        weight_files.check(out, keras)
    with running(f"{a} or {b}"):
        applied = apply.apply(mapping, source, target, reverse)
    if out:
        weight_files.write(out, applied.arrays, getattr(target, "model", None))
    print(applied_words(applied, out))
    raise typer.Exit(DIVERGED if applied.diverges else 0)
