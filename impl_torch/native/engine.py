"""The native form's engine: weights of the same files, outputs, gradients.

It has no steps. It searches as the readable form does, without cached keys.
"""

import contextlib

import numpy as np
import torch

from transformer_contract import chosen
from transformer_contract.batch import check_inputs, check_search
from parity_io.errors import InputError
from transformer_contract.schema import schema
from transformer_contract.weights import check
from impl_torch import engine, parts
from impl_torch.dropout import evaluating
from impl_torch.engine import on, to_native, to_numpy
from impl_torch.loss import cross_entropy
from impl_torch.native.model import Transformer
from impl_torch.parameters import home

#: Our names of a layer's parts -> torch's, of the encoder's and the decoder's.
LAYERS = {
    "encoder": {
        "self_attention": "self_attn",
        "self_attention_residual.norm": "norm1",
        "feed_forward.inner": "linear1", "feed_forward.outer": "linear2",
        "feed_forward_residual.norm": "norm2"},
    "decoder": {
        "self_attention": "self_attn",
        "self_attention_residual.norm": "norm1",
        "cross_attention": "multihead_attn",
        "cross_attention_residual.norm": "norm2",
        "feed_forward.inner": "linear1", "feed_forward.outer": "linear2",
        "feed_forward_residual.norm": "norm3"}}

#: The same of leaves.
LEAVES = {"kernel": "weight", "bias": "bias", "scale": "weight"}

#: What holds query, key and value at once, by leaf.
JOINED = {"kernel": "in_proj_weight", "bias": "in_proj_bias"}


def __getattr__(name):
    return getattr(engine, name)


def refuse(config):
    """Raise InputError where torch's own layers are another model's."""
    usual = "usual"
    for said, why in (
            (config.norm_form == "layer",
             "nn.LayerNorm divides by √(variance + ε), and has a scale and a "
             "bias for each feature"),
            (chosen.attention(config, "causal") == usual,
             "nn.MultiheadAttention has as many keys as queries, all biases, "
             "and scores over √d_k alone"),
            (chosen.feed_forward(config) == usual,
             "its feed-forward network is the paper's"),
            (chosen.source_embedding(config) == chosen.embedding(config)
             == usual, "its embeddings are the paper's"),
            (chosen.positions(config) == usual,
             "its positions are the paper's"),
            ((config.stacks, config.begin, config.output, config.output_scale,
              config.output_transform) == (
                  "both", "token", "logits", "none", False),
             "it has both stacks, begins with a token and ends in logits")):
        if not said:
            raise InputError(
                f"the native form cannot be this model: {why}; choose another "
                "form.")


def place(name):
    """Torch's name of what holds a weight, and its part of three, or None."""
    path, _, leaf = name.rpartition(".")
    stack, _, rest = path.partition(".")
    if leaf == "table":
        return f"{stack.removesuffix('_embedding')}.weight", None
    if stack == "projection":
        return f"output.{LEAVES[leaf]}", None
    if rest == "norm":
        return f"norms.{list(LAYERS).index(stack)}.{LEAVES[leaf]}", None
    _, number, part = rest.split(".", 2)
    layer = f"{stack}.{number}"
    if part in LAYERS[stack]:
        return f"{layer}.{LAYERS[stack][part]}.{LEAVES[leaf]}", None
    attention, _, which = part.partition(".")
    own = f"{layer}.{LAYERS[stack][attention]}"
    if which == "output":
        return f"{own}.out_proj.{LEAVES[leaf]}", None
    return (f"{own}.{JOINED[leaf]}",
            ("query", "key", "value").index(which))


def ours(config, tensors):
    """Arrays by our names, of tensors by the names of torch's parameters."""
    found = {}
    for name in schema(config):
        own, third = place(name)
        array = to_numpy(tensors[own])
        if third is not None:
            array = np.split(array, 3)[third]
        found[name] = np.array(
            array.T if name.endswith(".kernel") else array, order="C")
    return found


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a Transformer and load its weights, in evaluation mode.

    Raises:
        InputError: torch's layers cannot be the config's, or a weight is wrong.
    """
    if component != "transformer":
        raise InputError(f"the native form makes whole models, and no "
                         f"{component}; choose another form.")
    refuse(config)
    model = Transformer(config).to(device, getattr(torch, dtype))
    check(weights, schema(config))
    tensors = dict(model.named_parameters())
    for name, array in weights.items():
        own, third = place(name)
        tensor = tensors[own].data
        if third is not None:
            tensor = tensor.chunk(3)[third]
        tensor.copy_(to_native(
            array.T if name.endswith(".kernel") else array, device))
    return model.eval()


@contextlib.contextmanager
def computing(model):
    """Without dropout, and by the path that gives a masked row 0 (R2)."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with evaluating(model), on(home(model)):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def export(model):
    """The weights under their canonical names, as arrays."""
    return ours(model.config, dict(model.named_parameters()))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with torch.no_grad(), computing(model):
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
    parameters = dict(model.named_parameters())
    with torch.enable_grad(), computing(model):
        output = model(*(to_native(x, home(model)) for x in inputs))
        loss = cross_entropy(
            output, to_native(labels, home(model)), model.config.pad_id,
            model.config.label_smoothing, model.config.smoothing)
    found = torch.autograd.grad(loss, list(parameters.values()))
    return to_numpy(loss), ours(model.config, dict(zip(parameters, found)))


def generate(model, source, settings, rows=None):
    """Find targets of sources, by reading the whole target for each token."""
    rows = check_search(model.config, source, settings, rows)
    settings = settings.replace(cached=False)
    with torch.no_grad(), computing(model):
        tokens, scores = parts.search(model.config, settings)(
            model, to_native(source, home(model)), settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}
