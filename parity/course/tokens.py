"""The exercises of lessons 1 and 2: tokens, embeddings and positions."""

import numpy as np

from transformer_contract.sinusoids import (
    angles, halves_table, interleaved_table)
from parity.ports import module_of
from parity.check.cases import ids, values
from parity.course.exercise import AUTOGRAD, Exercise

bpe = module_of("numpy", "bpe")

#: Words from which merges are learned.
TEXTS = ("low low low lower newest newest newest widest widest",
         "vingt vingt et un vingt trente trente et trois",
         "abababab aba bab abab bababa",
         "aaa aaa aaaaa baaab")


def words_and_merges():
    """(word, merges) of words that were learned from, and of others."""
    for text in TEXTS:
        for count in (3, 8):
            merges = bpe.train(text.split(), count)
            for word in (*dict.fromkeys(text.split()), "lowest", "avril"):
                yield word, merges


def merged_from_the_left(word, merges):
    """The first pair from the left that has a merge, not the earliest."""
    pieces = list(word)
    while True:
        place = next((i for i, pair in enumerate(zip(pieces, pieces[1:]))
                      if pair in merges), None)
        if place is None:
            return pieces
        pieces[place:place + 2] = ["".join(pieces[place:place + 2])]


def merged_from_the_right(word, merges):
    """Of equal pairs that share a piece, the last is made, not the first."""
    mirrored = bpe.encode(word[::-1], [
        (second[::-1], first[::-1]) for first, second in merges])
    return [piece[::-1] for piece in mirrored[::-1]]


def tokens_and_tables():
    """(tokens [B T], table [V D]); tokens repeat, and 0 stands among them."""
    for number, (vocab, d_model) in enumerate(((7, 4), (11, 6), (30, 16))):
        tokens = ids(f"exercise 1 {number}", 3, 9, vocab)
        tokens[1, -2:] = 0
        yield tokens, values(f"exercise 1 table {number}", vocab, d_model)


def scaled_by(factor):
    """The embedding with another factor, ``factor(d_model)``."""
    return lambda tokens, table: table[tokens] * factor(table.shape[1])


def embedded(tokens, table):
    """E[tokens] · √d_model."""
    return table[tokens] * np.sqrt(table.shape[1])


def padding_zero(tokens, table):
    """The same, with zeros where a token is 0."""
    return np.where((tokens == 0)[..., None], 0, embedded(tokens, table))


def embedding_gradients():
    """(tokens [B T], dembedded [B T D], vocab)."""
    for number, (tokens, table) in enumerate(tokens_and_tables()):
        yield tokens, values(f"exercise 1 gradient {number}", *tokens.shape,
                             table.shape[1]), len(table)


def table_gradient(tokens, dembedded, vocab):
    """Each row's gradient: the sum over its places, times √d_model."""
    dtable = np.zeros((vocab, dembedded.shape[-1]))
    np.add.at(dtable, tokens, dembedded * np.sqrt(dembedded.shape[-1]))
    return dtable


def last_place_alone(tokens, dembedded, vocab):
    """``dtable[tokens] += …``, which adds to a row once."""
    dtable = np.zeros((vocab, dembedded.shape[-1]))
    dtable[tokens] += dembedded * np.sqrt(dembedded.shape[-1])
    return dtable


def sizes():
    """(length, d_model)."""
    return [(1, 2), (5, 4), (12, 16), (40, 6)]


def sinusoids(exponent=None, start=0, base=10000.0):
    """Positions with another exponent, first row or base."""
    def table(length, d_model):
        place = np.arange(start, start + length)[:, None]
        feature = np.arange(d_model)[None]
        power = (exponent or (lambda j, d: j // 2 * 2 / d))(feature, d_model)
        angle = place / base**power
        return np.where(feature % 2 == 0, np.sin(angle), np.cos(angle))
    return table


def swapped(length, d_model):
    """Cosine on even features."""
    table = interleaved_table(length, d_model)
    return table.reshape(length, -1, 2)[..., ::-1].reshape(length, d_model)


def shift(k, d_model):
    """The matrix that takes each position's row to that of k further on."""
    matrix = np.zeros((d_model, d_model))
    for pair, angle in enumerate(angles(2, d_model)[1] * k):
        sine, cosine = np.sin(angle), np.cos(angle)
        even, odd = 2 * pair, 2 * pair + 1
        matrix[even, [even, odd]] = cosine, sine
        matrix[odd, [even, odd]] = -sine, cosine
    return matrix


def turned(x, sign=1, halves=False):
    """Rotary positions: each pair of x [T K] turned by its place's angle."""
    length, width = x.shape
    angle = sign * angles(length, width)
    even, odd = ((x[:, :width // 2], x[:, width // 2:]) if halves
                 else (x[:, ::2], x[:, 1::2]))
    pair = (even * np.cos(angle) - odd * np.sin(angle),
            even * np.sin(angle) + odd * np.cos(angle))
    if halves:
        return np.concatenate(pair, axis=-1)
    return np.stack(pair, axis=-1).reshape(length, width)


EXERCISES = (
    Exercise(
        "1.1", "encode",
        lambda: list(words_and_merges()), bpe.encode,
        {"merges are made from left to right, not in the order in which they "
         "were learned": merged_from_the_left,
         "a merge is made from right to left: “aaa” has (a, a) twice":
             merged_from_the_right,
         "nothing is merged": lambda word, merges: list(word)}),
    Exercise(
        "1.2", "embed",
        lambda: list(tokens_and_tables()), embedded,
        {"embedding not scaled": scaled_by(lambda d: 1),
         "embedding scaled by d_model": scaled_by(lambda d: d),
         "embedding over √d_model": scaled_by(lambda d: d**-0.5),
         "the row of the id before": lambda tokens, table: embedded(
             tokens - 1, table),
         "padding's embedding is zero": padding_zero}),
    Exercise(
        "1.3", "embed_backward",
        lambda: list(embedding_gradients()), table_gradient,
        {"a token that stands twice counts once, for “dtable[tokens] += …” "
         "adds to each row only once": last_place_alone,
         "embedding not scaled": lambda tokens, dembedded, vocab: (
             table_gradient(tokens, dembedded, vocab)
             / np.sqrt(dembedded.shape[-1]))}, without=AUTOGRAD),
    Exercise(
        "2.1", "positions", sizes,
        interleaved_table,
        {"positions begin at 1": sinusoids(start=1),
         "positions in halves": halves_table,
         "cosine before sine": swapped,
         "each feature has a frequency of its own": sinusoids(
             lambda j, d: j / d),
         "positions' exponent doubled": sinusoids(
             lambda j, d: 2 * (j // 2 * 2) / d),
         "positions divided by 1000^…": sinusoids(base=1000.0),
         "positions' exponent as in Tensor2Tensor": lambda length, d: (
             interleaved_table(length, d, "half_less_one"))}),
    Exercise(
        "2.2", "shift",
        lambda: [(1, 2), (3, 4), (-2, 6), (17, 16)], shift,
        {"the matrix is transposed, which leads as far back as it should lead "
         "forward": lambda k, d_model: shift(k, d_model).T}, limit=1e-11),
    Exercise(
        "2.3", "rotate",
        lambda: [(values(f"exercise 2.3 {t}", t, k),)
                 for t, k in ((1, 2), (6, 4), (9, 8))], turned,
        {"rotary pairs in halves": lambda x: turned(x, halves=True),
         "rotary positions turn backwards": lambda x: turned(x, sign=-1)},
        limit=1e-11),
)
