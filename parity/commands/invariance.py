"""The command ``parity invariance``."""

from typing import Annotated, Optional

import typer

from parity_io.files import check_writable, write_json
from parity import ports
from parity.commands.options import Json
from parity.commands.scripts import call_script, function_of, running
from parity.commands.shell import told_plainly
from parity.render import terminal


def invariance(
    target: Annotated[str, typer.Argument(
        metavar="SCRIPT.py:FUNCTION", help="A function without parameters that "
        "returns (model, inputs) or (model, inputs, keywords).")],
    way: Annotated[Optional[list[str]], typer.Option(
        metavar="NAME", help="twice, alone, beside, permuted, larger, right, "
        "left: of batches; cache, or of it: tokens, chunks, prompt, reused, "
        "static, cached-left, beams, shared; or all; repeat it or separate "
        "names by commas.  [default: those that can be asked]")] = None,
    step: Annotated[Optional[str], typer.Option(
        metavar="NAME", help="A function of the script, (model, place, state, "
        "*inputs, **keywords), that reads one token and returns (output, "
        "state); of (model, places, …) it is given a slice.  [default: what "
        "the model takes, such as past_key_values]")] = None,
    pad_id: Annotated[Optional[int], typer.Option(
        metavar="N", help="The token that is padding.  [default: the model's "
        "config's, else 0]")] = None,
    json_file: Json = None,
):
    """Ask a model again in other batches, padded, and with its cache.

    The first step that parts is named, and of a cache the tokens and the
    cause. Exit status: 0 the same to the bit or within rounding, 1 wrong in
    some way, 2 usage, 4 nothing was compared, or not all that was named.
    """
    from parity.invariants import asking
    with told_plainly():
        ways = ports.split_words(
            way, asking.WAYS, "way", usual=asking.USUAL) if way else None
        check_writable(json_file)
        model, inputs, keywords = call_script(target)
        with running(target):
            responses = asking.invariance(
                model, *inputs, ways=ways, pad_id=pad_id,
                step=function_of(step) if step else None, **keywords)
    print("\n".join(map(terminal.filled, str(responses).split("\n"))))
    if json_file:
        write_json(json_file, responses.as_json())
    raise typer.Exit(responses.status)
