"""The engine of a model on a mesh: what is not here is the readable engine's.

Each process is a rank and is asked the same. It is given whole batches and
takes its own rows; what it answers is whole again, so that it can be compared.
Batches are divided by DDP or FSDP2, weights by DTensor's tensor parallel.
"""

import contextlib
import datetime
import logging
import warnings

import numpy as np
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    FSDPModule, fully_shard, register_fsdp_forward_method)
from torch.distributed.tensor import (
    DTensor, Replicate, Shard, distribute_module, distribute_tensor)
from torch.distributed.tensor.parallel import (
    ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module)
from torch.nn.parallel import DistributedDataParallel

from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping, places
from parity_io.errors import InputError
from transformer_contract.sharding import divided_axis
from transformer_contract.weights import select
from impl_torch import engine, parts, random, train
from impl_torch.engine import drawn, exported, to_native, to_numpy
from impl_torch.loss import cross_entropy
from impl_torch.masks import padding_mask
from impl_torch.parameters import home, leaves, modules, paths

NAME = "torch"

#: Seconds until a rank that waits for the others gives up.
PATIENCE = 60

#: The linear maps and tables of a layer -> how tensor parallel divides each.
PLAN = {
    "query": ColwiseParallel, "key": ColwiseParallel, "value": ColwiseParallel,
    "output": RowwiseParallel, "inner": ColwiseParallel,
    "gate": ColwiseParallel, "outer": RowwiseParallel,
}


class TiedColumns(ParallelStyle):
    """x Eᵀ, each process by its own rows of E, which lies so already."""

    def _apply(self, module, mesh):
        def partition(name, below, mesh):
            if below is module and "bias" in module._parameters:
                module.bias = nn.Parameter(
                    distribute_tensor(module.bias, mesh, [Shard(0)]))

        def given(module, inputs, mesh):
            return tuple(DTensor.from_local(
                x, mesh, [Replicate()], run_check=False) for x in inputs)

        def answered(module, logits, mesh):
            return logits.redistribute(placements=[Replicate()]).to_local()

        return distribute_module(module, mesh, partition, given, answered)


def join(rank, size, file):
    """Join the processes of a mesh, which meet at a file."""
    # torch: it warns of each weight that is divided along both axes
    logging.getLogger("torch.distributed.tensor").setLevel(logging.ERROR)
    # torch: it warns that logits are a view; nothing is written into them
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* a view tensor")
    distributed.init_process_group(
        "gloo", init_method=f"file://{file}", rank=rank, world_size=size,
        timeout=datetime.timedelta(seconds=PATIENCE))


def check_config(config):
    """Check that all ranks have one config.

    Raises:
        InputError: they have not; it names a rank and a field.
    """
    configs = [None] * distributed.get_world_size()
    distributed.all_gather_object(configs, config.as_dict())
    for rank, theirs in enumerate(configs):
        for name, value in configs[0].items():
            if theirs.get(name) != value:
                raise InputError(
                    f"rank {rank} has {name} {theirs.get(name)}, and rank 0 "
                    f"{value}; give all ranks one config.")


def whole(tensor):
    """A tensor of which this rank may have a part, as all of it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def own(tensor, axis, mesh):
    """This rank's part of a tensor along one of its axes."""
    return tensor.chunk(mesh.size(), axis)[mesh.get_local_rank()]


def square_sum(gradient):
    """Σ g² of all parts of a gradient."""
    return whole(torch.sum(gradient * gradient))


class MeshEngine:
    """An engine whose models live on a mesh of processes.

    Args:
        axes: {"data": processes, "model": processes}.
        mode: "DDP", "FSDP2", "TP" or "FSDP2 + TP".

    Attributes:
        rows_read: how many rows this rank has read last.
    """

    NAME = NAME
    FUSED = {"gradients"}

    def __init__(self, axes, mode):
        self.mode, self.rows_read = mode, 0
        # torch: groups that a mesh makes itself wait for half an hour
        ranks = torch.arange(axes["data"] * axes["model"]).reshape(
            axes["data"], axes["model"])
        groups = [distributed.new_subgroups_by_enumeration(
            rows.tolist(), timeout=datetime.timedelta(seconds=PATIENCE))[0]
            for rows in (ranks.T, ranks)]
        mesh = DeviceMesh.from_group(
            groups, "cpu", mesh=ranks, mesh_dim_names=("data", "model"))
        self.data, self.model = mesh["data"], mesh["model"]

    def __getattr__(self, name):
        return getattr(engine, name)

    def build(self, component, config, weights, dtype="float64",
              device="cpu"):
        """Make a model and divide its weights.

        Raises:
            InputError: another rank has another config.
        """
        check_config(config)
        model = engine.build(component, config, weights, dtype, device)
        if self.model.size() > 1:
            self.divide(model)
        if self.mode == "DDP":
            model.parallel = [DistributedDataParallel(
                model, process_group=self.data.get_group(),
                find_unused_parameters=False)]  # a list: no submodule
        elif self.mode.startswith("FSDP2"):
            for layer in (*model.encoder.layers, *model.decoder.layers):
                fully_shard(layer, mesh=self.data)
            fully_shard(model, mesh=self.data)
            for method in ("encode", "decode", "project"):
                register_fsdp_forward_method(model, method)
        return model

    def divide(self, model):
        """Divide a model's weights along "model"."""
        plan = {}
        for path, _ in modules(model):
            name = path.rpartition(".")[2]
            if name in PLAN and divided_axis(f"{path}.kernel") is not None:
                plan[path] = PLAN[name]()
            elif name == "table" and divided_axis(path) is not None:
                plan[path] = RowwiseParallel(input_layouts=Replicate())
        plan["projection"] = (
            TiedColumns() if model.config.output_tied
            else ColwiseParallel(output_layouts=Replicate()))
        parallelize_module(model, self.model, plan)

    def run(self, model, *inputs):
        """A model's output of this rank's rows."""
        self.rows_read = len(inputs[0])
        return (model.parallel[0] if self.mode == "DDP" else model)(*inputs)

    def copies(self, model):
        """How often all ranks together hold each value of a weight, by name.
        """
        names, weights = zip(*(
            (weight.name, weight.get()) for weight in leaves(model)))
        held = torch.tensor([
            (weight.to_local() if isinstance(weight, DTensor) else weight)
            .numel() for weight in weights])
        distributed.all_reduce(held)
        return {name: int(count) / weight.numel()
                for name, count, weight in zip(names, held, weights)}

    def rows(self, *tensors):
        """This rank's rows of tensors."""
        return [own(tensor, 0, self.data) for tensor in tensors]

    def kept(self, drawn):
        """This rank's part of what dropout keeps: its rows, its heads."""
        shares = {}
        for name, mask in drawn.items():
            mask = own(mask, 0, self.data)
            if self.model.size() > 1:
                if name.endswith("weights_dropout"):
                    mask = own(mask, 1, self.model)
                elif "feed_forward." in name:
                    mask = own(mask, 2, self.model)
            shares[name] = mask
        return shares

    @contextlib.contextmanager
    def reading(self, model):
        """Compute without gradients; each rank keeps its part again after it.

        FSDP2 gathers at each call, and a search of some rows may end before
        that of others: so all is gathered once. What stayed gathered would
        have a gradient of the step before added to the next one.
        """
        sharded = [module for module in model.modules()
                 if isinstance(module, FSDPModule)]
        for below in sharded:
            below.unshard()
        for layer in sharded[1:]:
            layer.set_reshard_after_forward(False)
        with torch.no_grad():
            yield
        for layer in sharded[1:]:
            layer.set_reshard_after_forward(True)
        for below in sharded:
            below.reshard()

    def predict(self, model, *inputs):
        """A Transformer's output alone: [B T V]."""
        check_inputs(model.config, *inputs)
        with self.reading(model):
            return self.together(self.run(model, *self.rows(
                *(to_native(value, home(model)) for value in inputs))))

    def together(self, rows):
        """All ranks' rows of a tensor, as an array."""
        gathered = [torch.empty_like(rows) for _ in range(self.data.size())]
        distributed.all_gather(
            gathered, rows.contiguous(), group=self.data.get_group())
        return to_numpy(torch.cat(gathered))

    def generate(self, model, source, settings, rows=None):
        """Find targets of sources; no rank keeps keys and values."""
        rows = check_search(model.config, source, settings, rows)
        settings = settings.replace(cached=False)
        (source,) = self.rows(to_native(source, home(model)))
        self.rows_read = len(source)
        with self.reading(model):
            tokens, scores = parts.search(model.config, settings)(
                model, source, settings,
                own(torch.from_numpy(rows), 0, self.data).numpy()).run()
            return {"tokens": self.together(tokens),
                    "scores": self.together(scores)}

    def forward(self, model, *inputs, key=None):
        """The output, as the only step that is seen."""
        return {"output": self.predict(model, *inputs)}

    def share(self, labels, pad_id):
        """This rank's share of the tokens to predict, of the whole batch."""
        count = torch.sum(own(labels, 0, self.data) != pad_id)
        return int(count) / max(int(torch.sum(labels != pad_id)), 1)

    def loss_and_gradients(self, model, inputs, labels, drawn):
        """The loss of a whole batch, and its gradient by this rank's weights.

        DDP and FSDP2 return the mean over ranks, and the loss is a mean over
        tokens, of which ranks have not equally many: each rank's loss counts
        by its share, times the number of ranks.
        """
        config = model.config
        model.zero_grad()
        with torch.enable_grad(), dropping(paths(model), self.kept(drawn)):
            output = self.run(model, *self.rows(*inputs))
            loss = cross_entropy(
                output, own(labels, 0, self.data), config.pad_id,
                config.label_smoothing, config.smoothing)
            loss = loss * self.share(labels, config.pad_id)
            (loss * self.data.size()).backward()
        loss = loss.detach()
        distributed.all_reduce(loss, group=self.data.get_group())
        return loss, [weight.get().grad for weight in leaves(model)]

    def gradients(self, model, source, target, source_mask, target_mask,
                  labels, key=None):
        """The loss and its gradient by every weight."""
        inputs = source, target, source_mask, target_mask
        check_inputs(model.config, *inputs)
        loss, gradients = self.loss_and_gradients(
            model, [to_native(value, home(model)) for value in inputs],
            to_native(labels, home(model)), drawn(model, source, target, key))
        return to_numpy(loss), exported(model, map(whole, gradients))

    def export(self, model):
        """The weights under their canonical names, as arrays."""
        return exported(
            model, (whole(weight.get()) for weight in leaves(model)))

    def trainer(self, model, training):
        """A MeshTrainer of a Transformer, at step 0."""
        return MeshTrainer(self, model, training)

    def train_step(self, trainer, sources, targets):
        """Make one step on A batches; see the reference's engine."""
        check_pairs(trainer.model.config, sources, targets)
        loss, norm, learning_rate = trainer.train_step(
            *(to_native(ids, home(trainer.model))
              for ids in (sources, targets)))
        return {"loss": to_numpy(loss), "norm": to_numpy(norm),
                "rate": np.asarray(learning_rate)}

    def moments(self, trainer):
        """Both of Adam's moments of every weight, whole."""
        return {f"{kind}.{name}": array
                for kind, tensors in (("m", trainer.m), ("v", trainer.v))
                for name, array in exported(
                    trainer.model, map(whole, tensors)).items()}

    def resume(self, trainer, step, moments):
        """Have a MeshTrainer go on after ``step``, from moments as exported.

        Moments lie as weights do: each kind is divided like a model of them.
        """
        config, trainer.step = trainer.model.config, step
        for kind, arrays in (("m", trainer.m), ("v", trainer.v)):
            model = self.build(
                "transformer", config, select(moments, f"{kind}."),
                str(arrays[0].dtype).removeprefix("torch."))
            for i, weight in enumerate(leaves(model)):
                arrays[i] = weight.get().detach()


class MeshTrainer(train.Trainer):
    """See impl_torch.train; each rank moves its part of the weights."""

    def __init__(self, engine, model, training):
        self.engine = engine
        super().__init__(model, training)

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = torch.sum(targets[:, :, 1:] != pad_id, dim=(1, 2))
        shares = counts.to(self.m[0].dtype) / max(int(torch.sum(counts)), 1)
        read, labels = targets[:, :, :-1], targets[:, :, 1:]
        shapes = places(
            self.model.config, *sources.shape[1:], read.shape[2])
        decoder_mask = parts.decoder_mask(self.model.config)
        loss, gradients = 0, [0] * len(self.m)
        for i, share in enumerate(shares):
            inputs = (sources[i], read[i], padding_mask(sources[i], pad_id),
                      decoder_mask(read[i], pad_id))
            loss_i, gradients_i = self.engine.loss_and_gradients(
                self.model, inputs, labels[i],
                self.draw(random.fold_in(key, i), shapes))
            loss = loss + share * loss_i
            gradients = [
                g + share * g_i for g, g_i in zip(gradients, gradients_i)]
        norm = torch.sqrt(sum(map(square_sum, gradients)))
        if training.clip_norm and norm > training.clip_norm:
            scale = training.clip_norm / norm.item()
            gradients = [g * scale for g in gradients]
        settings = self.optimizer.settings(self.step)
        with torch.no_grad():
            for i, old in enumerate(leaves(self.model)):
                weight, self.m[i], self.v[i] = self.optimizer.update(
                    old.get().detach(), gradients[i], self.m[i], self.v[i],
                    *settings)
                old.get().copy_(weight)
        return loss, norm, settings[0]
