"""The port's one face to the harness."""

import collections
import contextlib
import functools

import flax
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from flax import nnx

import contract.weights
from contract.batch import check_inputs, check_pairs, check_search
from contract.dropping import dropping, places
from contract.trace import tracing
from contract.weights import check
from impl_jax import random
from impl_jax.attention import MultiHeadAttention, SingleHeadAttention
from impl_jax.decoder import Decoder, DecoderLayer
from impl_jax.dropout import draw
from impl_jax.embedding import TokenEmbedding
from impl_jax.encoder import Encoder, EncoderLayer
from impl_jax.feed_forward import FeedForward
from impl_jax.generate import METHODS
from impl_jax.layer_norm import NORMS
from impl_jax.loss import cross_entropy
from impl_jax.masks import causal_mask, padding_mask
from impl_jax.optimizer import OPTIMIZERS, clip_by_global_norm
from impl_jax.parameters import leaves, modules, paths
from impl_jax.positional import PositionalEncoding
from impl_jax.projection import Projection
from impl_jax.residual import RESIDUALS
from impl_jax.train import Trainer
from impl_jax.transformer import Transformer

NAME = "jax"

#: How to make each component alone, from a config and random streams.
COMPONENTS = {
    "token_embedding": lambda c, rngs: TokenEmbedding(
        c.source_vocab, c.d_model, rngs=rngs),
    "positional_encoding": lambda c, rngs: PositionalEncoding(c),
    "norm": lambda c, rngs: NORMS[c.norm](c.d_model, c.norm_eps),
    "single_head_attention": lambda c, rngs: SingleHeadAttention(
        c.d_model, rngs=rngs),
    "multi_head_attention": MultiHeadAttention,
    "feed_forward": FeedForward,
    "residual": lambda c, rngs: RESIDUALS[c.residual](c),
    "encoder_layer": EncoderLayer,
    "decoder_layer": DecoderLayer,
    "encoder": Encoder,
    "decoder": Decoder,
    "projection": lambda c, rngs: Projection(
        c.d_model, c.target_vocab, rngs=rngs),
    "transformer": Transformer,
}

def versions():
    """What computes here, by name."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__,
            "flax": flax.__version__}


def set_precision():
    """Float64 and full-precision products; what was set, by name."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    return {name: getattr(jax.config, name) for name in (
        "jax_enable_x64", "jax_default_matmul_precision")}


def devices():
    """The devices that a real computation ran on."""
    found = []
    for name in ("cpu", "cuda", "tpu"):
        with contextlib.suppress(Exception):
            x = jnp.ones((2, 2), device=jax.devices(name)[0])
            if (x @ x).sum().item() == 8:
                found.append(name)
    return found


def to_native(value, device):
    """An array as JAX's own copy, same dtype; functions stay as they are."""
    if callable(value):
        return value
    return jnp.array(value, device=jax.devices(device)[0])


def to_numpy(array):
    """JAX's array as a NumPy array of the same dtype."""
    return np.asarray(array)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights; see the reference's engine."""
    make = functools.partial(COMPONENTS[component], config)
    module = nnx.eval_shape(lambda: make(rngs=nnx.Rngs(0)))
    for _, below in modules(module):
        below.home = device
    native = dict(leaves(module))
    check(weights, {name: parameter.shape
                    for name, parameter in native.items()})
    for name, parameter in native.items():
        array = to_native(
            weights[name].astype(dtype, copy=False), device)
        if array.dtype != dtype:
            raise RuntimeError(f"JAX made {dtype} {array.dtype}; call "
                               "set_precision before anything else")
        parameter.set_value(array)
    return module


def export(module):
    """The weights under their canonical names, as arrays."""
    return {name: to_numpy(parameter[...])
            for name, parameter in leaves(module)}


def record(module, inputs, method, keywords):
    """Call a module; every step by name, in an order that jit keeps."""
    with tracing(paths(module)) as trace:
        getattr(module, method)(*inputs, **keywords)
    return collections.OrderedDict(trace.values)


def record_compiled(module, inputs, method, keywords):
    """``record`` under jit, compiled anew so that no patched code is missed."""
    graph, state = nnx.split(module)

    @jax.jit
    def compute(state, inputs):
        traced = nnx.merge(graph, state)  # nnx: a new object, with new ids
        return record(traced, inputs, method, keywords)

    return compute(state, [
        jax.tree_util.Partial(value) if callable(value) else value
        for value in inputs])


def run(module, *inputs, method="__call__", compiled=False, **keywords):
    """Run a module on arrays, eagerly or compiled; every step by name."""
    inputs = [to_native(value, module.home) for value in inputs]
    steps = (record_compiled if compiled else record)(
        module, inputs, method, keywords)
    return {name: to_numpy(value) for name, value in steps.items()}


def drawn(model, source, target, key):
    """What dropout keeps in a run with a key; nothing is dropped if None."""
    if key is None:
        return {}
    shapes = places(model.config, *source.shape, target.shape[1])
    return draw(to_native(key, model.home), shapes,
                model.config.dropout, False)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), drawn(model, source, target, key)):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by everything; see the reference's engine.

    A step's gradient is that of a zero which is added to it.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    *inputs, labels = (to_native(a, model.home) for a in (*inputs, labels))
    keep = drawn(model, source, target, key)
    graph, state = nnx.split(model)

    def loss_of(state, zeros):
        traced = nnx.merge(graph, state)
        where = paths(traced)
        with (tracing(where, lambda name, value: value + zeros[name]),
              dropping(where, keep)):
            output = traced(*inputs)
        return cross_entropy(output, labels, traced.config.pad_id,
                             traced.config.label_smoothing,
                             traced.config.smoothing)

    zeros = jax.tree.map(
        jnp.zeros_like, dict(record(model, inputs, "__call__", {})))
    loss, (by_state, by_step) = jax.value_and_grad(
        loss_of, argnums=(0, 1))(state, zeros)
    return to_numpy(loss), {
        **export(nnx.merge(graph, by_state)),
        **{name: to_numpy(by_step[name]) for name in zeros}}


def initial_weights(config, seed):
    """Weights to begin training with, drawn here: float64, by name."""
    return contract.weights.initial_weights(config, seed, random)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the reference's engine."""
    check_pairs(trainer.model.config, sources, targets)
    loss, norm, rate = trainer.train_step(sources, targets)
    return {"loss": to_numpy(loss), "norm": to_numpy(norm),
            "rate": np.asarray(rate)}


def moments(trainer):
    """Both of Adam's moments of every weight: {"m.NAME" and "v.NAME"}."""
    return {f"{kind}.{name}": array
            for kind, held in (("m", trainer.m), ("v", trainer.v))
            for name, array in export(nnx.merge(trainer.graph, held)).items()}


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, held in (("m", trainer.m), ("v", trainer.v)):
        holder = nnx.merge(trainer.graph, held)
        for name, parameter in leaves(holder):
            parameter.set_value(to_native(
                moments[f"{kind}.{name}"], trainer.model.home))
        setattr(trainer, kind, nnx.state(holder))



def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    return to_numpy(model(*(to_native(x, model.home) for x in inputs)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine."""
    rows = check_search(model.config, source, settings, rows)
    with jax.enable_x64(True):  # scores are float64, the model's dtype or not
        found, scores = METHODS[settings.method](
            model, to_native(source, model.home), settings, rows)
        return {"tokens": to_numpy(found), "scores": to_numpy(scores)}


def updates(training, d_model, weights, gradients, device="cpu"):
    """Optimise a few arrays by themselves; see the reference's engine."""
    optimizer = OPTIMIZERS[training.optimizer](training, d_model)
    weights = [to_native(weight, device) for weight in weights]
    moments, found = [(w * 0, w * 0) for w in weights], {}
    for step, clipped in enumerate(gradients, start=1):
        clipped, norm = clip_by_global_norm(
            [to_native(g, device) for g in clipped], training.clip_norm)
        settings = optimizer.settings(step)
        found |= {f"norm, step {step}": norm,
                  f"rate, step {step}": settings[0]}
        for i, g in enumerate(clipped):
            weights[i], *moments[i] = optimizer.update(
                weights[i], g, *moments[i], *settings)
            found |= {f"m {i}, step {step}": moments[i][0],
                      f"v {i}, step {step}": moments[i][1],
                      f"weight {i}, step {step}": weights[i]}
    return {name: np.asarray(value) if isinstance(value, float)
            else to_numpy(value) for name, value in found.items()}


def masks(source, target, pad_id, device="cpu"):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], from ids."""
    source, target = to_native(source, device), to_native(target, device)
    return {
        "source_mask": to_numpy(padding_mask(source, pad_id)),
        "target_mask": to_numpy(padding_mask(target, pad_id)
                                & causal_mask(target.shape[1])),
    }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    return to_numpy(cross_entropy(
        to_native(logits, device), to_native(labels, device), pad_id,
        label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return to_numpy(to_native(a, device) @ to_native(b, device))
