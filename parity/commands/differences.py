"""The command ``parity differences``."""

import pathlib
from typing import Annotated, Optional

import typer

from contract.files import check_writable, write_json, write_whole
from parity.commands.shell import NOTHING, told_plainly
from parity.differences import asking
from parity.differences.asking import (
    CHANGED, OURS, TOPICS, framework, frameworks)
from parity.render import terminal
from parity.render.differences import page, print_rows, print_verdict

SCHEMA = 1

DIFFERENT = 1


def differences(
    names: Annotated[Optional[list[str]], typer.Argument(
        metavar="[NAME]…", help="Rows by name.  [default: all]")] = None,
    topic: Annotated[Optional[str], typer.Option(
        metavar="TOPIC", help=f"Rows of a topic: {', '.join(TOPICS)}.")
    ] = None,
    json_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--json", metavar="FILE", help="Write what was found as JSON to FILE.")
    ] = None,
    markdown: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Write what was found as a page to FILE.")
    ] = None,
):
    """Show what the frameworks do differently by default, by running them.

    Exit status: 0 all is as recorded, 1 something changed, 2 usage, 4 nothing
    could be checked.
    """
    from parity.differences import registry
    with told_plainly():
        chosen = registry.select(names or (), topic)
        check_writable(json_file)
        check_writable(markdown)
        found = []
        with terminal.progress() as progress:
            task = progress.add_task("starting")
            for known in chosen:
                progress.update(task, description=known.name)
                found.append(asking.demonstrate(known))
        versions = asking.versions(frameworks(found))
        out = terminal.console()
        print_rows(out, found)
        print_verdict(out, found, versions)
        if json_file:
            write_json(json_file, as_json(found, versions))
        if markdown:
            write_whole(markdown, page(found, versions))
    raise typer.Exit(status(found))


def status(found):
    """The exit status: 1 for a change, 4 where no framework answered."""
    if any(one.status == CHANGED for one in found):
        return DIFFERENT
    asked = any(framework(who) not in OURS
                for one in found for who in one.answers)
    if asked and not any(one.checked for one in found):
        return NOTHING
    return 0


def as_json(found, versions):
    """What was found as plain data."""
    return {"schema": SCHEMA, "versions": versions, "status": status(found),
            "differences": [one.as_json() for one in found]}
