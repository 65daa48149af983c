"""The command ``parity check faults``."""

from typing import Annotated, Optional

import typer
from rich.table import Column

from parity_io.errors import plural
from parity_io.files import check_writable, write_json, write_whole
from parity import ports
from parity.commands.options import Json, Markdown
from parity.commands.shell import told_plainly
from parity.render import terminal

#: What the causes are of, in their order.
TOPICS = (
    "norm", "attention", "rotary positions", "relative positions",
    "masks", "feed-forward", "output", "dtype", "layers", "embedding",
    "positions", "residual", "loss", "optimiser", "training",
    "gradients", "generation")


def faults(
    topic: Annotated[Optional[list[str]], typer.Option(
        metavar="TOPIC", help="Only these: " + ", ".join(TOPICS) + "."
    )] = None,
    port: Annotated[Optional[list[str]], typer.Option(
        metavar="NAME", help="torch, keras, jax or all; repeat it or separate "
        "names by commas.  [default: all]")] = None,
    json_file: Json = None,
    markdown: Markdown = None,
):
    """Put each known fault into each port, and find it.

    Exit status: 0 if each is caught at its step and named as itself, 1 if not
    or if a framework is too old, 2 usage, 4 if no port can be checked.
    """
    from parity.causes import catalogue, page
    from parity.diagnosis import proof
    with told_plainly():
        names = ports.chosen(port)
        selection = ports.split_words(topic or ["all"], TOPICS, "topic")
        check_writable(json_file, markdown)
        engines = {name: ports.engine(name) for name in names}
        absent = [e for e in engines.values()
                  if isinstance(e, ports.NotChecked)]
        engines = {name: e for name, e in engines.items()
                   if not isinstance(e, ports.NotChecked)}
        for engine in engines.values():
            engine.set_precision()
        causes = [fault for name in TOPICS if name in selection
                  for fault in catalogue.faults() if fault.topic == name]
        rows = []
        with terminal.progress() as progress:
            bar = progress.add_task("starting")
            for row in proof.proofs(causes, engines):
                progress.update(bar, description=f"{row.fault.topic} · "
                                f"{row.fault.name} · {row.port}")
                rows.append(row)
        out = terminal.console()
        out.print(table(rows, list(engines)))
        for one in absent:
            out.print(f"not checked: {one.port}, {one.reason}")
        wrong = [row for row in rows if not row.right]
        for fault in catalogue.equivalents():
            if fault.topic in selection:
                out.print(f"no fault: {fault.name}, since "
                          f"{fault.equivalent}")
        out.print(f"{plural(len(rows), 'fault')} in ports: "
                  f"{len(rows) - len(wrong)} "
                  f"caught at their step and named, {len(wrong)} not")
        if json_file:
            write_json(json_file, {"schema": 1, "rows": [
                row.as_json() for row in rows]})
        if markdown:
            write_whole(markdown, page.page())
        old = any(isinstance(one, ports.TooOld) for one in absent)
        raise typer.Exit(1 if wrong or old else 0 if rows else 4)


def table(rows, names):
    """A row a fault, a column a port: what it was named as."""
    grid = terminal.plain_table(*(
        Column(title, overflow="fold")
        for title in ("fault", "caught by", *names)))
    faults = list(dict.fromkeys(row.fault.name for row in rows))
    by = {(row.fault.name, row.port): row for row in rows}
    topic = None
    for name in faults:
        ours = [by[name, port] for port in names if (name, port) in by]
        fault = ours[0].fault
        if fault.topic != topic:
            topic = fault.topic
            grid.add_row(f"[bold cyan]{topic}[/]")
        grid.add_row(f"  {name}", f"{fault.case}, {fault.step}", *(
            row.in_words for row in ours))
    return grid
