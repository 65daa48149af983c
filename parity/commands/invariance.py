"""The commands ``parity invariance`` and ``parity cache``."""

from typing import Annotated, Optional

import typer

from contract.files import check_writable, write_json
from parity import ports
from parity.commands.options import Json
from parity.commands.scripts import call_script, function_of, running
from parity.commands.shell import told_plainly

Target = Annotated[str, typer.Argument(
    metavar="SCRIPT.py:FUNCTION", help="A function without parameters that "
    "returns (model, inputs) or (model, inputs, keywords).")]


def invariance(
    target: Target,
    way: Annotated[Optional[list[str]], typer.Option(
        metavar="NAME", help="twice, alone, beside, permuted, larger, right, "
        "left or all; repeat it or separate names by commas.  "
        "[default: all]")] = None,
    pad_id: Annotated[Optional[int], typer.Option(
        metavar="N", help="The token that is padding.  [default: the model's "
        "config's, else 0]")] = None,
    json_file: Json = None,
):
    """Ask a model again with its rows alone, in other batches and padded.

    The first step that parts is named. Exit status: 0 the same to the bit or
    within rounding, 1 wrong in some way, 2 usage, 4 nothing was compared, or
    not all that was asked for.
    """
    from parity.invariants import batches
    with told_plainly():
        ways = ports.split_words(way or ["all"], batches.WAYS, "way")
        check_writable(json_file)
        model, inputs, keywords = call_script(target)
        with running(target):
            responses = batches.invariance(
                model, *inputs, ways=ways, pad_id=pad_id, **keywords)
    _finish(responses, json_file)


def cache(
    target: Target,
    step: Annotated[Optional[str], typer.Option(
        metavar="NAME", help="A function of the script, (model, place, state, "
        "*inputs, **keywords), that reads one token and returns (output, "
        "state).  [default: past_key_values, as Hugging Face's models take "
        "it]")] = None,
    json_file: Json = None,
):
    """Hold a model token by token, with its cache, against all at once.

    The first place and the first step that part are named. Exit status: 0 the
    same to the bit or within rounding, 1 wrong, 2 usage, 4 nothing was
    compared, or not every place.
    """
    from parity.invariants import caches
    with told_plainly():
        check_writable(json_file)
        model, inputs, keywords = call_script(target)
        with running(target):
            responses = caches.cache(
                model, *inputs, step=function_of(step) if step else None,
                **keywords)
    _finish(responses, json_file)


def _finish(responses, json_file):
    """Print Responses, write them, and exit with their status."""
    print(responses)
    if json_file:
        write_json(json_file, responses.as_json())
    raise typer.Exit(responses.status)
