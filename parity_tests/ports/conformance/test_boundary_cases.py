"""Boundary cases: late steps, long sequences, large vocabularies, tiny rows."""

import importlib

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.components import WHOLE
from transformer_contract.config import CHOICES, PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights, select
from parity import ports
from parity.check import cases, golden, search_runs, training_runs
from parity.numerics import dtypes
from parity_tests.support.conformance import (
    BOTH, READABLE, equal, like_the_reference, quick)

pytestmark = pytest.mark.long

CONFIG = at_test_size(PRESETS["complete"])

#: A model of as many layers as have numbers of two digits.
DEEP = CONFIG.replace(
    source_vocab=7, target_vocab=7, d_model=6, n_heads=2, d_ff=5,
    n_encoder_layers=12, n_decoder_layers=12, max_length=5)

#: More labels than a number of 16 bits counts, and no sum in 16 bits gives: an
#: odd number; and a longer target than 11 bits count.
MANY, LONG = (257, 263), 2100

#: Added to every logit, which no loss sees; a number has no such exponential.
SHIFT = 3000

#: A step of training that no run reaches, and its batches.
LATE, BATCHES = 10**6, 5

#: How many rows of how many tokens each of these has.
CROWD = 1030, 4

#: A model whose tables have more than 1,000 rows, each of more than 1,000.
BROAD = CONFIG.replace(
    source_vocab=1100, target_vocab=1100, d_model=1026, n_heads=2, d_head=3,
    d_ff=5, n_encoder_layers=1, n_decoder_layers=1, max_length=5,
    norm="layer")

#: A model that reads without a target, tokens of one kind.
READER = CONFIG.replace(
    source_vocab=7, target_vocab=7, stacks="encoder", token_types=1)

#: Scores far below the lowest float32; in Keras above -1e9, which its own
#: softmax puts at what is masked (docs/differences.md).
LOWEST, LOW = 2.0**200, {"keras": 2.0**27}

#: How often a model is called.
OFTEN = 25

#: Numbers of rows, as a long list of sources has them.
ROWS = np.array([3, 300, 70_000, 2**31 + 5])


def component(engine, name, path, config=CONFIG, weights=None):
    """A component with what stands at a path of a model's weights."""
    weights = golden.shipped("complete") if weights is None else weights
    return engine.build(name, config, select(weights, f"{path}."))


@quick("keras", "jax")
@like_the_reference(READABLE)
def test_activations(engine):
    """Activations far from zero, each value by itself."""
    theirs = importlib.import_module(
        f"{engine.__package__}.dialects.feed_forward").ACTIVATIONS
    for word in CHOICES["activation"]:
        x = np.append(np.linspace(-9, 9, 12), (-20, 20))
        found = engine.to_numpy(theirs[word](engine.to_native(x, "cpu")))
        for place, value in zip(x, found):
            if value or word != "relu":
                yield f"{word} of {place}", np.array([value])


@quick("keras", "jax")
@like_the_reference(READABLE)
def test_positions_from_3(engine):
    """Several positions that do not begin at 0."""
    module = engine.build("positional_encoding", CONFIG, {})
    yield from engine.run(
        module, cases.values("x", 2, 5, CONFIG.d_model),
        cases.ids("tokens", 2, 5, 9), start=3).items()


@quick("keras", "jax")
@pytest.mark.parametrize("dtype", dtypes.DTYPES)
def test_far_positions_are_rounded_once(subject, dtype):
    """Angles that are computed in the model's dtype are others, and so are
    tokens that are counted in it."""
    for word, counted, start in (("interleaved", False, 3600), (
            "halves", False, 3600), ("halves", True, 0)):
        config = CONFIG.replace(positions=word, d_model=48, max_length=3650,
                                position_padding=counted)
        length = config.max_length - start
        expected, found = (engine.run(
            engine.build("positional_encoding", config, {}, kind),
            np.zeros((1, length, 48), dtypes.NUMPY[kind]),
            np.full((1, length), 4), start=start)["positions"][..., -50:, :]
            for engine, kind in (
                (ports.engine("numpy"), "float64"), (subject, dtype)))
        equal(f"{word}, {counted}", found,
              expected.astype(dtypes.NUMPY[dtype]))


@quick("keras")
@like_the_reference(READABLE)
def test_masks(engine):
    """Masks that are neither of padding nor causal, and a long memory."""
    x = cases.values("x", 2, 5, CONFIG.d_model)
    memory = cases.values("memory", 2, 300, CONFIG.d_model)
    own, heads, wide = (cases.values("mask", *shape) > 0 for shape in (
        (2, 1, 5, 5), (2, CONFIG.n_heads, 5, 5), (2, CONFIG.n_heads, 5, 300)))
    for what, name, path, inputs in (
            ("by row", "encoder_layer", "encoder.layers.0", (x, own)),
            ("by head", "encoder_layer", "encoder.layers.0", (x, heads)),
            ("by row", "decoder_layer", "decoder.layers.0",
             (x, memory, wide, own)),
            ("by head", "decoder_layer", "decoder.layers.0",
             (x, memory, wide, heads)),
            ("by head", "multi_head_attention",
             "encoder.layers.0.self_attention", (x, memory, wide))):
        steps = engine.run(component(engine, name, path), *inputs,
                           **WHOLE.get(name, {}))
        yield f"{name}, {what}", steps["output"]


@quick("keras", "jax")
@like_the_reference(READABLE)
def test_scores_below_a_finite_mask(engine):
    """Scores so low that a finite mask would be higher."""
    config, path = CONFIG, "encoder.layers.0.self_attention"
    weights = dict(select(golden.shipped("complete"), f"{path}."))
    weights["query.kernel"] = 0 * weights["query.kernel"]
    weights["query.bias"] = 0 * weights["query.bias"] - LOW.get(
        engine.NAME, LOWEST)
    weights["key.kernel"] = 0 * weights["key.kernel"]
    weights["key.bias"] = 0 * weights["key.bias"] + 1
    x, mask = cases.values("x", 2, 5, config.d_model), np.ones(
        (2, 1, 1, 5), bool)
    mask[:, ..., 1:3] = False
    module = engine.build("multi_head_attention", config, weights)
    steps = engine.run(module, x, x, mask, **WHOLE["multi_head_attention"])
    yield "weights", steps["weights"]


@quick()
@like_the_reference(READABLE)
def test_lone_encoder(engine):
    """An encoder alone, whose source has another length than the target."""
    model = engine.build("transformer", READER, probe_weights(READER))
    for length in (2, 7):
        yield f"output, {length}", engine.predict(model, *Batch.of_ids(
            cases.ids("source", 2, 5, READER.source_vocab),
            cases.ids("target", 2, length, READER.target_vocab)))


@like_the_reference(READABLE)
def test_norms_of_small_rows(engine):
    """Norms of rows that differ by less than the root of their ε."""
    path = "encoder.layers.0.self_attention_residual.norm"
    for word in CHOICES["norm"]:
        config = CONFIG.replace(norm=word)
        module = component(engine, "norm", path, config, probe_weights(config))
        for size in (1e-4, 1e-6):
            x = size * cases.values("x", 2, 5, config.d_model)
            yield f"{word}, {size}", engine.run(module, x)["normalized"]


@like_the_reference(READABLE)
def test_many_layers(engine):
    """Layers whose numbers have two digits, cached as well."""
    model = engine.build("transformer", DEEP, probe_weights(DEEP))
    source = cases.ids("source", 2, 4, DEEP.source_vocab)
    yield "output", engine.predict(model, *Batch.of_ids(source, source))
    found = engine.generate(model, source, GenerationConfig(max_tokens=3))
    yield from found.items()


@quick()
@like_the_reference(READABLE)
def test_dropout_on_one_token(engine):
    """Dropout where there is one token, at both ends."""
    config = CONFIG.replace(dropout=0.5)
    model = engine.build("transformer", config, golden.shipped("complete"))
    yield "output", engine.forward(
        model, *Batch.of_ids(np.full((3, 1), 4), np.full((3, 1), 5)),
        key=np.array([3, 7], np.uint32))["output"]


@quick("keras")
@like_the_reference(READABLE)
def test_many_labels(engine):
    """A loss of more labels, and a mask of more places, than batches have."""
    labels = cases.ids("labels", *MANY, 5)
    logits = cases.values("logits", *MANY, 5)
    for shift in 0, SHIFT, -SHIFT:
        yield f"loss, {shift}", engine.loss(
            logits + shift, labels, 0, 0.1, "uniform")
    ones = np.ones((1, LONG), np.int64)
    yield "mask", engine.masks(ones[:, :1], ones, 0)["target_mask"]


@like_the_reference(READABLE)
def test_wide_tables(engine):
    """Tables of more than 1,000 rows, longer than 1,000, up to the last."""
    model = engine.build("transformer", BROAD, probe_weights(BROAD))
    source, target = (cases.ids(name, 2, 5, 1100)
                      for name in ("source", "target"))
    source[0, :2] = target[0, :2] = 1099, 1001
    yield "output", engine.predict(model, *Batch.of_ids(source, target))


@like_the_reference(READABLE)
def test_repeated_calls(engine):
    """A model's calls, more than 20 of them."""
    config = training_runs.TINY
    model = engine.build("transformer", config, probe_weights(config))
    batch = Batch.of_ids(cases.ids("source", 2, 6, config.source_vocab),
                         cases.ids("target", 2, 6, config.target_vocab))
    for count in range(OFTEN):
        yield f"call {count}", engine.predict(model, *batch)


@quick()
@like_the_reference(*BOTH, trained=True)
def test_late_training_step(engine):
    """A late step of training, of more batches, rows and tokens than runs."""
    config = training_runs.TINY.replace(dropout=0.2)
    weights = probe_weights(config)
    weights["projection.bias"] += SHIFT
    trainer = engine.trainer(
        engine.build("transformer", config, weights),
        TrainingConfig(warmup_steps=4000, seed=2**63 + 9))
    engine.resume(trainer, LATE, {
        f"{kind}.{name}": np.full(array.shape, 0.01)
        for kind in "mv" for name, array in weights.items()})
    pairs = (np.stack([cases.ids(f"{what} {i}", *CROWD, vocab)
                       for i in range(BATCHES)]) for what, vocab in (
        ("source", config.source_vocab), ("target", config.target_vocab)))
    yield from engine.train_step(trainer, *pairs).items()
    yield from engine.moments(trainer).items()
    yield from engine.export(trainer.model).items()


@quick()
@like_the_reference(*BOTH)
def test_far_searches(engine):
    """Far rows, a seed of 63 bits, a wide beam, many tokens, near ties."""
    babbling = search_runs.babbling()
    config = babbling.config.replace(max_length=70)
    model = engine.build("transformer", config, dict(babbling.weights))
    greedy = babbling.searches[0].settings.replace(cached=True)
    for what, changes in (
            ("far rows, a seed of 63 bits",
             {"method": "sample", "seed": 2**63 - 1}),
            ("low temperature", {"method": "sample", "temperature": 0.1}),
            ("a beam of 17", {"method": "beam", "beam": 17}),
            ("70 tokens", {"max_tokens": 70, "eos_id": 0})):
        settings = greedy.replace(**{"max_tokens": 5, **changes})
        for name, array in engine.generate(
                model, babbling.source[:4], settings, ROWS).items():
            yield f"{what}, {name}", array


@like_the_reference(READABLE)
def test_best_of_many_and_near_ties(engine):
    """The best of more tokens than any vocabulary here has, and near ties."""
    theirs = ports.module_of(engine.NAME, "search")
    draws = np.round(400 * cases.values("many", 2, 5000))
    for name, array in zip(("scores", "places"), theirs.Beam.top(
            engine.to_native(draws, "cpu"), 9)):
        yield name, engine.to_numpy(array).astype(float)
    near = np.array([[-1 - 1e-12, -1.0, -1 - 1e-13]])
    greedy = theirs.Greedy
    yield "near ties", engine.to_numpy(greedy.choose(
        object.__new__(greedy), engine.to_native(near, "cpu"), 1)).astype(int)
