"""Byte-pair encoding (Sennrich et al. 2016), as short as it can be said.

A word is its characters. Training counts which two pieces stand side by side
most often, makes them one piece wherever they do, and begins again; what it
learns is the order of these merges. Encoding makes the same merges in the same
order. The ``tokenizers`` library, which everything else here uses, does no
more, only faster.
"""

import collections


def train(words, count):
    """Learn merges from words.

    Args:
        words: str, with repetitions.
        count: how many merges to learn at most.

    Returns:
        Pairs of pieces, the first merge first. Of pairs that stand side by
        side equally often, the lowest in alphabetical order is merged.
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
    """Pieces, with each ``pair`` side by side made one, from the left."""
    found = []
    for piece in pieces:
        if found and (found[-1], piece) == pair:
            found[-1] += piece
        else:
            found.append(piece)
    return found


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
