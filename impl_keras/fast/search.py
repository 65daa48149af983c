"""A whole search as one traced function, on TensorFlow.

It is traced once for the shapes of its inputs. Numbers of formulas are inputs
too, so that another temperature or length rule needs no tracing, and so is what
a function of its own encodes for all searches. Of large batches XLA compiles
that one: another second or two for each shape, and then about half of the time.
It multiplies the few rows of a decoded token more slowly than TensorFlow.
"""

import math
import typing

import keras
import numpy as np
from keras import ops

from impl_keras import search
from impl_keras.fast.cache import (
    at, decode_one, memory_pairs, new_cache, new_writers, reorder, write_all)
from impl_keras.fast.layout import LONG, LaidOut
from impl_keras.fast.traced import compiled
from impl_keras.masks import causal_mask, padding_mask
from impl_keras.sample import uniforms
from impl_keras.search import follow

#: Tokens of all rows from which on XLA compiles what encodes, or predicts.
LARGE = 256


class _Numbers(typing.NamedTuple):
    """The fields of a GenerationConfig that are numbers of formulas.

    Penalties and bounds are by the number of tokens written. ``draws`` are a
    sample's random numbers, [B N], else None.
    """

    temperature: keras.KerasTensor
    top_k: keras.KerasTensor
    top_p: keras.KerasTensor
    hf_true: keras.KerasTensor
    penalties: keras.KerasTensor
    bounds: keras.KerasTensor
    draws: keras.KerasTensor | None


def _split(settings, vocab, rows):
    """Settings that decide what is traced, and the others."""
    penalties, bounds = (
        np.array([rule(max(i, 1)) for i in range(1 + settings.max_tokens)])
        for rule in (settings.penalty, settings.bound))
    numbers = map(ops.convert_to_tensor, (
        np.float64(settings.temperature),
        np.int32(settings.top_k or vocab), np.float64(settings.top_p),
        np.bool_(settings.length_rule == "hf_true"), penalties, bounds))
    draws = (uniforms(settings.seed, rows, 1 + settings.max_tokens)
             if settings.method == "sample" else None)
    return settings.replace(
        temperature=1.0, top_k=0, top_p=1.0, seed=0, alpha=0.0,
        length_rule="none", beam=settings.width), _Numbers(*numbers, draws)


def run(model, source, settings, rows):
    """Find targets of sources; see impl_keras.search."""
    if settings.method == "beam" and settings.beam == 1:
        return beam_of_one(model, source, settings)
    settings, numbers = _split(settings, model.config.target_vocab, rows)
    xla = math.prod(source.shape) >= LARGE
    encoded = compiled(model, ("encoded", xla), _encoded, xla=xla)(source)
    return compiled(model, settings, _run, settings)(
        source, encoded, numbers)


def beam_of_one(model, source, settings):
    """Greedy search, its scores over the penalty."""
    tokens, scores = run(
        model, source, settings.replace(method="greedy"), None)
    ends = ops.isin(tokens[:, :, 1:], ops.array(settings.eos_ids, "int32"))
    written = ops.where(
        ops.any(ends, axis=-1), 1 + ops.argmax(ops.cast(
            ends, "int32"), axis=-1), settings.max_tokens)
    penalties = np.array([1.0, *map(
        settings.penalty, range(1, 1 + settings.max_tokens))])
    return tokens, scores / ops.take(penalties, written)


def _encoded(model, source):
    """The memory of sources, and what cross-attentions read of it."""
    memory = model.encode(source, padding_mask(source, model.config.pad_id))
    return memory, memory_pairs(model, memory)


def _run(model, settings, source, encoded, numbers):
    return SEARCHES[settings.method](
        model, source, encoded, settings).run(numbers)


class Search(search.Search):
    """What all searches share; see impl_keras.search.

    Attributes:
        rows: how many sources there are.
        kept: the cache, which a loop carries; [] without one.
        writers: which row wrote what stands in each place of a row, [R N]; a
            loop carries them too.
        pairs: the memory's keys and values, which no loop changes.
    """

    def __init__(self, model, source, encoded, settings):
        self.model, self.settings, self.pad_id = (
            model, settings, model.config.pad_id)
        self.length, self.rows = 1 + settings.max_tokens, source.shape[0]
        if LONG <= self.rows * settings.width * settings.max_tokens:
            self.model = LaidOut(model)
        memory, self.pairs = encoded
        self.source_mask = padding_mask(source, self.pad_id)
        rows = self.rows * settings.width
        self.kept, self.writers = [], new_writers(rows, self.length)
        if settings.cached:
            self.kept = new_cache(model, memory, rows)
        else:
            self.memory, self.source_mask = (
                ops.repeat(array, settings.width, axis=0)
                for array in (memory, self.source_mask))
        self.place = ops.arange(self.length, dtype="int32")

    def first(self, *shape):
        """Targets of which the bos is written: int32 [*shape N]."""
        row = ops.where(
            self.place == 0, self.settings.bos_id, self.pad_id)
        return ops.cast(ops.tile(row, (*shape, 1)), "int32")

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N]."""
        last = written - 1
        if self.kept:
            decoded, self.kept = decode_one(
                self.model, ops.take(tokens, last, axis=1), last, self.kept,
                self.pairs, self.source_mask)
        else:
            read = tokens[:, :-1]
            mask = causal_mask(read.shape[1])
            decoded = self.model.decode(
                read, self.memory, self.source_mask, mask, None)
            decoded = ops.take(decoded, last, axis=1)[:, None]
        return self.answer(decoded)

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        n = self.settings.no_repeat_ngram
        if not 0 < n < self.length:
            return log_probs
        token = ops.arange(log_probs.shape[-1], dtype="int32")

        def before(end):
            first = ops.maximum(end - n + 1, 0)
            return ops.slice(
                tokens, at(0, first), (tokens.shape[0], n - 1))

        last = before(written)

        def mark(end, found):
            same = ops.all(before(end) == last, axis=-1)
            ending = ops.take(tokens, end, axis=1)[:, None]
            return found | (same[:, None] & (token == ending))

        return ops.where(ops.fori_loop(
            n - 1, written, mark, ops.zeros(log_probs.shape, "bool")),
            -math.inf, log_probs)

    def ends(self, token):
        """Whether each token is one of the eos ids: bool [*], of int [*]."""
        # keras: its isin asks for values, which a traced tensor has not
        return ops.any(token[..., None] == np.array(
            self.settings.eos_ids, np.int32), axis=-1)

    def reorder(self, parents, written):
        """Let each row continue another row of its source: int [R]."""
        if self.kept:
            self.kept, self.writers = reorder(
                self.kept, self.writers, parents, written)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places."""
        scores, places = ops.top_k(scores, count)
        return scores, ops.cast(places, "int32")  # PyTorch's are int64.


class Greedy(Search):
    """The most likely token, one after the other."""

    def choose(self, log_probs, written, numbers):
        """The most likely token of log_probs [B V]; of equals, the first."""
        return ops.argmax(log_probs, axis=-1)

    def run(self, numbers):
        """Tokens, int [B 1 N], and their log p, float64 [B 1]."""
        b = self.rows

        def goes_on(written, tokens, scores, finished):
            return ~ops.all(finished)

        def write(written, tokens, scores, finished, cache):
            self.kept = cache
            log_probs = self.allowed(
                self.next(tokens, written), tokens, written)
            token = self.choose(log_probs, written, numbers)
            log_p = ops.take_along_axis(log_probs, token[:, None], axis=-1)
            scores = scores + ops.where(finished, np.float64(0), log_p[:, 0])
            token = ops.where(finished, self.pad_id, ops.cast(token, "int32"))
            tokens = ops.where(self.place == written, token[:, None], tokens)
            finished = finished | self.ends(token)
            return (written + 1, tokens, scores, finished), self.kept

        _, tokens, scores, _ = write_all(self.length, goes_on, write, (
            ops.convert_to_tensor(1, "int32"), self.first(b),
            ops.zeros(b, "float64"), ops.zeros(b, "bool")), self.kept)
        return tokens[:, None], scores[:, None]


class Sample(Greedy):
    """Tokens drawn by their probability, one after the other."""

    def choose(self, log_probs, written, numbers):
        """A token for each row of log_probs [B V], drawn by p: [B]."""
        place = ops.arange(log_probs.shape[-1], dtype="int32")
        scores, which = self.top(
            log_probs / numbers.temperature, log_probs.shape[-1])
        e = ops.exp(scores - scores[:, :1])
        p = e / ops.sum(e, axis=-1, keepdims=True)
        before = ops.cumsum(p, axis=-1) - p
        kept = (place < numbers.top_k) & (before < numbers.top_p)
        reached = ops.cumsum(ops.where(kept, p, 0), axis=-1)
        draw = ops.take(numbers.draws, written, axis=1) * reached[:, -1]
        rank = _count(reached <= draw[:, None])
        rank = ops.minimum(rank, ops.maximum(_count(kept), 1) - 1)
        return ops.take_along_axis(which, rank[:, None], axis=-1)[:, 0]


def _count(kept):
    """How many are True along the last axis, int32."""
    return ops.sum(ops.cast(kept, "int32"), axis=-1)


class Beam(Search, search.Beam):
    """Beam search: the W best hypotheses at once."""

    def run(self, numbers):
        """Tokens, int [B W N], and log p over the penalty, float64 [B W]."""
        settings, w = self.settings, self.settings.beam
        b, vocab = self.rows, self.model.config.target_vocab
        count = settings.candidates
        first = self.first(b, w)
        none = ops.full((b, w), -math.inf, "float64")
        alive = ops.where(ops.arange(w) == 0, np.float64(0), none)

        def goes_on(written, tokens, alive, *_):
            return ops.any(alive > -math.inf)

        def write(written, tokens, alive, finished_tokens, finished, writers,
                  cache):
            self.kept, self.writers = cache, writers
            rows = ops.reshape(tokens, (b * w, -1))
            log_probs = self.allowed(
                self.next(rows, written), rows, written)
            candidates = alive[:, :, None] + ops.reshape(
                log_probs, (b, w, vocab))
            scores, which = self.top(
                ops.reshape(candidates, (b, w * vocab)), count)
            parents, token = which // vocab, which % vocab
            grown = ops.where(self.place == written, token[:, :, None],
                              follow(tokens, parents))
            ends = self.ends(token)
            finished, finished_tokens = self.best(
                finished, finished_tokens, ops.where(
                    ends, scores / ops.take(numbers.penalties, written),
                    -math.inf), grown)
            alive, which = self.top(ops.where(ends, -math.inf, scores), w)
            tokens = follow(grown, which)
            parents = ops.take_along_axis(parents, which, axis=1)
            self.reorder(ops.reshape(
                parents + w * ops.arange(b, dtype="int32")[:, None], (-1,)),
                written)
            done = self.is_done(finished, alive, written, numbers)
            alive = ops.where(done[:, None], -math.inf, alive)
            return (written + 1, tokens, alive, finished_tokens, finished,
                    self.writers), self.kept

        _, tokens, alive, finished_tokens, finished, _ = write_all(
            self.length, goes_on, write, (
                ops.convert_to_tensor(1, "int32"), first, alive, first, none,
                self.writers), self.kept)
        scores, tokens = self.best(
            finished, finished_tokens, alive / ops.take(
                numbers.penalties, settings.max_tokens), tokens)
        return tokens, scores

    def is_done(self, finished, alive, written, numbers):
        """Whether the length rule ends a row's search: bool [B]."""
        hope = alive[:, 0] / ops.take(numbers.bounds, written)
        worst = finished[:, -1]
        return ops.where(
            numbers.hf_true, worst > -math.inf, worst >= hope)


SEARCHES = {"greedy": Greedy, "sample": Sample, "beam": Beam}
