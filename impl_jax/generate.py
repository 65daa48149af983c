"""Generation: a target from a source, token by token (section 3.1).

Compiled, so all shapes are fixed: the decoder reads the whole target, of which
what is not written yet is padding that nothing attends to.
"""

import functools

import jax
import jax.numpy as jnp
from flax import nnx

from impl_jax.masks import causal_mask, padding_mask


def greedy(model, source, begin_id, end_id, length):
    """The most likely token after each; of equals, the lowest id."""
    graph, weights = nnx.split(model)
    tokens, written = _greedy(graph, weights, source, begin_id, end_id, length)
    return tokens[:, :int(written)]


@functools.partial(jax.jit, static_argnums=(0, 3, 4, 5))
def _greedy(graph, weights, source, begin_id, end_id, length):
    model = nnx.merge(graph, weights)
    pad_id = model.config.pad_id
    source_mask = padding_mask(source, pad_id)
    memory = model.encode(source, source_mask)
    tokens = jnp.full((len(source), length), pad_id).at[:, 0].set(begin_id)

    def going_on(state):
        _, written, ended = state
        return (written < length) & ~jnp.all(ended)

    def write(state):
        tokens, written, ended = state
        mask = padding_mask(tokens, pad_id) & causal_mask(length)
        decoded = model.decode(tokens, memory, source_mask, mask)
        output = model.project(
            jax.lax.dynamic_slice_in_dim(decoded, written - 1, 1, axis=1))
        best = jnp.argmax(output[:, 0], axis=-1)
        best = jnp.where(ended, pad_id, best)
        tokens = tokens.at[:, written].set(best)
        return tokens, written + 1, ended | (best == end_id)

    state = tokens, 1, tokens[:, 0] == end_id
    tokens, written, _ = jax.lax.while_loop(going_on, write, state)
    return tokens, written
