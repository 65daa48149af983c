"""Models that are drawn: a port is to compute whatever one may ask of it.

What is drawn follows from a seed and a number: every choice by its words, the
sizes, ids and masks, what is computed, and by which settings. Choices are dealt
as cards are: no word comes twice before each has come once, so that a few draws
have every word. The first draws have one set of sizes, so that what compiles
does so once; from then on each has its own, one of them large.

docs/properties.md says what is asked of a port, in words.
"""

import dataclasses
import functools
import re

import numpy as np

import transformer_contract.generation
import transformer_contract.training
from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.config import DEPENDENT, PLAIN, TransformerConfig
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import cases, covering, kinks, training_runs, wide
from parity.check.cases import Case
from parity.check.generation import SearchCase
from parity.numerics.dtypes import BOTH

#: How many draws share one set of sizes, and how many a port takes that does
#: not compile for each.
ALIKE, USUAL = 4, 16

#: How many rows a batch has, and how its lengths compare; "one" is one token.
ROWS, LENGTHS = (2, 1, 3, 5), ("equal", "shorter", "longer", "one")

#: Sizes: of one, ordinary and odd.
SIZES = {"d_model": (12, 16, 22), "n_heads": (1, 2, 3, 4), "d_ff": (5, 12, 21),
         "n_encoder_layers": (1, 2, 3), "n_decoder_layers": (1, 2, 3),
         "source_vocab": (13, 16, 29), "target_vocab": (11, 16, 31)}

#: What a size is where it is large, or one more: field or axis -> number.
FAR = {"rows": 32, "source": 256, "target": 2048, "layers": 12, "d_head": 128,
       "source_vocab": 2**17 + 1, "d_ff": 2048, "n_heads": 16, "d_model": 512}
CARDS = *FAR, "", "", ""

#: Which of these only one of the stacks has, so that a model has both.
OF_A_STACK = "source", "target", "layers", "source_vocab"

#: And which are compared in float64 alone: they take long, or pile errors up.
EXACT = "source", "target", "layers", "source_vocab"

#: What else a model is drawn by: field -> values.
NUMBERS = {
    "dropout": (0.1, 0.4, 0.75), "label_smoothing": (0.1, 0.0, 0.7),
    "norm_eps": (1e-6, 3e-2, 1e-3), "final_norm_eps": (1e-3, 1e-6, 2e-1),
    "position_start": (0, 2), "token_types": (0, 1, 3),
    "output_bias": (None, True, False), "rotary_base": (10000.0, 50.0),
    "relative_buckets": (8, 32, 300), "relative_distance": (17, 128)}

#: What values are dropped by, where some are.
KEY = 3, 2**32 - 1

#: How far apart the seeds of a draw's weights are.
APART = 2**20

#: The dtypes of ids, and in which order their bytes and places lie.
IDS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
       "uint64", ">i4", ">i8")
ORDERS = "C", "F"

#: Of training and of searches: field -> values; a zero is among most.
TRAININGS = {
    "warmup_steps": (1, 3, 50), "beta1": (0.0, 0.6, 0.9),
    "beta2": (0.98, 0.0, 0.9), "eps": (1e-3, 1e-2),
    "weight_decay": (0.0, 0.3), "clip_norm": (0.0, 0.02, 1e6),
    "seed": (0, 7, 2**32 + 5, 2**64 - 1)}
SEARCHES = {
    "beam": (1, 2, 5, 21), "alpha": (0.0, 0.6, 1.0, 1.7),
    "min_tokens": (1, 3),
    "no_repeat_ngram": (0, 1, 2), "temperature": (1.0, 0.3, 3.0, 30.0),
    "top_k": (0, 1, 5, 33), "top_p": (1.0, 0.3, 0.8, 0.05),
    "seed": (0, 2**40 + 7)}

#: How many tokens an answer has beside those that it must have, and the most
#: that it has with them.
FREE, LONGEST = (6, 1, 3), 11

#: How many tokens a source and a target have at least where gradients are
#: compared, and float32.
ENOUGH = 4

#: Of how many weights of an attention at most 0.4 is left out: of fewer more
#: might leave none.
FEW = 512

#: Of how many scores a batch of a layer is compared forward alone.
COSTLY = 2**20

#: What kernels are multiplied by in half of all draws, tables, and the kernels
#: behind which an activation stands.
SCALES = {"kernels": (1.5, 0.3), "tables": (0.2, 5), "inner": (30, 1)}


class Deal:
    """What a seed gives the draw of a number.

    Args:
        seed, number: whole numbers from 0.
    """

    def __init__(self, seed, number):
        self.seed, self.number = seed, number
        self._key = random.fold_in(random.key(seed), "drawn")

    def __call__(self, name, values):
        """One of some values; each comes once before one comes again."""
        turn, place = divmod(self.number, len(values))
        key = random.fold_in(random.fold_in(self._key, name), turn)
        order = np.argsort(random.bits(key, (len(values),)), kind="stable")
        return values[order[place]]

    def several(self, fields):
        """{field: one of its values} of {field: values}."""
        return {name: self(name, values) for name, values in fields.items()}


@dataclasses.dataclass(frozen=True)
class DrawnRun(training_runs.TrainingRun):
    """A drawn training run; its model is asked before and afterwards."""

    asked = True


@dataclasses.dataclass(frozen=True)
class DrawnModel:
    """One model, and what is asked of it.

    Attributes:
        seed, number: from which all follows.
        config: its TransformerConfig.
        shape: [B, S, T] of its batch.
        far: the size that is large, a key of FAR; "" where none is.
    """

    seed: int
    number: int
    config: TransformerConfig
    shape: tuple
    far: str

    @property
    def name(self):
        """As ``parity check --draw`` takes it, behind a word."""
        return f"drawn {self.seed}:{self.number}"

    @property
    def deal(self):
        """What its seed gives its number."""
        return Deal(self.seed, self.number)

    @property
    def scaled(self):
        """Whether its weights are of an odd scale, and no size is."""
        return not self.far and self.deal("odd", (False, True))

    @property
    def short(self):
        """Whether a sequence has so few keys that a softmax may have no slope,
        and a step so few numbers that their error is chance."""
        return min(self.shape[1:]) < ENOUGH

    @property
    def dtypes(self):
        """In which it is compared: float32 where no value is odd."""
        return BOTH[:1] if (
            self.scaled or self.short or self.far in EXACT) else BOTH

    @functools.cached_property
    def weights(self):
        """Float64 arrays by name; rounding decides nothing, as in kinks."""
        first = self.seed * 2**32 + self.number
        asked = [*filter(None, (self.forward, self.gradients))]
        return kinks.suited(
            self.config, asked, [dtype for dtype in self.dtypes
                                 if dtype in asked[-1].tiers][-1],
            (self._drawn_weights(first + again * APART)
             for again in range(kinks.MOST_SEEDS)))[1]

    def _drawn_weights(self, seed):
        """Float64 arrays by name that follow from a seed, of its scale."""
        arrays = probe_weights(self.config, seed)
        if not self.scaled:
            return arrays
        scales = self.deal.several(SCALES)
        if self.config.residual == "pre" and not self.config.final_norm:
            scales["kernels"] = min(scales["kernels"], 1)  # memory is large
        first = "gate" if self.config.gated else "inner"
        ends = {".kernel": "kernels", ".table": "tables",
                f".feed_forward.{first}.kernel": "inner"}
        for name, array in arrays.items():
            for end, what in ends.items():
                if name.endswith(end):
                    array *= scales[what]
        return arrays

    def ids(self, what, length, vocab):
        """Ids [B length] of some dtype and order, and padding anywhere.

        The highest and the lowest are among them.
        """
        first = self.deal(f"padding of {what}", range(5))
        ids = wide.padded(f"{what} {self.name}", self.shape[0], length, vocab,
                          self.config.pad_id, first)
        fitting = [dtype for dtype in IDS
                   if ids.max() <= np.iinfo(dtype).max]
        return np.array(ids, self.deal(f"ids of {what}", fitting),
                        order=self.deal(f"order of {what}", ORDERS))

    @property
    def batch(self):
        """Its Batch, with masks that follow from ids or are its own."""
        _, source, target = self.shape
        config = self.config
        batch = Batch.of_ids(
            self.ids("source", source, config.source_ids),
            self.ids("target", target, config.target_vocab), config.pad_id)
        if self.deal("masks", (False, True)):
            batch = dataclasses.replace(batch, **{
                what: self.mask(what, getattr(batch, what))
                for what in ("source_mask", "target_mask")})
        return batch.check(config)

    def mask(self, what, usual):
        """A mask of one's own: neither padding's nor causal, nor the inverse.

        In the first row nothing is hidden of the last two keys, without which
        nothing might be left to learn from.
        """
        own = cases.values(f"{what} {self.name}", *usual.shape) > -0.7
        own[0, ..., -2:] = True
        own[0, 0, 0, 0] = usual[0, 0, 0, 0]
        if not (own & usual).any():  # it is refused, as an inverse is
            own[0] |= usual[0]
        return own

    @property
    def costly(self):
        """Whether it is compared forward alone."""
        rows, *lengths = self.shape
        return rows * self.config.n_heads * max(lengths)**2 > COSTLY

    def cases(self, form):
        """Masks and a loss of ids alone, and each step forward.

        A fast form goes over blocks where tokens are many, and keeps no scores
        and no weights. Then it is asked for what the model answers alone.
        """
        config, target = self.config, self.batch.target
        yield Case("masks", "masks", (self.batch.source, target), kind="masks")
        yield Case("loss", "loss", (cases.values(
            f"logits {self.name}", *target.shape, config.target_vocab),
            self.labels), kind="loss", smoothing=(
                config.label_smoothing, config.smoothing))
        yield (dataclasses.replace(
            self.forward, kind="outputs", returned=False)
               if form == "fast" and self.far == "target" else self.forward)

    @property
    def forward(self):
        """The Case of every step forward."""
        return Case(
            "forward", "transformer", tuple(self.batch), returned=True)

    @property
    def labels(self):
        """What each position is to predict: ids [B T]."""
        return self.ids("labels", self.shape[2], self.config.target_vocab)

    @property
    def gradients(self):
        """The Case of each gradient, without some values; or None.

        What is kept of few values is multiplied, as is its rounding; and of
        many ReLUs some are decided by it in float32.
        """
        if self.costly or self.scaled or self.short:
            return None
        few = self.config.dropout > 0.5
        return Case("gradients", "transformer", (*self.batch, self.labels),
                    kind="gradients", key=self.deal("key", (KEY, None)),
                    tiers=BOTH[:1] if few or self.far else BOTH)

    @property
    def run(self):
        """Its TrainingRun; None where rounding would be learned."""
        deal, config = self.deal, self.config
        _, source, target = self.shape
        words = deal.several(transformer_contract.training.CHOICES | {
            "masks": ("named",)}) | deal.several(TRAININGS)
        if (self.far in EXACT or self.gradients is None
                or not training_runs.go_together(
                    dataclasses.asdict(config) | words)):
            return None
        if words["optimizer"] == "adam":
            words["weight_decay"] = 0.0
        rate = 0.01 if words["schedule"] == "constant" else 0.1
        shapes = ("source", source, config.source_ids), (
            "target", target + 1, config.target_vocab)
        return DrawnRun(
            name="training", config=config,
            training=TrainingConfig(learning_rate=rate, **words),
            pairs=self.pairs(shapes))

    def pairs(self, shapes):
        """Ids of sources and targets, each step; the last may teach nothing.

        Then every gradient is zero, and moments alone move the weights.
        """
        found = [tuple(self.several(*each, step) for each in shapes)
                 for step in range(self.deal("steps", (2, 3)))]
        if self.deal("nothing to learn", (False, True)):
            found[-1][1][..., 1:] = self.config.pad_id
        return tuple(found)

    def several(self, what, length, vocab, step):
        """Ids [A B length] of a step of training."""
        batches = [self.ids(f"{what} {step} {i}", length, vocab)
                   for i in range(self.deal("accumulated", (1, 2)))]
        return np.stack(batches, dtype=batches[0].dtype, casting="unsafe")

    @property
    def search(self):
        """Its SearchCase in float64; None of an encoder alone."""
        deal, config = self.deal, self.config
        if config.stacks == "encoder" or self.costly:
            return None
        words = deal.several(
            transformer_contract.generation.CHOICES | SEARCHES) | {
                "top_p_of_top_k": deal("top_p_of_top_k", (False, True)),
                "allow_padding": not config.position_padding and deal(
                    "allow_padding", (False, True))}
        others = [i for i in range(config.target_vocab) if i != config.pad_id]
        first, second, third, *several = others
        words |= {
            "bos_id": deal("bos", (first, others[-1])),
            "eos_id": deal("eos", (second, others[-2], first)),
            "prompt": deal("prompt", ((), (third,), tuple(several[:3]))),
            "forced_bos_id": deal("forced bos", (None, third)),
            "forced_eos_id": deal("forced eos", (None, second)),
            "suppress_tokens": deal("suppressed", ((), tuple(several[1:3]))),
            "begin_suppress_tokens": deal("not first", ((), (others[-3],))),
            "more_eos_ids": deal("more ends", ((), (several[3],)))}
        forced = len(words["prompt"]) + sum(
            words[field] is not None
            for field in ("forced_bos_id", "forced_eos_id"))
        return SearchCase(words["method"], GenerationConfig(
            max_tokens=forced + deal("free", FREE), **words), BOTH[:1])


def drawn(seed, number):
    """The DrawnModel of a seed and a number."""
    deal = Deal(seed, number)
    sizes, shape, far = sizes_of(Deal(seed, max(0, number - ALIKE + 1)))
    words = {"stacks": "both"} if far in OF_A_STACK else {}
    for field, allowed in covering.choices().items():
        if field not in words:
            words[field] = deal(field, [
                word for word in allowed
                if covering.possible({**words, field: word})])
    numbers = deal.several(NUMBERS)
    if words["positions"].startswith("rotary"):
        sizes["d_head"] += sizes["d_head"] % 2
    if words["stacks"] == "encoder":
        shape = *shape[:2], shape[1]  # a label for each
    if words["tied"] in ("embeddings", "all") or (
            words["tied"] == "output" and words["stacks"] == "encoder"):
        sizes["target_vocab"] = sizes["source_vocab"]
    if numbers["relative_buckets"] > numbers["relative_distance"]:
        numbers["relative_distance"] = numbers["relative_buckets"]
    if words["norm"] == "rms":
        numbers["norm_rounding"] = deal(
            "norm_rounding", DEPENDENT["norm_rounding"])
    weights = shape[0] * sizes["n_heads"] * min(shape[1:])**2
    # A standard deviation has no gradient at a row of which all is dropped.
    if weights < FEW or "std" in words["norm"]:
        numbers["dropout"] = min(numbers["dropout"], 0.4)
    # With rounding the gradient of a key's bias is that, and no longer zero.
    # And of millions of scores some lie in the middle of two that are rounded.
    if words["attention_bias"] != "all" and far not in ("rows", "target"):
        numbers["softmax_rounding"] = deal(
            "softmax_rounding", DEPENDENT["softmax_rounding"])
    least = min(sizes["source_vocab"], sizes["target_vocab"])
    longest = max(shape[1:]) + LONGEST
    config = PLAIN.replace(
        **sizes, **words, **numbers, pad_id=deal("pad_id", (3, 1, least - 1)),
        max_length=longest, source_max_length=deal(
            "source_max_length", (None, longest + 4)))
    return DrawnModel(seed, number, config, shape, far)


def of_name(name):
    """The DrawnModel that a table calls so, or None."""
    words = re.fullmatch(r"drawn (\d+):(\d+)", name)
    return words and drawn(*map(int, words.groups()))


def sizes_of(deal):
    """Sizes of a model, [B, S, T], and which of all is far, "" if none is.

    Where a length is far, or a model is deep, all else is small.
    """
    sizes = deal.several(SIZES)
    length = deal("length", (4, 7, 8, 18))
    # The first batches are all that is asked of what compiles: of two rows,
    # where those of presets have more.
    rows = deal("rows", ROWS) if deal.number else 2
    shape = {"rows": rows, "source": length, "target": {
        "equal": length, "shorter": length // 2, "longer": length + 3,
        "one": 1}[deal("lengths", LENGTHS)]}
    sizes["d_head"] = deal("d_head", (4, 5, 8))
    far = deal.number and Deal(deal.seed, deal.number - 1)("far", CARDS) or ""
    size = far and FAR[far] + (1 + (far == "d_model")) * deal("past", (0, 1))
    if far:  # so that it has gradients
        shape["target"] = max(shape["target"], ENOUGH)
    if far in ("source", "target", "layers"):
        shape["rows"] = sizes["n_heads"] = 1
    if far == "layers":
        sizes["n_encoder_layers"] = sizes["n_decoder_layers"] = size
    elif far:
        (shape if far in shape else sizes)[far] = size
    sizes["n_kv_heads"] = deal("kv", (None, 1, sizes["n_heads"]))
    return sizes, tuple(shape.values()), far


@dataclasses.dataclass(frozen=True)
class Draws:
    """Which models are drawn, and how much of them ports are asked.

    Attributes:
        seed: from which they follow.
        numbers: of the draws.
        whole: whether all is asked of what compiles, seconds for each model.
    """

    seed: int = 0
    numbers: tuple | range = ()
    whole: bool = False

    def models(self):
        """Each of the models."""
        return [drawn(self.seed, number) for number in self.numbers]

    def asked(self, number, what, compiles):
        """Whether a port is asked for "cases" of a draw, or for "works".

        Args:
            compiles: whether it compiles anew for each size.
        """
        return self.whole or not compiles or (
            what == "cases" and number < ALIKE)


NONE = Draws()
