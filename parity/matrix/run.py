"""The run of a matrix: a process for each implementation, cell after cell.

A process of its own is what a backend of Keras or a number of JAX's devices
asks for, which are read once, from the environment; and one that ends, or
hangs, costs its cell and no other.
"""

import dataclasses
import datetime
import os
import platform

from parity import ports
from parity.matrix import measuring, meshes, processes
from parity.matrix.cells import (
    WORKS, Matrix, cell_of, failed, left_out)
from parity.numerics.dtypes import BOTH, TIERS
from parity.ports import FORMS, NotChecked, TooOld
from parity.subjects import (
    BACKENDS, MODES, Subject, mesh_axes, mesh_modes)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What of a matrix is wanted; None for all.

    Attributes:
        ports, backends, forms, modes, dtypes, devices, works: names.
        meshes: in words; "" for one device.
        steps: of training on a mesh.
    """

    ports: tuple
    backends: tuple | None = None
    forms: tuple = tuple(FORMS)
    modes: tuple | None = None
    dtypes: tuple = WORKS["forward"]
    devices: tuple = ("cpu",)
    works: tuple = tuple(WORKS)
    steps: int = meshes.STEPS
    meshes: tuple = ("",)


def modes_of(wanted):
    """The modes that what is wanted has, whichever of them are wanted."""
    found: dict = {}
    for port in wanted.ports:
        for backend in backends_of(port, wanted):
            if "" in wanted.meshes:
                found |= dict.fromkeys(("eager", *(
                    MODES.get(Subject(port, backend=backend).implementation, ())
                    if "readable" in wanted.forms else ())))
            for mesh in filter(None, wanted.meshes):
                found |= dict.fromkeys(
                    mesh_modes(port, mesh_axes(mesh), backend))
    return tuple(found)


def backends_of(port, wanted):
    """What of that which is wanted a port runs on; "" where it is no choice."""
    return [backend for backend in BACKENDS.get(port, ("",))
            if wanted.backends is None or not backend
            or backend in wanted.backends]


def run(preset, wanted, on_work=lambda number, count, words: None):
    """The Matrix of a preset.

    Args:
        preset: its name.
        wanted: a Wanted.
        on_work: called as a cell begins, with its number from 1, how many
            there are, and what is done, in words.
    """
    matrix = Matrix(preset, places=[here()])
    count = count_of(wanted)

    def tell(words):
        on_work(len(matrix.cells) + 1, count, words)

    for cell in every_cell(preset, wanted, matrix, tell):
        matrix.cells.append(cell)
    return matrix


def count_of(wanted):
    """How many cells there are where every port can begin."""
    usual = [Subject(port, backend=backend) for port in wanted.ports
             for backend in backends_of(port, wanted) if "" in wanted.meshes]
    rows = [row for one in usual for row in subjects(
        one, ("eager", *MODES.get(one.implementation, ())), wanted)]
    rows += [row for mesh in filter(None, wanted.meshes)
             for port in wanted.ports
             for row in rows_on_mesh(port, mesh, wanted)]
    return sum(1 for _ in works_of(rows, wanted))


def every_cell(preset, wanted, matrix, tell):
    """Yield the SubjectCells of all implementations, and of all meshes."""
    for port in wanted.ports if "" in wanted.meshes else ():
        for backend in backends_of(port, wanted):
            yield from cells(processes.PortProcesses(port, backend),
                             preset, wanted, matrix, tell)
    for mesh in filter(None, wanted.meshes):
        for port in wanted.ports:
            yield from cells_on_mesh(
                port, mesh, preset, wanted, matrix, tell)


def cells_on_mesh(port, mesh, preset, wanted, matrix, tell):
    """Yield the SubjectCells of a port on a mesh.

    Args:
        tell: called with what is done, in words.

    Raises:
        InputError: the mesh does not divide the model or its batches.
    """
    ranks = processes.MeshProcesses(
        port, mesh, meshes.config_of(preset), meshes.ROWS)
    try:
        for subject, work in works_of(
                rows_on_mesh(port, mesh, wanted), wanted):
            if "cpu" not in wanted.devices:
                yield left_out(subject, work, "meshes are compared on "
                               "processors alone")
                continue
            if subject.dtype not in BOTH:
                yield left_out(subject, work, "meshes are compared in float64 "
                               "and float32")
                continue
            if subject.mode == "eager":
                yield left_out(subject, work, (
                    "keras.distribution divides arrays on JAX alone"
                    if subject.backend else "it has no engine for meshes"))
                continue
            tell(f"{subject}: {work}")
            reply = ranks.ask(
                f"{subject}: {work}", meshes.measured, subject, work, preset,
                wanted.steps)
            yield judged(subject, work, reply)
        if ranks.processes:
            matrix.places[0]["versions"] |= ranks.ask(
                "ending", meshes.versions).value or {}
    finally:
        ranks.close()


def rows_on_mesh(port, mesh, wanted):
    """Yield the Targets of a port on a mesh; an eager one where it has none."""
    for backend in backends_of(port, wanted):
        modes = mesh_modes(port, mesh_axes(mesh), backend)
        for mode in modes or ["eager"]:
            if mode == "eager" or wanted.modes is None or mode in wanted.modes:
                yield Subject(port, mode=mode, mesh=mesh, backend=backend)


def judged(subject, work, reply):
    """The SubjectCell of a Reply."""
    if isinstance(reply.value, NotChecked):
        told = failed if isinstance(reply.value, TooOld) else left_out
        return told(subject, work, reply.value.reason)
    if reply.failure:
        return failed(subject, work, reply.failure)
    if isinstance(reply.value, str):
        return left_out(subject, work, reply.value)
    return cell_of(subject, work, reply.value)


def cells(implementation, preset, wanted, matrix, tell):
    """Yield the SubjectCells of one implementation.

    Args:
        tell: called with what is done, in words.
    """
    usual = Subject(implementation.port, backend=implementation.backend)
    tell(f"starting {usual.implementation}")
    try:
        reply = implementation.ask("starting", described)
        if reply.failure or isinstance(reply.value, NotChecked):
            for subject, work in works_of([usual], wanted):
                yield judged(subject, work, reply)
            return
        versions, modes = reply.value
        matrix.places[0]["versions"] |= versions
        for subject, work in works_of(
                subjects(usual, modes, wanted), wanted):
            if subject.port == "numpy" and subject.form == "readable":
                yield left_out(subject, work, (
                    "it is the truth" if subject.dtype == "float64" else
                    "its own error is what the limits follow from"))
                continue
            tell(f"{subject}: {work}")
            yield judged(subject, work, implementation.ask(
                f"{subject}: {work}", measuring.measured, subject, work,
                preset))
    finally:
        implementation.close()


def described(bench):
    """(versions, modes) of a port, asked in its process."""
    return bench.engine.versions(), (
        ("eager",) if bench.engine.NAME == "numpy"
        else measuring.modes(bench))


def subjects(usual, modes, wanted):
    """The Targets of one implementation, in their order, in float64."""
    for device in wanted.devices:
        for form in wanted.forms:
            for mode in modes:
                if (wanted.modes is None or mode in wanted.modes) and (
                        mode == "eager" or form == "readable"):
                    yield dataclasses.replace(
                        usual, form=form, mode=mode, device=device)


def works_of(rows, wanted):
    """Yield (Subject, work) of every cell of these rows.

    Precision tiers are of ports as they are, on one device; searches are of
    meshes, for ``parity check --generate`` compares them elsewhere.
    """
    for subject in rows:
        plain = subject.row == dataclasses.replace(
            Subject(subject.port), dtype="", backend=subject.backend,
            device=subject.device) and subject.port != "numpy"
        for work, dtypes in WORKS.items():
            for dtype in dtypes:
                if work in wanted.works and dtype in wanted.dtypes and (
                        plain or dtype not in TIERS) and (
                        subject.mesh or work != "generation"):
                    yield dataclasses.replace(subject, dtype=dtype), work


def here():
    """The machine, the date and what computes."""
    return {"when": datetime.date.today().isoformat(),
            "platform": platform.platform(), "cores": os.cpu_count(),
            "processor": processor(), "python": platform.python_version(),
            "versions": dict(ports.engine("numpy").versions())}


def processor():
    """The name of the processor, as far as the system says it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
