"""Some rows of a batch on their way through the model and back.

Arrays are kept from step to step, and what is no longer needed is overwritten
by softmax, cross-entropy, dropout and norms.
"""

import dataclasses
import itertools
import math

import numpy as np

from contract.smoothing import SMOOTHINGS
from reference_numpy.fast.weights import BLOCK
from reference_numpy.layer_norm import LayerNorm, NoNorm, sum_to


def flat(x):
    """All axes but the last as one: [B T F] to [N F]."""
    return x.reshape(-1, x.shape[-1])


def bias_of(mask, dtype):
    """What to add to scores, and which rows are fully masked, or None."""
    lowest = np.finfo(dtype).min
    masked = ~mask.any(axis=-1, keepdims=True)
    return (None if mask.all() else np.where(mask, dtype.type(0), lowest),
            masked if masked.any() else None)


def softmax(scores, bias, masked):
    """Turn scores into weights where they stand; 0 where masked."""
    if bias is not None:
        scores += bias
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    if masked is not None:
        np.copyto(scores, 0, where=masked)


def cross_entropy(logits, labels, count, config):
    """The summed loss of logits [N V] over ``count``, and their gradient.

    The gradient takes the logits' place.
    """
    right, other, padding, negative_entropy = SMOOTHINGS[config.smoothing](
        config.label_smoothing, logits.shape[-1])
    row, pad = np.arange(len(logits)), config.pad_id
    logits -= logits.max(axis=-1, keepdims=True)
    at_label, at_pad = logits[row, labels], logits[:, pad].copy()
    sums = logits.sum(axis=-1)
    np.exp(logits, out=logits)
    total = logits.sum(axis=-1)
    losses = negative_entropy + np.log(total) - (
        (right - other) * at_label + other * sums + (padding - other) * at_pad)
    kept = labels != pad
    logits *= (kept / (total * count)).astype(logits.dtype)[:, None]
    logits -= (kept * (other / count)).astype(logits.dtype)[:, None]
    logits[:, pad] -= kept * ((padding - other) / count)
    logits[row, labels] -= kept * ((right - other) / count)
    return np.sum(losses[kept]) / count


@dataclasses.dataclass
class Pairs:
    """What is known of a batch before it is run.

    Attributes:
        source, target, labels: int [B S], [B T] and [B T].
        masks: of the source and the target, as the model takes them.
        count: how many tokens the loss is a mean over.
        drawn: id of a Dropout -> what it keeps, bool.
        n_shares: into how many the rows are shared out.
    """

    source: np.ndarray
    target: np.ndarray
    labels: np.ndarray
    masks: tuple
    count: int
    drawn: dict
    n_shares: int


class Rows:
    """Some rows of a batch on their way through the model and back.

    Every method returns its output and a function that takes the output's
    gradient to the input's. What has to wait for the other rows is listed:

    Attributes:
        products: (gradient, x, y) whose gradient is xᵀ y.
        sums: (gradient, summands), which stand along the first axis.
        lookups: (gradient, tokens, gradients of the rows looked up).
    """

    def __init__(self, trainer, batch, number, rows):
        self.model, self.config = trainer.model, trainer.model.config
        self.blocks, self.arrays = trainer.weights.blocks, trainer.arrays
        self.dtype, self.places = trainer.weights.flat.dtype, itertools.count()
        self.batch, self.number, self.rows = batch, number, rows
        self.products, self.sums, self.lookups = [], [], []

    def kept(self, *shape):
        """The next array that is kept from step to step, of all rows."""
        place = next(self.places)
        if place in self.arrays:
            return self.arrays[place]
        return self.arrays.setdefault(place, np.empty(shape, self.dtype))

    def take(self, *shape):
        """My rows of the next kept array; its ``base`` has them all."""
        return self.kept(len(self.batch.source), *shape)[self.rows]

    def add(self, gradient, summand):
        """Have the sum of [B T F] be a part of a weight's gradient."""
        summands = self.kept(self.batch.n_shares, *gradient.shape)
        summands[self.number] = sum_to(gradient.shape, summand)
        self.sums.append((gradient, summands))

    def linear(self, x, owner):
        """x [B T in] by an owner's map and those concatenated with it."""
        kernel, bias = (self.blocks[owner, leaf] for leaf in ("kernel", "bias"))
        y = self.take(*x.shape[1:-1], kernel.shape[-1])
        np.matmul(flat(x), kernel[0], out=flat(y))
        y += bias[0]

        def backward(dy):
            self.products.append((kernel[1], x.base, dy.base))
            self.add(bias[1], dy)
            return (flat(dy) @ kernel[0].T).reshape(x.shape)

        return y, backward

    def dropout(self, x, owner):
        """x where it is kept, divided by the chance of that."""
        if not self.batch.drawn:
            return x, lambda dy: dy
        mask = self.batch.drawn[id(owner)][self.rows]

        def drop(x):
            left = np.multiply(x, mask, out=self.take(*x.shape[1:]))
            left /= 1 - owner.rate
            return left

        return drop(x), drop

    def norm(self, x, owner, place):
        """Any of the three norms; ``place`` is overwritten, and may be x."""
        if isinstance(owner, NoNorm):
            return x, lambda dy: dy
        d = x.shape[-1]
        scale, bias = (self.blocks[owner, leaf] for leaf in ("scale", "bias"))
        normalized = np.subtract(
            x, x.mean(axis=-1, keepdims=True), out=place)
        squares = np.vecdot(normalized, normalized)[..., None]
        if isinstance(owner, LayerNorm):
            divisor, share = np.sqrt(squares / d + owner.eps), 1 / d
        else:
            std = np.sqrt(squares / (d - 1))
            divisor = std + owner.eps
            share = divisor / (std * (d - 1))
        normalized /= divisor
        y = np.multiply(normalized, scale[0], out=self.take(*x.shape[1:]))
        y += bias[0]

        def backward(dy):
            self.add(scale[1], dy * normalized)
            self.add(bias[1], dy)
            dx = np.multiply(dy, scale[0], out=self.take(*x.shape[1:]))
            along = np.vecdot(dx, normalized)[..., None] * share
            dx -= normalized * along
            dx -= dx.mean(axis=-1, keepdims=True)
            dx /= divisor
            return dx

        return y, backward

    def residual(self, x, sublayer, owner):
        """x plus a sub-layer's output, normalised before or after."""
        pre = self.config.residual == "pre"
        y, norm = self.norm(
            x, owner.norm, self.take(*x.shape[1:])) if pre else (x, None)
        y, inside = sublayer(y)
        output, drop = self.dropout(y, owner.dropout)
        output += x
        if not pre:
            output, norm = self.norm(output, owner.norm, output)

        def backward(dy):
            dsummed = self.take(*x.shape[1:]) if pre else norm(dy)
            if pre:
                dsummed[...] = dy
            dx = inside(drop(dsummed))
            dx = norm(dx) if pre else dx
            dx += dsummed
            return dx

        return output, backward

    def heads(self, x):
        """[B T n·D] to n arrays [B H T K], views."""
        h, k = self.config.n_heads, self.config.d_k
        x = x.reshape(*x.shape[:2], -1, h, k)
        return x.transpose(2, 0, 3, 1, 4)

    def attention(self, x, memory, mask, owner):
        """x [B T D] attends to memory [B S D]; backward gives two."""
        maps = [(x, owner.query)]
        if memory is not x:
            maps.append((memory, owner.key))
        mapped = [self.linear(*pair) for pair in maps]
        query, key, value = (h for y, _ in mapped for h in self.heads(y))
        root = math.sqrt(self.config.d_k)
        weights = self.take(*query.shape[1:3], key.shape[2])
        np.matmul(query, key.mT, out=weights)
        weights /= root
        softmax(weights, *mask)
        dropped, drop = self.dropout(weights, owner.weights_dropout)
        merged = self.take(*x.shape[1:])
        np.matmul(dropped, value, out=self.heads(merged)[0])
        output, back_output = self.linear(merged, owner.output)

        def backward(doutput):
            dcontext, = self.heads(back_output(doutput))
            dscores = drop(dcontext @ value.mT)
            dscores -= np.vecdot(dscores, weights)[..., None]
            dscores *= weights
            dscores /= root
            dmapped = [self.take(*y.shape[1:]) for y, _ in mapped]
            dquery, dkey, dvalue = (h for y in dmapped for h in self.heads(y))
            np.matmul(dscores, key, out=dquery)
            np.matmul(dscores.mT, query, out=dkey)
            np.matmul(dropped.mT, dcontext, out=dvalue)
            dx, *dmemory = (
                back(dy) for (_, back), dy in zip(mapped, dmapped))
            for dy in dmemory:
                self.dmemory += dy
            return dx

        return output, backward

    def feed_forward(self, x, owner):
        """Two linear maps with an activation between, x [B T D]."""
        inner, back_inner = self.linear(x, owner.inner)
        relu = self.config.activation == "relu"
        activated = np.maximum(inner, 0, out=inner) if relu else self.take(
            *inner.shape[1:])
        if not relu:
            activated[...] = owner.activation(inner)
        dropped, drop = self.dropout(activated, owner.activated_dropout)
        output, back_outer = self.linear(dropped, owner.outer)

        def backward(doutput):
            dactivated = drop(back_outer(doutput))
            dinner = self.take(*inner.shape[1:])
            if relu:
                np.multiply(dactivated, activated > 0, out=dinner)
            else:
                dinner[...] = owner.activation_backward(dactivated, inner)
            return back_inner(dinner)

        return output, backward

    def embedding(self, tokens, embedding, positions):
        """Rows of a table for tokens, int [B T], and their positions."""
        owner = getattr(embedding, "embedding", embedding)
        table = self.blocks[owner, "table"]
        factor = embedding.factor
        x = self.take(tokens.shape[1], self.config.d_model)
        np.multiply(table[0][tokens[self.rows]], factor, out=x)
        x += positions.table[positions.first:][:tokens.shape[1]].astype(
            x.dtype)
        dropped, drop = self.dropout(x, positions.dropout)

        def backward(ddropped):
            dx = np.multiply(
                drop(ddropped), factor, out=self.take(*x.shape[1:]))
            self.lookups.append((table[1], tokens, dx.base))

        return dropped, backward

    def stack(self, x, stack, mask, memory, memory_mask):
        """The encoder, which has no memory to read, or the decoder."""
        backs = []
        for layer in stack.layers:
            sublayers = {"self_attention": lambda x: self.attention(
                x, x, mask, layer.self_attention)}
            if memory is not None:
                sublayers["cross_attention"] = lambda x: self.attention(
                    x, memory, memory_mask, layer.cross_attention)
            sublayers["feed_forward"] = lambda x: self.feed_forward(
                x, layer.feed_forward)
            for name, sublayer in sublayers.items():
                x, back = self.residual(
                    x, sublayer, getattr(layer, f"{name}_residual"))
                backs.append(back)
        x, back = self.norm(x, stack.norm, x)
        backs.append(back)

        def backward(dx):
            for back in reversed(backs):
                dx = back(dx)
            return dx

        return x, backward

    def projection(self, x):
        """x [B T D] to logits [B T V]."""
        if not self.config.output_tied:
            return self.linear(x, self.model.projection)
        table = self.blocks[self.model.source_embedding, "table"]
        logits = self.take(x.shape[1], len(table[0]))
        np.matmul(flat(x), table[0].T, out=flat(logits))

        def backward(dlogits):
            self.products.append((table[1], dlogits.base, x.base))
            return (flat(dlogits) @ table[0]).reshape(x.shape)

        return logits, backward

    def run(self):
        """There and back; the loss."""
        model, batch = self.model, self.batch
        masks = [bias_of(mask[self.rows], self.dtype) for mask in batch.masks]
        x, back_source = self.embedding(
            batch.source, model.source_embedding, model.source_positions)
        memory, back_encoder = self.stack(
            x, model.encoder, masks[0], None, None)
        x, back_target = self.embedding(
            batch.target, model.target_embedding, model.target_positions)
        decoded, back_decoder = self.stack(
            x, model.decoder, masks[1], memory, masks[0])
        logits, back_projection = self.projection(decoded)
        loss, labels = 0, batch.labels[self.rows].reshape(-1)
        chunk = max(8 * BLOCK // logits.shape[-1], 1)
        for i in range(0, len(labels), chunk):
            loss += cross_entropy(flat(logits)[i:i + chunk],
                                  labels[i:i + chunk], batch.count, self.config)
        self.dmemory = np.zeros_like(memory)
        back_target(back_decoder(back_projection(logits)))
        back_source(back_encoder(self.dmemory))
        return loss
