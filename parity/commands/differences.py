"""The command ``parity check differences``."""

from typing import Annotated, Optional

import typer

from parity_io.files import check_writable, write_json, write_whole
from parity.commands.options import Json, Markdown
from parity.commands.shell import NOTHING, told_plainly
from parity.differences import asking
from parity.differences.asking import (
    CHANGED, OURS, SIDES, TOPICS, framework, frameworks)
from parity.render import terminal
from parity.render.differences import (
    page, print_recorded, print_rows, print_verdict)

SCHEMA = 1

DIFFERENT = 1


def differences(
    names: Annotated[Optional[list[str]], typer.Argument(
        metavar="[NAME]…", help="Rows by name.  [default: all]")] = None,
    topic: Annotated[Optional[str], typer.Option(
        metavar="TOPIC", help=f"Rows of a topic: {', '.join(TOPICS)}.")
    ] = None,
    between: Annotated[Optional[str], typer.Option(
        metavar="A,B", help=f"Rows in which two of {', '.join(SIDES)} "
        "differ, and their answers alone.")] = None,
    run: Annotated[bool, typer.Option(
        "--run", help="Ask the frameworks that are here, and measure; --json "
        "and --markdown do so too.")] = False,
    json_file: Json = None,
    markdown: Markdown = None,
):
    """Show what the frameworks do differently by default.

    Answers are those recorded with the versions of constraints.txt; with --run
    the frameworks here are asked. Exit status then: 0 all is as recorded, 1
    something changed, 2 usage, 4 nothing could be checked.
    """
    from parity.differences import registry
    with told_plainly():
        rows = registry.select(names or (), topic)
        if between is not None:
            rows = registry.between(
                rows, [side.strip() for side in between.split(",")])
        check_writable(json_file, markdown)
        if not (run or json_file or markdown):
            print_recorded(terminal.console(), rows)
            return
        demonstrations = []
        with terminal.progress() as progress:
            task = progress.add_task("starting")
            for row in rows:
                progress.update(task, description=row.name)
                demonstrations.append(asking.demonstrate(row))
        versions = asking.versions(frameworks(demonstrations))
        out = terminal.console()
        print_rows(out, demonstrations)
        print_verdict(out, demonstrations, versions)
        if json_file:
            write_json(json_file, as_json(demonstrations, versions))
        if markdown:
            write_whole(markdown, page(demonstrations, versions))
    raise typer.Exit(status(demonstrations))


def status(demonstrations):
    """The exit status: 1 for a change, 4 where no framework answered."""
    if any(one.status == CHANGED for one in demonstrations):
        return DIFFERENT
    others = any(framework(who) not in OURS
                 for one in demonstrations for who in one.answers)
    if others and not any(one.checked for one in demonstrations):
        return NOTHING
    return 0


def as_json(demonstrations, versions):
    """What was found as plain data."""
    return {"schema": SCHEMA, "versions": versions,
            "status": status(demonstrations),
            "differences": [one.as_json() for one in demonstrations]}
