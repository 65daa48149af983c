"""The port's one face to the harness."""

import contextlib
import importlib
import inspect
import warnings

import keras
import numpy as np
from keras import ops

from contract.batch import check_inputs
from contract.dropping import dropping
from contract.trace import tracing
from contract.weights import check
from impl_keras.attention import MultiHeadAttention, SingleHeadAttention
from impl_keras.decoder import Decoder, DecoderLayer
from impl_keras.embedding import TokenEmbedding
from impl_keras.encoder import Encoder, EncoderLayer
from impl_keras.feed_forward import FeedForward
from impl_keras.layer_norm import NORMS
from impl_keras.loss import cross_entropy
from impl_keras.masks import causal_mask, padding_mask
from impl_keras.parameters import leaves, modules, paths
from impl_keras.positional import PositionalEncoding
from impl_keras.projection import Projection
from impl_keras.residual import RESIDUALS
from impl_keras.transformer import Transformer

NAME = "keras"

#: How to make each component alone, from a config.
COMPONENTS = {
    "token_embedding": lambda c: TokenEmbedding(c.source_vocab, c.d_model),
    "positional_encoding": PositionalEncoding,
    "norm": lambda c: NORMS[c.norm](c.d_model, c.norm_eps),
    "single_head_attention": lambda c: SingleHeadAttention(c.d_model),
    "multi_head_attention": MultiHeadAttention,
    "feed_forward": FeedForward,
    "residual": lambda c: RESIDUALS[c.residual](c),
    "encoder_layer": EncoderLayer,
    "decoder_layer": DecoderLayer,
    "encoder": Encoder,
    "decoder": Decoder,
    "projection": lambda c: Projection(c.d_model, c.target_vocab),
    "transformer": Transformer,
}


#: Our names of devices -> Keras' names.
DEVICES = {"cpu": "cpu:0", "cuda": "gpu:0"}


def versions():
    """What computes here, by name."""
    backend = keras.backend.backend()
    return {"keras": keras.__version__,
            backend: importlib.import_module(backend).__version__}


def set_precision():
    """Full-precision products everywhere; what was set, by name."""
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


def devices():
    """The devices that a real computation ran on."""
    found = []
    for name, theirs in DEVICES.items():
        with contextlib.suppress(Exception), keras.device(theirs):
            x = ops.ones((2, 2))
            y = x @ x
            # keras: TensorFlow may fall back to the CPU without a word.
            at = str(y.device).lower()
            if (name in at or theirs in at) and float(ops.sum(y)) == 8:
                found.append(name)
    return found


@contextlib.contextmanager
def _on(device):
    """Work on a device."""
    with keras.device(DEVICES[device]), warnings.catch_warnings():
        # keras: warns of a softmax over one key, whose weight is rightly 1.
        warnings.filterwarnings("ignore", "You are using a softmax over axis")
        yield


def to_native(value, device):
    """An array as a tensor of the same dtype; functions stay as they are."""
    if callable(value):
        return value
    value = np.ascontiguousarray(value)
    with _on(device):
        return ops.convert_to_tensor(value, value.dtype.name)


def to_numpy(tensor):
    """A tensor as an array of the same dtype."""
    # keras: on TensorFlow a bfloat16 scalar fails, so it goes as a vector.
    flat = ops.convert_to_numpy(ops.reshape(tensor, (-1,)))
    return flat.reshape(tuple(tensor.shape))


def _call_once(module, config):
    """Have Keras make the weights, which it does on a first call."""
    ids = ops.zeros((1, 1), "int32")
    x = ops.zeros((1, 1, config.d_model))
    mask = ops.ones((1, 1, 1, 1), "bool")
    tiny = {"tokens": ids, "source": ids, "target": ids, "x": x, "memory": x}
    names = list(inspect.signature(module.call).parameters)
    keywords = {"sublayer": lambda x: x} if "sublayer" in names else {}
    module(*(tiny.get(name, mask) for name in names if name not in keywords),
           **keywords)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights; see the reference's engine."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype)
    try:
        with _on(device):
            module = COMPONENTS[component](config)
            _call_once(module, config)
    finally:
        keras.config.set_dtype_policy(before)
    for _, layer in modules(module):
        layer.home = device
    native = {name: (variable, convert)
              for name, variable, convert in leaves(module)}
    check(weights, {name: convert(np.empty(variable.shape, bool)).shape
                    for name, (variable, convert) in native.items()})
    for name, (variable, _) in native.items():
        variable.assign(to_native(
            weights[name].reshape(variable.shape), device))
    return module


def export(module):
    """The weights under their canonical names, as arrays."""
    return {name: np.ascontiguousarray(convert(to_numpy(variable.value)))
            for name, variable, convert in leaves(module)}


def run(module, *inputs, method="__call__", **keywords):
    """Run a module on arrays; return every step by name."""
    with _on(module.home), tracing(paths(module)) as trace:
        getattr(module, method)(
            *(to_native(value, module.home) for value in inputs), **keywords)
    return {name: to_numpy(value) for name, value in trace.values.items()}


def to_key(key, device):
    """A key, two uint32, as a tensor; None stays as it is."""
    return None if key is None else to_native(key.view(np.int32), device)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), to_key(key, model.home)):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by everything; see the reference's engine."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    weights = {name: (variable, convert)
               for name, variable, convert in leaves(model)}
    with _on(model.home), dropping(paths(model), to_key(key, model.home)):
        loss, by_weight, by_step = GRADIENTS[keras.backend.backend()](
            model, [to_native(value, model.home) for value in inputs],
            to_native(labels, model.home),
            [variable for variable, _ in weights.values()])
    return to_numpy(loss), {
        **{name: np.ascontiguousarray(convert(to_numpy(gradient)))
           for (name, (_, convert)), gradient
           in zip(weights.items(), by_weight)},
        **{name: to_numpy(gradient) for name, gradient in by_step.items()}}


def _loss_of(model, inputs, labels, watch):
    """The loss of a batch, and the steps on the way to it."""
    with tracing(paths(model), watch) as trace:
        output = model(*inputs)
    return cross_entropy(output, labels, model.config.pad_id,
                         model.config.label_smoothing,
                         model.config.smoothing), trace.values


def _gradients_by_tape(model, inputs, labels, variables):
    # keras: has no gradient of its own, so its backend's is asked.
    import tensorflow as tf

    def watch(name, value):
        tape.watch(value)
        return value

    with tf.GradientTape() as tape:
        loss, steps = _loss_of(model, inputs, labels, watch)
    by_weight, by_step = tape.gradient(
        loss, ([variable.value for variable in variables], steps))
    return loss, [tf.convert_to_tensor(g) for g in by_weight], by_step


def _gradients_by_autograd(model, inputs, labels, variables):
    import torch

    def watch(name, value):
        return value if value.requires_grad else value.requires_grad_()

    loss, steps = _loss_of(model, inputs, labels, watch)
    found = torch.autograd.grad(loss, [
        *(variable.value for variable in variables), *steps.values()])
    return (loss, found[:len(variables)],
            dict(zip(steps, found[len(variables):])))


def _gradients_by_trace(model, inputs, labels, variables):
    import jax

    def loss_of(values, zeros):
        def watch(name, value):
            return value + zeros[name]
        with keras.StatelessScope(zip(variables, values)):
            return _loss_of(model, inputs, labels, watch)[0]

    _, steps = _loss_of(model, inputs, labels, None)
    zeros = {name: ops.zeros_like(value) for name, value in steps.items()}
    loss, (by_weight, by_step) = jax.value_and_grad(
        loss_of, argnums=(0, 1))([v.value for v in variables], zeros)
    return loss, by_weight, {name: by_step[name] for name in steps}


GRADIENTS = {
    "tensorflow": _gradients_by_tape,
    "torch": _gradients_by_autograd,
    "jax": _gradients_by_trace,
}


def masks(source, target, pad_id, device="cpu"):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], from ids."""
    source, target = to_native(source, device), to_native(target, device)
    with _on(device):
        return {
            "source_mask": to_numpy(padding_mask(source, pad_id)),
            "target_mask": to_numpy(padding_mask(target, pad_id)
                                    & causal_mask(target.shape[1])),
        }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    with _on(device):
        return to_numpy(cross_entropy(
            to_native(logits, device), to_native(labels, device), pad_id,
            label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return to_numpy(to_native(a, device) @ to_native(b, device))
