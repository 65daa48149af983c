"""Some rows of a batch on their way through the model and back.

Padding is left out (fast/packing.py), so that x is [n F] everywhere but within
attention. Arrays are kept from step to step, and what is no longer needed is
overwritten by softmax, cross-entropy, dropout, norms and the way back.
"""

import collections
import dataclasses
import math

import numpy as np

from transformer_contract.smoothing import SMOOTHINGS
from reference_numpy.fast.packing import PackedSide
from reference_numpy.fast.weights import BLOCK
from reference_numpy.layer_norm import sum_to
from reference_numpy.positional import position_table


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
    scores *= 1 / scores.sum(axis=-1, keepdims=True)
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


def table_of(positions):
    """The constant rows of positions, from the first position on: [T D]."""
    if hasattr(positions, "values"):
        return positions.values()[positions.first:]
    return position_table(positions.max_length, positions.d_model)


@dataclasses.dataclass
class Pairs:
    """What is known of a batch before it is run.

    Attributes:
        source, target: each a PackedSide.
        labels: int [N], of the target's tokens; None without a way back.
        masks: of the source and the target, as the model takes them.
        count: how many tokens the loss is a mean over.
        drawn: id of a Dropout -> what it keeps, bool: of x [N F], of weights
            [B H T S].
    """

    source: PackedSide
    target: PackedSide
    labels: np.ndarray
    masks: tuple
    count: int
    drawn: dict


class Rows:
    """Some rows of a batch on their way through the model and back.

    Every method returns its output and a function that takes the output's
    gradient to the input's. All rows' part in a weight's gradient is one
    product, made when all have come back through a sub-layer (``meet``).

    Attributes:
        weights: whose ``maps`` and ``pair`` find weights and gradients.
        arrays: what is kept from step to step; None where there is no way
            back, and a sub-layer's arrays serve the next but one.
        products: (gradient, x, y) whose gradient is xᵀ y, waiting.
        sums: (gradient, summands), which stand along the first axis.
        lookups: (gradient, tokens, gradients of the rows looked up).
    """

    def __init__(self, config, weights, arrays, batch, number, meet):
        self.config, self.weights, self.arrays = config, weights, arrays
        self.dtype, self.batch, self.number = weights.dtype, batch, number
        self.rows, self.meet = batch.source.rows[number], meet
        self.scratch, self.taken = {}, collections.Counter()
        self.returning, self.turn = arrays is None, 0
        self.products, self.sums, self.lookups = [], [], []

    def kept(self, *shape, keep=True):
        """The next array of a shape, of all rows.

        On the way back, and where there is none, it is one that served the
        sub-layer before the last, unless it is to be kept.
        """
        recycled = self.returning and not keep
        key = (*shape, self.turn % 2) if recycled else shape
        arrays = self.scratch if self.arrays is None else self.arrays
        place = key, recycled, self.taken[key, recycled]
        self.taken[key, recycled] += 1
        if place not in arrays:
            arrays.setdefault(place, np.empty(shape, self.dtype))
        return arrays[place]

    def next(self):
        """Begin another sub-layer; what waits for all rows is done."""
        if self.products:
            self.meet(self.products, self.number)
            self.products = []
        self.turn += 1
        for key, recycled in [*self.taken]:
            if recycled and key[-1] == self.turn % 2:
                self.taken[key, recycled] = 0

    def take(self, side, width, keep=False):
        """My tokens of such an array; its ``base`` has them all first."""
        return self.kept(side.size, width, keep=keep)[
            side.shares[self.number]]

    def add(self, gradient, summand):
        """Have the sum of [n F] be a part of a weight's gradient."""
        summands = self.kept(len(self.batch.source.rows), *gradient.shape,
                             keep=True)
        summands[self.number] = sum_to(gradient.shape, summand)
        self.sums.append((gradient, summands))

    def linear(self, x, owner, side):
        """x [n in] by an owner's map and those that read the same."""
        maps = self.weights.maps(owner)
        y = self.take(side, maps[-1][0].stop)
        for columns, (kernel, _), (bias, _) in maps:
            np.matmul(x, kernel, out=y[:, columns])
            y[:, columns] += bias

        def backward(dy):
            (_, (kernel, dkernel), (_, dbias)), = maps
            self.products.append((dkernel, *side.all(x, dy)))
            self.add(dbias, dy)
            return dy @ kernel.T

        return y, backward

    def dropout(self, x, owner, side):
        """x [n F] where it is kept, divided by the chance of that."""
        if not self.batch.drawn:
            return x, lambda dy: dy
        mask = self.batch.drawn[id(owner)][side.shares[self.number]]

        def drop(x):
            left = np.multiply(x, mask, out=self.take(side, x.shape[1]))
            left *= 1 / (1 - owner.rate)
            return left

        return drop(x), drop

    def norm(self, x, owner, place, side):
        """Any of the three norms; ``place`` is overwritten, and may be x."""
        d = x.shape[1]
        (scale, dscale), (bias, dbias) = (
            self.weights.pair(owner, leaf) for leaf in ("scale", "bias"))
        normalized = np.subtract(
            x, x.mean(axis=-1, keepdims=True), out=place)
        squares = np.vecdot(normalized, normalized)[:, None]
        if self.config.norm == "layer":
            inverse, share = 1 / np.sqrt(squares / d + owner.eps), 1 / d
        else:
            std = np.sqrt(squares / (d - 1))
            inverse = 1 / (std + owner.eps)
            share = 1 / (inverse * std * (d - 1))
        normalized *= inverse
        y = np.multiply(normalized, scale, out=self.take(side, d))
        y += bias

        def backward(dy):
            self.add(dscale, dy * normalized)
            self.add(dbias, dy)
            dx = np.multiply(dy, scale, out=self.take(side, d))
            along = np.vecdot(dx, normalized)[:, None] * share
            dx -= normalized * along
            dx -= dx.mean(axis=-1, keepdims=True)
            dx *= inverse
            return dx

        return y, backward

    def residual(self, x, sublayer, owner, side):
        """x plus a sub-layer's output, normalised before or after."""
        pre = self.config.residual == "pre"
        self.next()
        y, norm = self.norm(
            x, owner.norm, self.take(side, x.shape[1]), side) if pre else (
                x, None)
        y, inside = sublayer(y)
        output, drop = self.dropout(y, owner.dropout, side)
        output += x
        if not pre:
            output, norm = self.norm(output, owner.norm, output, side)

        def backward(dy):
            dsummed = self.take(side, x.shape[1]) if pre else norm(dy)
            if pre:
                dsummed[...] = dy
            dx = inside(drop(dsummed))
            dx = norm(dx) if pre else dx
            dx += dsummed
            self.next()
            return dx

        return output, backward

    def heads(self, x):
        """[R T n·D] to n arrays [R H T K], views."""
        h, k = self.config.n_heads, self.config.d_k
        return x.reshape(*x.shape[:2], -1, h, k).transpose(2, 0, 3, 1, 4)

    def blocks(self, *shape):
        """Slices of my rows, as many as stay in the cache: [R *shape]."""
        rows = max(BLOCK // math.prod(shape), 1)
        return [slice(i, i + rows) for i in range(
            0, self.rows.stop - self.rows.start, rows)]

    def attention(self, x, memory, mask, owner, side, memory_side):
        """x [n D] attends to memory; backward gives two.

        Some rows at a time, whose scores stay in the cache.
        """
        maps = [(x, owner.query, side)]
        if memory is not x:
            maps.append((memory, owner.key, memory_side))
        mapped = [self.linear(*which) for which in maps]
        sides, number = [which[2] for which in maps], self.number
        query, key, value = (
            head for (y, _), of in zip(mapped, sides)
            for head in self.heads(of.spread(y, number)))
        root = math.sqrt(self.config.d_k)
        shape = query.shape[1:3] + key.shape[2:3]
        weights = self.kept(
            self.batch.source.rows[-1].stop, *shape)[self.rows]
        kept = self.batch.drawn.get(id(owner.weights_dropout))
        merged = self.take(side, x.shape[1])
        spread = side.spread(merged, number)
        context, = self.heads(spread)
        blocks = self.blocks(*shape)

        def drop(block, x):
            if kept is None:
                return x
            return x * kept[self.rows][block] * (
                1 / (1 - owner.weights_dropout.rate))

        for block in blocks:
            these = np.matmul(
                query[block], key[block].mT, out=weights[block])
            these *= 1 / root
            softmax(these, *(part if part is None else part[block]
                             for part in mask))
            np.matmul(drop(block, these), value[block], out=context[block])
        side.pack(spread, number, merged)
        output, back_output = self.linear(merged, owner.output, side)

        def backward(doutput):
            dcontext, = self.heads(side.spread(back_output(doutput), number))
            dmapped = [self.take(of, y.shape[1])
                       for (y, _), of in zip(mapped, sides)]
            rooms = [of.spread(dy, number)
                     for dy, of in zip(dmapped, sides)]
            dquery, dkey, dvalue = (
                head for room in rooms for head in self.heads(room))
            for block in blocks:
                these, dthose = weights[block], dcontext[block]
                dscores = drop(block, dthose @ value[block].mT)
                dscores -= np.vecdot(dscores, these)[..., None]
                dscores *= these
                dscores *= 1 / root
                np.matmul(dscores, key[block], out=dquery[block])
                np.matmul(dscores.mT, query[block], out=dkey[block])
                np.matmul(drop(block, these).mT, dthose, out=dvalue[block])
            for of, dy, room in zip(sides, dmapped, rooms):
                of.pack(room, number, dy)
            dx, *dmemory = (
                back(dy) for (_, back), dy in zip(mapped, dmapped))
            for dy in dmemory:
                self.dmemory += dy
            return dx

        return output, backward

    def feed_forward(self, x, owner, side):
        """Two linear maps with an activation between, x [n D]."""
        inner, back_inner = self.linear(x, owner.inner, side)
        relu = self.config.activation == "relu"
        activated = np.maximum(inner, 0, out=inner) if relu else self.take(
            side, inner.shape[1])
        if not relu:
            activated[...] = owner.activation(inner)
        dropped, drop = self.dropout(activated, owner.activated_dropout, side)
        output, back_outer = self.linear(dropped, owner.outer, side)

        def backward(doutput):
            dactivated = drop(back_outer(doutput))
            dinner = self.take(side, inner.shape[1])
            if relu:
                np.multiply(dactivated, activated > 0, out=dinner)
            else:
                dinner[...] = owner.activation_backward(dactivated, inner)
            return back_inner(dinner)

        return output, backward

    def embedding(self, side, embedding, positions):
        """Rows of a table for a side's tokens, and their positions."""
        owner = getattr(embedding, "embedding", embedding)
        table, dtable = self.weights.pair(owner, "table")
        factor, mine = embedding.factor, side.shares[self.number]
        x = self.take(side, self.config.d_model)
        np.multiply(table[side.ids[mine]], factor, out=x)
        x += table_of(positions)[side.positions[mine]].astype(x.dtype)
        dropped, drop = self.dropout(x, positions.dropout, side)

        def backward(ddropped):
            dx = np.multiply(drop(ddropped), factor, out=self.take(
                side, x.shape[1], keep=True))
            self.lookups.append((dtable, side.ids, *side.all(dx)))

        return dropped, backward

    def stack(self, x, stack, side, mask, memory, memory_mask):
        """The encoder, which has no memory to read, or the decoder."""
        source, backs = self.batch.source, []
        for layer in stack.layers:
            sublayers = {"self_attention": lambda x: self.attention(
                x, x, mask, layer.self_attention, side, side)}
            if memory is not None:
                sublayers["cross_attention"] = lambda x: self.attention(
                    x, memory, memory_mask, layer.cross_attention, side,
                    source)
            sublayers["feed_forward"] = lambda x: self.feed_forward(
                x, layer.feed_forward, side)
            for name, sublayer in sublayers.items():
                x, back = self.residual(
                    x, sublayer, getattr(layer, f"{name}_residual"), side)
                backs.append(back)
        self.next()
        if self.config.final_norm:
            x, back = self.norm(x, stack.norm, x, side)
            backs.append(back)

        def backward(dx):
            for back in reversed(backs):
                dx = back(dx)
            return dx

        return x, backward

    def projection(self, x, model):
        """x [n D] to logits [n V]."""
        side = self.batch.target
        if not self.config.output_tied:
            return self.linear(x, model.projection, side)
        table, dtable = self.weights.pair(model.source_embedding, "table")
        logits = self.take(side, len(table))
        np.matmul(x, table.T, out=logits)

        def backward(dlogits):
            self.products.append((dtable, *side.all(dlogits, x)))
            return dlogits @ table

        return logits, backward

    def forward(self, model):
        """The logits, and the way back from their gradient."""
        batch = self.batch
        masks = [bias_of(mask[self.rows], self.dtype) for mask in batch.masks]
        x, back_source = self.embedding(
            batch.source, model.source_embedding, model.source_positions)
        memory, back_encoder = self.stack(
            x, model.encoder, batch.source, masks[0], None, None)
        if self.returning:  # the decoder would write over it
            memory = memory.copy()
        self.next()
        x, back_target = self.embedding(
            batch.target, model.target_embedding, model.target_positions)
        decoded, back_decoder = self.stack(
            x, model.decoder, batch.target, masks[1], memory, masks[0])
        logits, back_projection = self.projection(decoded, model)

        def backward(dlogits):
            self.returning, self.dmemory = True, np.zeros_like(memory)
            dx = back_projection(dlogits)
            self.next()
            back_target(back_decoder(dx))
            back_source(back_encoder(self.dmemory))
            self.next()

        return logits, backward

    def run(self, model):
        """There and back; the loss."""
        logits, backward = self.forward(model)
        loss = 0
        labels = self.batch.labels[self.batch.target.shares[self.number]]
        chunk = max(8 * BLOCK // logits.shape[-1], 1)
        for i in range(0, len(labels), chunk):
            loss += cross_entropy(logits[i:i + chunk], labels[i:i + chunk],
                                  self.batch.count, self.config)
        backward(logits)
        return loss
