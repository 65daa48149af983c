"""A stack's layers as one loop, so that a compiler sees one of them.

    before   x = layer_N(… layer_1(x))
    after    x = scan(layer, x, [weights_1, …, weights_N])

Weights stay as they are, an array a layer; a step stacks them, and its
gradients are parts of the stack's. Seconds of a processor, of a training
step in float32 (D 256, F 1024, B 16, S and T 64, two stacks of N layers):

     N   first step, compiled     each other step
     2    5.6 ->  7.0             0.50 -> 0.54
     6   11.2 -> 11.9             1.41 -> 1.58
    24   76.4 -> 41.0             5.52 -> 6.23

So half a minute of compiling costs an eighth of each step: at 24 layers it pays
for runs of up to 50 steps, or where a program is too large to compile. Nothing
within a loop is seen as a step.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from transformer_contract import dropping, trace
from impl_jax import decoder, encoder
from impl_jax.dialects import stacks
from impl_jax.dropout import Dropout
from impl_jax.parameters import modules, paths

#: From so many layers on a program's time to compile is worth a loop.
MANY = 24


def alike(layers):
    """Whether layers differ in nothing but weights, and none is watched."""
    return (len(layers) >= MANY and not trace.is_open()
            and len({nnx.graphdef(layer) for layer in layers}) == 1)


def kept(layer):
    """What the open run keeps in each place of a layer: {path: bool}."""
    return {path: mask for path, below in modules(layer)
            if isinstance(below, Dropout)
            and (mask := dropping.kept(below)) is not None}


def through(layers, x, *given):
    """x [B T D] after the last layer; ``given`` is what each takes besides."""
    graph, _, rest = nnx.split(layers[0], nnx.Param, ...)
    stacked = jax.tree.map(lambda *each: jnp.stack(each), *(
        (nnx.state(layer, nnx.Param), kept(layer)) for layer in layers))

    def one(x, own):
        weights, drawn = own
        layer = nnx.merge(graph, weights, rest)
        with dropping.dropping(paths(layer), drawn):
            return layer(x, *given), None

    return jax.lax.scan(one, x, stacked)[0]


class Encoder(encoder.Encoder):
    """See impl_jax.encoder."""

    def through(self, x, mask):
        """x [B S D] after the last layer; mask is [B 1 1 S]."""
        if not alike(self.layers):
            return super().through(x, mask)
        return through(self.layers, x, mask)


class Decoder(decoder.Decoder):
    """See impl_jax.decoder."""

    def through(self, x, memory, memory_mask, mask, caches):
        """x [B T D] after the last layer, reading memory [B S D]."""
        if caches is not None or not alike(self.layers):
            return super().through(x, memory, memory_mask, mask, caches)
        return through(self.layers, x, memory, memory_mask, mask, None)


class DialectEncoder(stacks.DialectEncoder, Encoder):
    """The same, which may end in a norm."""


class DialectDecoder(stacks.DialectDecoder, Decoder):
    """The same, which may end in a norm."""


class CausalStack(stacks.CausalStack):
    """See impl_jax.dialects.stacks."""

    def through(self, x, mask, caches):
        """x [B T D] after the last layer; mask is [B 1 T T]."""
        if caches is not None or not alike(self.layers):
            return super().through(x, mask, caches)
        return through(self.layers, x, mask, None)


#: The fast kind of each kind of stack; both hold the same.
FAST = {encoder.Encoder: Encoder, decoder.Decoder: Decoder,
        stacks.DialectEncoder: DialectEncoder,
        stacks.DialectDecoder: DialectDecoder,
        stacks.CausalStack: CausalStack}
