"""``parity check vectors``: numbers that other systems computed."""

import pathlib
from typing import Annotated

import typer

from parity_io.files import check_writable
from parity import ports
from parity.commands.options import Json, Port, Require, exit_if_missing
from parity.commands.shell import told_plainly
from parity.commands.verdict import finish
from parity.render import terminal


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
        names = ports.chosen(port)
        required = ports.split_words(require, known, "port") if require else []
        check_writable(json_file, read=paths)
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
