"""Training on a mesh: an engine whose model lies in other processes.

A run asks it as it asks any engine. Each rank is asked the same and does its
part; numbers come from the first, and arrays come whole, so that a checkpoint
has nothing of the mesh and any other can go on from it. The run itself, its
folder and its checkpoint are this process's: a rank that ends takes nothing
of them along.
"""

import dataclasses

import numpy as np

from parity_io.errors import InputError, one_of
from parity.check.shared_arrays import SharedArrays, load
from parity.matrix import meshes, processes
from parity.ports import NotChecked
from parity.subjects import (
    MESH_MODES, Subject, mesh_axes, mesh_modes, mesh_words)

#: What a failure of a rank says where another one is gone or silent.
LOST = "gloo", "Connection closed", "Timed out"


@dataclasses.dataclass
class Held:
    """What the ranks hold under a name."""

    name: str


@dataclasses.dataclass
class HeldModel(Held):
    """A Transformer on a mesh; of it a run reads this much."""

    config: object
    home: str


@dataclasses.dataclass
class HeldTrainer(Held):
    """A Trainer on a mesh; of it a run reads this much."""

    model: HeldModel
    training: object
    step: int = 0


class OnMesh:
    """The engine of a port on a mesh, as far as a run needs one.

    Args:
        port: its name.
        mesh: in words.
        mode: how the port divides, or None for the first way that it has.
        config, rows: the model's, and how many rows a batch has.

    Raises:
        InputError: the port has no such engine, or the mesh does not divide
            the model and its batches.
    """

    def __init__(self, port, mesh, mode, config, rows):
        axes = mesh_axes(mesh)
        one_of(port, MESH_MODES, "port with an engine for meshes")
        modes = mesh_modes(port, axes)
        if mode:
            one_of(mode, modes, f"mode of {port} on {mesh_words(axes)}")
        self.NAME, self.data = port, axes["data"]
        self.subject = Subject(
            port, mode=mode or modes[0], mesh=mesh_words(axes))
        self.ranks = processes.MeshProcesses(
            port, self.subject.mesh, config, rows)
        self.shared = SharedArrays(subprocesses=True)

    def ask(self, function, *given):
        """What the first rank answers.

        Raises:
            InputError: a rank ended, was silent or refused; it says which.
            RuntimeError: a rank failed in another way.
        """
        reply = self.ranks.ask("training", function, self.subject, *given)
        if isinstance(reply.value, NotChecked):
            raise InputError(
                f"{self.NAME} cannot run here: {reply.value.reason}; install "
                "it or choose another port.")
        if not reply.failure:
            return reply.value
        if reply.traceback and "InputError: " not in reply.failure and not any(
                word in reply.traceback for word in LOST):
            raise RuntimeError(reply.traceback)
        raise InputError(
            f"{reply.failure}; all of the mesh were ended. The last "
            "checkpoint, if there is one, is whole: go on with --resume.")

    def call(self, name, *given):
        """What a function of the ranks' engine returns."""
        return self.ask(answered, name, [
            Held(one.name) if isinstance(one, Held) else one for one in given])

    def __getattr__(self, name):
        return lambda *given: self.call(name, *given)

    def not_fused(self, config, settings=None):
        """Nothing that is to be told: ranks have the readable form alone."""
        return ()

    def build(self, component, config, weights, dtype, device="cpu"):
        """Have the ranks make a model of whole weights."""
        self.shelved(built, weights, component, config, dtype, device)
        return HeldModel("model", config, device)

    def trainer(self, model, training):
        """Have the ranks make a Trainer of their model."""
        self.ask(trained, training)
        return HeldTrainer("trainer", model, training)

    def resume(self, trainer, step, moments):
        """Have the ranks go on after ``step``, from moments as exported."""
        self.shelved(resumed, moments, step)
        trainer.step = step

    def shelved(self, function, arrays, *given):
        """Ask with arrays, of which all ranks share the pages."""
        stored = self.shared.store(arrays)
        try:
            self.ask(function, stored, *given)
        finally:
            stored.drop()

    def train_step(self, trainer, sources, targets):
        """Make one step on A batches; see the reference's engine."""
        numbers = self.call("train_step", trainer, sources, targets)
        trainer.step += 1
        return numbers

    def predict(self, model, source, target, source_mask, target_mask):
        """A Transformer's output alone: [B T V]; B may be any number."""
        return self.call("predict", model, *map(self.filled, (
            source, target, source_mask, target_mask)))[:len(source)]

    def generate(self, model, source, settings):
        """Find targets of sources [B S]; B may be any number."""
        found = self.call("generate", model, self.filled(source), settings)
        return {name: array[:len(source)] for name, array in found.items()}

    def filled(self, rows):
        """Rows, and the last one again until the mesh divides them."""
        return np.concatenate([
            rows, np.repeat(rows[-1:], -len(rows) % self.data, axis=0)])

    def close(self):
        """End the ranks."""
        self.ranks.close()
        self.shared.close()


# What ranks are asked

def built(bench, subject, stored, component, config, dtype, device, rank):
    """Make a model in place of the one before."""
    bench.held = {}
    bench.held["model"] = meshes.engine_on_mesh(bench, subject, rank).build(
        component, config, load(stored), dtype, device)


def trained(bench, subject, training, rank):
    """Make a Trainer of the model."""
    bench.held["trainer"] = meshes.engine_on_mesh(
        bench, subject, rank).trainer(bench.held["model"], training)


def resumed(bench, subject, stored, step, rank):
    """Have the Trainer go on."""
    meshes.engine_on_mesh(bench, subject, rank).resume(
        bench.held["trainer"], step, load(stored))


def answered(bench, subject, name, given, rank):
    """What a function of the engine returns; None of all but the first."""
    engine = meshes.engine_on_mesh(bench, subject, rank)
    value = getattr(engine, name)(*(
        bench.held[one.name] if isinstance(one, Held) else one
        for one in given))
    return None if rank.number else value
