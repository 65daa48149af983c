"""Generation: a target from a source, token by token (section 3.1, 6.1).

keras: with TensorFlow a whole search is one traced function, so all shapes are
fixed: what is not written yet is padding, which nothing attends to. What only
enters a formula is an argument, so that another temperature or length rule
needs no tracing.
"""

import functools
import typing

import keras
import numpy as np
from keras import ops

from impl_keras import random
from impl_keras.cache import decode_one, new_cache, reorder
from impl_keras.masks import causal_mask, padding_mask
from impl_keras.projection import log_softmax

_NOTHING = np.float64(-np.inf)


class Rereader:
    """Reads all that is written, for every token."""

    def __init__(self, model, source, width, length):
        self.model, self.pad_id = model, model.config.pad_id
        self.memory, self.source_mask = remembered(model, source, width)
        self.state = ()  # keras: nothing that a loop would carry

    def next(self, tokens, written):
        """log p of what follows ``written`` of tokens [R N]: [R V]."""
        mask = padding_mask(tokens, self.pad_id) & causal_mask(tokens.shape[1])
        decoded = self.model.decode(
            tokens, self.memory, self.source_mask, mask)
        return answer(self.model, ops.take(
            decoded, (written - 1)[None], axis=1))

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
        token = ops.take(tokens, written - 1, axis=1)
        decoded, self.state = decode_one(
            self.model, token, written - 1, self.state, self.source_mask)
        return answer(self.model, decoded)

    def reorder(self, parents, written):
        """Rows go on from other rows, int [R], of the same source."""
        self.state = reorder(self.state, parents, written)


READERS = {False: Rereader, True: CachedReader}


class _Numbers(typing.NamedTuple):
    """What of a GenerationConfig only enters formulas, by the same names."""

    temperature: keras.KerasTensor
    top_k: keras.KerasTensor
    top_p: keras.KerasTensor
    hf_true: keras.KerasTensor
    penalties: keras.KerasTensor
    bounds: keras.KerasTensor


def _parted(settings, vocab):
    """Settings that decide what is traced, and those that do not."""
    # keras: what depends on the length is looked up, by what is written
    penalties, bounds = (
        np.array([rule(max(i, 1)) for i in range(1 + settings.max_tokens)])
        for rule in (settings.penalty, settings.bound))
    numbers = _Numbers(
        np.float64(settings.temperature),
        np.int32(settings.top_k or vocab), np.float64(settings.top_p),
        np.bool_(settings.length_rule == "hf_true"), penalties, bounds)
    return settings.replace(
        temperature=1.0, top_k=0, top_p=1.0, seed=0, alpha=0.0,
        length_rule="none"), _Numbers(*map(ops.convert_to_tensor, numbers))


def _compiled(function, model, settings):
    """A function of these two, traced once for each shape of the rest."""
    kept = model.__dict__.setdefault("_compiled_functions", {})
    if (function, settings) not in kept:
        bound = functools.partial(function, model, settings)
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf
            bound = tf.function(bound, autograph=False)
        kept[function, settings] = bound
    return kept[function, settings]


def remembered(model, source, width):
    """The memory of source [B S] and its mask, each row ``width`` times."""
    source_mask = padding_mask(source, model.config.pad_id)
    memory = model.encode(source, source_mask)
    return (ops.repeat(memory, width, axis=0),
            ops.repeat(source_mask, width, axis=0))


def answer(model, decoded):
    """log p of every token after decoded [R 1 D], float64: [R V]."""
    output = model.project(decoded)
    log_probs = ops.cast(log_softmax(output[:, 0]), "float64")
    padding = ops.arange(log_probs.shape[-1]) == model.config.pad_id
    return ops.where(padding, _NOTHING, log_probs)


def top(scores, count):
    """The ``count`` highest of each row, and their places."""
    scores, places = ops.top_k(scores, count)
    return scores, ops.cast(places, "int32")  # keras: PyTorch's are int64


def _count(kept):
    """How many are True along the last axis, int32."""
    return ops.sum(ops.cast(kept, "int32"), axis=-1)


def most_likely(log_probs, settings, draw):
    """The token of the highest probability; of equals, the lowest: [R]."""
    return ops.argmax(log_probs, axis=-1)


def sampled(log_probs, settings, draw):
    """A token by its probability, where draw [R] in [0, 1) falls: [R]."""
    vocab = log_probs.shape[-1]
    scores, places = top(log_probs / settings.temperature, vocab)
    p = ops.exp(scores - scores[:, :1])
    p = p / ops.sum(p, axis=-1, keepdims=True)
    before = ops.cumsum(p, axis=-1) - p
    kept = (before < settings.top_p) & (ops.arange(vocab) < settings.top_k)
    total = ops.cumsum(ops.where(kept, p, 0), axis=-1)
    rank = _count(total <= draw[:, None] * total[:, -1:])
    rank = ops.minimum(rank, _count(kept) - 1)
    return ops.take_along_axis(places, rank[:, None], axis=-1)[:, 0]


CHOOSERS = {"greedy": most_likely, "sample": sampled}


def _begun(source, width, length, settings, pad_id):
    """Targets of which the begin is written: int32 [B W N]."""
    row = np.full(length, pad_id, np.int32)
    row[0] = settings.begin_id
    return ops.convert_to_tensor(
        np.broadcast_to(row, (source.shape[0], width, length)))


def one_by_one(model, source, settings, rows):
    """Greedy search and sampling: one token after the other."""
    draws = uniforms(settings, rows, 1 + settings.max_tokens)
    fixed, numbers = _parted(settings, model.config.target_vocab)
    return _compiled(_one_by_one, model, fixed)(source, draws, numbers)


def _one_by_one(model, settings, source, draws, numbers):
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    choose = CHOOSERS[settings.method]
    reader = READERS[settings.cached](model, source, 1, length)
    tokens = _begun(source, 1, length, settings, pad_id)[:, 0]
    here = ops.arange(length, dtype="int32")

    def going_on(written, tokens, scores, ended, state):
        return (written < length) & ~ops.all(ended)

    def write(written, tokens, scores, ended, state):
        reader.state = state
        log_probs = reader.next(tokens, written)
        token = choose(log_probs, numbers, ops.take(draws, written, axis=1))
        score = ops.take_along_axis(log_probs, token[:, None], axis=-1)[:, 0]
        scores = scores + ops.where(ended, np.float64(0), score)
        token = ops.where(ended, pad_id, ops.cast(token, "int32"))
        tokens = ops.where(here == written, token[:, None], tokens)
        ended = ended | (token == settings.end_id)
        return written + 1, tokens, scores, ended, reader.state

    _, tokens, scores, _, _ = ops.while_loop(going_on, write, (
        ops.convert_to_tensor(1, "int32"), tokens,
        ops.zeros_like(tokens[:, 0], "float64"),
        ops.zeros_like(tokens[:, 0], "bool"), reader.state))
    return tokens[:, None], scores[:, None]


def uniforms(settings, rows, length):
    """A number in [0, 1) for each token of each row: [B N]."""
    if settings.method == "greedy":  # nothing is left to chance
        return ops.zeros((len(rows), length), "float64")
    key = random.fold_in(random.key(settings.seed), "sample")
    return ops.stack([
        random.uniform(random.fold_in(key, int(row)), (length,), 0.0, 1.0)
        for row in rows])


def beam_search(model, source, settings, rows):
    """Beam search: W hypotheses live side by side, and W that have ended."""
    fixed, numbers = _parted(settings, model.config.target_vocab)
    return _compiled(_beam_search, model, fixed)(source, numbers)


def _beam_search(model, settings, source, numbers):
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    b, w, vocab = source.shape[0], settings.beam, model.config.target_vocab
    # One hypothesis has one continuation: a beam of 1 is greedy search.
    count = 1 if w == 1 else min(2 * w, w * vocab)
    reader = READERS[settings.cached](model, source, w, length)
    tokens = _begun(source, w, length, settings, pad_id)
    ended = ops.full((b, w), _NOTHING, "float64")
    living = ops.where(ops.arange(w) == 0, np.float64(0), ended)  # one, first
    here = ops.arange(length, dtype="int32")

    def going_on(written, tokens, living, ended_tokens, ended, done, state):
        return (written < length) & ~ops.all(done)

    def write(written, tokens, living, ended_tokens, ended, done, state):
        reader.state = state
        log_probs = reader.next(ops.reshape(tokens, (b * w, length)), written)
        grown = living[:, :, None] + ops.reshape(log_probs, (b, w, vocab))
        scores, places = top(ops.reshape(grown, (b, w * vocab)), count)
        parents, words = places // vocab, places % vocab
        new = follow(tokens, parents)
        new = ops.where(here == written, words[:, :, None], new)
        ends = words == settings.end_id
        ending = ops.where(
            ends, scores / ops.take(numbers.penalties, written), _NOTHING)
        found, ended_tokens_ = best(
            ended, ended_tokens, ending, new, w)
        going, which = top(ops.where(ends, _NOTHING, scores), w)
        frozen = done[:, None]
        ended = ops.where(frozen, ended, found)
        ended_tokens = ops.where(
            frozen[:, :, None], ended_tokens, ended_tokens_)
        living = ops.where(frozen, living, going)
        tokens = ops.where(
            frozen[:, :, None], tokens, follow(new, which))
        parents = ops.take_along_axis(parents, which, axis=1)
        reader.reorder(ops.reshape(
            parents + w * ops.arange(b, dtype="int32")[:, None], (-1,)),
            written)
        done = done | is_done(
            numbers, ended, living, ops.take(numbers.bounds, written))
        return (written + 1, tokens, living, ended_tokens, ended, done,
                reader.state)

    _, tokens, living, ended_tokens, ended, done, _ = ops.while_loop(
        going_on, write, (
            ops.convert_to_tensor(1, "int32"), tokens, living, tokens, ended,
            ops.zeros(b, "bool"), reader.state))
    standing = ops.where(done[:, None], _NOTHING, living / ops.take(
        numbers.penalties, settings.max_tokens))
    scores, tokens = best(ended, ended_tokens, standing, tokens, w)
    return tokens, scores


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return ops.take_along_axis(tokens, which[:, :, None], axis=1)


def best(scores, tokens, more_scores, more_tokens, w):
    """The w best of two sets of hypotheses, [B n] and [B n N] each."""
    scores, which = top(
        ops.concatenate([scores, more_scores], axis=1), w)
    tokens = ops.concatenate([tokens, more_tokens], axis=1)
    return scores, follow(tokens, which)


def is_done(settings, ended, living, bound):
    """Whether no living hypothesis can, or by its rule need, be waited for."""
    full = ended[:, -1] > _NOTHING
    hopeless = ended[:, -1] >= living[:, 0] / bound
    dead = living[:, 0] == _NOTHING
    return dead | (full & (hopeless | settings.hf_true))


METHODS = {"greedy": one_by_one, "sample": one_by_one, "beam": beam_search}
