"""Generation: a target from a source, token by token (section 3.1, 6.1).

A whole search is one compiled function, so all shapes are fixed: what is not
written yet is padding, which nothing attends to. What only enters a formula is
an argument, so that another temperature or length rule needs no compiling.
"""

import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from impl_jax import random
from impl_jax.cache import decode_one, new_cache, reorder
from impl_jax.masks import causal_mask, padding_mask
from impl_jax.projection import log_softmax


class Rereader:
    """Reads all that is written, for every token."""

    def __init__(self, model, source, width, length):
        self.model, self.pad_id = model, model.config.pad_id
        self.memory, self.source_mask = remembered(model, source, width)
        self.state = ()  # nnx: nothing that a loop would carry

    def next(self, tokens, written):
        """log p of what follows ``written`` of tokens [R N]: [R V]."""
        mask = padding_mask(tokens, self.pad_id) & causal_mask(tokens.shape[1])
        decoded = self.model.decode(
            tokens, self.memory, self.source_mask, mask)
        return answer(self.model, jax.lax.dynamic_slice_in_dim(
            decoded, written - 1, 1, axis=1))

    def reorder(self, parents, written):
        """Rows go on from other rows, int [R], of the same source."""


class CachedReader:
    """Reads the last token, and keeps keys and values of those before."""

    def __init__(self, model, source, width, length):
        self.model = model
        memory, self.source_mask = remembered(model, source, width)
        self.state = new_cache(model, memory, length)

    def next(self, tokens, written):
        """log p of what follows ``written`` of tokens [R N]: [R V]."""
        token = jax.lax.dynamic_index_in_dim(
            tokens, written - 1, axis=1, keepdims=False)
        decoded, self.state = decode_one(
            self.model, token, written - 1, self.state, self.source_mask)
        return answer(self.model, decoded)

    def reorder(self, parents, written):
        """Rows go on from other rows, int [R], of the same source."""
        self.state = reorder(self.state, parents, written)


READERS = {False: Rereader, True: CachedReader}

_BLOCK = 128  # ids whose highest score stands for them at first


class _Numbers(typing.NamedTuple):
    """What of a GenerationConfig only enters formulas, by the same names."""

    temperature: float
    top_k: int
    top_p: float
    hf_true: bool
    penalties: jax.Array
    bounds: jax.Array


def _parted(settings, vocab):
    """Settings that decide what is compiled, and those that do not."""
    # nnx: what depends on the length is looked up, by what is written
    penalties, bounds = (
        np.array([rule(max(i, 1)) for i in range(1 + settings.max_tokens)])
        for rule in (settings.penalty, settings.bound))
    return settings.replace(
        temperature=1.0, top_k=0, top_p=1.0, seed=0, alpha=0.0,
        length_rule="none"), _Numbers(
            settings.temperature, settings.top_k or vocab, settings.top_p,
            settings.length_rule == "hf_true", penalties, bounds)


def remembered(model, source, width):
    """The memory of source [B S] and its mask, each row ``width`` times."""
    source_mask = padding_mask(source, model.config.pad_id)
    memory = model.encode(source, source_mask)
    return (jnp.repeat(memory, width, axis=0),
            jnp.repeat(source_mask, width, axis=0))


def answer(model, decoded):
    """log p of every token after decoded [R 1 D], float64: [R V]."""
    output = model.project(decoded)
    log_probs = log_softmax(output[:, 0]).astype(jnp.float64)
    return log_probs.at[:, model.config.pad_id].set(-jnp.inf)


def top(scores, count):
    """The ``count`` highest of each row, and their places."""
    vocab = scores.shape[-1]
    if vocab <= count * _BLOCK:
        return jax.lax.top_k(scores, count)
    # nnx: XLA sorts whole rows of float64. So first the ``count`` blocks that
    # have the highest: none of the highest can stand in any other.
    blocks = jnp.pad(
        scores, ((0, 0), (0, -vocab % _BLOCK)), constant_values=-jnp.inf)
    blocks = blocks.reshape(len(scores), -1, _BLOCK)
    _, which = top(jnp.max(blocks, axis=-1), count)
    which = jnp.sort(which, axis=-1)
    found, places = jax.lax.top_k(
        follow(blocks, which).reshape(len(scores), -1), count)
    which = jnp.take_along_axis(which, places // _BLOCK, axis=-1)
    return found, which * _BLOCK + places % _BLOCK


def most_likely(log_probs, settings, draw):
    """The token of the highest probability; of equals, the lowest: [R]."""
    # nnx: XLA's argmax goes from number to number
    return top(log_probs, 1)[1][:, 0]


def sampled(log_probs, settings, draw):
    """A token by its probability, where draw [R] in [0, 1) falls: [R]."""
    vocab = log_probs.shape[-1]
    scores, places = top(log_probs / settings.temperature, vocab)
    p = jnp.exp(scores - scores[:, :1])
    p = p / jnp.sum(p, axis=-1, keepdims=True)
    before = jnp.cumsum(p, axis=-1) - p
    kept = (before < settings.top_p) & (jnp.arange(vocab) < settings.top_k)
    total = jnp.cumsum(jnp.where(kept, p, 0), axis=-1)
    rank = jnp.sum(total <= draw[:, None] * total[:, -1:], axis=-1)
    rank = jnp.minimum(rank, jnp.sum(kept, axis=-1) - 1)
    return jnp.take_along_axis(places, rank[:, None], axis=-1)[:, 0]


CHOOSERS = {"greedy": most_likely, "sample": sampled}


def one_by_one(model, source, settings, rows):
    """Greedy search and sampling: one token after the other."""
    draws = uniforms(settings, rows, 1 + settings.max_tokens)
    fixed, numbers = _parted(settings, model.config.target_vocab)
    return _one_by_one(*nnx.split(model), source, draws, fixed, numbers)


@functools.partial(jax.jit, static_argnums=(0, 4))
def _one_by_one(graph, weights, source, draws, settings, numbers):
    model = nnx.merge(graph, weights)
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    choose = CHOOSERS[settings.method]
    reader = READERS[settings.cached](model, source, 1, length)
    tokens = jnp.full((len(source), length), pad_id)
    tokens = tokens.at[:, 0].set(settings.begin_id)

    def going_on(state):
        written, _, _, ended, _ = state
        return (written < length) & ~jnp.all(ended)

    def write(state):
        written, tokens, scores, ended, reader.state = state
        log_probs = reader.next(tokens, written)
        token = choose(log_probs, numbers, draws[:, written])
        score = jnp.take_along_axis(log_probs, token[:, None], axis=-1)[:, 0]
        scores = scores + jnp.where(ended, 0, score)
        tokens = tokens.at[:, written].set(jnp.where(ended, pad_id, token))
        ended = ended | (token == settings.end_id)
        return written + 1, tokens, scores, ended, reader.state

    _, tokens, scores, _, _ = jax.lax.while_loop(going_on, write, (
        1, tokens, jnp.zeros(len(source)), jnp.zeros(len(source), bool),
        reader.state))
    return tokens[:, None], scores[:, None]


def uniforms(settings, rows, length):
    """A number in [0, 1) for each token of each row: [B N]."""
    if settings.method == "greedy":  # nothing is left to chance
        return jnp.zeros((len(rows), length))
    key = random.fold_in(random.key(settings.seed), "sample")
    return jnp.stack([
        random.uniform(random.fold_in(key, int(row)), (length,), 0.0, 1.0)
        for row in rows])


def beam_search(model, source, settings, rows):
    """Beam search: W hypotheses live side by side, and W that have ended."""
    fixed, numbers = _parted(settings, model.config.target_vocab)
    return _beam_search(*nnx.split(model), source, fixed, numbers)


@functools.partial(jax.jit, static_argnums=(0, 3))
def _beam_search(graph, weights, source, settings, numbers):
    model = nnx.merge(graph, weights)
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    b, w, vocab = len(source), settings.beam, model.config.target_vocab
    # One hypothesis has one continuation: a beam of 1 is greedy search.
    count = 1 if w == 1 else min(2 * w, w * vocab)
    reader = READERS[settings.cached](model, source, w, length)
    tokens = jnp.full((b, w, length), pad_id)
    tokens = tokens.at[:, :, 0].set(settings.begin_id)
    ended = jnp.full((b, w), -jnp.inf)
    living = ended.at[:, 0].set(0)  # one is alive at first

    def going_on(state):
        return (state[0] < length) & ~jnp.all(state[-2])

    def write(state):
        (written, tokens, living, ended_tokens, ended, done,
         reader.state) = state
        log_probs = reader.next(tokens.reshape(b * w, length), written)
        grown = living[:, :, None] + log_probs.reshape(b, w, vocab)
        scores, places = top(grown.reshape(b, w * vocab), count)
        parents, words = places // vocab, places % vocab
        new = follow(tokens, parents)
        new = new.at[:, :, written].set(words)
        ends = words == settings.end_id
        ending = jnp.where(
            ends, scores / numbers.penalties[written], -jnp.inf)
        found, ended_tokens_ = best(
            ended, ended_tokens, ending, new, w)
        going, which = top(jnp.where(ends, -jnp.inf, scores), w)
        frozen = done[:, None]
        ended = jnp.where(frozen, ended, found)
        ended_tokens = jnp.where(
            frozen[:, :, None], ended_tokens, ended_tokens_)
        living = jnp.where(frozen, living, going)
        tokens = jnp.where(
            frozen[:, :, None], tokens, follow(new, which))
        parents = jnp.take_along_axis(parents, which, axis=1)
        reader.reorder(
            (parents + w * jnp.arange(b)[:, None]).reshape(-1), written)
        done = done | is_done(
            numbers, ended, living, numbers.bounds[written])
        return (written + 1, tokens, living, ended_tokens, ended, done,
                reader.state)

    _, tokens, living, ended_tokens, ended, done, _ = jax.lax.while_loop(
        going_on, write, (1, tokens, living, tokens, ended,
                          jnp.zeros(b, bool), reader.state))
    standing = jnp.where(done[:, None], -jnp.inf,
                         living / numbers.penalties[settings.max_tokens])
    scores, tokens = best(ended, ended_tokens, standing, tokens, w)
    return tokens, scores


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return jnp.take_along_axis(tokens, which[:, :, None], axis=1)


def best(scores, tokens, more_scores, more_tokens, w):
    """The w best of two sets of hypotheses, [B n] and [B n N] each."""
    scores, which = top(
        jnp.concatenate([scores, more_scores], axis=1), w)
    tokens = jnp.concatenate([tokens, more_tokens], axis=1)
    return scores, follow(tokens, which)


def is_done(settings, ended, living, bound):
    """Whether no living hypothesis can, or by its rule need, be waited for."""
    full = ended[:, -1] > -jnp.inf
    hopeless = ended[:, -1] >= living[:, 0] / bound
    dead = living[:, 0] == -jnp.inf
    return dead | (full & (hopeless | settings.hf_true))


METHODS = {"greedy": one_by_one, "sample": one_by_one, "beam": beam_search}
