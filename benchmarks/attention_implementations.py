"""Attention of many tokens, as each implementation computes it.

Each is given a case and is ready to run it: query, key and value of one row,
float32, and whether a query sees later keys.
"""

import functools
import typing

import numpy as np

from benchmarks import products
from benchmarks.products import Ready, Timed
from benchmarks.workload import MODEL, growing


class Size(typing.NamedTuple):
    """Heads, tokens, whether no query sees a later key, and rows."""

    heads: int
    tokens: int
    causal: bool
    rows: int = 1


#: What is computed, by name; heads of 64 features.
CASES = {
    "8,192 tokens": Size(8, 8192, False),
    "8,192 tokens, causal": Size(8, 8192, True),
    "32,768 tokens, one head": Size(1, 32768, False),
}
if MODEL == "quick":
    CASES = {"600 tokens": Size(2, 600, False),
             "600 tokens, causal": Size(2, 600, True)}
FEATURES = 64


def grown(rows, length):
    """The name of the case of some rows of a length."""
    return f"{rows} of {length:,} tokens"


#: Those, and by which it is seen how times grow.
EVERY = CASES | {grown(rows, length): Size(8, length, False, rows)
                 for rows, length in growing()}

#: Of how many queries the contexts are held against equation 1 in float64.
JUDGED = 32


def judged(tokens):
    """The places of those queries, the first and the last among them."""
    return np.linspace(0, tokens - 1, JUDGED).astype(int)


def operands(name):
    """A case's query, key and value: float32 [B H T K] each."""
    heads, tokens, _, rows = EVERY[name]
    draw = np.random.default_rng(0)
    return [scale * draw.standard_normal(
        (rows, heads, tokens, FEATURES), np.float32) for scale in (2, 1, 1)]


def config():
    """No model is asked for."""


batch = config


def _ready(attend, native, to_numpy, product, versions, **pool):
    """Of attend(query, key, value, causal), which waits for its end."""
    def choose(case):
        inputs = list(map(native, operands(case)))
        causal, rows = EVERY[case].causal, judged(EVERY[case].tokens)
        return Ready(lambda: attend(*inputs, causal),
                     lambda y: to_numpy(y)[:, :, rows], product, versions,
                     choose=choose, **pool)

    return choose(next(iter(CASES)))


def _by_size(blocks, equation):
    """attend(query, key, value, mask, causal) as a fast form chooses it.

    It goes over blocks if there is a whole one of queries and of keys; else it
    is equation 1. A few tokens are never causal here.
    """
    def attend(query, key, value, mask, causal):
        if min(query.shape[2], key.shape[2]) < blocks.SIZE:
            return equation(query, key, value, mask)
        return blocks.attend(query, key, value, mask, causal, 8.0)

    return attend


def sdpa(config, weights, batch, threads):
    """torch.nn.functional.scaled_dot_product_attention."""
    import torch
    torch.set_num_threads(threads)

    def attend(query, key, value, causal):
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=causal)

    return _ready(attend, torch.from_numpy, np.asarray, products.torch,
                  {"torch": torch.__version__})


def torch(config, weights, batch, threads):
    """Our port's fast form: a mask is given, of one number a key if it can."""
    import torch
    torch.set_num_threads(threads)
    from impl_torch import engine
    from impl_torch.fast import attention

    def attend(query, key, value, causal):
        mask = torch.ones(1, 1, 1, key.shape[2], dtype=torch.bool)
        return attention.attend(query, key, value, mask, causal, 8.0)

    return _ready(attend, torch.from_numpy, np.asarray, products.torch,
                  engine.versions())


def numpy(config, weights, batch, threads):
    """The reference's fast form, BLAS on one thread while it runs."""
    from threadpoolctl import ThreadpoolController

    from reference_numpy import engine
    from reference_numpy.fast import attention, blocks
    limit = ThreadpoolController().wrap(limits=1, user_api="blas")

    def equation(query, key, value, mask):
        scores = query @ key.mT
        scores /= 8.0
        return attention.masked_softmax(scores, mask) @ value, None

    chosen = _by_size(blocks, equation)

    @limit
    def attend(query, key, value, causal):
        mask = np.ones((1, 1, 1, key.shape[2]), bool)
        return chosen(query, key, value, mask, causal)[0]

    return _ready(attend, np.asarray, np.asarray, products.numpy,
                  engine.versions())


def keras(config, weights, batch, threads):
    """Our port's fast form on TensorFlow, compiled by XLA."""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    from impl_keras import attention, engine
    from impl_keras.fast import blocks

    def equation(query, key, value, mask):
        scores = tf.matmul(query, key, transpose_b=True) / 8.0
        return attention.masked_softmax(scores, mask) @ value

    attend = _by_size(blocks, equation)

    @functools.partial(tf.function, jit_compile=True, autograph=False)
    def compiled(query, key, value, causal):
        mask = tf.ones((1, 1, 1, key.shape[2]), tf.bool)
        return attend(query, key, value, mask, causal)

    return _ready(compiled, tf.constant, engine.to_numpy,
                  functools.partial(products.tensorflow, True),
                  engine.versions(), pool=products.tensorflow_pool)


def jax(config, weights, batch, threads):
    """Our port's fast form under jit."""
    import jax

    from impl_jax import attention, engine
    from impl_jax.fast import blocks

    attend = _by_size(blocks, lambda query, key, value, mask: (
        attention.masked_softmax(query @ key.mT / 8.0, mask) @ value))

    @functools.partial(jax.jit, static_argnums=3)
    def compiled(query, key, value, causal):
        mask = jax.numpy.ones((1, 1, 1, key.shape[2]), bool)
        return attend(query, key, value, mask, causal)

    return _ready(
        lambda *inputs: compiled(*inputs).block_until_ready(),
        jax.numpy.asarray, engine.to_numpy, products.jax, engine.versions())


IMPLEMENTATIONS = {
    "sdpa": Timed(sdpa, "torch scaled_dot_product_attention", ("torch",),
                  "sdpa"),
    "numpy": Timed(numpy, "NumPy reference, fast form", ("numpy",), "sdpa",
                   "fast", "numpy"),
    "torch": Timed(torch, "PyTorch port, fast form", ("torch",), "sdpa",
                   "fast", "torch"),
    "keras": Timed(keras, "Keras port, fast form, XLA", ("keras",), "sdpa",
                   "fast", "keras"),
    "jax": Timed(jax, "JAX port, fast form, jit", ("jax", "flax.nnx"), "sdpa",
                 "fast", "jax"),
}
