"""Rows of a table of weights: our name, their name, how one becomes the other.

``{i}`` stands for a layer's number, ``{i+1}`` for the next. Where a system
keeps several of our arrays in one, or one of ours in several, a row has a tuple
of names.
"""

import dataclasses
import typing

import numpy as np

from parity_io.errors import InputError


@dataclasses.dataclass(frozen=True)
class How:
    """What is done to their arrays, and to ours to have theirs again.

    Attributes:
        name: what a page calls it.
        read: (config, their arrays) -> ours, one or a tuple.
        write: (config, our arrays) -> theirs, one or a tuple.
    """

    name: str
    read: typing.Callable
    write: typing.Callable


class Entry(typing.NamedTuple):
    """A row; ``ours`` and ``theirs`` are a name each, or tuples of names."""

    ours: str | tuple
    theirs: str | tuple
    how: How


SAME = How("same", lambda c, x: x, lambda c, x: x)

#: A torch Linear stores [out, in].
TRANSPOSED = How("transposed", lambda c, x: x.T, lambda c, x: x.T)

#: A row of its own, [1 V].
ROW = How("row", lambda c, x: x.reshape(x.shape[1:]), lambda c, x: x[None])

#: A matrix for each head, [H D K]; ours has head after head in its columns.
HEADS = How(
    "heads", lambda c, x: np.concatenate(list(x), axis=1),
    lambda c, x: x.reshape(len(x), -1, c.d_k).transpose(1, 0, 2))

#: Kernels of q, k and v with the heads as an axis, [D H K]; their biases,
#: [H K]; and the output's kernel, [H K D].
INTO_HEADS = How("[D H K]", lambda c, x: x.reshape(len(x), -1),
                 lambda c, x: x.reshape(len(x), -1, c.d_k))
BIAS_OF_HEADS = How("[H K]", lambda c, x: x.reshape(-1),
                    lambda c, x: x.reshape(-1, c.d_k))
OUT_OF_HEADS = How("[H K D]", lambda c, x: x.reshape(-1, x.shape[-1]),
                   lambda c, x: x.reshape(-1, c.d_k, x.shape[-1]))


def _split(count, axis):
    return lambda x: tuple(np.split(x, count, axis))


def fused(count, turned):
    """Kernels one after another, as rows of [n·out in] or, not ``turned``,
    as columns of [in n·out]."""
    if not turned:
        return How(f"{count} in one", lambda c, x: _split(count, 1)(x),
                   lambda c, *x: np.concatenate(x, axis=1))
    return How(f"{count} in one, transposed",
               lambda c, x: tuple(part.T for part in _split(count, 0)(x)),
               lambda c, *x: np.concatenate([part.T for part in x]))


def fused_biases(count):
    """Biases one after another, [n·out]."""
    return How(f"{count} in one", lambda c, x: _split(count, 0)(x),
               lambda c, *x: np.concatenate(x))


def sharded(count):
    """A table whose rows are in so many arrays, the first ones longer."""
    return How(f"in {count} parts", lambda c, *x: np.concatenate(x),
               lambda c, x: tuple(np.array_split(x, count)))


PROJECTIONS = ("query", "key", "value", "output")


def linear(ours, theirs, kernel="weight", bias="bias", how=TRANSPOSED):
    """A Linear's two rows, by default those of torch."""
    return (Entry(f"{ours}.kernel", f"{theirs}.{kernel}", how),
            Entry(f"{ours}.bias", f"{theirs}.{bias}", SAME))


def norm(ours, theirs, scale="weight", bias="bias"):
    """A norm's two rows."""
    return (Entry(f"{ours}.scale", f"{theirs}.{scale}", SAME),
            Entry(f"{ours}.bias", f"{theirs}.{bias}", SAME))


def attention(ours, theirs, names, **words):
    """The rows of an attention's four Linears; ``words`` as in linear."""
    ours = f"{ours}." if ours else ""
    theirs = f"{theirs}." if theirs else ""
    return sum((linear(f"{ours}{mine}", f"{theirs}{other}", **words)
                for mine, other in zip(PROJECTIONS, names)), ())


def layer(ours, theirs, attentions, feed_forward, norms, names,
          scale=("weight", "bias"), **words):
    """The rows of a layer.

    Args:
        ours, theirs: the layer's names.
        attentions: {our attention: their name}.
        feed_forward: {our Linear of it: their name}.
        norms: their names of the norms, in the order of the sub-layers.
        names: their names of an attention's query, key, value and output.
        scale: their names of a norm's scale and bias.
        words: as in linear.
    """
    rows = ()
    for mine, other in attentions.items():
        rows += attention(f"{ours}.{mine}", f"{theirs}.{other}", names,
                          **words)
    for mine, other in feed_forward.items():
        rows += linear(f"{ours}.feed_forward.{mine}", f"{theirs}.{other}",
                       **words)
    for mine, other in zip((*attentions, "feed_forward"), norms):
        rows += norm(f"{ours}.{mine}_residual.norm", f"{theirs}.{other}",
                     *scale)
    return rows


def names_of(side):
    """One side of a row as a tuple of names."""
    return (side,) if isinstance(side, str) else side


def numbered(row, i):
    """A row with a layer's number in place of ``{i}`` and ``{i+1}``."""
    def put(side):
        if isinstance(side, tuple):
            return tuple(map(put, side))
        return side.replace("{i}", str(i)).replace("{i+1}", str(i + 1))
    return Entry(put(row.ours), put(row.theirs), row.how)


def shape_of(arrays, name, axes):
    """The shape of an array that tells sizes of a model.

    Raises:
        InputError: it is not there, or has not so many axes.
    """
    if name not in arrays or arrays[name].ndim != axes:
        kind = ("number", "vector", "matrix")[axes]
        raise InputError(
            f"the file has no {kind} {name!r}, which tells a size of the "
            "model; fetch it again.")
    return arrays[name].shape


def count_layers(arrays, prefix):
    """How many layers have arrays whose names begin with ``prefix``."""
    return len({name.removeprefix(prefix).partition(".")[0]
                for name in arrays if name.startswith(prefix)})
