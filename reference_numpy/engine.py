"""The reference's one face to the harness: the same functions as a port's."""

import numpy as np

from contract.batch import check_inputs
from contract.dropping import dropping
from contract.weights import check
from reference_numpy.attention import (
    MultiHeadAttention, SingleHeadAttention)
from reference_numpy.decoder import Decoder, DecoderLayer
from reference_numpy.embedding import TokenEmbedding
from reference_numpy.encoder import Encoder, EncoderLayer
from reference_numpy.feed_forward import FeedForward
from reference_numpy.layer_norm import NORMS
from reference_numpy.loss import cross_entropy, cross_entropy_backward
from reference_numpy.masks import causal_mask, padding_mask
from reference_numpy.parameters import leaves, modules, paths
from reference_numpy.positional import PositionalEncoding
from reference_numpy.projection import Projection
from reference_numpy.residual import RESIDUALS
from reference_numpy.transformer import Transformer

NAME = "numpy"

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


def versions():
    """What computes here, by name."""
    return {"numpy": np.__version__}


def set_precision():
    """Nothing to set: NumPy computes in the dtype of its inputs."""
    return {}


def devices():
    """The devices that a real computation ran on."""
    return ["cpu"]


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights.

    Args:
        component: a key of COMPONENTS.
        config: a TransformerConfig.
        weights: the component's arrays by canonical name.
        dtype: what to compute in.
        device: "cpu".

    Raises:
        InputError: an array is missing, surplus, misshapen or not finite.
    """
    module = COMPONENTS[component](config)
    check(weights, {name: getattr(owner, leaf).shape
                    for name, owner, leaf in leaves(module)})
    for name, owner, leaf in leaves(module):
        setattr(owner, leaf, weights[name].astype(dtype, copy=False))
    return module


def export(module):
    """The weights under their canonical names, as arrays."""
    return {name: getattr(owner, leaf) for name, owner, leaf in leaves(module)}


def flatten(cache, prefix=""):
    """The steps of a cache by their full names; inputs are left out."""
    steps = {}
    for name, value in cache.items():
        if isinstance(value, dict):
            steps |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            steps[f"{prefix}{name}"] = value
    return steps


def run(module, *inputs, method="forward", **keywords):
    """Run a module on arrays; return every step by name."""
    _, cache = getattr(module, method)(*inputs, **keywords)
    return flatten(cache)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name.

    With a key, two uint32, values are dropped as while training.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), key):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss of a batch, and its gradient by everything.

    Args:
        model: a Transformer.
        source, target, source_mask, target_mask: as ``forward`` takes them.
        labels: int [B T], what each target position should predict.
        key: two uint32, to drop values as while training.

    Returns:
        The loss, a scalar array, and the gradient of every weight and of every
        step, by name.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    convention = (model.config.pad_id, model.config.label_smoothing,
                  model.config.smoothing)
    with dropping(paths(model), key):
        output, cache = model.forward(*inputs)
    doutput = cross_entropy_backward(output, labels, *convention)
    return (np.asarray(cross_entropy(output, labels, *convention)),
            flatten(model.backward(doutput, cache)))


def masks(source, target, pad_id, device="cpu"):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], from ids."""
    return {
        "source_mask": padding_mask(source, pad_id),
        "target_mask": (padding_mask(target, pad_id)
                        & causal_mask(target.shape[1])),
    }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    return np.asarray(cross_entropy(
        logits, labels, pad_id, label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return a @ b
