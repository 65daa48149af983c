"""A batch as one row, without the padding behind its rows where that pays.

What is packed is [1 N F]; see the contract's packing. Attention spreads it out
again, to [B T F], for a query must meet the keys of its own row. Each way is
the other's gradient, and both look up rows, which XLA does faster than it adds
to them.

keras: a layer's call takes tensors alone, so that attention is not told what is
packed: it looks here, in the run that is open.
"""

import contextlib
import dataclasses

import keras
import numpy as np
from keras import ops

#: Attention -> where its queries and its keys are packed, in the open run.
_open = {}


def looked_up(x, places):
    """Rows of x [M *] by their places, int [N]; zeros where there are none."""
    last = x.shape[0] - 1
    rows = ops.take(x, ops.minimum(places, last), axis=0)
    there = ops.reshape(places <= last, (-1, *(1 for _ in x.shape[1:])))
    return ops.where(there, rows, ops.zeros_like(rows))


def rows_of(x, there, back):
    """Rows of x [M *] by their places, int [N]; zeros where there are none.

    ``back``, int [M], has the places of the other way.
    """

    @ops.custom_gradient
    def function(x):
        def backward(*args, upstream=None):
            """The gradient by x, which is the other way."""
            gradient, = args if upstream is None else (upstream,)
            return looked_up(gradient, back)

        return looked_up(x, there), backward

    return function(x)


@dataclasses.dataclass
class Packed:
    """Where N tokens of a batch [B T] stand, and the way back."""

    there: keras.KerasTensor
    back: keras.KerasTensor
    shape: tuple

    def pack(self, x):
        """Of x [B T *] what is not padding: [1 N *].

        Of more tokens than there are the last are numbers that any norm takes.
        """
        rows = ops.reshape(x, (-1, *x.shape[2:]))
        if x.dtype == "bool":  # what dropout keeps has no gradient
            return looked_up(rows, self.there)[None]
        rows = rows_of(rows, self.there, self.back)
        size = int(np.prod(x.shape[2:]))
        filler = ops.reshape(ops.cast(
            np.linspace(-1, 1, size), x.dtype), x.shape[2:])
        there = ops.reshape(
            self.there < self.back.shape[0], (-1, *(1 for _ in x.shape[2:])))
        return ops.where(there, rows, filler)[None]

    def spread(self, x):
        """Put x [1 N *] back, with zeros where padding is: [B T *]."""
        return ops.reshape(rows_of(x[0], self.back, self.there),
                           (*self.shape, *x.shape[2:]))

    def labels(self, ids, pad_id):
        """Of ids [B T] what is not padding, then padding: [1 N]."""
        return (looked_up(ops.reshape(ids, (-1,)) - pad_id, self.there)
                + pad_id)[None]


@dataclasses.dataclass
class OneRow:
    """All tokens of a batch [B T], as one row.

    TensorFlow makes the gradient of a kernel for each row of x and adds them
    up: of the vocabulary's B times as many numbers as the kernel has.
    """

    shape: tuple

    def pack(self, x):
        """x [B T *] as [1 B·T *]."""
        return ops.reshape(x, (1, -1, *x.shape[2:]))

    def spread(self, x):
        """x [1 B·T *] as [B T *]."""
        return ops.reshape(x, (*self.shape, *x.shape[2:]))

    def labels(self, ids, pad_id):
        """ids [B T] as [1 B·T]."""
        return self.pack(ids)


def ways(attention):
    """Where an attention's queries and keys are packed; None if not."""
    return _open.get(id(attention))


@contextlib.contextmanager
def attending(model, sources, targets):
    """Open a run on packed x for the duration of a ``with`` block."""
    global _open
    before, _open = _open, {}
    for stack, own in (("encoder", sources), ("decoder", targets)):
        for layer in getattr(getattr(model, stack, None), "layers", ()):
            _open[id(layer.self_attention)] = own, own
            if hasattr(layer, "cross_attention"):
                _open[id(layer.cross_attention)] = own, sources
    try:
        yield
    finally:
        _open = before


def packed_vectors(model, source, target, source_mask, target_mask, both):
    """What a model projects: [1 N D]; the stacks are given packed x."""
    sources, targets = both
    stacks = model.config.stacks
    with attending(model, sources, targets):
        if stacks != "decoder":
            x = sources.pack(model.embed_source(source))
            memory = model.encoder(x, source_mask)
            if stacks == "encoder":
                return memory
        x = targets.pack(model.embed_target(target, 0))
        if stacks == "decoder":
            return model.decoder(x, target_mask, caches=None)
        return model.decoder(
            x, memory, source_mask, target_mask, caches=None)
