"""``parity check matrix``: every implementation, however and wherever it runs.
"""

import dataclasses
import pathlib
from typing import Annotated, Optional

import typer

from transformer_contract.config import PRESETS
from parity_io.errors import InputError, one_of
from parity_io.files import check_writable, write_json
from parity import ports
from parity.commands.options import (
    Html, Json, Markdown, Require, Words, exit_if_missing)
from parity.commands.shell import told_plainly
from parity.matrix.cells import WORKS, read_matrix
from parity.numerics.dtypes import TIERS
from parity.render import terminal
from parity.subjects import BACKENDS, mesh_axes, mesh_words


def matrix(
    preset: Annotated[str, typer.Option(
        metavar="NAME", help=f"{', '.join(PRESETS)}.")] = "lesson",
    port: Annotated[Words, typer.Option(
        "--port", metavar="NAME", help="numpy, torch, keras, jax or all; "
        "repeat it or separate names by commas.  [default: all]")] = None,
    backend: Annotated[Words, typer.Option(
        "--backend", metavar="NAME", help="What Keras runs on: "
        f"{', '.join(BACKENDS['keras'])} or all.  [default: all]")] = None,
    form: Annotated[Words, typer.Option(
        "--form", metavar="NAME", help="readable, fast or all.  "
        "[default: all]")] = None,
    mode: Annotated[Words, typer.Option(
        "--mode", metavar="NAME", help="eager, or how else a framework runs a "
        "model, such as inductor, ONNX Runtime, tf.function, jit; separate "
        "names by commas.  [default: all]")] = None,
    dtype: Annotated[Words, typer.Option(
        "--dtype", metavar="NAME", help=f"{', '.join(WORKS['forward'])} or "
        "all.  [default: all]")] = None,
    device: Annotated[Words, typer.Option(
        "--device", metavar="NAME", help="cpu, cuda, mps, tpu, xpu or all.  "
        "[default: cpu]")] = None,
    work: Annotated[Words, typer.Option(
        "--work", metavar="NAME", help=f"{', '.join(WORKS)} or all.  "
        "[default: all]")] = None,
    mesh: Annotated[Optional[list[str]], typer.Option(
        metavar="WORDS", help="data=2,model=2, one (a device), or all; repeat "
        "it.  [default: one]")] = None,
    add: Annotated[Optional[list[pathlib.Path]], typer.Option(
        metavar="FILE", help="Show the cells of an earlier run's --json too, "
        "of any machine, or, with --markdown, of other presets; repeat it.",
    )] = None,
    require: Require = None,
    json_file: Json = None,
    markdown: Markdown = None,
    html: Html = None,
):
    """Compare every form, mode, dtype, device and mesh with the reference.

    Each cell is the largest error as a share of its limit; what cannot be
    checked here says why. All of it takes some minutes; where a compiler
    works, one cell may take some.
    """
    from parity.check.run import DEVICES
    from parity.matrix import run
    from parity.render import matrix_page, tables_page
    with told_plainly():
        one_of(preset, PRESETS, "preset")
        words = ports.split_words
        wanted = run.Wanted(
            ports=tuple(ports.chosen(port, reference=True)),
            backends=tuple(words(
                backend or ["all"], BACKENDS["keras"], "backend")),
            forms=tuple(words(form or ["all"], ports.FORMS, "form")),
            dtypes=tuple(words(dtype or ["all"], WORKS["forward"], "dtype")),
            devices=tuple(words(device or ["cpu"], DEVICES, "device")),
            works=tuple(words(work or ["all"], WORKS, "work")),
            meshes=tuple(mesh_list(mesh or ["one"])))
        if mode is not None:
            wanted = dataclasses.replace(wanted, modes=tuple(words(
                mode, run.modes_of(wanted), "mode", spaces=False)))
        check_writable(json_file, markdown, html)
        exit_if_missing(words(
            require, ports.known_ports(), "port") if require else [])
        added = [read_matrix(file) for file in add or ()]
        earlier = [one for one in added if one.preset == preset]
        others = [one for one in added if one.preset != preset]
        if others and not markdown:
            raise InputError(
                f"--add has a matrix of {others[0].preset}, not of {preset}; "
                "only --markdown shows several.")
        result = shown(preset, wanted, earlier)
        if json_file:
            write_json(json_file, result.as_json())
        if markdown:
            matrix_page.write(markdown, result, others)
        if html:
            tables_page.write_matrix(html, result)
    raise typer.Exit(result.status)


def shown(preset, wanted, earlier=()):
    """Measure a matrix, with its progress, and print it: the Matrix.

    Args:
        earlier: Matrices to be shown with it.
    """
    from parity.matrix import run
    from parity.render import matrix as tables
    out = terminal.console()
    with terminal.progress(out) as progress:
        task = progress.add_task("starting")
        result = run.run(
            preset, wanted, lambda number, count, words: progress.update(
                task, description=f"{number} of {count}  {words}"))
    for one in reversed(earlier):
        result.add(one)
    tables.show(out, result)
    return result


def check_on_meshes(preset, names, dtypes, given, asked, json_file):
    """What ``parity check --mesh`` does: it ends with an exit status.

    Args:
        asked: {work: whether it is asked for, or how many steps}.
    """
    from parity.matrix import run
    meshes = mesh_list(given)
    if "" in meshes and "all" not in given:
        raise InputError("one is one device, and no mesh; leave --mesh out.")
    works = "forward", *(work for work, what in asked.items() if what)
    for work in works:
        fitting = [dtype for dtype in WORKS[work] if dtype not in TIERS]
        if not set(dtypes) & set(fitting):
            raise InputError(
                f"{work} has a limit in {', '.join(fitting)} alone; give that "
                f"as --dtype, or leave {work} out.")
    result = shown(preset, run.Wanted(
        ports=tuple(names), dtypes=tuple(dtypes), works=works,
        meshes=tuple(filter(None, meshes)), steps=asked["training"]))
    if json_file:
        write_json(json_file, result.as_json())
    raise typer.Exit(result.status)


def check_artefact(path, json_file):
    """What ``parity check --artefact`` does: it ends with an exit status."""
    from parity.matrix import artefact
    from parity.render import matrix as tables
    with told_plainly():
        check_writable(json_file)
        result = artefact.replay(path)
        tables.show(terminal.console(), result)
        if json_file:
            write_json(json_file, result.as_json())
    raise typer.Exit(result.status)


def mesh_list(given):
    """Meshes in the one way that Targets have; "" is one device."""
    from parity.matrix.meshes import MESHES
    names = [name for word in given for name in (
        ("one", *MESHES) if word == "all" else (word,))]
    return dict.fromkeys("" if name == "one" else mesh_words(mesh_axes(name))
                         for name in names)
