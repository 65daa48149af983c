"""How torch is asked what parity_tests/ports/test_citizen.py asks."""

import copy
import io
import pickle

import numpy as np
import safetensors.torch
import torch
from torch.nn import functional as F

from impl_torch import Transformer, engine
from impl_torch.dropout import Dropout
from impl_torch.layer_norm import LayerNorm
from impl_torch.parameters import leaves

NAME, PACKAGE, FRAMEWORK = "torch", "impl_torch", "import torch"

#: What makes an array of the framework.
ARRAY = "torch.from_numpy"


def new(config, seed=0):
    """A new model by torch's own random numbers."""
    torch.manual_seed(seed)
    return Transformer(config)


def ids(array):
    """Whole numbers as a tensor."""
    return torch.from_numpy(np.asarray(array, np.int64))


def numpy(tensor):
    """A tensor as an array of NumPy."""
    return tensor.numpy(force=True)


def logits(model, source, target, training=False, **masks):
    """What a model answers, dropping if it trains."""
    model.train(training)
    with torch.no_grad():
        return numpy(model(ids(source), ids(target), **{
            name: torch.from_numpy(mask) for name, mask in masks.items()}))


def dropped(array, rate):
    """What is left of an array in training."""
    return numpy(Dropout(rate).train()(torch.from_numpy(array)))


def native_round_trip(model, config, path):
    """New models that have read what torch and safetensors have written."""
    torch.save(model.state_dict(), path / "weights.pt")
    by_torch = new(config, seed=1)
    by_torch.load_state_dict(torch.load(path / "weights.pt"))
    safetensors.torch.save_model(model, path / "weights.safetensors")
    by_safetensors = new(config, seed=1)
    safetensors.torch.load_model(
        by_safetensors, path / "weights.safetensors")
    torch.save(model, path / "model.pt")
    with torch.device("meta"):
        empty = new(config)
    empty.load_state_dict(model.state_dict(), assign=True)
    return {"state_dict": by_torch, "safetensors": by_safetensors,
            "whole": torch.load(path / "model.pt", weights_only=False),
            "assigned to meta": empty}


def native_refusals(model, other_config, path):
    """What must not be read: another model's file, a cut one, a renamed one."""
    torch.save(model.state_dict(), path / "weights.pt")
    renamed = model.state_dict()
    renamed["coder"] = renamed.pop("encoder.layers.0.feed_forward.inner.bias")
    cut = (path / "weights.pt").read_bytes()[:-1000]
    return {
        "another config": lambda: new(other_config).load_state_dict(
            torch.load(path / "weights.pt")),
        "a cut file": lambda: torch.load(io.BytesIO(cut)),
        "a renamed array": lambda: new(model.config).load_state_dict(renamed)}


def copies(model):
    """Copies in each way that torch and Python have."""
    return {"deepcopy": copy.deepcopy(model),
            "pickle": pickle.loads(pickle.dumps(model))}


def converted(model, dtype):
    """A model in another dtype."""
    return model.to(getattr(torch, dtype))


def compiled(model):
    """The call, compiled and exported, for one length and for any; it takes
    ids, and both masks or none."""
    model.eval()

    def by_export(*inputs):
        batch = torch.export.Dim("batch")
        source, target = (torch.export.Dim(name, max=most) for name, most in (
            ("source", model.config.source_length),
            ("target", model.config.max_length)))
        shorter = [each[:2, ..., :-1] for each in inputs]
        shorter[3:] = [each[..., :-1, :] for each in shorter[3:]]
        shapes = {
            "source": {0: batch, 1: source}, "target": {0: batch, 1: target},
            "source_mask": {0: batch, 3: source},
            "target_mask": {0: batch, 2: target, 3: target}}
        return torch.export.export(
            model, tuple(each.clone() for each in shorter),
            dynamic_shapes=dict([*shapes.items()][:len(inputs)])).module()(
                *inputs)

    def by_compile(**words):
        torch.compiler.reset()
        return torch.compile(
            model, backend="aot_eager", fullgraph=True, **words)

    ways = {"compile": by_compile(),
            "compile of any length": by_compile(dynamic=True),
            "export": lambda *inputs: torch.export.export(
                model, inputs).module()(*inputs),
            "export of any length": by_export,
            "vmap": torch.vmap(
                lambda *row: model(*(ids[None] for ids in row))[0])}

    def call(function):
        def run(source, target, *masks):
            with torch.no_grad():
                return numpy(function(
                    ids(source), ids(target), *map(torch.from_numpy, masks)))
        return run
    return {way: call(function) for way, function in ways.items()}


def second_derivative(model, loss, along):
    """Of loss(model) by every weight, along a direction: arrays by name."""
    weights = list(leaves(model))
    tensors = [weight.get() for weight in weights]
    slopes = torch.autograd.grad(loss(model), tensors, create_graph=True)
    slope = sum((each * engine.to_native(
        weight.to_theirs(along[weight.name]), "cpu")).sum()
        for weight, each in zip(weights, slopes))
    return engine.exported(model, torch.autograd.grad(slope, tensors))


def trained(model, loss):
    """Of loss(model, call) in training: (loss, what else it returns, its
    gradient by every weight: arrays by name)."""
    model.train()
    value, more = loss(model, model)
    weights = [weight.get() for weight in leaves(model)]
    return value.detach(), more, engine.exported(
        model, torch.autograd.grad(value, weights))


def loop(model, batches):
    """torch's own, with its optimiser."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for source, target, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(
            model(ids(source), ids(target)).flatten(0, 1),
            ids(labels).flatten(), ignore_index=model.config.pad_id)
        loss.backward()
        optimizer.step()
        yield loss.item()


class Gained(LayerNorm):
    """A norm with one weight more."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps)
        self.gain = torch.nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        """Normalise x [B T D] over D, then multiply."""
        return super().forward(x) * self.gain
