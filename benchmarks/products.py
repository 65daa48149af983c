"""What an implementation hands over, and each library's matrix product."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Ready:
    """An implementation with its weights loaded.

    Attributes:
        run: runs once to its end.
        to_numpy: what a run returned, as an array.
        product: (a, b) arrays -> a function that multiplies them to its end.
        versions: library -> version.
        checks: the results of how many first runs are held against the truth.
        choose: what makes another case of it ready, where it has several.
        note: how it runs, if not as its title says.
        pool: of a library that keeps what is freed, the bytes that are in use
            and the most since it was last asked; else None.
    """

    run: typing.Callable
    to_numpy: typing.Callable
    product: typing.Callable
    versions: dict
    checks: int = 1
    choose: typing.Callable | None = None
    note: str = ""
    pool: typing.Callable = lambda: None


class Timed(typing.NamedTuple):
    """An implementation that is timed.

    Attributes:
        make: what makes it ready.
        title: how a table says it.
        libraries: what it imports.
        peer: the name of the one that it is held against.
        form: of a port, one of readable and fast; of a peer, "".
        port: whose framework it needs.
    """

    make: typing.Callable
    title: str
    libraries: tuple
    peer: str
    form: str = ""
    port: str = "torch"


def numpy(a, b):
    """By NumPy, into memory that is kept."""
    import numpy as np
    out = np.empty((len(a), b.shape[1]), a.dtype)
    return lambda: np.matmul(a, b, out=out)


def torch(a, b):
    """By PyTorch, into memory that is kept."""
    import torch
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    out = torch.empty(len(a), b.shape[1])
    return lambda: torch.mm(a, b, out=out)


def tensorflow(xla, a, b):
    """By TensorFlow, compiled by XLA or not."""
    import tensorflow as tf
    a, b = tf.constant(a), tf.constant(b)
    multiply = tf.function(tf.matmul, jit_compile=xla)
    return lambda: multiply(a, b)


def tensorflow_pool():
    """What TensorFlow's own memory holds: (in use, the most since last asked).

    None where it has none: only with oneDNN does it keep what is freed.
    """
    import tensorflow as tf
    memory = tf.config.experimental
    try:
        info = memory.get_memory_info("CPU:0")
    except ValueError:
        return None
    memory.reset_memory_stats("CPU:0")
    return info["current"], info["peak"]


def jax(a, b):
    """By JAX, under jit."""
    import jax
    a, b = jax.numpy.asarray(a), jax.numpy.asarray(b)
    multiply = jax.jit(jax.numpy.matmul)
    return lambda: multiply(a, b).block_until_ready()
