"""A model on a mesh, compared where it lies: what a check of thousands costs.

No array is put together. A part of the model is run at a time, an embedding, a
layer, a projection, so that only its weights have to be known whole. Of the
rows each shard of the batch has one compared, which the reference computes from
that row alone. The gradient that is compared follows from a few of those rows:
what is differentiated is zero in all others, so that every device can know the
whole truth of its own shard of it. What leaves a device is a number. What
several devices hold must be equal to the bit, which hashes tell.
"""

import collections
import dataclasses
import hashlib
import math
import time

import numpy as np

from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases, lockstep
from parity.matrix import meshes, processes
from parity.numerics import tolerances, zero_gradients
from parity.numerics.comparator import DIVERGENCE, compare
from parity.subjects import Subject, mesh_axes

#: Rows of a batch that each shard has; one of them is compared, and of so many
#: shards at most that one is differentiated.
ROWS, DRAWN = 4, 8

#: The meshes of a simulation: 8, 32 and 128 devices.
MESHES = "data=4,model=2", "data=8,model=4", "data=32,model=4"

#: The most seconds of one mesh.
PATIENCE = 900

#: Bytes of a hash, and of a number that says how far a shard is off.
HASH, NUMBER = 32, 8


@dataclasses.dataclass
class ShardTally:
    """What was compared, and what it took.

    Attributes:
        shards, compared: how many were compared, and how many bytes.
        moved: bytes that left a device for it, of all devices together.
        read: bytes that each device has to be sent.
        hashed: bytes that hashes were made of.
        seconds: CPU time of comparing, of all devices together.
        again: CPU time of what each device computes again.
        share: the largest error over its limit.
        wrong: what diverges, in words each.
    """

    shards: int = 0
    compared: int = 0
    moved: int = 0
    read: int = 0
    hashed: int = 0
    seconds: float = 0.0
    again: float = 0.0
    share: float = 0.0
    wrong: list = dataclasses.field(default_factory=list)

    def note(self, what, actual, expected, limit, scale=None):
        """Compare an array with its truth; a truth of zeros is one."""
        if expected.any() or scale is not None:
            found = compare(actual, expected, limit, "float64", scale)
        else:
            found = lockstep.still(actual, expected, limit, "float64")
        self.shards += 1
        self.compared += actual.nbytes
        self.share = max(self.share, found.share or 0.0)
        if found.verdict == DIVERGENCE:
            self.wrong.append(what)

    def note_gradient(self, name, actual, expected, truths):
        """Compare a gradient, or a part of it, with its truth."""
        self.note(f"gradient of {name}", actual, expected,
                  tolerances.FLOAT64_GRADIENT,
                  zero_gradients.scale(name, truths))


def config_of(axes):
    """The config of a mesh: the lesson's, as wide as the mesh divides."""
    heads = max(4, axes["model"])
    return cases.test_size("lesson").replace(
        d_model=8 * heads, n_heads=heads, d_ff=32 * heads,
        source_vocab=32 * heads, target_vocab=40 * heads)


def rows_of(axes):
    """How many rows a batch has."""
    return ROWS * axes["data"]


def batch_of(config, rows):
    """A Batch of so many pairs; every third one ends in padding."""
    source, target = (
        cases.ids(f"in place, {what}", rows, length, vocab)
        for what, length, vocab in (
            ("source", cases.SOURCE, config.source_vocab),
            ("target", cases.TARGET, config.target_vocab)))
    source[::3, -3:] = target[::3, -2:] = config.pad_id
    return Batch.of_ids(source, target, config.pad_id)


@dataclasses.dataclass
class MeshPart:
    """A part of a model as it ran on a mesh; arrays lie there.

    Attributes:
        path: its name.
        inputs: as its call takes them.
        output: what it returned.
        gradients: by its weights.
        rows: which rows are compared, one of each shard.
        drawn: those of them that are differentiated.
        cotangent: what the output was multiplied by in these: float64.
    """

    path: str
    inputs: tuple
    output: object
    gradients: dict
    rows: np.ndarray
    drawn: np.ndarray
    cotangent: np.ndarray


class PartByPart:
    """Runs a model on a mesh part by part.

    Args:
        engine: a MeshEngine that leaves arrays where they lie.
        model: its Transformer.
        batch: a Batch of rows_of(axes).
    """

    def __init__(self, engine, model, batch):
        self.engine, self.model, self.batch = engine, model, batch

    def run(self, path, *inputs, width, length):
        """A MeshPart, of the output [B length width]."""
        count = len(self.batch.source)
        key = random.fold_in(random.key(0), path)
        rows = np.arange(0, count, ROWS) + (
            random.bits(key, (count // ROWS,)) % np.uint32(ROWS)).astype(int)
        drawn = np.sort(rows[np.argsort(random.bits(
            random.fold_in(key, "drawn"), rows.shape))[:DRAWN]])
        cotangent = cases.values(path, len(drawn), length, width)

        def own(index):
            start, stop, _ = index[0].indices(count)
            values = np.zeros((stop - start, length, width))
            inside = (drawn >= start) & (drawn < stop)
            values[drawn[inside] - start] = cotangent[inside]
            return values[(slice(None), *index[1:])]

        output, gradients = self.engine.part_gradients(
            self.model, path, inputs,
            self.engine.made((count, length, width), own),
            path == "projection")
        return MeshPart(
            path, inputs, output, gradients, rows, drawn, cotangent)

    def each(self):
        """Yield every MeshPart, in the order of a forward pass."""
        config = self.model.config
        source, target, source_mask, target_mask = self.engine.rows(self.batch)
        sizes = {"width": config.d_model, "length": source.shape[1]}
        x = yield from self.one("source_embedding", source, **sizes)
        x = self.model.source_positions(x, source, 0)
        for i in range(config.n_encoder_layers):
            x = yield from self.one(
                f"encoder.layers.{i}", x, source_mask, **sizes)
        memory = yield from self.one("encoder.norm", x, **sizes)
        sizes["length"] = target.shape[1]
        x = yield from self.one("target_embedding", target, **sizes)
        x = self.model.target_positions(x, target, 0)
        for i in range(config.n_decoder_layers):
            x = yield from self.one(
                f"decoder.layers.{i}", x, memory, source_mask, target_mask,
                None, **sizes)
        x = yield from self.one("decoder.norm", x, **sizes)
        yield self.run("projection", x, width=config.target_vocab,
                       length=target.shape[1])

    def one(self, path, *inputs, **sizes):
        """Yield a MeshPart; its output."""
        found = self.run(path, *inputs, **sizes)
        yield found
        return found.output


def measured(bench, subject, whole, rank):
    """{"place": a ShardTally, "whole": another} of a mesh.

    Args:
        whole: whether arrays are put together and compared as well.
    """
    axes = mesh_axes(subject.mesh)
    engine = meshes.engine_on_mesh(bench, subject, rank)
    config = config_of(axes)
    weights = probe_weights(config)
    model = engine.build("transformer", config, weights)
    ours = ports.engine("numpy")
    exact = dict(ours.modules(ours.build("transformer", config, weights)))
    tallies = {kind: ShardTally() for kind in COMPARED
               if whole or kind == "place"}
    parts = PartByPart(engine, model, batch_of(config, rows_of(axes)))
    for name, array in engine.weights(model).items():
        replicas(tallies["place"], engine, name, array)
    for part in parts.each():
        for kind, tally in tallies.items():
            began, again = time.process_time(), tally.again
            COMPARED[kind](tally, engine, part, exact[part.path])
            tally.seconds += time.process_time() - began - (
                tally.again - again)
    return tallies


def truth_of(reference, path, inputs, cotangent):
    """The reference's output of a part, and its gradients by weight."""
    ours = ports.engine("numpy")
    output, cache = reference.forward(*inputs)
    found = reference.backward(cotangent, cache)
    gradients = ours.flatten(found if isinstance(found, dict) else found[-1])
    return output, {f"{path}.{name}": gradients[name]
                    for name in ours.export(reference)}


def rows_of_inputs(engine, part, rows):
    """Some rows of what a MeshPart was given."""
    return [value if value is None else chosen(engine, value, rows)
            for value in part.inputs]


def chosen(engine, array, rows):
    """Some rows of an array that lies on a mesh."""
    found: dict = {}
    for index, values in engine.shards(array):
        start, stop, _ = index[0].indices(array.shape[0])
        for row in rows[(rows >= start) & (rows < stop)]:
            found.setdefault(int(row), values[row - start])
    return np.stack([found[int(row)] for row in rows])


def compare_in_place(tally, engine, part, reference):
    """Compare every device's own shards of a MeshPart."""
    output, _ = reference.forward(*rows_of_inputs(engine, part, part.rows))
    sent = rows_of_inputs(engine, part, part.drawn)
    tally.read += sum(value.nbytes for value in sent if value is not None)
    began = time.process_time()
    _, gradients = truth_of(reference, part.path, sent, part.cotangent)
    tally.again += time.process_time() - began
    for index, values in engine.shards(part.output):
        start, stop, _ = index[0].indices(part.output.shape[0])
        for place, row in enumerate(part.rows):
            if start <= row < stop:
                tally.note(f"output of {part.path}", values[row - start],
                           output[(place, *index[1:])],
                           tolerances.FLOAT64_LIMIT)
                tally.moved += NUMBER
    for name, array in part.gradients.items():
        for index, values in engine.shards(array):
            tally.note_gradient(
                name, values, gradients[name][index], gradients)
            tally.moved += NUMBER
        replicas(tally, engine, f"gradient of {name}", array)
    replicas(tally, engine, f"output of {part.path}", part.output)


def replicas(tally, engine, what, array):
    """Have devices that hold the same tell it by hashes."""
    hashes = collections.defaultdict(list)
    for index, values in engine.shards(array):
        hashes[str(index)].append(values)
    for same in hashes.values():
        if len(same) == 1:
            continue
        tally.hashed += sum(values.nbytes for values in same)
        tally.moved += HASH * len(same)
        if len({hashlib.sha256(np.ascontiguousarray(values).data).digest()
                for values in same}) > 1:
            tally.wrong.append(f"{what}: devices that should hold the same "
                               "do not")


def compare_whole(tally, engine, part, reference):
    """Put every array of a MeshPart together, and compare all of it."""
    inputs = [value if value is None else engine.to_numpy(value)
              for value in part.inputs]
    cotangent = np.zeros(part.output.shape)
    cotangent[part.drawn] = part.cotangent
    output, gradients = truth_of(reference, part.path, inputs, cotangent)
    tally.moved += sum(math.prod(value.shape) * value.dtype.itemsize for value
                       in (*part.inputs, part.output, *part.gradients.values())
                       if value is not None)
    tally.note(f"output of {part.path}", engine.to_numpy(part.output), output,
               tolerances.FLOAT64_LIMIT)
    for name, array in part.gradients.items():
        tally.note_gradient(
            name, engine.to_numpy(array), gradients[name], gradients)


#: In which way a MeshPart is compared.
COMPARED = {"place": compare_in_place, "whole": compare_whole}


def run(meshes_in_words, whole, on_mesh=lambda mesh: None):
    """Yield (mesh, a Reply of measured) of each mesh, of JAX's devices.

    Args:
        meshes_in_words: meshes, each one way of Targets.
        whole: whether arrays are put together and compared as well.
        on_mesh: called with each mesh before it is begun.

    Raises:
        InputError: a mesh does not divide its model; before any is begun.
    """
    ranks = {}
    for mesh in meshes_in_words:
        axes = mesh_axes(mesh)
        ranks[mesh] = processes.MeshProcesses(
            "jax", mesh, config_of(axes), rows_of(axes))
    for mesh, these in ranks.items():
        on_mesh(mesh)
        try:
            yield mesh, these.ask(mesh, measured, Subject(
                "jax", mode="jit", mesh=mesh), whole, patience=PATIENCE)
        finally:
            these.close()
