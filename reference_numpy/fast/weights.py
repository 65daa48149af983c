"""A model's weights, gradients and moments, as views of one flat array.

So an optimizer goes through them once. Maps that read one input, such as those
to query, key and value, are concatenated.
"""

import math

import numpy as np

from reference_numpy.attention import MultiHeadAttention
from reference_numpy.parameters import held, modules

#: Values that are worked on at once, so that they stay in the cache.
BLOCK = 2**16


def blocks(x):
    """Views of a flat array, one after the other."""
    return (x[i:i + BLOCK] for i in range(0, len(x), BLOCK))


def concatenated(model):
    """Yield every module with weights, those that read one input together."""
    together = {}
    for path, owner in modules(model):
        if isinstance(owner, MultiHeadAttention):
            q, k, v = owner.query, owner.key, owner.value
            across = path.endswith("cross_attention")
            together |= {q: [q], k: [k, v], v: []} if across else {
                q: [q, k, v], k: [], v: []}
    for _, owner in modules(model):
        if held(owner) and together.get(owner, True):
            yield together.get(owner, [owner])


def arrays_of(model):
    """Every array of a model: [(owner, leaf)], in the order of ``leaves``."""
    return [(owner, leaf) for _, owner in modules(model)
            for leaf in held(owner)]


class Views(list):
    """Arrays whose places are kept: what is assigned is copied into them."""

    def __setitem__(self, i, value):
        self[i][...] = value


class Plain:
    """A model's weights as they are, where no gradient is wanted."""

    def __init__(self, model):
        self.together = {owners[0]: owners for owners in concatenated(model)}
        self.dtype = getattr(*arrays_of(model)[0]).dtype

    def pair(self, owner, leaf):
        """A weight, and None in place of its gradient."""
        return getattr(owner, leaf), None

    def maps(self, owner):
        """Where each map's output stands, and its kernel and bias."""
        found, start = [], 0
        for one in self.together[owner]:
            end = start + one.kernel.shape[1]
            columns, start = slice(start, end), end
            found.append((columns, self.pair(one, "kernel"),
                          self.pair(one, "bias")))
        return found


class Weights:
    """A model's weights, their gradients and moments in one flat array.

    Attributes:
        flat: weights, gradients, m and v: [4 *].
        blocks: (owner, leaf) -> the same four of the concatenated weights of
            which this is the first: [4 in out] or [4 out].
        places: (owner, leaf) -> where its weight is.
        m, v: both moments, in the order of ``leaves``.
    """

    def __init__(self, model):
        named, self.blocks, self.places, offset = {}, {}, {}, 0
        arrays = [getattr(*place) for place in arrays_of(model)]
        self.flat = np.zeros((4, sum(a.size for a in arrays)), arrays[0].dtype)
        for owners in concatenated(model):
            for leaf in held(owners[0]):
                arrays = [getattr(owner, leaf) for owner in owners]
                ends = np.cumsum([a.shape[-1] for a in arrays])
                shape = (*arrays[0].shape[:-1], ends[-1])
                block = self.flat[:, offset:offset + math.prod(shape)]
                offset += math.prod(shape)
                block = self.blocks[owners[0], leaf] = block.reshape(4, *shape)
                for owner, array, part in zip(
                        owners, arrays, np.split(block, ends[:-1], axis=-1)):
                    part[0] = array
                    self.places[owner, leaf] = part[0]
                    setattr(owner, leaf, self.places[owner, leaf])
                    named[owner, leaf] = part
        self.dtype = self.flat.dtype
        self.m, self.v = (
            Views(named[place][kind] for place in arrays_of(model))
            for kind in (2, 3))

    def are_those_of(self, model):
        """Whether no weight of the model was replaced since."""
        return all(
            self.places.get(place) is getattr(*place)
            and getattr(*place).base is self.flat
            for place in arrays_of(model))

    def pair(self, owner, leaf):
        """A weight and its gradient, with those that read the same."""
        return self.blocks[owner, leaf][:2]

    def maps(self, owner):
        """Where the output of all that read one input stands; see Plain."""
        kernel, bias = (self.pair(owner, leaf) for leaf in ("kernel", "bias"))
        return [(slice(0, kernel.shape[-1]), kernel, bias)]
