"""What is computed: one model, one batch, and how many operations that is."""

import os

import numpy as np

from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.config import preset

#: The variable by which all processes take a model of milliseconds instead,
#: which says nothing of speed, but that everything runs.
QUICK = "PARITY_BENCH_QUICK"

PRESET = "vaswani2017_base"
VOCAB, ROWS, LENGTH = (
    (101, 2, 8) if os.environ.get(QUICK) else (32_000, 8, 64))

#: How long the rows of a batch with padding are, in 16ths of the longest.
SHARES = (16, 14, 11, 9, 6, 4, 3, 1)

#: The sizes of the quick model.
SMALL = {"d_model": 32, "n_heads": 4, "d_ff": 64, "n_encoder_layers": 1,
         "n_decoder_layers": 1, "max_length": 64}


def config():
    """The preset with both vocabularies at 32 000; or the quick model's."""
    return preset(PRESET).replace(
        source_vocab=VOCAB, target_vocab=VOCAB,
        **SMALL if os.environ.get(QUICK) else {})


def batch(seed=0):
    """8 pairs of 64 + 64 random ids, none of them padding; a Batch."""
    def ids(name):
        key = random.fold_in(random.key(seed), name)
        return random.uniform(key, (ROWS, LENGTH), 1, VOCAB).astype(np.int64)

    return Batch.of_ids(ids("source"), ids("target")).check(config())


def pairs(seed=0):
    """The same sources and targets with a token more: [1 B S], [1 B T + 1]."""
    of_ids = batch(seed)
    first = np.full((ROWS, 1), 1)
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
    name = f"{PRESET}, small" if os.environ.get(QUICK) else PRESET
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
