"""Whole searches as one compiled function each.

All shapes are fixed: unwritten positions are padding, which nothing written
attends to.
Numbers of formulas are arguments, so that another temperature or penalty needs
no compiling. Sources are encoded by a function of their own, which all searches
share.
"""

import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np

from impl_jax.dialects.search import DialectBeam
from impl_jax.fast.cache import (
    decode_one, memory_pairs, new_cache, new_writers, reorder, write_all)
from impl_jax.fast.layout import laid_out
from impl_jax.fast.split import split
from impl_jax.masks import causal_mask, padding_mask
from impl_jax.sample import uniforms
from impl_jax.search import follow

_BLOCK = 32  # ids whose highest score stands for them at first


class _Numbers(typing.NamedTuple):
    """The fields of a GenerationConfig that are numbers of formulas."""

    temperature: float
    top_k: int
    top_p: float
    penalties: jax.Array
    bounds: jax.Array
    waits: bool
    drawn: bool


def _split(settings, vocab):
    """Settings that decide what is compiled, and the others.

    A sample is drawn by the function that is compiled for greedy search.
    """
    # What depends on the length is looked up, by what is written.
    penalties, bounds = (
        np.array([rule(max(i, 1)) for i in range(1 + settings.max_tokens)])
        for rule in (settings.penalty, settings.bound))
    drawn = settings.method == "sample"
    return settings.replace(
        method="greedy" if drawn else settings.method, temperature=1.0,
        top_k=0, top_p=1.0, seed=0, alpha=0.0, length_rule="none",
        beam=settings.width), _Numbers(
            settings.temperature, settings.top_k or vocab, settings.top_p,
            penalties, bounds, settings.length_rule != "hf_true", drawn)


@functools.partial(jax.jit, static_argnums=0)
def _encoded(graph, weights, source):
    """The memory of sources, and what cross-attentions read of it."""
    model = graph.merge(weights)
    memory = model.encode(source, padding_mask(source, model.config.pad_id))
    return memory, memory_pairs(model, memory)


class Search(DialectBeam):
    """What all searches share; see impl_jax.search.

    Attributes:
        kept: the cache, which a loop carries; None without one.
        writers: which row wrote what stands in each place of a row, [R N]; a
            loop carries them too.
        pairs: the memory's keys and values, which no loop changes.
    """

    def __init__(self, model, source, encoded, settings):
        self.model, self.settings, self.pad_id = (
            model, settings, model.config.pad_id)
        self.length = 1 + settings.max_tokens
        memory, self.pairs = encoded
        self.source_mask = padding_mask(source, self.pad_id)
        self.kept = self.writers = None
        if settings.cached:
            self.kept = new_cache(
                model, memory, len(memory) * settings.width)
            self.writers = new_writers(
                len(memory) * settings.width, self.length)
        else:
            self.memory, self.source_mask = (
                jnp.repeat(array, settings.width, axis=0)
                for array in (memory, self.source_mask))

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N]."""
        last = written - 1
        if self.kept is None:
            read = tokens[:, :-1]
            mask = causal_mask(read.shape[1])
            decoded = self.model.decode(
                read, self.memory, self.source_mask, mask, None)
            decoded = jax.lax.dynamic_slice_in_dim(decoded, last, 1, axis=1)
        else:
            token = jax.lax.dynamic_index_in_dim(
                tokens, last, axis=1, keepdims=False)
            decoded, self.kept = decode_one(
                self.model, token, last, self.kept, self.pairs,
                self.source_mask)
        return self.answer(decoded)

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        n = self.settings.no_repeat_ngram
        if not 0 < n < self.length:
            return log_probs
        token = jnp.arange(log_probs.shape[-1])
        before = functools.partial(
            jax.lax.dynamic_slice_in_dim, slice_size=n - 1, axis=1)
        last = before(tokens, written - n + 1)

        def mark(end, found):
            same = jnp.all(before(tokens, end - n + 1) == last, axis=-1)
            return found | (same[:, None] & (token == tokens[:, end, None]))

        return jnp.where(jax.lax.fori_loop(
            n - 1, written, mark, jnp.zeros(log_probs.shape, bool)),
            -jnp.inf, log_probs)

    def reorder(self, parents, written):
        """Let each row continue another row of its source: int [R]."""
        if self.kept is not None:
            self.kept, self.writers = reorder(
                self.kept, self.writers, parents, written)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places: [B count].

        XLA sorts whole rows of float64. So first the ``count`` blocks that
        have the highest: none of the highest can stand in any other.
        """
        vocab = scores.shape[-1]
        if vocab <= count * _BLOCK:
            return jax.lax.top_k(scores, count)
        blocks = jnp.pad(
            scores, ((0, 0), (0, -vocab % _BLOCK)), constant_values=-jnp.inf)
        blocks = blocks.reshape(len(scores), -1, _BLOCK)
        _, which = Search.top(jnp.max(blocks, axis=-1), count)
        which = jnp.sort(which, axis=-1)
        scores, places = jax.lax.top_k(
            follow(blocks, which).reshape(len(scores), -1), count)
        which = jnp.take_along_axis(which, places // _BLOCK, axis=-1)
        return scores, which * _BLOCK + places % _BLOCK


def most_likely(log_probs, numbers, draw):
    """The token of the highest probability; of equals, the first: [B]."""
    # XLA's argmax goes from number to number.
    return Search.top(log_probs, 1)[1][:, 0]


def sampled(log_probs, numbers, draw):
    """A token by its probability, drawn by ``draw`` [B] in [0, 1): [B]."""
    vocab = log_probs.shape[-1]
    scores, which = Search.top(log_probs / numbers.temperature, vocab)
    p = jnp.exp(scores - scores[:, :1])
    p = p / jnp.sum(p, axis=-1, keepdims=True)
    reached = jnp.cumsum(p, axis=-1)
    kept = ((jnp.arange(vocab) < numbers.top_k)
            & (reached - p < numbers.top_p))
    whole = jnp.max(jnp.where(kept, reached, 0), axis=-1, keepdims=True)
    rank = jnp.sum(kept & (reached <= draw[:, None] * whole), axis=-1)
    rank = jnp.minimum(rank, jnp.maximum(jnp.sum(kept, axis=-1), 1) - 1)
    return jnp.take_along_axis(which, rank[:, None], axis=-1)[:, 0]


def chosen(log_probs, numbers, draw):
    """The next token of each row of log_probs [B V]: [B]."""
    return jax.lax.cond(
        numbers.drawn, sampled, most_likely, log_probs, numbers, draw)


def one_by_one(model, source, settings, rows):
    """Greedy search and sampling: one token after the other."""
    length = 1 + settings.max_tokens
    draws = (uniforms(settings.seed, rows, length)
             if settings.method == "sample"
             else jnp.zeros((len(source), length)))
    fixed, numbers = _split(settings, model.config.target_vocab)
    encoded = _encoded(*split(model), source)
    graph, arrays, options = laid_out(model, settings.max_tokens)
    return _compiled(_one_by_one, options)(
        graph, arrays, source, encoded, fixed, numbers, draws)


@functools.cache
def _compiled(search, options):
    """A search, compiled with some of XLA's options, in pairs."""
    return jax.jit(search, static_argnums=(0, 4),
                   compiler_options=dict(options))


def _one_by_one(graph, weights, source, encoded, settings, numbers, draws):
    run = Search(graph.merge(weights), source, encoded, settings)
    length = run.length
    tokens = jnp.full((len(source), length), run.pad_id)
    tokens = tokens.at[:, 0].set(settings.bos_id)

    def goes_on(written, tokens, scores, finished):
        return ~jnp.all(finished)

    def write(written, tokens, scores, finished, cache):
        run.kept = cache
        log_probs = run.allowed(run.next(tokens, written), tokens, written)
        token = chosen(log_probs, numbers, draws[:, written])
        log_p = jnp.take_along_axis(log_probs, token[:, None], axis=-1)
        scores = scores + jnp.where(finished, 0, log_p[:, 0])
        token = jnp.where(finished, run.pad_id, token)
        tokens = tokens.at[:, written].set(token)
        finished = finished | run.ends(token)
        return (written + 1, tokens, scores, finished), run.kept

    _, tokens, scores, _ = write_all(length, goes_on, write, (
        1, tokens, jnp.zeros(len(source)), jnp.zeros(len(source), bool)),
        run.kept)
    return tokens[:, None], scores[:, None]


def beam_search(model, source, settings, rows):
    """Beam search: the W best hypotheses at once."""
    fixed, numbers = _split(settings, model.config.target_vocab)
    if settings.beam == 1:
        return beam_of_one(model, source, settings, numbers.penalties)
    encoded = _encoded(*split(model), source)
    graph, arrays, options = laid_out(model, settings.max_tokens)
    return _compiled(_beam_search, options)(
        graph, arrays, source, encoded, fixed, numbers)


def beam_of_one(model, source, settings, penalties):
    """Greedy search, its scores over the penalty."""
    tokens, scores = one_by_one(
        model, source, settings.replace(method="greedy"), None)
    ends = jnp.isin(tokens[:, :, 1:], jnp.array(settings.eos_ids))
    written = jnp.where(jnp.any(ends, axis=-1), 1 + jnp.argmax(ends, axis=-1),
                        settings.max_tokens)
    return tokens, scores / penalties[written]


def _beam_search(graph, weights, source, encoded, settings, numbers):
    run = Search(graph.merge(weights), source, encoded, settings)
    b, w, length = len(source), settings.beam, run.length
    vocab = run.model.config.target_vocab
    count = settings.candidates
    tokens = jnp.full((b, w, length), run.pad_id)
    tokens = tokens.at[:, :, 0].set(settings.bos_id)
    finished = jnp.full((b, w), -jnp.inf)
    alive = finished.at[:, 0].set(0)  # one is alive at first

    def goes_on(written, tokens, alive, *_):
        return jnp.any(alive > -jnp.inf)

    def write(written, tokens, alive, finished_tokens, finished, writers,
              cache):
        run.kept, run.writers = cache, writers
        rows = tokens.reshape(b * w, -1)
        log_probs = run.allowed(run.next(rows, written), rows, written)
        candidates = alive[:, :, None] + log_probs.reshape(b, w, -1)
        scores, which = run.top(candidates.reshape(b, -1), count)
        parents, token = which // vocab, which % vocab
        grown = follow(tokens, parents).at[:, :, written].set(token)
        ends = run.ends(token)
        finished, finished_tokens = run.best(
            finished, finished_tokens, jnp.where(
                ends, scores / numbers.penalties[written], -jnp.inf), grown)
        alive, which = run.top(jnp.where(ends, -jnp.inf, scores), w)
        tokens = follow(grown, which)
        parents = jnp.take_along_axis(parents, which, axis=1)
        run.reorder(
            (parents + w * jnp.arange(b)[:, None]).reshape(-1), written)
        done = is_done(finished, alive, numbers.bounds[written], numbers.waits)
        alive = jnp.where(done[:, None], -jnp.inf, alive)
        return (written + 1, tokens, alive, finished_tokens, finished,
                run.writers), run.kept

    _, tokens, alive, finished_tokens, finished, _ = write_all(
        length, goes_on, write, (
            1, tokens, alive, tokens, finished, run.writers), run.kept)
    scores, tokens = run.best(
        finished, finished_tokens,
        alive / numbers.penalties[settings.max_tokens], tokens)
    return tokens, scores


def is_done(finished, alive, bound, waits):
    """Whether the length rule ends a row's search: bool [B]."""
    hope, worst = alive[:, 0] / bound, finished[:, -1]
    return jnp.where(waits, worst >= hope, worst > -jnp.inf)


SEARCHES = {"greedy": one_by_one, "sample": one_by_one, "beam": beam_search}
