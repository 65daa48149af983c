"""Faults that are put into the ports' engines of a mesh."""

import contextlib
from unittest import mock

from parity import ports
from parity.matrix import meshes


def measured(bench, fault, subject, work, preset, rank):
    """What meshes.measured answers while a fault is in."""
    theirs = ports.meshes(bench.engine.NAME)
    with FAULTS[bench.engine.NAME][fault](theirs):
        return meshes.measured(
            bench, subject, work, preset, meshes.STEPS, rank)


def of_engine(name, make):
    """A fault in a method of MeshEngine."""
    def put(theirs):
        old = getattr(theirs.MeshEngine, name)
        return mock.patch.object(theirs.MeshEngine, name, make(old, theirs))
    return put


def not_summed(theirs):
    """Partial sums stay where they are."""
    import functools
    from torch.distributed.tensor import Partial
    partial = functools.partial(
        theirs.RowwiseParallel, output_layouts=Partial())
    return mock.patch.dict(theirs.PLAN, {"output": partial, "outer": partial})


def exchanged_kernel(theirs):
    """The shards of one kernel are on each other's device."""
    old = theirs.MeshEngine.build

    def build(self, component, config, weights, *rest):
        name = "encoder.layers.1.feed_forward.inner.kernel"
        kernel = weights[name]
        half = kernel.shape[1] // 2
        return old(self, component, config, weights | {
            name: kernel[:, [*range(half, 2 * half), *range(half)]]}, *rest)

    return mock.patch.object(theirs.MeshEngine, "build", build)


def updated_twice(theirs):
    """A tied table makes the same step once for each place it is used in."""
    old = theirs.MeshTrainer.train_step

    def train_step(self, *pairs):
        table = self.model.source_embedding.table.weight.data
        before = table.clone()
        numbers = old(self, *pairs)
        table += table - before
        return numbers

    return mock.patch.object(theirs.MeshTrainer, "train_step", train_step)


def in_step(change):
    """A fault of rank 1 in its last step: change(trainer)."""
    def put(theirs):
        old = theirs.MeshTrainer.train_step

        def train_step(self, *pairs):
            numbers = old(self, *pairs)
            if self.step == meshes.STEPS and theirs.distributed.get_rank():
                change(self)
            return numbers

        return mock.patch.object(theirs.MeshTrainer, "train_step", train_step)
    return put


def drifted(trainer):
    """One weight is another rank's no more."""
    next(iter(trainer.model.parameters())).data.mul_(1 + 1e-9)


def other_moments(trainer):
    """Moments go on from another step."""
    trainer.m[0] = trainer.m[0] * trainer.training.beta1


def own_gradients(old, theirs):
    """A rank's gradients are scaled again once all were added up."""
    def loss_and_gradients(self, *given):
        loss, gradients = old(self, *given)
        factor = 1 + theirs.distributed.get_rank()
        return loss, [gradient * factor for gradient in gradients]
    return loss_and_gradients


def whole_batches(name, owner="MeshEngine"):
    """In one work every rank does all of it, and the numbers are right."""
    def put(theirs):
        old = getattr(getattr(theirs, owner), name)

        def whole(self, *given):
            engine = theirs.MeshEngine
            with mock.patch.multiple(
                    engine, rows=lambda self, *tensors: list(tensors),
                    kept=lambda self, drawn: drawn,
                    share=lambda self, *of: 1 / self.data.size(),
                    together=lambda self, rows: theirs.to_numpy(rows)
            ), mock.patch.object(theirs, "own", lambda tensor, *of: tensor):
                return old(self, *given)

        return mock.patch.object(getattr(theirs, owner), name, whole)
    return put


def jax_equal_dropout(theirs):
    """What is dropped in the first shard is dropped in all."""
    old = theirs.drawn

    def drawn(*given):
        import jax.numpy as jnp
        return {name: jnp.concatenate([jnp.split(mask, 2)[0]] * 2)
                for name, mask in old(*given).items()}

    return mock.patch.object(theirs, "drawn", drawn)


def jax_exchanged_rows(old, theirs):
    """Inputs, not labels, lie on each other's device."""
    def rows(self, arrays, axis=0):
        from numpy import concatenate, split
        arrays = [concatenate(split(array, 2, axis)[::-1], axis)
                  if place < 4 else array
                  for place, array in enumerate(arrays)]
        return old(self, arrays, axis)
    return rows


def all_rows_read(theirs):
    """Every device reads the whole batch."""
    def rows(self, arrays, axis=0):
        import jax
        arrays = [jax.device_put(array, self.on()) for array in arrays]
        self.rows_read = arrays[0].addressable_shards[0].data.shape[axis]
        return arrays

    return mock.patch.object(theirs.MeshEngine, "rows", rows)


def all_rows_read_by_keras(old, theirs):
    """Every device reads the whole batch."""
    def rows(self, arrays, axis=0):
        placed = [theirs.distribute_tensor(
            array, theirs.TensorLayout([None] * array.ndim, self.mesh))
            for array in old(self, arrays, axis)]
        self.rows_read = placed[0].addressable_shards[0].data.shape[axis]
        return placed
    return rows


def other_config(theirs):
    """A rank that was given another config than the first."""
    old = theirs.MeshEngine.build

    def build(self, component, config, *rest):
        if theirs.distributed.get_rank():
            config = config.replace(norm_eps=2e-6)
        return old(self, component, config, *rest)

    return mock.patch.object(theirs.MeshEngine, "build", build)


def killed(theirs):
    """A rank is killed in its third step of training, before it adds up."""
    import os
    import signal
    old = theirs.MeshEngine.loss_and_gradients

    def loss_and_gradients(self, model, inputs, labels, drawn):
        self.count = getattr(self, "count", 0) + 1
        if self.count == 5 and theirs.distributed.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return old(self, model, inputs, labels, drawn)

    return mock.patch.object(
        theirs.MeshEngine, "loss_and_gradients", loss_and_gradients)


#: Port -> fault -> what puts it into its module.
FAULTS = {
    "torch": {
        "none": contextlib.nullcontext,
        "mean of means": of_engine("share", lambda old, theirs: (
            lambda self, labels, pad_id: 1 / self.data.size())),
        "sum of means": of_engine("share", lambda old, theirs: (
            lambda self, labels, pad_id: 1)),
        "missing all-reduce": of_engine("run", lambda old, theirs: (
            lambda self, model, *inputs: model(*inputs))),
        "padding counted": of_engine("share", lambda old, theirs: (
            lambda self, labels, pad_id: int((theirs.own(
                labels, 0, self.data) != pad_id).sum()) / labels.numel())),
        "equal dropout": of_engine("kept", lambda old, theirs: (
            lambda self, drawn: {name: mask.chunk(self.data.size())[0]
                                 for name, mask in drawn.items()})),
        "rows exchanged": of_engine("rows", lambda old, theirs: (
            lambda self, *tensors: [
                tensor.chunk(self.data.size())[::-1][
                    self.data.get_local_rank()] for tensor in tensors])),
        "not summed": not_summed,
        "kernel exchanged": exchanged_kernel,
        "updated twice": updated_twice,
        "not sharded": of_engine("divide", lambda old, theirs: (
            lambda self, model: None)),
        "unsharded": lambda theirs: mock.patch.object(
            theirs, "fully_shard", lambda module, mesh: None),
        "drifted": in_step(drifted),
        "other moments": in_step(other_moments),
        "own gradients": of_engine("loss_and_gradients", own_gradients),
        "whole training": whole_batches("train_step", "MeshTrainer"),
        "whole search": whole_batches("generate"),
        "other config": other_config,
        "killed": killed,
    },
    "jax": {
        "none": contextlib.nullcontext,
        "equal dropout": jax_equal_dropout,
        "rows exchanged": of_engine("rows", jax_exchanged_rows),
        "kernel exchanged": exchanged_kernel,
        "not sharded": of_engine("place", lambda old, theirs: (
            lambda self, name: self.on())),
        "reads all": all_rows_read,
        "whole sequences": of_engine("tokens", lambda old, theirs: (
            lambda self, shape: ())),
    },
    "keras": {
        "none": contextlib.nullcontext,
        "equal dropout": jax_equal_dropout,
        "rows exchanged": of_engine("rows", jax_exchanged_rows),
        "kernel exchanged": exchanged_kernel,
        "not sharded": of_engine("layouts", lambda old, theirs: (
            lambda self, model: {})),
        "reads all": of_engine("rows", all_rows_read_by_keras),
    },
}
