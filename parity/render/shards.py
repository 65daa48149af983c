"""What was compared where it lies, as a table and as a page."""

import dataclasses

from rich.table import Column

from parity_io.files import write_whole
from parity.matrix import run
from parity.numerics.words import number
from parity.render.terminal import LISTED, numbers, plain_table
from parity.subjects import devices_of, mesh_axes

HEADER = ("devices", "mesh", "shards", "in place: moved", "time",
          "whole: moved", "time", "share of limit")

PAGE = """\
# On thousands of devices

`parity check shards --markdown docs/shards.md` writes this page.
[Meshes](meshes.md) says how a model on a few devices is compared: all arrays
are put together and held against the reference, which computes the whole. On
thousands of devices neither fits one machine. What is done there instead, on
one host:

{table}

{where}

*moved* are bytes that leave a device or come to it, and *time* is CPU time of
comparing, the reference's included: in place for each device, whole for the one
machine that puts all together. In place both stay as they are however many
devices there are; the whole grows with them.

## How

- **A part at a time.** An embedding, a layer, a norm, the projection: each is
  run on the mesh from what the mesh itself gave the part before, and so is the
  reference. No error is handed on, so that every part stands under the limit of
  one, and nobody needs more weights than a part has.
- **Samples.** Of the rows that a shard of the batch has, here {rows}, one is
  compared, drawn by the part's name; the reference computes it alone, since no
  row of a Transformer reads another.
- **Gradients with their whole truth.** A weight's gradient is a sum over all
  rows. What is differentiated here, Σ c · output, has a c that is zero but in
  the sampled rows of {drawn} shards at most, and each device makes its own part
  of it. So after the same all-reduce as in training every device holds the
  gradient of those few rows, which it can compute again from them: one that is
  missing, or a mean of means, is wrong by far more than rounding.
- **Each shard where it lies.** A device compares its own part of an output or a
  gradient with the same part of the truth, and sends how far it is off.
- **Hashes.** What several devices hold, weights along `data` and an output
  along `model`, must be equal to the bit: 32 bytes of SHA-256 leave each
  device. One that drifted is named, which a look at the first would not show.

## Which engine does what

| engine | few devices, put together | where it lies |
| --- | --- | --- |
| JAX, `Mesh` and `NamedSharding` | all | outputs, gradients, replicas |
| torch, DDP, FSDP2 and DTensor | all | *not checked* |
| Keras, `keras.distribution` on JAX | all | *not checked* |

*all* are outputs, gradients, steps of training and searches. On several hosts
JAX' `addressable_shards` are those of a host, so that each does what one does
here, and is sent the few sampled rows of others. torch has the same in
DTensor's `to_local()`; its parts would need a backward pass of their own under
FSDP2, which is not written.

## What it does not see

Rows that were not drawn, and in a gradient shards that were not; dropout; the
optimizer's step. These are compared on a few devices, by the same code, with
all rows. Not tried: several hosts, and devices that are not simulated.
"""


def size(count):
    """Bytes in words."""
    return (f"{count / 2**10:.1f} KiB" if count < 2**20
            else f"{count / 2**20:.1f} MiB")


def rows(found):
    """Words of each mesh that was measured, as HEADER."""
    for mesh, reply in found.items():
        if reply.failure:
            continue
        place, whole = reply.value["place"], reply.value.get("whole")
        count = devices_of(mesh_axes(mesh))
        yield (str(count), mesh, f"{place.shards:,}",
               size(place.read + place.moved / count),
               f"{1000 * (place.again + place.seconds / count):.0f} ms",
               size(whole.moved) if whole else "–",
               f"{1000 * whole.seconds:.0f} ms" if whole else "–",
               number(place.share))


def wrong(found):
    """What diverges or failed, a line each."""
    for mesh, reply in found.items():
        if reply.failure:
            yield f"{mesh}: {reply.failure}"
            continue
        words = list(dict.fromkeys(
            one for tally in reply.value.values() for one in tally.wrong))
        for line in words[:LISTED]:
            yield f"{mesh}: {line} diverges"
        if len(words) > LISTED:
            yield f"{mesh}: and {len(words) - LISTED} more"


def show(out, found):
    """Print the table, and what diverges."""
    table = plain_table(*(
        Column(name, no_wrap=True) if place == 1 else numbers(name)
        for place, name in enumerate(HEADER)))
    for row in rows(found):
        table.add_row(*row)
    out.print(table)
    for line in wrong(found):
        out.print(line, style="bold red", markup=False)


def as_json(found):
    """What was measured, as plain data."""
    return {mesh: {"failure": reply.failure, **{
        kind: dataclasses.asdict(tally)
        for kind, tally in (reply.value or {}).items()}}
        for mesh, reply in found.items()}


def write(path, found):
    """Write the page."""
    from parity.matrix.in_place import DRAWN, ROWS
    here = run.here()
    lines = [HEADER, ["--:", "---", *["--:"] * (len(HEADER) - 2)], *rows(found)]
    write_whole(path, PAGE.format(
        table="\n".join("| " + " | ".join(line) + " |" for line in lines),
        where=f"{here['when']}, {here['processor']}, {here['cores']} cores, "
              "which are shared by all devices.", rows=ROWS, drawn=DRAWN))
