"""The training step of train.py, made for speed.

The readable form defines what is computed; this one computes the same, to
rounding. What makes it fast:

- The rows of a batch are shared out to threads, as many as there are
  processors, since NumPy lets go of Python's lock while it computes. Whoever
  calls this gives BLAS one thread (``OPENBLAS_NUM_THREADS=1``).
- Arrays are kept from step to step, and a thread's are some rows of arrays of
  all rows. So the gradient of a kernel is one product over the whole batch,
  made when all threads are through, and comes out the same at every run.
- All weights are views of one flat array, and likewise their gradients and
  moments: Adam goes through them once, in blocks that stay in the cache. Maps
  of one input, such as those to query, key and value, are concatenated.
- Softmax, cross-entropy, dropout and norms overwrite what is no longer needed.
"""

import concurrent.futures
import dataclasses
import itertools
import math
import os

import numpy as np

from contract import fast_forms
from contract.dropping import places
from contract.smoothing import SMOOTHINGS
from reference_numpy import random
from reference_numpy.attention import MultiHeadAttention
from reference_numpy.dropout import draw
from reference_numpy.layer_norm import LayerNorm, NoNorm, sum_to
from reference_numpy.masks import causal_mask, padding_mask
from reference_numpy.optimizer import OPTIMIZERS
from reference_numpy.parameters import PARAMETERS, leaves, modules, paths

#: Values that are worked on at once, so that they stay in the cache.
BLOCK = 2**16

#: The values of a config's fields that are computed here. A field that is not
#: among them has to have its default, or be one of ANY.
KNOWN = {
    "residual": ("pre", "post"),
    "norm": ("layer", "std", "scalar_std"),
    "final_norm": (False, True),
    "positions": ("interleaved", "halves"),
    "position_divisor": ("half", "half_less_one"),
    "position_rounding": ("none", "float32"),
    "embedding_scale": ("root", "none"),
    "activation": ("relu", "gelu", "gelu_tanh", "silu"),
    "output": ("logits", "log_probs"),
    "smoothing": ("uniform", "others", "kl"),
    "tied": ("none", "all"),
}

#: The fields whose every value is computed here.
ANY = {"source_vocab", "target_vocab", "d_model", "n_heads", "d_ff",
       "n_encoder_layers", "n_decoder_layers", "max_length", "dropout",
       "label_smoothing", "norm_eps", "final_norm_eps", "pad_id",
       "position_start", "source_max_length"}


def known(config):
    """The words of a config's fields that are computed here, by field."""
    return {field.name: KNOWN.get(field.name, (field.default,))
            for field in dataclasses.fields(config) if field.name not in ANY}


def covers(config):
    """Whether all that a config says is computed here."""
    return not fast_forms.unknown(config, known(config))


def flat(x):
    """All axes but the last as one: [B T F] to [N F]."""
    return x.reshape(-1, x.shape[-1])


def parts(length, count):
    """Slices that share ``length`` out evenly; none is empty."""
    ends = [length * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]


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
        if type(owner) in PARAMETERS and together.get(owner, True):
            yield together.get(owner, [owner])


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


class Views(list):
    """Arrays whose places are kept: what is assigned is copied into them."""

    def __setitem__(self, i, value):
        self[i][...] = value


class Weights:
    """A model's weights, their gradients and moments in one flat array.

    Attributes:
        flat: weights, gradients, m and v: [4 *].
        blocks: (owner, leaf) -> the same four of the concatenated weights of
            which this is the first: [4 in out] or [4 out].
        m, v: both moments, in the order of ``leaves``.
    """

    def __init__(self, model):
        named, self.blocks, offset = {}, {}, 0
        arrays = [getattr(owner, leaf) for _, owner, leaf in leaves(model)]
        self.flat = np.zeros((4, sum(a.size for a in arrays)), arrays[0].dtype)
        for owners in concatenated(model):
            for leaf in PARAMETERS[type(owners[0])]:
                arrays = [getattr(owner, leaf) for owner in owners]
                ends = np.cumsum([a.shape[-1] for a in arrays])
                shape = (*arrays[0].shape[:-1], ends[-1])
                block = self.flat[:, offset:offset + math.prod(shape)]
                offset += math.prod(shape)
                block = self.blocks[owners[0], leaf] = block.reshape(4, *shape)
                for owner, array, part in zip(
                        owners, arrays, np.split(block, ends[:-1], axis=-1)):
                    part[0] = array
                    setattr(owner, leaf, part[0])
                    named[owner, leaf] = part
        self.m, self.v = (Views(named[owner, leaf][kind]
                                for _, owner, leaf in leaves(model))
                          for kind in (2, 3))


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


class Trainer:
    """See reference_numpy.train; the same arguments and attributes."""

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = OPTIMIZERS[training.optimizer](
            training, model.config.d_model)
        self.weights, self.arrays, self.shape = Weights(model), {}, None
        self.m, self.v = self.weights.m, self.weights.v
        self.threads = len(os.sched_getaffinity(0)) if hasattr(
            os, "sched_getaffinity") else os.cpu_count()
        self.pool = concurrent.futures.ThreadPoolExecutor(self.threads)

    def train_step(self, sources, targets):
        """Make one step on A batches, as Trainer does."""
        self.step += 1
        key = random.fold_in(random.fold_in(
            random.key(self.training.seed), "dropout"), self.step)
        count = max(np.sum(targets[:, :, 1:] != self.model.config.pad_id), 1)
        loss = sum(self.run(source, target, count, random.fold_in(key, i), i)
                   for i, (source, target) in enumerate(zip(sources, targets)))
        settings = self.optimizer.settings(self.step)
        shares = parts(self.weights.flat.shape[1], self.threads)
        norm, limit = math.sqrt(sum(self.pool.map(self.squares, shares))), (
            self.training.clip_norm)
        scale = limit / norm if limit and norm > limit else 1
        list(self.pool.map(
            lambda share: self.update(share, scale, *settings), shares))
        dtype = self.weights.flat.dtype.type
        return dtype(loss), dtype(norm), settings[0]

    def run(self, source, target, count, key, number):
        """Add a batch's gradient to those before it; its part of the loss."""
        config, read = self.model.config, target[:, :-1]
        if self.shape != (*source.shape, *read.shape):
            self.shape, self.arrays = (*source.shape, *read.shape), {}
        drawn = draw(key, places(config, *source.shape, read.shape[1]),
                     config.dropout, self.training.masks == "native")
        drawn = {module: drawn[path] for module, path
                 in paths(self.model).items() if path in drawn}
        rows = parts(len(source), self.threads)
        masks = (padding_mask(source, config.pad_id),
                 padding_mask(read, config.pad_id)
                 & causal_mask(read.shape[1]))
        pairs = Pairs(source, read, target[:, 1:], masks, count, drawn,
                      len(rows))
        shares = [Rows(self, pairs, *share) for share in enumerate(rows)]
        loss = sum(self.pool.map(Rows.run, shares))
        first = shares[0]
        list(self.pool.map(
            lambda i: self.multiply(first.products, i, number > 0),
            range(self.threads)))
        for gradient, summands in first.sums:
            gradient[...] = summands.sum(axis=0) + (number > 0) * gradient
        for gradient, tokens, summands in first.lookups:
            if not (config.output_tied or number):
                gradient[...] = 0
            for token, summand in zip(tokens.flat, flat(summands)):
                gradient[token] += summand
        return loss

    def multiply(self, products, i, more):
        """A thread's rows of every kernel's gradient."""
        for gradient, x, y in products:
            rows = parts(len(gradient), self.threads)
            if i < len(rows):
                x_rows, rows = flat(x)[:, rows[i]].T, gradient[rows[i]]
                if more:
                    rows += x_rows @ flat(y)
                else:
                    np.matmul(x_rows, flat(y), out=rows)

    def squares(self, share):
        """The sum of squares of a share of the gradient."""
        return sum(np.vdot(g, g) for g in blocks(self.weights.flat[1, share]))

    def update(self, share, scale, learning_rate, correction1, correction2):
        """Adam for a share of the weights, with fewer roundings."""
        a, training = np.empty(BLOCK, self.weights.flat.dtype), self.training
        root = math.sqrt(correction2)
        for w, g, m, v in zip(*map(blocks, self.weights.flat[:, share])):
            a = a[:len(w)]
            if scale != 1:
                g *= scale
            if training.weight_decay:
                w *= 1 - learning_rate * training.weight_decay
            np.subtract(g, m, out=a)
            a *= 1 - training.beta1
            m += a
            np.multiply(g, g, out=a)
            a -= v
            a *= 1 - training.beta2
            v += a
            np.sqrt(v, out=a)
            a += training.eps * root
            np.divide(m, a, out=a)
            a *= learning_rate * root / correction1
            w -= a
