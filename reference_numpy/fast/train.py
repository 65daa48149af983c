"""The training step of train.py, made for speed.

The readable form defines what is computed; this one computes the same, to
rounding. What makes it fast:

- The rows of a batch are shared out to threads, as many as there are
  processors, since NumPy lets go of Python's lock while it computes. Whoever
  calls this gives BLAS one thread (``OPENBLAS_NUM_THREADS=1``).
- Padding behind the rows is left out; only attention sees the whole batch.
- Arrays are kept from step to step, and a thread's are some rows of arrays of
  all rows. So the gradient of a kernel is one product over the whole batch,
  made when all threads have come back through a sub-layer, and comes out the
  same at every run. Then what the sub-layer had serves another.
- All weights are views of one flat array, and likewise their gradients and
  moments: Adam goes through them once, in blocks that stay in the cache. Maps
  of one input, such as those to query, key and value, are concatenated.
- Softmax, cross-entropy, dropout and norms overwrite what is no longer needed.
"""

import concurrent.futures
import dataclasses
import functools
import math
import os
import threading

import numpy as np

from transformer_contract import fast_forms, packing
from transformer_contract.dropping import places
from reference_numpy import parts, random
from reference_numpy.dropout import draw
from reference_numpy.fast.packing import PackedSide, share_out
from reference_numpy.fast.rows import Pairs, Rows
from reference_numpy.fast.weights import BLOCK, Weights, blocks
from reference_numpy.masks import padding_mask
from reference_numpy.parameters import paths

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
       "position_start", "source_max_length", "padding_learns"}


def known(config):
    """The words of a config's fields that are computed here, by field."""
    return {field.name: KNOWN.get(field.name, (field.default,))
            for field in dataclasses.fields(config) if field.name not in ANY}


def covers(config):
    """Whether all that a config says is computed here."""
    return not fast_forms.unknown(config, known(config))


def together(pool, barrier, functions):
    """What functions return that meet at a barrier, each in a thread.

    The first one's is this thread. If one fails the others do not wait for it,
    and its error is raised.
    """
    def ended(function):
        try:
            return function(), None
        except BaseException as error:
            barrier.abort()
            return None, error

    futures = [pool.submit(ended, function) for function in functions[1:]]
    returned, errors = zip(
        ended(functions[0]), *(future.result() for future in futures))
    for error in sorted(filter(None, errors), key=lambda error: isinstance(
            error, threading.BrokenBarrierError)):
        raise error
    return returned


class Trainer:
    """See reference_numpy.train; the same arguments and attributes."""

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = parts.optimizer(training, model.config.d_model)
        self.weights, self.arrays, self.shape = Weights(model), {}, None
        self.m, self.v = self.weights.m, self.weights.v
        self.unlearned = getattr(model.source_embedding, "unlearned", None)
        self.threads = len(os.sched_getaffinity(0)) if hasattr(
            os, "sched_getaffinity") else os.cpu_count()

    @functools.cached_property
    def pool(self):
        """The threads, which all work at once."""
        return concurrent.futures.ThreadPoolExecutor(self.threads)

    def __getstate__(self):
        """All but the threads, which every copy starts for itself."""
        return {name: value for name, value in vars(self).items()
                if name != "pool"}

    def adopt(self):
        """Take over weights and moments that were replaced since."""
        m, v = self.m, self.v
        if not self.weights.are_those_of(self.model):
            self.weights = Weights(self.model)
        self.m, self.v = self.weights.m, self.weights.v
        for kept, given in (self.m, m), (self.v, v):
            if kept is not given:
                for i, moment in enumerate(given):
                    kept[i] = moment

    def train_step(self, sources, targets):
        """Make one step on A batches, as Trainer does."""
        self.adopt()
        self.step += 1
        key = random.fold_in(random.fold_in(
            random.key(self.training.seed), "dropout"), self.step)
        count = max(np.sum(targets[:, :, 1:] != self.model.config.pad_id), 1)
        loss = sum(self.run(source, target, count, random.fold_in(key, i), i)
                   for i, (source, target) in enumerate(zip(sources, targets)))
        settings = self.optimizer.settings(self.step)
        slices = share_out(self.weights.flat.shape[1], self.threads)
        norm, limit = math.sqrt(sum(self.pool.map(self.squares, slices))), (
            self.training.clip_norm)
        scale = limit / norm if limit and norm > limit else 1
        list(self.pool.map(
            lambda share: self.update(share, scale, *settings), slices))
        dtype = self.weights.flat.dtype.type
        return dtype(loss), dtype(norm), settings[0]

    def run(self, source, target, count, key, number):
        """Add a batch's gradient to those before it; its part of the loss."""
        read, labels = target[:, :-1], target[:, 1:]
        if self.shape != (*source.shape, *read.shape):
            self.shape, self.arrays = (*source.shape, *read.shape), {}
        pairs = self.pairs(source, read, labels, count, key)
        shares = pairs.source.rows
        barrier = threading.Barrier(len(shares))

        def meet(products, share):
            """Multiply what all threads have brought, each a part."""
            barrier.wait()
            self.multiply(products, share, len(shares), number > 0)
            barrier.wait()

        passes = [Rows(self.model.config, self.weights, self.arrays, pairs,
                       share, meet) for share in range(len(shares))]
        loss = sum(together(self.pool, barrier, [
            functools.partial(one.run, self.model) for one in passes]))
        for gradient, summands in passes[0].sums:
            gradient[...] = summands.sum(axis=0) + (number > 0) * gradient
        for gradient, tokens, summands in passes[0].lookups:
            if not (self.model.config.output_tied or number):
                gradient[...] = 0
            for token, summand in zip(tokens, summands):
                if token != self.unlearned:
                    gradient[token] += summand
        return loss

    def pairs(self, source, read, labels, count, key):
        """What is known of a batch: Pairs."""
        config = self.model.config
        rows = share_out(len(source), self.threads)
        sides = dict(zip(("source", "target"), (
            PackedSide(ids, lengths, rows) for ids, lengths in zip(
                (source, read), packing.lengths(config, source, labels)))))
        drawn = draw(key, places(config, *source.shape, read.shape[1]),
                     config.dropout, self.training.masks == "native")
        inside = {"source_positions": "source", "encoder": "source",
                  "target_positions": "target", "decoder": "target"}
        for path, kept in drawn.items():
            if not path.endswith("weights_dropout"):
                side = sides[inside[path.partition(".")[0]]]
                drawn[path] = kept.reshape(-1, kept.shape[-1])[side.places]
        drawn = {module: drawn[path] for module, path
                 in paths(self.model).items() if path in drawn}
        masks = (padding_mask(source, config.pad_id),
                 parts.decoder_mask(config)(read, config.pad_id))
        return Pairs(*sides.values(), labels.ravel()[sides["target"].places],
                     masks, count, drawn)

    def multiply(self, products, share, shares, more):
        """A thread's rows of every kernel's gradient."""
        for gradient, x, y in products:
            rows = share_out(len(gradient), shares)
            if share < len(rows):
                x_rows, part = x[:, rows[share]].T, gradient[rows[share]]
                if more:
                    part += x_rows @ y
                else:
                    np.matmul(x_rows, y, out=part)

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
