"""What is computed: one model, one batch, and how many operations that is."""

import math
import os

import numpy as np

from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.config import preset
from transformer_contract.schema import schema

#: The variable by which all processes take a model of milliseconds instead,
#: which says nothing of speed, but that everything runs.
QUICK = "PARITY_BENCH_QUICK"

#: The variable by which all processes take a small model, of which long
#: batches and large ones are timed.
GROW = "PARITY_BENCH_GROW"

#: What is computed by the name of a model: vocabulary, rows, tokens, sizes.
SIZES = {
    "usual": (32_000, 8, 64, {}),
    "small": (1_000, 1, 16, {
        "d_model": 128, "n_heads": 4, "d_ff": 512, "n_encoder_layers": 1,
        "n_decoder_layers": 1, "max_length": 2048}),
    "quick": (101, 2, 8, {
        "d_model": 32, "n_heads": 4, "d_ff": 64, "n_encoder_layers": 1,
        "n_decoder_layers": 1, "max_length": 64}),
}

PRESET = "vaswani2017_base"
MODEL = ("quick" if os.environ.get(QUICK) else
         "small" if os.environ.get(GROW) else "usual")
VOCAB, ROWS, LENGTH, SMALLER = SIZES[MODEL]

#: Where it is seen how times grow: lengths of one row, and rows of a length.
LENGTHS, BATCHES, SHORT = (
    ((8, 16, 32), (1, 2, 4), 4) if MODEL == "quick" else
    ((128, 512, 2048), (1, 8, 64), 16))


def growing():
    """[(rows, length)] of both, the lengths first."""
    return [*((1, length) for length in LENGTHS),
            *((rows, SHORT) for rows in BATCHES)]


#: How long the rows of a batch with padding are, in 16ths of the longest.
SHARES = (16, 14, 11, 9, 6, 4, 3, 1)


def config():
    """The preset with both vocabularies at 32 000; or a smaller model's."""
    return preset(PRESET).replace(
        source_vocab=VOCAB, target_vocab=VOCAB, **SMALLER)


def parameters():
    """How many numbers the model's weights are."""
    return sum(map(math.prod, schema(config()).values()))


def batch(seed=0, rows=ROWS, length=LENGTH):
    """8 pairs of 64 + 64 random ids, none of them padding; a Batch."""
    def ids(name):
        key = random.fold_in(random.key(seed), name)
        return random.uniform(key, (rows, length), 1, VOCAB).astype(np.int64)

    return Batch.of_ids(ids("source"), ids("target")).check(config())


def pairs(seed=0, rows=ROWS, length=LENGTH):
    """The same sources and targets with a token more: [1 B S], [1 B T + 1]."""
    of_ids = batch(seed, rows, length)
    first = np.full((rows, 1), 1)
    return of_ids.source[None], np.concatenate(
        [first, of_ids.target], axis=1)[None]


def padded_pairs(seed=0):
    """The same of rows of several lengths, half of all tokens padding."""
    sources, targets = pairs(seed)
    for row in range(ROWS):
        length = max(LENGTH * SHARES[row % len(SHARES)] // 16, 1)
        sources[0, row, length:] = targets[0, row, 1 + length:] = (
            config().pad_id)
    return sources, targets


def described(flops, share=1):
    """What is computed, as plain data and in words.

    ``share`` is that of the tokens that are not padding.
    """
    c = config()
    tied = "not tied" if c.tied == "none" else "tied"
    padding = "" if share == 1 else f", {1 - share:.0%} of them padding"
    name = PRESET if MODEL == "usual" else f"{PRESET}, {MODEL}"
    return {
        "preset": name, "vocab": VOCAB, "tied": c.tied, "rows": ROWS,
        "length": LENGTH, "share": share, "flops": flops,
    }, (f"{name}, vocabulary {VOCAB}, {tied}, batch {ROWS}, {LENGTH} + "
        f"{LENGTH} tokens{padding}, float32: {flops / 1e9:.1f} GFLOP of matrix "
        "products.")


def matmul_flops(c, rows=ROWS, s=LENGTH, t=LENGTH):
    """Operations of every matrix product of a forward pass, 2 each.

    All scores count, those that the causal mask hides included, since every
    implementation here computes them.
    """
    d, f = c.d_model, c.d_ff
    square, network = 2 * d * d, 2 * 2 * d * f

    def attention(queries, keys):
        linears = rows * (2 * queries + 2 * keys) * square
        return linears + rows * 2 * (2 * queries * keys * d)

    encoder = attention(s, s) + rows * s * network
    decoder = attention(t, t) + attention(t, s) + rows * t * network
    return (c.n_encoder_layers * encoder + c.n_decoder_layers * decoder
            + rows * t * 2 * d * c.target_vocab)


def needs_of_search(c, rows, source, length, beam=1):
    """What writing targets needs: (operations of products, bytes read).

    Sources are encoded once, with the cross-attention's keys and values. Each
    token then reads the decoder's weights and the table, and the cached keys
    and values of every row.

    Args:
        c: the config.
        rows, source: how many sources, and their tokens.
        length: tokens of each target.
        beam: targets of a source at once.
    """
    d, f, beams = c.d_model, c.d_ff, rows * beam
    square, network = d * d, 2 * d * f
    encoder = c.n_encoder_layers * (
        source * (4 * square + network) + 2 * source**2 * d)
    once = encoder + c.n_decoder_layers * 2 * source * square
    # a token: four products of self-attention, two of cross-attention
    weights = c.n_decoder_layers * (6 * square + network) + (
        d * c.target_vocab)
    keys = c.n_decoder_layers * 2 * d * (length * (length + 1) // 2
                                         + length * source)
    return (2 * (rows * once + beams * (length * weights + keys)),
            4 * (length * weights + beams * keys))
