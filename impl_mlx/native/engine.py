"""The native form's engine: weights of the same files, outputs, gradients.

It has no steps. It searches as the readable form does, without cached keys.
"""

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from transformer_contract import chosen
from transformer_contract.batch import check_inputs, check_search
from parity_io.errors import InputError
from transformer_contract.leaves import Weight
from transformer_contract.schema import schema
from transformer_contract.weights import check
from impl_mlx import engine, parts
from impl_mlx.dropout import evaluating
from impl_mlx.engine import on, to_native, to_numpy
from impl_mlx.loss import cross_entropy
from impl_mlx.native.model import Transformer
from impl_mlx.parameters import home

#: Our names of a layer's parts -> this form's.
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

#: The same of an attention's parts, and of leaves.
ATTENTION = {"query": "query_proj", "key": "key_proj", "value": "value_proj",
             "output": "out_proj"}
LEAVES = {"kernel": "weight", "bias": "bias", "scale": "weight"}


def __getattr__(name):
    return getattr(engine, name)


def refuse(config, dtype):
    """Raise InputError where MLX's own layers are another model's."""
    usual = "usual"
    for said, why in (
            (dtype != "float64",
             "mx.fast's softmax and norm of float64 are float32's"),
            (config.norm_form == "layer",
             "nn.LayerNorm divides by √(variance + ε), and has a scale and a "
             "bias for each feature"),
            ((config.residual, config.final_norm) == ("post", False),
             "it normalises each sum, as the paper's"),
            (chosen.attention(config, "causal") == usual,
             "nn.MultiHeadAttention has as many keys as queries, and scores "
             "over √d_k alone"),
            (chosen.feed_forward(config) == usual,
             "its feed-forward network is the paper's"),
            (chosen.source_embedding(config) == chosen.embedding(config)
             == usual, "its embeddings are the paper's"),
            (chosen.positions(config) == usual,
             "its positions are the paper's"),
            ((config.stacks, config.begin, config.output, config.output_scale,
              config.output_transform) == (
                  "both", "token", "logits", "none", False),
             "it has both stacks, begins with a token and ends in logits"),
            (not (config.output_tied and config.has_output_bias),
             "a table as a linear map has no bias")):
        if not said:
            raise InputError(
                f"the native form cannot be this model: {why}; choose another "
                "form.")


def place(name):
    """MLX's path of what holds a weight, and the attribute."""
    path, _, leaf = name.rpartition(".")
    stack, _, rest = path.partition(".")
    if leaf == "table":
        return stack.removesuffix("_embedding"), "weight"
    if stack == "projection":
        return "output", LEAVES[leaf]
    _, number, part = rest.split(".", 2)
    layer = f"{stack}.{number}"
    if part in LAYERS[stack]:
        return f"{layer}.{LAYERS[stack][part]}", LEAVES[leaf]
    attention, _, which = part.partition(".")
    return (f"{layer}.{LAYERS[stack][attention]}.{ATTENTION[which]}",
            LEAVES[leaf])


def leaves(model):
    """Yield the Weight of every array that a model of a config holds."""
    modules = dict(model.named_modules())
    for name in schema(model.config):
        path, leaf = place(name)
        convert = np.transpose if name.endswith(".kernel") else np.asarray
        yield Weight(name, lambda owner=modules[path], leaf=leaf: owner[leaf],
                     lambda value, owner=modules[path], leaf=leaf:
                     setattr(owner, leaf, value), convert, convert)


def build(component, config, weights, dtype="float32", device="cpu"):
    """Make a Transformer and load its weights, in evaluation mode.

    Raises:
        InputError: MLX's layers cannot be the config's, or a weight is wrong.
    """
    if component != "transformer":
        raise InputError(f"the native form makes whole models, and no "
                         f"{component}; choose another form.")
    refuse(config, dtype)
    check(weights, schema(config))
    model = Transformer(config)
    for weight in leaves(model):
        weight.set(to_native(weight.to_theirs(
            weights[weight.name].astype(dtype, copy=False)), device))
    return model.eval()


def export(model):
    """The weights under their canonical names, as arrays."""
    return {weight.name: np.array(
        weight.to_ours(to_numpy(weight.get())), order="C")
        for weight in leaves(model)}


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with on(home(model)), evaluating(model):
        return to_numpy(model(*(to_native(x, home(model)) for x in inputs)))


def forward(model, source, target, source_mask, target_mask, key=None):
    """The output, as the only step that is seen; nothing is dropped."""
    return {"output": predict(
        model, source, target, source_mask, target_mask)}


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by every weight; nothing is dropped."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    config = model.config

    def loss_of(*inputs):
        *inputs, labels = inputs
        return cross_entropy(model(*inputs), labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    with on(home(model)), evaluating(model):
        loss, found = nn.value_and_grad(model, loss_of)(*(
            to_native(x, home(model)) for x in (*inputs, labels)))
        mx.eval(loss, found)
        like = Transformer(config).update(found)
        return to_numpy(loss), export(like)


def generate(model, source, settings, rows=None):
    """Find targets of sources, by reading the whole target for each token."""
    rows = check_search(model.config, source, settings, rows)
    settings = settings.replace(cached=False)
    with on(home(model)), evaluating(model):
        tokens, scores = parts.search(model.config, settings)(
            model, to_native(source, home(model)), settings, rows).run()
        return {"tokens": to_numpy(tokens.astype(mx.int64)),
                "scores": to_numpy(scores)}
