"""A batch without the padding behind its rows: the contract's packing.

What is packed is [1 N F], as one row. Attention spreads it out again, to
[B T F], for a query must meet the keys of its own row. Each way is the other's
gradient, and both look up rows, which XLA does faster than it adds to them.
"""

import dataclasses

import jax
import jax.numpy as jnp


@jax.custom_vjp
def rows_of(x, there, back):
    """Rows of x [M F] by their places, int [N]; zeros where there are none.

    ``back``, int [M], has the places of the other way.
    """
    return x.at[there].get(mode="fill", fill_value=0)


def forward(x, there, back):
    """The rows, and what the other way takes."""
    return rows_of(x, there, back), (there, back)


def backward(kept, gradient):
    """The gradient by x, which is the other way."""
    there, back = kept
    return rows_of(gradient, back, there), None, None


rows_of.defvjp(forward, backward)


@dataclasses.dataclass
class Packed:
    """Where N tokens of a batch [B T] stand, and the way back."""

    there: jax.Array
    back: jax.Array
    shape: tuple

    def pack(self, x):
        """Of x [B T F] what is not padding: [1 N F].

        Of more tokens than there are the last are numbers that any norm takes.
        """
        rows = rows_of(x.reshape(-1, x.shape[-1]), self.there, self.back)
        there = (self.there < len(self.back))[:, None]
        filler = jnp.linspace(-1, 1, x.shape[-1]).astype(x.dtype)
        return jnp.where(there, rows, filler)[None]

    def spread(self, x):
        """Put x [1 N F] back, with zeros where padding is: [B T F]."""
        return rows_of(x[0], self.back, self.there).reshape(*self.shape, -1)

    def labels(self, ids, pad_id):
        """Of ids [B T] what is not padding, then padding: [1 N]."""
        return ids.reshape(-1).at[self.there].get(
            mode="fill", fill_value=pad_id)[None]


@dataclasses.dataclass
class Attending:
    """A mask [B 1 T S], and where its queries and its keys are packed."""

    mask: jax.Array
    queries: Packed
    keys: Packed


def packed_vectors(model, source, target, source_mask, target_mask, both):
    """What a model projects: [1 N D]; the stacks are given packed x."""
    sources, targets = both
    stacks = model.config.stacks
    if stacks != "decoder":
        x = sources.pack(model.embed_source(source))
        memory = model.encoder(x, Attending(source_mask, sources, sources))
        if stacks == "encoder":
            return memory
    x = targets.pack(model.embed_target(target, 0))
    mask = Attending(target_mask, targets, targets)
    if stacks == "decoder":
        return model.decoder(x, mask, None)
    return model.decoder(
        x, memory, Attending(source_mask, targets, sources), mask, None)
