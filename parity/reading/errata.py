"""Errors that lessons share, each shown by a small computation.

Everything is computed by the reference on the shipped model when the page is
made: once as it should be, once with the error.
"""

import dataclasses
import importlib
import math

import ml_dtypes
import numpy as np

from transformer_contract import checks, random
from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.generation import GenerationConfig
from parity.check import golden
from parity.check.run import LONGEST
from parity.numerics.comparator import relative_error
from parity.reading.shipped_model import MAPS
from parity.render.pictures import number, percent
from parity.runs import translation


@dataclasses.dataclass(frozen=True)
class Erratum:
    """An error and what it does.

    Attributes:
        id: its anchor.
        title, text: what it is, in words.
        rows: (what is looked at, as it should be, with the error), words.
        meaning: what the numbers say.
        test: the test that holds the right way.
        cause: its name among parity.causes; "" where it is none of those.
    """

    id: str
    title: str
    text: str
    rows: tuple
    meaning: str
    test: str
    cause: str = ""


class Bench:
    """The shipped model in the reference, on the worked example."""

    def __init__(self, values):
        self.values, self.config = values, values.config
        self.engine, self.weights = values.engines["numpy"], values.weights
        self.tokenizer = values.tokenizer
        self.model = self.build(self.config)
        self.batch = values.dates.batch
        self.steps = values.dates.steps["numpy"]

    def build(self, config):
        """The shipped weights as a model of another configuration."""
        return self.engine.build("transformer", config, self.weights)

    def part(self, name):
        """A module of the reference's package, by name."""
        return importlib.import_module(f"{self.engine.__package__}.{name}")

    def answer(self, output):
        """What the highest scores of the first row spell."""
        return self.tokenizer.decode(np.argmax(output[0], axis=-1))


def all_of(values):
    """Every Erratum, in order."""
    bench = Bench(values)
    return [make(bench) for make in (
        masks_upside_down, no_residuals, width_for_epsilon,
        one_mask_row_too_many, identical_beams, one_row_ends_all,
        after_dropout, positions_in_float32, padding_attended,
        scale_in_float32)]


def masks_upside_down(bench):
    """True means hide in one library and keep in another."""
    source, target, source_mask, target_mask = bench.batch
    wrong = bench.engine.forward(
        bench.model, source, target, source_mask, ~target_mask)
    name = "decoder.layers.0.self_attention.weights"
    future = np.triu(np.ones(target_mask.shape[-2:], bool), 1)

    def share(steps):
        return percent(steps[name][..., future].sum() / steps[name].sum())

    return Erratum(
        "masks", "A mask that hides what it should show",
        "A mask is built with True for what must not be seen, and then given "
        "to a function that reads True as what may be seen.",
        (("share of the decoder's self-attention that looks ahead",
          share(bench.steps), share(wrong)),
         ("what the model answers, position by position",
          bench.answer(bench.steps["output"]),
          bench.answer(wrong["output"]))),
        "Nothing fails and every shape is right, yet the decoder sees nothing "
        "but what it is asked to predict. In training the loss then falls "
        "quickly, because the answer is in view.",
        "test_errors.py::test_mask_must_be_boolean",
        cause="mask's polarity turned round in attention")


def no_residuals(bench):
    """A layer whose sums and norms were only described."""
    layer = bench.model.encoder.layers[0]
    x = bench.steps["source_positions.positioned"]
    attended, _ = layer.self_attention.forward(
        x, x, bench.batch.source_mask, None)
    bare, _ = layer.feed_forward.forward(attended)
    right = bench.steps["encoder.layers.0.output"]
    error, _ = relative_error(bare, right)
    cosine = (bare * right).sum() / np.linalg.norm(bare) / np.linalg.norm(
        right)
    return Erratum(
        "residuals", "Residual sums and norms that stand in comments only",
        "The comments of an encoder layer speak of adding the input and of "
        "normalising; the code hands one part's output to the next.",
        (("spread of the layer's output", number(right.std()),
          number(bare.std())),
         ("relative distance from the layer as defined", "0", number(error)),
         ("cosine between both", "1", number(cosine))),
        "What the layer was meant to add to its input is all that is handed "
        "on, and nothing holds its size: the next layer reads vectors of "
        "another length and another direction.",
        "test_reference.py::test_residuals_written_out",
        cause="no residual connection")


def width_for_epsilon(bench):
    """A second argument that is read as epsilon."""
    width = float(bench.config.d_model)
    wrong = bench.engine.forward(
        bench.build(bench.config.replace(norm_eps=width)), *bench.batch)
    name = "encoder.layers.0.self_attention_residual.norm.normalized"
    return Erratum(
        "epsilon", "d_model handed over as epsilon",
        f"A norm that is made by Norm(d_model), and whose first parameter is "
        f"epsilon, adds {number(width)} where {number(bench.config.norm_eps)} "
        "was meant.",
        (("spread of the first norm's values", number(
            bench.steps[name].std()), number(wrong[name].std())),
         ("what the model answers", bench.answer(bench.steps["output"]),
          bench.answer(wrong["output"]))),
        "A norm should make the spread 1. With so large an epsilon it shrinks "
        "every vector instead. A model that is trained so learns all the "
        "same, which is why it goes unseen; one that is loaded does not work.",
        "test_reference.py::test_components_epsilon_erratum",
        cause="final norm's ε is d_model")


def one_mask_row_too_many(bench):
    """The mask of the whole target beside the shifted one."""
    target = bench.batch.target
    whole = target.shape[1] + 1
    mask = np.tri(whole, dtype=bool)[None, None]
    length = target.shape[1]
    try:
        checks.mask(mask, (1, 1, length, length))
        words = "accepted"
    except InputError as error:
        words = str(error)
    return Erratum(
        "shifted", "A look-ahead mask for the target before it is shifted",
        "The decoder reads the target without its last token, but the mask "
        "was made for all of it.",
        (("tokens that the decoder reads", str(length), str(length)),
         ("rows and columns of the mask", f"{length} × {length}",
          f"{whole} × {whole}"),
         ("what this project says", "nothing", words)),
        "NumPy, PyTorch and JAX would fail in the middle of attention, with "
        "words about shapes that do not fit. Here the mask is looked at where "
        "it enters.",
        "test_errors.py::test_mask_must_be_boolean")


def identical_beams(bench):
    """All beams alive at the first step."""
    width, vocab = 4, bench.config.target_vocab
    log_probs = bench.part("projection").log_softmax(
        bench.steps["output"][0, 0])

    def tokens(scores):
        best = np.argsort(-scores.ravel(), kind="stable")[:width]
        return " ".join(repr(bench.tokenizer.tokens([i % vocab])[0])
                        for i in best)

    equal = np.tile(log_probs, (width, 1))
    one = np.full_like(equal, -np.inf)
    one[0] = log_probs
    answer = bench.values.answers["numpy"]
    row = answer["tokens"][0, 0]
    ended = int((row == bench.tokenizer.eos_id).argmax())
    ids = np.where(row == 0, bench.tokenizer.eos_id, row)[None]
    batch = Batch.of_ids(bench.batch.source, ids)
    output = bench.engine.forward(bench.model, *batch)["output"]
    after = bench.part("projection").log_softmax(output)[0, ended]
    score = float(answer["scores"][0, 0])
    return Erratum(
        "beams", "A beam search whose beams are all the same",
        f"The search starts from {width} equal beams, each with score 0. The "
        f"{width} best continuations are then one token, {width} times.",
        ((f"the {width} beams after the first token", tokens(one),
          tokens(equal)),
         ("score of the ended answer", number(score, 6), number(
             score + float(after.max()), 6) + " once one token is added")),
        f"The beam is a greedy search at {width} times the cost. Where ended "
        "beams go on growing as well, an answer that was complete loses to "
        "one that was not.",
        "test_generate.py",
        cause="one hypothesis stands twice")


def one_row_ends_all(bench):
    """A batch that stops with its first row."""
    model = translation.Model.load(*(golden.sound(f"phrases.{name}") for name
                                     in ("safetensors", "tokenizer.json")))
    tokenizer = model.tokenizer
    settings = GenerationConfig(
        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, max_tokens=LONGEST)
    texts = ["Polen", "vor 12 Tagen"]
    source = tokenizer.pad([tokenizer.encode(t) for t in texts])
    answer = bench.engine.generate(bench.engine.build(
        "transformer", model.config, {
            name: array.astype(np.float64)
            for name, array in model.arrays.items()}), source, settings)
    rows = answer["tokens"][:, 0]
    ends = [int((row == settings.eos_id).argmax()) or LONGEST for row in rows]
    order = sorted(range(2), key=lambda i: ends[i])
    short, long = order
    prefix = rows[long][:ends[short] + 1]
    return Erratum(
        "ends", "A batch that stops when its first row does",
        "Greedy generation looks for the end token in the first row and "
        f"returns. Here the batch is {texts[short]!r} and {texts[long]!r}, "
        "which the shipped translation of phrases reads.",
        (("tokens of the two answers", f"{ends[short]} and {ends[long]}",
          f"{ends[short]} and {len(prefix) - 1}"),
         (f"the answer to {texts[long]!r}",
          tokenizer.decode(rows[long]), tokenizer.decode(prefix))),
        "Every row has an end of its own; the batch is done when all have "
        "met theirs.",
        "test_generate.py")


def after_dropout(bench):
    """Weights that no longer sum to one."""
    name = "encoder.layers.0.self_attention.weights"
    key = random.fold_in(random.key(0), "errata")
    mask = bench.engine.drawn(
        bench.model, bench.batch.source, bench.batch.target, key)[
            f"{name}_dropout"]
    weights = bench.steps[name]
    dropped = np.where(mask, weights / (1 - bench.config.dropout), 0)

    def sums(array):
        rows = array.sum(axis=-1)
        return f"{number(rows.min())} to {number(rows.max())}"

    return Erratum(
        "dropout", "Attention shown after dropout",
        "The weights are read off after their dropout, in training mode, and "
        "printed as probabilities.",
        (("sums of the rows of the first layer's weights", sums(weights),
          sums(dropped)),
         ("weights that are exactly 0", str(int((weights == 0).sum())),
          str(int((dropped == 0).sum())))),
        "What is left is divided by the share that is kept, so that a row "
        "sums to one on average and hardly ever in fact.",
        "test_tracing.py::test_attention_weights_are_had_by_name",
        cause="dropout of the weights left on")


def positions_in_float32(bench):
    """An angle that float32 cannot hold."""
    length, width = 5001, 512
    position, pair = np.arange(length), np.arange(0, width, 2)
    exact = np.sin(position[:, None] / 10000.0**(pair / width))
    low = np.sin(position.astype(np.float32)[:, None] / np.float32(
        10000.0)**(pair.astype(np.float32) / np.float32(width)))
    rounded_positions = position.astype(ml_dtypes.bfloat16).astype(np.int64)
    first = int((rounded_positions != position).argmax())
    return Erratum(
        "positions", "A position table computed in float32",
        "The angle of a late position is a large number, and what float32 "
        "cuts off behind its last digit is a part of the sine. bfloat16 "
        "cannot even hold the position.",
        (("largest error of a sine up to position 5000", number(
            float(np.abs(exact.astype(np.float32) - exact).max()), 2),
          number(float(np.abs(low - exact).max()), 2)),
         ("first position that is another one in bfloat16", "none",
          f"{first}, which becomes {rounded_positions[first]}")),
        "The right column of the first row is what a model of 5000 positions "
        "is given; the left one is what float32 costs where the table was "
        "computed in float64 and then rounded.",
        "test_reference.py::test_why_position_tables_are_not_computed_in_"
        "float32",
        cause="positions computed in float32")


def padding_attended(bench):
    """Masks of the source that are never handed on."""
    batch, _ = bench.values.pairs_batch(MAPS)
    right = bench.values.maps.steps["numpy"]
    everything = np.ones_like(batch.source_mask)
    wrong = bench.engine.forward(
        bench.model, batch.source, batch.target, everything,
        batch.target_mask)
    row = int((batch.source == 0).sum(axis=1).argmax())
    padding = batch.source[row] == 0
    name = "decoder.layers.1.cross_attention.weights"

    def share(steps):
        weights = steps[name][row]
        return percent(weights[..., padding].sum() / weights.sum())

    error, _ = relative_error(wrong["output"][row], right["output"][row])
    return Erratum(
        "padding", "A source whose padding is attended to",
        f"{MAPS[row]!r} stands in a batch beside a longer string and is "
        f"padded by {int(padding.sum())} tokens; the mask that says so "
        "reaches neither the encoder nor the cross-attention.",
        (("share of the last cross-attention that falls on padding",
          share(right), share(wrong)),
         ("distance of the row's logits from the right ones", "0",
          number(error))),
        "The answer to a sentence then depends on how long its neighbours in "
        "the batch are.",
        "test_properties.py::test_padding_is_not_seen",
        cause="attention without its mask")


def scale_in_float32(bench):
    """A constant that was rounded on the way."""
    d_k = bench.config.d_k
    scores = bench.steps["encoder.layers.0.self_attention.scores"]
    low = scores * math.sqrt(d_k) / float(np.float32(math.sqrt(d_k)))
    error, _ = relative_error(low, scores)
    exact = float(np.float32(math.sqrt(64))) - math.sqrt(64)
    return Erratum(
        "scale", "A scale that has been through float32",
        f"√d_k, here √{d_k}, is made a float32 tensor inside the model, which "
        "is run in float64.",
        (("relative error of the scores", "0", number(error, 2)),
         ("the same at d_k = 64, whose root is 8", "0", number(exact))),
        "In float32 nobody can see it, and at the usual d_k of 64 nobody ever "
        "will. In float64 it is far above what sound programs differ by, and "
        "hides smaller faults behind it.",
        "test_float64.py::test_keras_scale_is_float64")
