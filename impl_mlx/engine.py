"""The port's one face to the harness."""

import contextlib

import ml_dtypes
import mlx.core as mx
import numpy as np

import transformer_contract.weights
from transformer_contract import components
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping, places
from transformer_contract.trace import tracing
from transformer_contract.weights import check
from impl_mlx import parts, random
from impl_mlx.dropout import draw, evaluating
from impl_mlx.gradients import standing_in, weights_of
from impl_mlx.loss import cross_entropy
from impl_mlx.masks import padding_mask
from impl_mlx.optimizer import clip_by_global_norm
from impl_mlx.parameters import home, leaves, paths
from impl_mlx.train import Trainer

NAME = "mlx"


def versions():
    """What computes here, by name."""
    return {"mlx": mx.__version__}


def set_precision():
    """Nothing to set: on a processor MLX multiplies in the inputs' dtype."""
    return {}


def devices():
    """The devices that a real computation ran on.

    MLX's GPUs have no float64, in which searches and random numbers are.
    """
    return ["cpu"]


def to_native(value, device):
    """An array as MLX's, of the same dtype."""
    value = np.asarray(value, order="C")  # mlx: takes none turned round
    # mlx: takes no other order of bytes than the machine's.
    value = value.astype(value.dtype.newbyteorder("="), copy=False)
    with on(device):
        if value.dtype == np.float64:  # mlx: else it turns float32
            return mx.array(value, mx.float64)
        return mx.array(value)


def to_numpy(array):
    """MLX's array as NumPy's, of the same dtype."""
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


def on(device):
    """Compute on ``device`` where none is named."""
    return mx.stream(getattr(mx, device))


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights; see the reference's engine.

    It is in evaluation mode.
    """
    make, arguments = components.component(__package__, component, config)
    module = make(*arguments)  # mlx: lazy, so that it draws no first values
    module.home = device
    check(weights, {
        weight.name: weight.to_ours(np.empty(weight.get().shape, bool)).shape
        for weight in leaves(module)})
    for weight in leaves(module):
        weight.set(to_native(weight.to_theirs(
            weights[weight.name].astype(dtype, copy=False)), device))
    return module.eval()


def exported(module, arrays):
    """Arrays in the places of weights, under their canonical names."""
    return {weight.name: np.array(weight.to_ours(to_numpy(array)), order="C")
            for weight, array in zip(leaves(module), arrays)}


def export(module):
    """The weights under their canonical names, as arrays."""
    return exported(module, weights_of(module))


def call(module, *inputs, method="__call__", **keywords):
    """Run a module on arrays: what it returns, and every step by name."""
    with (on(home(module)), evaluating(module),
          tracing(paths(module)) as trace):
        returned = getattr(module, method)(
            *(to_native(value, home(module)) for value in inputs), **keywords)
        return to_numpy(returned), {
            name: to_numpy(value) for name, value in trace.values.items()}


def run(module, *inputs, **keywords):
    """Run a module on arrays; return every step by name."""
    return call(module, *inputs, **keywords)[1]


def run_residual(residual, x, y):
    """Run a residual around a sub-layer that makes y of x; as ``run``."""
    with (on(home(residual)), evaluating(residual),
          tracing(paths(residual)) as trace):
        x, y = (to_native(value, home(residual)) for value in (x, y))
        if hasattr(residual, "before"):
            residual.before(x)
        residual(x, y)
        return {name: to_numpy(value) for name, value in trace.values.items()}


def drawn(model, source, target, key):
    """The values that dropout keeps in a run with a key; all if None."""
    if key is None:
        return {}
    shapes = places(model.config, *source.shape, target.shape[1])
    return draw(to_native(key, home(model)), shapes,
                model.config.dropout, False)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with (on(home(model)),
          dropping(paths(model), drawn(model, source, target, key))):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by everything; see the reference's engine.

    A step's gradient is that of a zero which is added to it.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with (on(home(model)), evaluating(model),
          dropping(paths(model), drawn(model, source, target, key))):
        *inputs, labels = (
            to_native(a, home(model)) for a in (*inputs, labels))
        with tracing(paths(model)) as trace:
            model(*inputs)
        zeros = {name: mx.zeros_like(value)
                 for name, value in trace.values.items()}

        def loss_of(weights, zeros):
            with (standing_in(model, weights), tracing(
                    paths(model), lambda name, value: value + zeros[name])):
                output = model(*inputs)
            return cross_entropy(output, labels, model.config.pad_id,
                                 model.config.label_smoothing,
                                 model.config.smoothing)

        loss, (by_weight, by_step) = mx.value_and_grad(
            loss_of, argnums=(0, 1))(weights_of(model), zeros)
        return to_numpy(loss), {
            **exported(model, by_weight),
            **{name: to_numpy(by_step[name]) for name in zeros}}


def initial_weights(config, seed):
    """Initial weights for training, drawn here: float64, by name."""
    with on("cpu"):
        return transformer_contract.weights.initial_weights(
            config, seed, random)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the reference's engine."""
    check_pairs(trainer.model.config, sources, targets)
    device = home(trainer.model)
    with on(device):
        loss, norm, learning_rate = trainer.train_step(
            to_native(sources, device), to_native(targets, device))
        return {"loss": to_numpy(loss), "norm": to_numpy(norm),
                "rate": np.asarray(learning_rate)}


def moments(trainer):
    """Both of Adam's moments of every weight: {"m.NAME" and "v.NAME"}."""
    return {f"{kind}.{name}": array
            for kind, arrays in (("m", trainer.m), ("v", trainer.v))
            for name, array in exported(trainer.model, arrays).items()}


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, arrays in (("m", trainer.m), ("v", trainer.v)):
        for i, weight in enumerate(leaves(trainer.model)):
            arrays[i] = to_native(weight.to_theirs(
                moments[f"{kind}.{weight.name}"]), home(trainer.model))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with on(home(model)), evaluating(model):
        return to_numpy(model(*(to_native(x, home(model)) for x in inputs)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine."""
    rows = check_search(model.config, source, settings, rows)
    with on(home(model)), evaluating(model):
        tokens, scores = parts.search(model.config, settings)(
            model, to_native(np.asarray(source, np.int64), home(model)),
            settings, rows).run()
        return {"tokens": to_numpy(tokens.astype(mx.int64)),  # mlx: or int32
                "scores": to_numpy(scores)}


def masks(source, target, pad_id, device="cpu", begun=True):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], of ids; see masks.py."""
    with on(device):
        source, target = to_native(source, device), to_native(target, device)
        return {
            "source_mask": to_numpy(padding_mask(source, pad_id)),
            "target_mask": to_numpy(
                parts.part(parts.DECODER_MASKS, begun)(target, pad_id)),
        }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    with on(device):
        return to_numpy(cross_entropy(
            to_native(logits, device), to_native(labels, device), pad_id,
            label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    with on(device):
        return to_numpy(to_native(a, device) @ to_native(b, device))
