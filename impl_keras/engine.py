"""The port's one face to the harness."""

import contextlib
import importlib
import warnings

import keras
import numpy as np
from keras import ops

import transformer_contract.weights
from transformer_contract import components
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping, places
from transformer_contract.trace import tracing
from transformer_contract.weights import check
from impl_keras import parts, random
from impl_keras.dropout import draw
from impl_keras.gradients import value_and_gradients
from impl_keras.loss import cross_entropy
from impl_keras.masks import padding_mask
from impl_keras.optimizer import clip_by_global_norm
from impl_keras.parameters import leaves, modules, paths
from impl_keras.train import Trainer
from impl_keras.whole import parts_in

NAME = "keras"

#: Our names of devices -> Keras' names.
DEVICES = {"cpu": "cpu", "cuda": "gpu:0"}


def versions():
    """What computes here, by name."""
    backend = keras.backend.backend()
    return {"keras": keras.__version__,
            backend: importlib.import_module(backend).__version__}


def set_precision():
    """Full-precision products everywhere; what was set, by name."""
    keep_float64()
    # keras: has no switch of its own, so its backend's is set.
    match keras.backend.backend():
        case "tensorflow":
            import tensorflow as tf
            tf.config.experimental.enable_tensor_float_32_execution(False)
            tf.config.experimental.enable_op_determinism()
            return {
                "tensor_float_32_execution":
                    tf.config.experimental.tensor_float_32_execution_enabled(),
                "op_determinism": True,
            }
        case "torch":
            import torch
            torch.set_float32_matmul_precision("highest")
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            torch.use_deterministic_algorithms(True, warn_only=True)
            return {
                "float32_matmul_precision":
                    torch.get_float32_matmul_precision(),
                "cuda.matmul.allow_tf32":
                    torch.backends.cuda.matmul.allow_tf32,
                "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
                "deterministic_algorithms": True,
            }
        case "jax":
            import jax
            jax.config.update("jax_enable_x64", True)
            jax.config.update("jax_default_matmul_precision", "highest")
            return {
                "jax_enable_x64": jax.config.jax_enable_x64,
                "jax_default_matmul_precision":
                    jax.config.jax_default_matmul_precision,
            }
    return {}


def keep_float64():
    """Have Keras multiply float64 in float64, on every backend."""
    # keras: 3.15 looks the dtype of a result up here, and on PyTorch and JAX
    # turns float64 into float32: 1e-7 in every Dense.
    with contextlib.suppress(ImportError, AttributeError):
        from keras.src.backend.common import dtypes
        dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"


def devices():
    """The devices that a real computation ran on."""
    names = []
    for name, theirs in DEVICES.items():
        with contextlib.suppress(Exception), keras.device(theirs):
            x = ops.ones((2, 2))
            y = x @ x
            # keras: TensorFlow may fall back to the CPU without a word.
            at = str(getattr(y, "device", name)).lower()
            if (name in at or theirs in at) and float(ops.sum(y)) == 8:
                names.append(name)
    return names


def home(module):
    """The device of a layer's weights, by our name of it.

    That which a layer without any was built for, or else the processor.
    """
    if "home" in vars(module):
        return module.home
    weight = next(leaves(module), None)
    at = str(getattr(weight and weight.get().value, "device", "")).lower()
    return "cuda" if "gpu" in at or "cuda" in at else "cpu"


@contextlib.contextmanager
def on(device):
    """Make new tensors on ``device``, without a needless warning."""
    with keras.device(DEVICES[device]), warnings.catch_warnings():
        # keras: warns of a softmax over one key, whose weight is rightly 1.
        warnings.filterwarnings("ignore", "You are using a softmax over axis")
        yield


def to_native(value, device):
    """An array as a tensor of the same dtype."""
    value = np.ascontiguousarray(value)
    with on(device):
        return ops.convert_to_tensor(value, value.dtype.name)


def to_numpy(tensor):
    """A tensor as an array of the same dtype."""
    # keras: on TensorFlow a bfloat16 scalar fails, so it goes as a vector.
    if not len(tensor.shape):
        return ops.convert_to_numpy(ops.reshape(tensor, (1,))).reshape(())
    return ops.convert_to_numpy(tensor)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights; see the reference's engine."""
    make, arguments = components.component(__package__, component, config)
    with on(device), parts_in(dtype):
        module = make(*arguments)
    return filled(module, weights, device)


def filled(module, weights, device):
    """A layer that has taken weights; it stays on a device."""
    for _, layer in modules(module):
        layer.home = device
    native = list(leaves(module))
    check(weights, {weight.name: weight.to_ours(
        np.empty(weight.get().shape, bool)).shape for weight in native})
    for weight in native:
        weight.set(to_native(weight.to_theirs(weights[weight.name]), device))
    return module


def export(module):
    """The weights under their canonical names, as arrays."""
    return {weight.name: ours(weight, weight.get().value)
            for weight in leaves(module)}


def ours(weight, array):
    """What belongs to a weight, such as its gradient, in our layout."""
    return np.ascontiguousarray(weight.to_ours(to_numpy(array)))


def call(module, *inputs, method="__call__", **keywords):
    """Run a module on arrays: what it returns, and every step by name."""
    with on(home(module)), tracing(paths(module)) as trace:
        returned = getattr(module, method)(
            *(to_native(value, home(module)) for value in inputs), **keywords)
    return to_numpy(returned), {
        name: to_numpy(value) for name, value in trace.values.items()}


def run(module, *inputs, **keywords):
    """Run a module on arrays; return every step by name."""
    return call(module, *inputs, **keywords)[1]


def run_residual(residual, x, y):
    """Run a residual around a sub-layer that makes y of x; as ``run``."""
    with on(home(residual)), tracing(paths(residual)) as trace:
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
    return draw(to_native(key.view(np.int32), home(model)), shapes,
                model.config.dropout, False)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), drawn(model, source, target, key)):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by everything; see the reference's engine."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    *inputs, labels = (to_native(value, home(model))
                       for value in (*inputs, labels))
    weights = list(leaves(model))
    with on(home(model)), dropping(
            paths(model), drawn(model, source, target, key)):
        with tracing(paths(model)) as trace:
            model(*inputs)
        # A step's gradient is that by a zero which is added to it.
        zeros = {name: keras.Variable(ops.zeros_like(step), dtype=step.dtype)
                 for name, step in trace.values.items()}

        def loss_of():
            with tracing(paths(model), lambda name, step: (
                    step + zeros[name].value)):
                output = model(*inputs)
            return cross_entropy(
                output, labels, model.config.pad_id,
                model.config.label_smoothing, model.config.smoothing)

        loss, grads = value_and_gradients(loss_of, [
            *(weight.get() for weight in weights), *zeros.values()])
    return to_numpy(loss), {
        **{weight.name: ours(weight, gradient)
           for weight, gradient in zip(weights, grads)},
        **{name: to_numpy(gradient)
           for name, gradient in zip(zeros, grads[len(weights):])}}


def initial_weights(config, seed):
    """Initial weights for training, drawn here: float64, by name."""
    with on("cpu"):
        return transformer_contract.weights.initial_weights(
            config, seed, random)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    with on(home(model)):
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
    return {f"{kind}.{weight.name}": ours(weight, array)
            for kind, arrays in (("m", trainer.m), ("v", trainer.v))
            for weight, array in zip(leaves(trainer.model), arrays)}


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
    with on(home(model)):
        return to_numpy(model(*(to_native(x, home(model)) for x in inputs)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine."""
    rows = check_search(model.config, source, settings, rows)
    with on(home(model)):
        tokens, scores = parts.search(model.config, settings)(
            model, to_native(np.asarray(source, np.int64), home(model)),
            settings, rows).run()
        return {"tokens": to_numpy(tokens).astype(np.int64),
                "scores": to_numpy(scores)}


def masks(source, target, pad_id, device="cpu", begun=True):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], of ids; see masks.py."""
    source, target = to_native(source, device), to_native(target, device)
    with on(device):
        return {
            "source_mask": to_numpy(padding_mask(source, pad_id)),
            "target_mask": to_numpy(parts.part(
                parts.DECODER_MASKS, begun)(target, pad_id)),
        }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    with on(device):
        return to_numpy(cross_entropy(
            to_native(logits, device), to_native(labels, device), pad_id,
            label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return to_numpy(to_native(a, device) @ to_native(b, device))
