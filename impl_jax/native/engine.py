"""The native form's engine: weights of the same files, outputs, gradients.

It has no steps, and trains and searches as the readable form does, without
cached keys.
"""

import jax
import numpy as np
from flax import nnx

from transformer_contract import chosen
from transformer_contract.batch import check_inputs, check_search
from parity_io.errors import InputError
from transformer_contract.leaves import Weight
from transformer_contract.weights import check
from impl_jax import engine, parts
from impl_jax.loss import cross_entropy
from impl_jax.native.model import Transformer
from impl_jax.parameters import modules

#: Our names of the parts of each stack's layers -> this form's.
LAYERS = {
    "encoder": {
        "self_attention": "attention", "self_attention_residual.norm": "norm1",
        "feed_forward.inner": "mlp.layers.0",
        "feed_forward.outer": "mlp.layers.3",
        "feed_forward_residual.norm": "norm2"},
    "decoder": {
        "self_attention": "attention", "self_attention_residual.norm": "norm1",
        "cross_attention": "cross", "cross_attention_residual.norm": "norm2",
        "feed_forward.inner": "mlp.layers.0",
        "feed_forward.outer": "mlp.layers.3",
        "feed_forward_residual.norm": "norm3"}}

#: The same of an attention's parts.
ATTENTION = {"query": "query", "key": "key", "value": "value", "output": "out"}


def __getattr__(name):
    return getattr(engine, name)


def refuse(config):
    """Raise InputError where NNX's own layers are another model's."""
    usual = "usual"
    for said, why in (
            (config.norm_form == "layer",
             "nnx.LayerNorm divides by √(variance + ε), and has a scale and a "
             "bias for each feature"),
            (config.residual == "post" and not config.final_norm,
             "its layers normalise their sums, and stacks nothing besides"),
            (chosen.attention(config, "causal") == usual,
             "its attention has as many keys as queries, all biases, and "
             "scores over √d_k alone"),
            (chosen.feed_forward(config) == usual,
             "its feed-forward network is the paper's"),
            (chosen.source_embedding(config) == chosen.embedding(config)
             == usual, "its embeddings are the paper's"),
            (chosen.positions(config) == usual,
             "its positions are the paper's"),
            ((config.stacks, config.begin, config.output, config.output_scale,
              config.output_transform) == (
                  "both", "token", "logits", "none", False)
             and config.has_output_bias != config.output_tied,
             "it has both stacks, begins with a token and ends in logits")):
        if not said:
            raise InputError(
                f"the native form cannot be this model: {why}; choose another "
                "form.")


def names(config):
    """{our path of a module: its path in this form}."""
    found = {"source_embedding": "source", "target_embedding": "target",
             "projection": "output"}
    for stack, count in (("encoder", config.n_encoder_layers),
                         ("decoder", config.n_decoder_layers)):
        for i in range(count):
            for ours, theirs in LAYERS[stack].items():
                ours = f"{stack}.layers.{i}.{ours}"
                theirs = f"{stack}.{i}.{theirs}"
                found |= {ours: theirs} | {
                    f"{ours}.{part}": f"{theirs}.{own}"
                    for part, own in ATTENTION.items()}
    return found


def leaves(model):
    """Yield the Weight of every array that the model holds."""
    ours = {theirs: name for name, theirs in names(model.config).items()}
    for path, owner in modules(model):
        for leaf, value in vars(owner).items():
            if isinstance(value, nnx.Param):
                name = "table" if isinstance(owner, nnx.Embed) else leaf
                yield Weight(
                    f"{ours[path]}.{name}", value.get_value, value.set_value,
                    *turned(owner, leaf, value.shape, model.config.d_model))


def turned(owner, leaf, shape, d_model):
    """How a weight becomes ours and NNX's: its heads have an axis there."""
    flat = {"kernel": (d_model, -1), "bias": (-1,)}
    if isinstance(owner, nnx.LinearGeneral):
        if leaf == "kernel" and len(owner.axis) == 2:
            flat["kernel"] = (-1, d_model)
        return (lambda array: array.reshape(flat[leaf]),
                lambda array: array.reshape(shape))
    return np.asarray, np.asarray


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a Transformer and load its weights, in evaluation mode.

    Raises:
        InputError: NNX's layers cannot say the config, or a weight is wrong.
    """
    if component != "transformer":
        raise InputError(
            f"the native form has no {component} of its own; choose the "
            "readable form.")
    refuse(config)
    # nnx: weights would be drawn in vain, but dropout needs its numbers
    model = Transformer(config, dtype=dtype, rngs=nnx.Rngs(0))
    model.home = device
    found = {weight.name: weight for weight in leaves(model)}
    check(weights, {name: weight.to_ours(np.asarray(weight.get())).shape
                    for name, weight in found.items()})
    for name, weight in found.items():
        weight.set(engine.to_native(weight.to_theirs(
            weights[name].astype(dtype, copy=False)), device))
    model.eval()
    return model


def export(model):
    """The weights under their canonical names, as arrays."""
    return {weight.name: weight.to_ours(engine.to_numpy(weight.get()))
            for weight in leaves(model)}


def evaluating(model):
    """The model in evaluation mode; it itself keeps its own."""
    return nnx.view(model, deterministic=True)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    return engine.to_numpy(evaluating(model)(*(
        engine.to_native(x, model.home) for x in inputs)))


def forward(model, *inputs, key=None):
    """The output, as the only step that is seen."""
    return {"output": predict(model, *inputs)}


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by every weight."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    *inputs, labels = (
        engine.to_native(x, model.home) for x in (*inputs, labels))
    graph, weights, rest = nnx.split(evaluating(model), nnx.Param, ...)
    config = model.config

    def loss_of(weights):
        output = nnx.merge(graph, weights, rest)(*inputs)
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    loss, found = jax.value_and_grad(loss_of)(weights)
    return engine.to_numpy(loss), export(nnx.merge(graph, found, rest))


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable search asks for every token."""
    rows = check_search(model.config, source, settings, rows)
    settings = settings.replace(cached=False)
    with jax.enable_x64(True):  # scores are float64
        tokens, scores = parts.search(model.config, settings)(
            evaluating(model), engine.to_native(source, model.home), settings,
            rows).run()
        return {"tokens": engine.to_numpy(tokens),
                "scores": engine.to_numpy(scores)}
