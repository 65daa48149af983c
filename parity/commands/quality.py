"""The command ``parity train quality``."""

from typing import Annotated, Optional

import typer

from parity_io.errors import one_of
from parity_io.files import check_writable, write_json
from parity.commands.answering import names_of
from parity.commands.options import Answering, Json, Markdown
from parity.commands.shell import DIVERGED, told_plainly
from parity.render import quality as rendering
from parity.render import terminal

SCHEMA = 1


def quality(
    names: Annotated[Optional[list[str]], typer.Argument(
        metavar="[NAME]…", help="Shipped models: dates, phrases.  [default: "
        "all]")] = None,
    port: Answering = "numpy",
    each: Annotated[Optional[int], typer.Option(
        metavar="N", min=1, max=1000, help="Strings of each group and form.  "
        "[default: the whole test set]")] = None,
    json_file: Json = None,
    markdown: Markdown = None,
):
    """Say how good the shipped models are on strings they never saw.

    How many answers are exact, by group; whether an answer that is less
    likely is more often wrong; and whether all ports give the same. Exit
    status: 0, or 1 where ports differ.
    """
    from parity.check import golden
    from parity.runs.quality import measure
    with told_plainly():
        port_names = names_of(port)
        for name in names or ():
            one_of(name, golden.MODELS, "model")
        check_writable(json_file, markdown)
        out, found = terminal.console(), []
        with terminal.telling() as tell:
            for name in names or golden.MODELS:
                found.append(measure(name, port_names, each, tell))
        for one in found:
            rendering.print_quality(out, one)
        if json_file:
            write_json(json_file, {
                "schema": SCHEMA, "models": [one.as_json() for one in found]})
        if markdown:
            rendering.write(markdown, found)
    if any(one.difference for one in found):
        raise typer.Exit(DIVERGED)
