"""Generation: a target from a source, token by token (section 3.1, 6.1).

What comes next is asked of a reader, of which there are two. One decodes all
that is written anew for every token, which defines the answer; the other keeps
keys and values, and answers the same. Padding is never an answer (R31).
"""

import numpy as np

from reference_numpy import margins, random
from reference_numpy.cache import decode_one, new_cache, reorder
from reference_numpy.masks import causal_mask, padding_mask
from reference_numpy.projection import log_softmax


class Rereader:
    """Reads all that is written, for every token."""

    def __init__(self, model, source, width, length):
        self.model, self.pad_id = model, model.config.pad_id
        self.memory, self.source_mask = remembered(model, source, width)

    def next(self, tokens, written):
        """log p of what follows ``written`` of tokens [R N]: [R V]."""
        read = tokens[:, :written]
        mask = padding_mask(read, self.pad_id) & causal_mask(written)
        decoded, _ = self.model.decode(
            read, self.memory, self.source_mask, mask)
        return answer(self.model, decoded[:, -1:])

    def reorder(self, parents, written):
        """Rows go on from other rows, int [R], of the same source."""


class CachedReader:
    """Reads the last token, and keeps keys and values of those before."""

    def __init__(self, model, source, width, length):
        self.model = model
        memory, self.source_mask = remembered(model, source, width)
        self.cache = new_cache(model, memory, length)

    def next(self, tokens, written):
        """log p of what follows ``written`` of tokens [R N]: [R V]."""
        decoded, self.cache = decode_one(
            self.model, tokens[:, written - 1], written - 1, self.cache,
            self.source_mask)
        return answer(self.model, decoded)

    def reorder(self, parents, written):
        """Rows go on from other rows, int [R], of the same source."""
        self.cache = reorder(self.cache, parents, written)


READERS = {False: Rereader, True: CachedReader}


def remembered(model, source, width):
    """The memory of source [B S] and its mask, each row ``width`` times."""
    source_mask = padding_mask(source, model.config.pad_id)
    memory, _ = model.encode(source, source_mask)
    return (np.repeat(memory, width, axis=0),
            np.repeat(source_mask, width, axis=0))


def answer(model, decoded):
    """log p of every token after decoded [R 1 D], float64: [R V].

    Padding's is -∞.
    """
    output, _ = model.project(decoded)
    log_probs = log_softmax(output[:, 0]).astype(np.float64)
    log_probs[:, model.config.pad_id] = -np.inf
    return log_probs


def top(scores, count):
    """The ``count`` highest of each row, and their places: [R n] to [R count].

    Of equals the first comes first.
    """
    least = -np.partition(-scores, count - 1, axis=-1)[:, count - 1]
    places = np.stack([
        _in_order(row, np.flatnonzero(row >= low))[:count]
        for row, low in zip(scores, least)])
    return np.take_along_axis(scores, places, axis=-1), places


def _in_order(scores, places):
    """Places of scores, the highest first; of equals the first."""
    return places[np.argsort(-scores[places], kind="stable")]


def most_likely(log_probs, settings, draw):
    """The token of the highest probability; of equals, the lowest: [R]."""
    margins.ranked(log_probs, 1)
    return np.argmax(log_probs, axis=-1)


def sampled(log_probs, settings, draw):
    """A token by its probability, where draw [R] in [0, 1) falls: [R].

    Tokens are ranked by probability; what top_k and top_p leave out is behind
    the rest, so that the draw falls into the sum of what is kept.
    """
    vocab = log_probs.shape[-1]
    scores, places = top(log_probs / settings.temperature, vocab)
    p = np.exp(scores - scores[:, :1])
    p = p / np.sum(p, axis=-1, keepdims=True)
    before = np.cumsum(p, axis=-1) - p
    kept = before < settings.top_p
    kept[:, settings.top_k or vocab:] = False
    total = np.cumsum(np.where(kept, p, 0), axis=-1)
    rank = np.sum(total <= draw[:, None] * total[:, -1:], axis=-1)
    rank = np.minimum(rank, np.sum(kept, axis=-1) - 1)
    margins.drawn(draw, scores, p, rank, settings)
    return np.take_along_axis(places, rank[:, None], axis=-1)[:, 0]


CHOOSERS = {"greedy": most_likely, "sample": sampled}


def one_by_one(model, source, settings, rows):
    """Greedy search and sampling: one token after the other.

    Args:
        model: a Transformer.
        source: int [B S].
        settings: a GenerationConfig.
        rows: int [B], the number that a row's samples follow from.

    Returns:
        Tokens int [B 1 N], N being 1 + max_tokens, and log p [B 1]: each
        token's, summed up to the end.
    """
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    choose = CHOOSERS[settings.method]
    draws = uniforms(settings, rows, length)
    reader = READERS[settings.cached](model, source, 1, length)
    tokens = np.full((len(source), length), pad_id)
    tokens[:, 0] = settings.begin_id
    ended = np.zeros(len(source), bool)
    scores = 0
    for written in range(1, length):
        log_probs = reader.next(tokens, written)
        token = choose(log_probs, settings, draws[:, written])
        score = np.take_along_axis(log_probs, token[:, None], axis=-1)[:, 0]
        scores = scores + np.where(ended, 0, score)
        tokens[:, written] = np.where(ended, pad_id, token)
        ended = ended | (token == settings.end_id)
        margins.only(~ended)
        if np.all(ended):
            break
    return tokens[:, None], scores[:, None]


def uniforms(settings, rows, length):
    """A number in [0, 1) for each token of each row: [B N].

    It depends on the seed, the row's number and the token's place alone.
    """
    if settings.method == "greedy":  # nothing is left to chance
        return np.zeros((len(rows), length))
    key = random.fold_in(random.key(settings.seed), "sample")
    return np.stack([
        random.uniform(random.fold_in(key, int(row)), (length,), 0.0, 1.0)
        for row in rows])


def beam_search(model, source, settings, rows):
    """Beam search: W hypotheses live side by side, and W that have ended.

    Wu et al. 2016, section 7; the paper's section 6.1. In each step the best
    continuations of all living hypotheses are found, twice as many as the beam
    is wide, since as many may end. Those that end are held, by log p over the
    length rule's penalty, against those that have; the best of the rest live
    on. A row that is done is frozen. What lives at the greatest length is taken
    as it stands.

    Returns:
        As one_by_one, but W of each row, the best first, with log p over the
        penalty: tokens [B W N] and scores [B W]; -∞ where there are fewer.
    """
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    b, w, vocab = len(source), settings.beam, model.config.target_vocab
    # One hypothesis has one continuation: a beam of 1 is greedy search.
    count = 1 if w == 1 else min(2 * w, w * vocab)
    reader = READERS[settings.cached](model, source, w, length)
    tokens = np.full((b, w, length), pad_id)
    tokens[:, :, 0] = settings.begin_id
    ended_tokens = tokens
    living = np.where(np.arange(w) == 0, 0.0, -np.inf)  # one is alive at first
    living = np.repeat(living[None], b, axis=0)
    ended, done = np.full((b, w), -np.inf), np.zeros(b, bool)
    for written in range(1, length):
        log_probs = reader.next(tokens.reshape(b * w, length), written)
        grown = living[:, :, None] + log_probs.reshape(b, w, vocab)
        margins.ranked(grown.reshape(b, w * vocab), count)
        scores, places = top(grown.reshape(b, w * vocab), count)
        parents, words = places // vocab, places % vocab
        new = follow(tokens, parents)
        new[:, :, written] = words
        ends = words == settings.end_id
        ending = np.where(ends, scores / settings.penalty(written), -np.inf)
        found, ended_tokens_ = best(
            ended, ended_tokens, ending, new, w)
        going, which = top(np.where(ends, -np.inf, scores), w)
        frozen = done[:, None]
        ended = np.where(frozen, ended, found)
        ended_tokens = np.where(
            frozen[:, :, None], ended_tokens, ended_tokens_)
        living = np.where(frozen, living, going)
        tokens = np.where(
            frozen[:, :, None], tokens, follow(new, which))
        parents = np.take_along_axis(parents, which, axis=1)
        reader.reorder(
            (parents + w * np.arange(b)[:, None]).reshape(-1), written)
        done = done | is_done(
            settings, ended, living, settings.bound(written))
        margins.only(~done)
        if np.all(done):
            break
    standing = np.where(done[:, None], -np.inf,
                        living / settings.penalty(settings.max_tokens))
    scores, tokens = best(ended, ended_tokens, standing, tokens, w)
    return tokens, scores


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return np.take_along_axis(tokens, which[:, :, None], axis=1)


def best(scores, tokens, more_scores, more_tokens, w):
    """The w best of two sets of hypotheses, [B n] and [B n N] each."""
    scores = np.concatenate([scores, more_scores], axis=1)
    margins.ranked(scores, w)
    scores, which = top(scores, w)
    tokens = np.concatenate([tokens, more_tokens], axis=1)
    return scores, follow(tokens, which)


def is_done(settings, ended, living, bound):
    """Whether no living hypothesis can, or by its rule need, be waited for.

    Both are sorted, the best first: bool [B].
    """
    full = ended[:, -1] > -np.inf
    hopeless = ended[:, -1] >= living[:, 0] / bound
    with np.errstate(invalid="ignore"):  # of -∞ and -∞
        margins.note(np.abs(ended[:, -1:] - living[:, :1] / bound))
    dead = living[:, 0] == -np.inf
    return dead | (full & (hopeless | (settings.length_rule == "hf_true")))


METHODS = {"greedy": one_by_one, "sample": one_by_one, "beam": beam_search}
