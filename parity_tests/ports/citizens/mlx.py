"""How MLX is asked what parity_tests/ports/test_citizen.py asks."""

import copy
import pickle
import shutil

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers
import numpy as np
from mlx.utils import tree_flatten

from impl_mlx import Transformer, engine
from impl_mlx.dropout import Dropout
from impl_mlx.gradients import standing_in, weights_of
from impl_mlx.layer_norm import LayerNorm
from impl_mlx.parameters import leaves

NAME, PACKAGE, FRAMEWORK = "mlx", "impl_mlx", "import mlx.core, mlx.nn"

#: What makes an array of the framework.
ARRAY = "mlx.core.array"


def new(config, seed=0):
    """A new model by MLX's own random numbers."""
    mx.random.seed(seed)
    model = Transformer(config)
    mx.eval(model.parameters())
    return model


def ids(array):
    """Whole numbers as an array of MLX."""
    return mx.array(np.asarray(array, np.int32))


def numpy(array):
    """MLX's array as one of NumPy."""
    return np.array(array)


def logits(model, source, target, training=False, **masks):
    """What a model answers, dropping if it trains."""
    model.train(training)
    with mx.stream(mx.cpu):
        return numpy(model(ids(source), ids(target), **{
            name: mx.array(mask) for name, mask in masks.items()}))


def dropped(array, rate):
    """What is left of an array in training."""
    return numpy(Dropout(rate)(mx.array(array)))


def native_round_trip(model, config, path):
    """New models that have read what MLX has written."""
    found = {}
    for ending in ("safetensors", "npz"):
        model.save_weights(str(path / f"weights.{ending}"))
        found[ending] = new(config, seed=1).load_weights(
            str(path / f"weights.{ending}"))
    found["update"] = new(config, seed=1).update(model.parameters())
    return found


def native_refusals(model, other_config, path):
    """What must not be read: another model's file, a cut one, a renamed one."""
    whole = path / "weights.safetensors"
    model.save_weights(str(whole))
    cut = path / "cut.safetensors"
    cut.write_bytes(whole.read_bytes()[:-1000])
    (first, array), *others = tree_flatten(model.parameters())

    def of_a_cut_file():
        loaded = new(model.config).load_weights(str(cut))
        mx.eval(loaded.parameters())  # mlx: lazy

    return {
        "another config": lambda: new(other_config).load_weights(str(whole)),
        "a cut file": of_a_cut_file,
        "a renamed array": lambda: new(model.config).load_weights(
            [(f"{first}x", array), *others])}


def copies(model):
    """Copies in each way that Python has."""
    return {"deepcopy": copy.deepcopy(model),
            "pickle": pickle.loads(pickle.dumps(model))}


def converted(model, dtype):
    """A model in another dtype."""
    model.set_dtype(getattr(mx, dtype))
    return model


def compiled(model):
    """The call, compiled, or kept in part for its gradient; it takes ids, and
    both masks or none."""
    model.eval()
    ways = {"checkpoint": nn.utils.checkpoint(model)}
    if shutil.which("g++"):  # mx.compile needs it on a processor
        ways["compile"] = mx.compile(model)
        ways["compile with its state"] = mx.compile(
            lambda *inputs: model(*inputs), inputs=model.state)
    def call(function):
        def run(source, target, *masks):
            with mx.stream(mx.cpu):
                return numpy(function(
                    ids(source), ids(target), *map(mx.array, masks)))
        return run
    return {way: call(function) for way, function in ways.items()}


def second_derivative(model, loss, along):
    """Of loss(model) by every weight, along a direction: arrays by name."""
    with engine.on("cpu"):
        directions = [engine.to_native(weight.to_theirs(
            along[weight.name]), "cpu") for weight in leaves(model)]

        def of_weights(weights):
            with standing_in(model, weights):
                return loss(model)

        def slope(weights):
            return sum(mx.sum(each * direction) for each, direction in zip(
                mx.grad(of_weights)(weights), directions))

        return engine.exported(model, mx.grad(slope)(weights_of(model)))


def trained(model, loss):
    """Of loss(model, call) in training: (loss, what else it returns, its
    gradient by every weight: arrays by name)."""
    model.train()
    with engine.on("cpu"):
        def of_weights(weights):
            with standing_in(model, weights):
                return loss(model, model)

        (value, more), slopes = mx.value_and_grad(of_weights)(
            weights_of(model))
        return value, more, engine.exported(model, slopes)


def loop(model, batches):
    """MLX's own, with its optimiser."""
    model.train()
    optimizer = mlx.optimizers.Adam(3e-3)

    def loss_of(model, source, target, labels):
        losses = nn.losses.cross_entropy(model(source, target), labels)
        kept = labels != model.config.pad_id
        return mx.sum(losses * kept) / mx.sum(kept)

    step = nn.value_and_grad(model, loss_of)
    for batch in batches:
        loss, gradients = step(model, *map(ids, batch))
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)
        yield loss.item()


class Gained(LayerNorm):
    """A norm with one weight more."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps)
        self.gain = mx.ones(d_model)

    def __call__(self, x):
        """Normalise x [B T D] over D, then multiply."""
        return super().__call__(x) * self.gain
