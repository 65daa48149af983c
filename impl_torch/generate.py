"""Generation: a target from a source, token by token (section 3.1, 6.1)."""

import math

import torch

from impl_torch import random
from impl_torch.cache import decode_one, new_cache, reorder
from impl_torch.masks import causal_mask, padding_mask
from impl_torch.projection import log_softmax


class Rereader:
    """Reads all that is written, for every token."""

    def __init__(self, model, source, width, length):
        self.model, self.pad_id = model, model.config.pad_id
        self.memory, self.source_mask = remembered(model, source, width)

    def next(self, tokens, written):
        """log p of what follows ``written`` of tokens [R N]: [R V]."""
        read = tokens[:, :written]
        mask = padding_mask(read, self.pad_id) & causal_mask(written)
        decoded = self.model.decode(
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
    memory = model.encode(source, source_mask)
    return (torch.repeat_interleave(memory, width, dim=0),
            torch.repeat_interleave(source_mask, width, dim=0))


def answer(model, decoded):
    """log p of every token after decoded [R 1 D], float64: [R V]."""
    output = model.project(decoded)
    log_probs = log_softmax(output[:, 0]).to(torch.float64)
    log_probs[:, model.config.pad_id] = -math.inf
    return log_probs


def top(scores, count):
    """The ``count`` highest of each row, and their places."""
    # torch: topk gives equals in any order
    least = torch.topk(scores, count)[0][:, -1]
    places = torch.stack([
        _in_order(row, torch.nonzero(row >= low)[:, 0])[:count]
        for row, low in zip(scores, least)])
    return torch.gather(scores, -1, places), places


def _in_order(scores, places):
    """Places of scores, the highest first; of equals the first."""
    return places[torch.sort(
        scores[places], descending=True, stable=True)[1]]


def most_likely(log_probs, settings, draw):
    """The token of the highest probability; of equals, the lowest: [R]."""
    return torch.argmax(log_probs, dim=-1)


def sampled(log_probs, settings, draw):
    """A token by its probability, where draw [R] in [0, 1) falls: [R]."""
    vocab = log_probs.shape[-1]
    scores, places = top(log_probs / settings.temperature, vocab)
    p = torch.exp(scores - scores[:, :1])
    p = p / torch.sum(p, dim=-1, keepdim=True)
    before = torch.cumsum(p, dim=-1) - p
    kept = before < settings.top_p
    kept[:, settings.top_k or vocab:] = False
    total = torch.cumsum(torch.where(kept, p, 0), dim=-1)
    rank = torch.sum(total <= draw[:, None] * total[:, -1:], dim=-1)
    rank = torch.minimum(rank, torch.sum(kept, dim=-1) - 1)
    return torch.gather(places, -1, rank[:, None])[:, 0]


CHOOSERS = {"greedy": most_likely, "sample": sampled}


def one_by_one(model, source, settings, rows):
    """Greedy search and sampling: one token after the other."""
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    choose = CHOOSERS[settings.method]
    draws = uniforms(settings, rows, length)
    reader = READERS[settings.cached](model, source, 1, length)
    tokens = torch.full((len(source), length), pad_id)
    tokens[:, 0] = settings.begin_id
    ended = torch.zeros(len(source), dtype=torch.bool)
    scores = 0
    for written in range(1, length):
        log_probs = reader.next(tokens, written)
        token = choose(log_probs, settings, draws[:, written])
        score = torch.gather(log_probs, -1, token[:, None])[:, 0]
        scores = scores + torch.where(ended, 0, score)
        tokens[:, written] = torch.where(ended, pad_id, token)
        ended = ended | (token == settings.end_id)
        if torch.all(ended):
            break
    return tokens[:, None], scores[:, None]


def uniforms(settings, rows, length):
    """A number in [0, 1) for each token of each row: [B N]."""
    if settings.method == "greedy":  # nothing is left to chance
        return torch.zeros((len(rows), length), dtype=torch.float64)
    key = random.fold_in(random.key(settings.seed), "sample")
    return torch.stack([
        random.uniform(random.fold_in(key, int(row)), (length,), 0.0, 1.0)
        for row in rows])


def beam_search(model, source, settings, rows):
    """Beam search: W hypotheses live side by side, and W that have ended."""
    pad_id, length = model.config.pad_id, 1 + settings.max_tokens
    b, w, vocab = len(source), settings.beam, model.config.target_vocab
    # One hypothesis has one continuation: a beam of 1 is greedy search.
    count = 1 if w == 1 else min(2 * w, w * vocab)
    reader = READERS[settings.cached](model, source, w, length)
    tokens = torch.full((b, w, length), pad_id)
    tokens[:, :, 0] = settings.begin_id
    ended_tokens = tokens
    living = torch.full((b, w), -math.inf, dtype=torch.float64)
    living[:, 0] = 0  # one is alive at first
    ended = torch.full((b, w), -math.inf, dtype=torch.float64)
    done = torch.zeros(b, dtype=torch.bool)
    for written in range(1, length):
        log_probs = reader.next(tokens.reshape(b * w, length), written)
        grown = living[:, :, None] + log_probs.reshape(b, w, vocab)
        scores, places = top(grown.reshape(b, w * vocab), count)
        parents, words = places // vocab, places % vocab
        new = follow(tokens, parents)
        new[:, :, written] = words
        ends = words == settings.end_id
        ending = torch.where(
            ends, scores / settings.penalty(written), -math.inf)
        found, ended_tokens_ = best(
            ended, ended_tokens, ending, new, w)
        going, which = top(torch.where(ends, -math.inf, scores), w)
        frozen = done[:, None]
        ended = torch.where(frozen, ended, found)
        ended_tokens = torch.where(
            frozen[:, :, None], ended_tokens, ended_tokens_)
        living = torch.where(frozen, living, going)
        tokens = torch.where(
            frozen[:, :, None], tokens, follow(new, which))
        parents = torch.gather(parents, 1, which)
        reader.reorder(
            (parents + w * torch.arange(b)[:, None]).reshape(-1), written)
        done = done | is_done(
            settings, ended, living, settings.bound(written))
        if torch.all(done):
            break
    standing = torch.where(done[:, None], -math.inf,
                        living / settings.penalty(settings.max_tokens))
    scores, tokens = best(ended, ended_tokens, standing, tokens, w)
    return tokens, scores


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return torch.gather(
        tokens, 1, which[:, :, None].expand(-1, -1, tokens.shape[2]))


def best(scores, tokens, more_scores, more_tokens, w):
    """The w best of two sets of hypotheses, [B n] and [B n N] each."""
    scores, which = top(
        torch.cat([scores, more_scores], dim=1), w)
    tokens = torch.cat([tokens, more_tokens], dim=1)
    return scores, follow(tokens, which)


def is_done(settings, ended, living, bound):
    """Whether no living hypothesis can, or by its rule need, be waited for."""
    full = ended[:, -1] > -math.inf
    hopeless = ended[:, -1] >= living[:, 0] / bound
    dead = living[:, 0] == -math.inf
    return dead | (full & (hopeless | (settings.length_rule == "hf_true")))


METHODS = {"greedy": one_by_one, "sample": one_by_one, "beam": beam_search}
