"""What the wide check compares: other models, shapes and values than presets.

``models()`` are plain data: each has a name, a config, weights and Cases, which
an EngineRunner of any engine runs. Every two words of two choices meet in one
of them (parity.check.covering), and what else a config or a batch can vary is
varied over them. To run all of them on one engine, without processes of the
reference::

    for model in wide.models():
        truths = Reference(model.config, model.weights(), "float64")
        runner = EngineRunner(engine, model.config, model.weights(), "float64")
        for case in model.cases():
            truth = truths.truth(case)
            compare_steps(runner.steps(case, case.inputs), truth, "float64")

Models are few in size and many in kind: JAX and Keras compile for each shape,
so that another variant of the same sizes costs little, and another size does.
"""

import dataclasses
import functools

import numpy as np

from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.config import (
    CHOICES, DEPENDENT, PLAIN, TransformerConfig)
from transformer_contract.weights import probe_weights
from parity.check import cases, covering
from parity.check.cases import Case

#: What is compared in: float64, which alone tells any error from rounding.
TIERS = ("float64",)

#: The sizes of models, in turn. No two numbers of one are equal. "batches" are
#: [B, S, T]; "width" is d_model; of "kv_heads" each model takes one in turn.
SIZES = (
    {"batches": ((4, 13, 17), (1, 16, 16)), "width": 42, "n_heads": 3,
     "kv_heads": (1, 3), "d_head": 10, "d_ff": 26, "layers": (1, 2),
     "vocabs": (29, 31),
     "max_length": 19},
    {"batches": ((6, 7, 5), (2, 1, 5), (2, 7, 1), (12, 1, 1)), "width": 30,
     "n_heads": 1, "kv_heads": (None,), "d_head": 34, "d_ff": 22,
     "layers": (3, 4), "vocabs": (23, 19), "max_length": 9},
    {"batches": ((3, 131, 67),), "width": 48, "n_heads": 6,
     "kv_heads": (3, None, 1), "d_head": None, "d_ff": 18,
     "layers": (1, 4), "vocabs": (43, 47), "max_length": 149},
    {"batches": ((11, 6, 8),), "width": 520, "n_heads": 5,
     "kv_heads": (None, 5, 1), "d_head": None, "d_ff": 24,
     "layers": (1, 2), "vocabs": (15, 17), "max_length": 21},
)

#: pad_id, bos_id and eos_id of models, in turn; -1 is the highest id.
SPECIAL = ((5, 3, 7), (-1, 4, 6), (0, 9, 11), (9, 8, 0), (6, 0, -1))

#: (norm_eps, final_norm_eps), in turn.
EPSILONS = ((1e-6, 1e-2), (3e-2, 4e-3), (1e-3, 2e-1))

#: (dropout, label_smoothing), in turn.
RATES = ((0.1, 0.25), (0.37, 0.1), (0.5, 0.03))

#: (position_start, rows of the source's table beside the target's), in turn.
STARTS = ((0, None), (2, 3), (0, 7), (1, None), (2, None))

#: (token_types, output_bias), in turn.
MORE = ((0, None), (3, True), (0, False), (2, None), (0, True), (1, None),
        (0, False))

#: Of positions in attention (rotary_base, relative_buckets,
#: relative_distance), in turn.
ATTENTION_POSITIONS = ((10000.0, 32, 128), (50.0, 8, 11), (5e5, 16, 40))

#: What (kernels, tables) are multiplied by, in turn.
SCALES = ((1, 1), (1.5, 0.2), (0.3, 7))

#: Where a sequence is padded, from row to row.
PADDINGS = ("nowhere", "left", "middle", "right", "both sides", "everywhere")


@dataclasses.dataclass(frozen=True)
class WideModel:
    """One model of the wide check.

    Attributes:
        name: "wide 1", "wide 2", …
        number: from 0; what is taken in turn is taken by it.
        config: its TransformerConfig.
        bos_id, eos_id: for searches.
        shapes: [B, S, T] of its batches, the main one first.
    """

    name: str
    number: int
    config: TransformerConfig
    bos_id: int
    eos_id: int
    shapes: tuple

    def weights(self):
        """Float64 arrays by name, none of a usual scale.

        One feature inside each feed-forward network is zero for every input,
        which is where a ReLU has no slope.
        """
        kernels, tables = SCALES[self.number % len(SCALES)]
        if self.config.residual == "pre" and not self.config.final_norm:
            kernels = min(kernels, 1)  # the memory is large as it is
        first = "gate" if self.config.gated else "inner"
        arrays = probe_weights(self.config, 100 + self.number)
        for name, array in arrays.items():
            if name.endswith(".kernel"):
                array *= kernels
            if name.endswith(".table"):
                array *= tables
            if f".feed_forward.{first}." in name:
                array[..., 0] = 0
        return arrays

    def batch(self, shape, other=0):
        """A Batch of [B, S, T]; ``other`` ones have other ids and padding."""
        rows, source, target = shape
        if self.config.stacks == "encoder":
            target = source  # a label for each
        config, first = self.config, self.number + 3 * other
        name = f"{self.name} {shape} {other}"
        return Batch.of_ids(
            padded(f"source, {name}", rows, source, config.source_ids,
                   config.pad_id, first),
            padded(f"target, {name}", rows, target, config.target_vocab,
                   config.pad_id, first + rows % 2 + 1),
            config.pad_id).check(config)

    @property
    def main(self):
        """The batch of most cases."""
        return self.batch(self.shapes[0])

    def cases(self):
        """Every Case to run on this model."""
        yield from component_cases(self)
        yield from value_cases(self)
        yield from loss_cases(self)
        yield from model_cases(self)


@functools.cache
def models():
    """The WideModels, as many as it takes for all pairs of choices."""
    return [model(number, words) for number, words
            in enumerate(covering.covering(
                covering.choices(), covering.possible))]


def model(number, words):
    """The WideModel of a number and of words, {field: word}."""
    def turn(values):
        return values[number % len(values)]

    sizes = turn(SIZES)
    kv_heads = sizes["kv_heads"]
    source_vocab, target_vocab = sizes["vocabs"]
    if words["tied"] in ("embeddings", "all") or (
            words["tied"] == "output" and words["stacks"] == "encoder"):
        target_vocab = source_vocab
    pad_id, bos_id, eos_id = (
        i % min(source_vocab, target_vocab) for i in turn(SPECIAL))
    norm_eps, final_norm_eps = turn(EPSILONS)
    dropout, label_smoothing = turn(RATES)
    base, buckets, distance = turn(ATTENTION_POSITIONS)
    rounding = DEPENDENT["norm_rounding"] if words["norm"] == "rms" else (
        "none",)
    # With rounding the gradient of a key's bias is that, and no longer zero.
    softmax_rounding = ("none",) if words["attention_bias"] == "all" else (
        DEPENDENT["softmax_rounding"])
    start, longer = turn(STARTS)
    token_types, output_bias = turn(MORE)
    config = PLAIN.replace(
        source_vocab=source_vocab, target_vocab=target_vocab,
        d_model=sizes["width"], n_heads=sizes["n_heads"],
        n_kv_heads=kv_heads[number // len(SIZES) % len(kv_heads)],
        d_head=sizes["d_head"], d_ff=sizes["d_ff"],
        n_encoder_layers=sizes["layers"][0],
        n_decoder_layers=sizes["layers"][1], max_length=sizes["max_length"],
        pad_id=pad_id, norm_eps=norm_eps, final_norm_eps=final_norm_eps,
        dropout=dropout, label_smoothing=label_smoothing, rotary_base=base,
        relative_buckets=buckets, relative_distance=distance,
        norm_rounding=turn(rounding),
        softmax_rounding=turn(softmax_rounding),
        position_start=start, token_types=token_types,
        output_bias=output_bias,
        source_max_length=longer and sizes["max_length"] + longer, **words)
    return WideModel(f"wide {number + 1}", number, config, bos_id, eos_id,
                     sizes["batches"])


def padding(kind, length):
    """Which places of a sequence are padding: bool [length]."""
    place, part = np.arange(length), length // 3
    left, right = place < part, place >= length - part
    return {"nowhere": place < 0, "left": left, "right": right,
            "middle": ~left & (place < 2 * part), "both sides": left | right,
            "everywhere": place >= 0}[kind]


def padded(name, rows, length, vocab, pad_id, first):
    """Ids [rows length] of all but padding, and padding where rows have it.

    The first two that are not padding are the highest id and the lowest.

    Args:
        name: from which ids follow.
        first: which of PADDINGS the first row has; the others go on.
    """
    unit = random.uniform(
        random.fold_in(random.key(0), name), (rows, length), 0.0, 1.0)
    others = np.delete(np.arange(vocab), pad_id)
    ids = others[(unit * len(others)).astype(np.int64)]
    hidden = np.stack([
        padding(PADDINGS[(first + row) % len(PADDINGS)], length)
        for row in range(rows)])
    seen = np.argwhere(~hidden)[:2]
    for (row, column), highest in zip(seen, (-1, 0)):
        ids[row, column] = others[highest]
    return np.where(hidden, pad_id, ids)


#: Cases of a component that another size or variant says nothing new of.
ONCE = ("positional_encoding, 5000 positions",)


def component_cases(model):
    """Every component alone, at the model's sizes, with what it returns."""
    for case in cases.component_cases(model.config, model.main):
        if case.kind != "optimizer" and case.name not in ONCE:
            yield dataclasses.replace(
                case, returned=case.kind == "run", tiers=TIERS)


def value_cases(model):
    """Components on values that are large, zero or equal."""
    config, batch = model.config, model.main
    mask, shape = batch.source_mask, (*batch.source.shape, config.d_model)
    usual = cases.values("extreme", *shape)
    zeros = usual.copy()
    zeros[:, ::2] = 0
    zeros[..., : config.d_model // 2] = 0
    ties = np.round(usual)
    ties[:, 1::2] = ties[:, :1]
    layer = cases.first_layer(config)
    stack = layer.partition(".")[0]
    for values, x, more in (("large", 10 * usual, 30), ("zeros", zeros, 1),
                            ("ties", ties, 1)):
        for component, path, inputs in (
                ("norm", f"{layer}.self_attention_residual.norm", (more * x,)),
                ("multi_head_attention", f"{layer}.self_attention",
                 (x, x, mask)),
                ("feed_forward", f"{layer}.feed_forward", (more * x,)),
                *((("head", "head", (more * x,)),)
                  if config.output_transform else ()),
                ("projection", "projection", (more * x,)),
                (stack, stack, (x, mask))):
            yield Case(f"{component}, {values}", component, inputs, path=path,
                       nested=False, returned=True, tiers=TIERS)


def loss_cases(model):
    """Each convention without smoothing, on large and on equal logits."""
    config, labels = model.config, model.main.target
    logits = cases.values("logits", *labels.shape, config.target_vocab)
    for convention in CHOICES["smoothing"]:
        for name, x, epsilon in (
                ("no smoothing", logits, 0.0),
                ("large", 1000 * logits, config.label_smoothing),
                ("ties", np.round(logits), config.label_smoothing)):
            yield Case(f"loss, {convention}, {name}", "loss", (x, labels),
                       kind="loss", smoothing=(epsilon, convention),
                       tiers=TIERS)
        yield Case(f"loss, {convention}, padding alone", "loss",
                   (logits, np.full_like(labels, config.pad_id)),
                   kind="padding_loss", tiers=TIERS,
                   smoothing=(config.label_smoothing, convention))


def model_cases(model):
    """The whole model: batches, ways to ask it, dropout, gradients."""
    main, other = model.main, model.batch(model.shapes[0], other=1)
    whole = functools.partial(Case, component="transformer", tiers=TIERS)
    for shape in model.shapes[1:]:
        batch = model.batch(shape)
        yield Case("masks, batch of {} of {} and {}".format(*shape), "masks",
                   (batch.source, batch.target), kind="masks", tiers=TIERS)
    for shape in model.shapes:
        yield whole("transformer, batch of {} of {} and {}".format(*shape),
                    inputs=tuple(model.batch(shape)), returned=True)
    yield whole("transformer, every way to ask", inputs=tuple(other),
                kind="outputs")
    yield whole("transformer, asked again", inputs=(*main, *other),
                kind="again")
    if model.number < len(SIZES):  # each is compiled anew
        yield whole("transformer, compiled where it can be",
                    inputs=(*main, *other), kind="compiled")
        yield whole("transformer's output", inputs=tuple(main),
                    kind="predict")
    yield whole("transformer, dropout", inputs=tuple(main), kind="forward",
                key=(2**32 - 1 - model.number, 7))
    yield whole("weights, handed out", inputs=(), kind="exported")
    yield whole("weights, initial", kind="initial", inputs=(
        np.array([2**32 * (model.number % 2) + 5 * model.number + 1]),))
    gradients = cases.gradients_case(main, model.config.pad_id)
    yield dataclasses.replace(
        gradients, tiers=TIERS,
        key=(model.number, 2**31) if model.number % 2 else None)
