"""``parity check shards``: a check on very many devices, simulated."""

from typing import Annotated, Optional

import typer

from parity_io.files import check_writable, write_json
from parity.commands.options import Json, Markdown
from parity.commands.shell import DIVERGED, NOTHING, told_plainly
from parity.ports import NotChecked
from parity.render import terminal
from parity.subjects import mesh_axes, mesh_words


def shards(
    mesh: Annotated[Optional[list[str]], typer.Option(
        metavar="WORDS", help="data=4,model=2; repeat it.  [default: meshes of "
        "8, 32 and 128 devices]")] = None,
    whole: Annotated[bool, typer.Option(
        help="Put all arrays together and compare them too, to hold the cost "
        "of one beside the other.")] = True,
    json_file: Json = None,
    markdown: Markdown = None,
):
    """Compare a model where it lies, on logical devices of this machine.

    Each device of JAX compares its own shards with the reference, a part of
    the model at a time and one row of each shard of a batch, and by hashes
    what several devices hold. Numbers leave a device, and no arrays.
    """
    from parity.matrix import in_place
    from parity.render import shards as tables
    with told_plainly():
        meshes = dict.fromkeys(mesh_words(mesh_axes(words))
                               for words in mesh or in_place.MESHES)
        check_writable(json_file, markdown)
        out, found = terminal.console(), {}
        with terminal.progress(out) as progress:
            task = progress.add_task("starting")
            for words, reply in in_place.run(
                    meshes, whole, lambda words: progress.update(
                        task, description=words)):
                found[words] = reply
        absent = [reply.value.reason for reply in found.values()
                  if isinstance(reply.value, NotChecked)]
        if absent:
            out.print(f"not checked: {absent[0]}")
            raise typer.Exit(NOTHING)
        tables.show(out, found)
        if json_file:
            write_json(json_file, tables.as_json(found))
        if markdown:
            tables.write(markdown, found)
    if any(reply.failure or any(
            tally.wrong for tally in reply.value.values())
            for reply in found.values()):
        raise typer.Exit(DIVERGED)
