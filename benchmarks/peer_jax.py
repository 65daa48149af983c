"""NNX's layers in the shape of Flax's WMT example, computing as ours do.

The example normalises before each sub-layer; here the norm follows, as in the
preset.
"""

import math

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from transformer_contract.sinusoids import TABLES


def _attention(config, rngs, attention):
    return nnx.MultiHeadAttention(
        config.n_heads, config.d_model, decode=False,
        dropout_rate=config.dropout, deterministic=True, rngs=rngs,
        attention_fn=attention)


def _norm(config, rngs):
    return nnx.LayerNorm(config.d_model, epsilon=config.norm_eps, rngs=rngs)


class EncoderLayer(nnx.Module):
    """Self-attention and two linear maps, each in a residual."""

    def __init__(self, config, *, rngs, attention):
        self.self_attention = _attention(config, rngs, attention)
        self.self_attention_residual = _norm(config, rngs)
        self.inner = nnx.Linear(config.d_model, config.d_ff, rngs=rngs)
        self.outer = nnx.Linear(config.d_ff, config.d_model, rngs=rngs)
        self.feed_forward_residual = _norm(config, rngs)

    def __call__(self, x, mask):
        x = self.self_attention_residual(x + self.self_attention(x, mask=mask))
        return self.feed_forward_residual(
            x + self.outer(nnx.relu(self.inner(x))))


class DecoderLayer(EncoderLayer):
    """The same with cross-attention between."""

    def __init__(self, config, *, rngs, attention):
        super().__init__(config, rngs=rngs, attention=attention)
        self.cross_attention = _attention(config, rngs, attention)
        self.cross_attention_residual = _norm(config, rngs)

    def __call__(self, x, memory, memory_mask, mask):
        x = self.self_attention_residual(x + self.self_attention(x, mask=mask))
        x = self.cross_attention_residual(
            x + self.cross_attention(x, memory, mask=memory_mask))
        return self.feed_forward_residual(
            x + self.outer(nnx.relu(self.inner(x))))


class PeerTransformer(nnx.Module):
    """Encoder and decoder between tied embeddings.

    Args:
        attention: attends, as nnx.dot_product_attention does.
    """

    def __init__(self, config, *, rngs, attention=nnx.dot_product_attention):
        self.config = config
        self.embedding = nnx.Embed(
            config.source_vocab, config.d_model, rngs=rngs)
        given = {"rngs": rngs, "attention": attention}
        self.encoder = nnx.List(EncoderLayer(config, **given)
                                for _ in range(config.n_encoder_layers))
        self.decoder = nnx.List(DecoderLayer(config, **given)
                                for _ in range(config.n_decoder_layers))

    def embed(self, tokens):
        """Tokens [B T] to vectors [B T D]."""
        table = TABLES[self.config.positions](
            self.config.max_length, self.config.d_model)
        x = self.embedding(tokens) * math.sqrt(self.config.d_model)
        return x + table[:tokens.shape[1]].astype(x.dtype)

    def __call__(self, source, target):
        """Score every next target token: [B T V]."""
        pad_id = self.config.pad_id
        source_mask = nnx.make_attention_mask(
            source == source, source != pad_id)
        memory_mask = nnx.make_attention_mask(
            target == target, source != pad_id)
        mask = nnx.combine_masks(
            nnx.make_attention_mask(target != pad_id, target != pad_id),
            nnx.make_causal_mask(target))
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, source_mask)
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, memory_mask, mask)
        return self.embedding.attend(x)


def _ours(path):
    """Our name of a weight, from its path in a PeerTransformer."""
    if path[0] == "embedding":
        return "source_embedding.table"
    stack, number, *rest = path
    if rest[0].endswith("_residual"):
        rest.insert(1, "norm")
    if rest[0] in ("inner", "outer"):
        rest.insert(0, "feed_forward")
    rest = ["output" if part == "out" else part for part in rest]
    return f"{stack}.layers.{number}." + ".".join(rest)


def load(model, weights):
    """Load our weights, by canonical name, into a PeerTransformer."""
    for path, weight in nnx.to_flat_state(nnx.state(model, nnx.Param)):
        weight[...] = jnp.asarray(weights[_ours(path)]).reshape(weight.shape)
    return model


def train_step(graph, optimizer, state, moments, source, target, dtype=None):
    """One step from a state and its moments to the next, and the loss.

    Args:
        dtype: what weights are rounded to for the pass; None if they are not.
    """

    def loss_of(state):
        if dtype is not None:
            state = jax.tree.map(lambda x: x.astype(dtype), state)
        model = nnx.merge(graph, state)
        config = model.config
        read, labels = target[:, :-1], target[:, 1:]
        log_probs = jax.nn.log_softmax(
            model(source, read).astype(jnp.float32))
        at_label = jnp.take_along_axis(
            log_probs, labels[..., None], axis=-1)[..., 0]
        losses = (-(1 - config.label_smoothing) * at_label
                  - config.label_smoothing * jnp.mean(log_probs, axis=-1))
        kept = labels != config.pad_id
        return jnp.sum(losses * kept) / jnp.sum(kept)

    loss, gradients = jax.value_and_grad(loss_of)(state)
    updates, moments = optimizer.update(gradients, moments, state)
    return optax.apply_updates(state, updates), moments, loss
