"""Byte-pair encoding (Sennrich et al. 2016), as short as possible.

A word starts as its characters. Training counts which two adjacent pieces are
most frequent, merges them everywhere, and repeats; it learns the order of these
merges. Encoding makes the same merges in the same order. The ``tokenizers``
library, which everything else here uses, does the same, faster. It stands in
the reference alone: the ports are given ids, and no framework has a part in it.
"""

import collections


def train(words, count):
    """Learn merges from words.

    Args:
        words: str, with repetitions.
        count: how many merges to learn at most.

    Returns:
        Pairs of pieces, the first merge first. Of equally frequent pairs, the
        first in alphabetical order is merged.
    """
    known = {tuple(word): times
             for word, times in collections.Counter(words).items()}
    merges = []
    for _ in range(count):
        pairs = collections.Counter()
        for pieces, times in known.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += times
        if not pairs:
            break
        merge = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(merge)
        known = {tuple(merged(pieces, merge)): times
                 for pieces, times in known.items()}
    return merges


def merged(pieces, pair):
    """Pieces, with each adjacent ``pair`` merged, from the left."""
    joined = []
    for piece in pieces:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def encode(word, merges):
    """The pieces of a word: the earliest merge that applies, until none."""
    pieces, rank = list(word), {pair: i for i, pair in enumerate(merges)}
    while True:
        pairs = [pair for pair in zip(pieces, pieces[1:]) if pair in rank]
        if not pairs:
            return pieces
        pieces = merged(pieces, min(pairs, key=rank.get))


def vocabulary(words, merges):
    """{piece: id}: the characters by code point, then what merges make."""
    pieces = sorted(set("".join(words))) + [a + b for a, b in merges]
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
