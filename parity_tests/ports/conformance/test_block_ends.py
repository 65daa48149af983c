"""Sizes at the end of blocks and bytes, and calls made a second time."""

import importlib

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.config import CHOICES as WORDS_OF
from transformer_contract.generation import CHOICES, GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights, select
from parity.check import cases
from parity_tests.support.conformance import (
    BOTH, FLOAT32, READABLE, SMALL, WORDS, batch_of, like_the_reference,
    model_of, quick)

pytestmark = pytest.mark.long

#: Where a block of keys that a port might keep ends, and one more.
LENGTHS = 64, 65, 128, 129

#: After how many steps a run is resumed: a number all of whose bits are 1.
RESUMED = 7

#: A, B, S and T of the batches of a run in which they change. The last one's
#: are those of the batch that is asked afterwards.
BATCHES = (1, 3, 4, 5), (2, 2, 5, 6)

#: A key of dropout, and how many tokens a long cache keeps.
KEY, KEPT = np.array([5, 9], np.uint32), 270

#: More places than float32 has the angles of, if it multiplies them itself.
DISTANT = 3600

#: So many that the last place's number, 2²⁴ + 1, is none of float32.
PLACES = 2**24 + 2

TRAINING = TrainingConfig(warmup_steps=3, clip_norm=0.5, seed=11)

#: How many words a large vocabulary has: more than 17 bits count.
LEXICON = 2**17 + 5

#: A decoder alone, and of how many tokens its prompts are: 16 and one more.
ALONE, PROMPTS = SMALL.replace(stacks="decoder", tied="output"), (16, 17)

#: What is padding if only 16 bits of it are looked at.
ALIAS = 2**16 + SMALL.pad_id


@quick()
@like_the_reference(READABLE)
def test_tokens_of_a_whole_block(engine):
    """As many tokens as a block has, and one more."""
    model = model_of(engine)
    for length in LENGTHS:
        yield f"output of {length}", engine.predict(
            model, *batch_of("block", 2, length))
    for name, array in engine.generate(
            model, batch_of("search", 2, 5).source, GenerationConfig(
                eos_id=0, max_tokens=LENGTHS[0])).items():
        yield f"greedy, {name}", array


@quick()
@like_the_reference(READABLE)
def test_words_above_255(engine):
    """Words beyond 255 that a search finds, in any way, and in one token."""
    model, source = model_of(engine), batch_of("words", 2, 5).source
    for method in CHOICES["method"]:
        for count in (1, 3):
            settings = GenerationConfig(
                method=method, eos_id=0, max_tokens=count,
                suppress_tokens=tuple(range(4, 256)))
            for name, array in engine.generate(
                    model, source, settings).items():
                yield f"{method}, {count}, {name}", array


@like_the_reference(READABLE)
def test_gradients_and_searches_three_times(engine):
    """Gradients and searches of one model, asked a second and a third time."""
    model = model_of(engine)
    for count, what in enumerate(("one", "other", "one")):
        batch = batch_of(what, 2, 5)
        loss, gradients = engine.gradients(model, *batch, batch.target)
        yield f"loss, {count}", loss
        for name in engine.export(model):
            yield f"gradient {name}, {count}", gradients[name]
        for name, array in engine.generate(
                model, batch.source, GenerationConfig(max_tokens=3)).items():
            yield f"{name}, {count}", array


@quick()
@like_the_reference(*BOTH, trained=True)
def test_training_on_long_targets(engine):
    """Steps of training on words beyond 255, longer than a block."""
    model = model_of(engine)
    yield from trained(engine, model, engine.trainer(model, TRAINING))


@like_the_reference(*BOTH, trained=True)
def test_resume_after_an_odd_step(engine):
    """Steps of a run that is resumed after an odd step, with both moments."""
    model = model_of(engine)
    trainer = engine.trainer(model, TRAINING)
    engine.resume(trainer, RESUMED, {
        f"{kind}.{name}": np.abs(cases.values(
            f"{kind} {name}", *array.shape, scale=0.01))
        for kind in "mv" for name, array in engine.export(model).items()})
    yield from trained(engine, model, trainer)
    yield from engine.moments(trainer).items()


def trained(engine, model, trainer):
    """What two steps tell, and the weights after them."""
    for count in range(2):
        batch = batch_of(f"step {count}", 2, SMALL.max_length)
        for name, array in engine.train_step(
                trainer, batch.source[None], batch.target[None]).items():
            yield f"{name}, {count}", array
    yield from engine.export(model).items()


@like_the_reference(*BOTH, trained=True)
def test_batches_that_change_in_training(engine):
    """Training as its batches change, what is said meanwhile, a new trainer."""
    model = model_of(engine)
    settings, first = GenerationConfig(max_tokens=4), batch_of("asked", 2, 5)

    def answers(what):
        yield f"output {what}", engine.predict(model, *first)
        for name, array in engine.generate(
                model, first.source, settings).items():
            yield f"{name} {what}", array

    yield from answers("before")
    for turn in range(2):
        trainer = engine.trainer(model, TRAINING)
        for place, (a, b, s, t) in enumerate(BATCHES[turn:]):
            told = engine.train_step(trainer, *(
                cases.ids(f"{what} {turn} {place}", a * b, length, WORDS)
                .reshape(a, b, length) for what, length in (
                    ("source", s), ("target", t))))
            for name, array in told.items():
                yield f"{name}, {turn}, {place}", array
        yield from answers(f"after {turn}")
    yield from engine.export(model).items()


@like_the_reference(READABLE)
def test_one_token(engine):
    """A source of one token and a target of one: everything of them."""
    model = model_of(engine)
    batch = Batch.of_ids(np.array([[5]]), np.array([[6]]), SMALL.pad_id)
    yield "output", engine.predict(model, *batch)
    for count, key in enumerate((KEY, None)):
        yield f"forward, {count}", engine.forward(
            model, *batch, key=key)["output"]
        loss, gradients = engine.gradients(
            model, *batch, batch.target, key=key)
        yield f"loss, {count}", loss
        for name in engine.export(model):
            if gradients[name].any():
                yield f"gradient {name}, {count}", gradients[name]
    for method in CHOICES["method"]:
        for name, array in engine.generate(model, batch.source, (
                GenerationConfig(method=method, max_tokens=3))).items():
            yield f"{method}, {name}", array


@like_the_reference(*BOTH)
def test_long_prompts(engine):
    """What a decoder alone continues, cached and not."""
    model = engine.build("transformer", ALONE, probe_weights(ALONE, 3))
    for length in PROMPTS:
        for cached in (False, True):
            for name, array in engine.generate(
                    model, batch_of("prompt", 2, length).source,
                    GenerationConfig(
                        eos_id=0, max_tokens=3, cached=cached)).items():
                yield f"{length}, {cached}, {name}", array


@like_the_reference(READABLE)
def test_dropout_in_two_shapes_and_none(engine):
    """Dropout by one key in two shapes, and none afterwards."""
    model = model_of(engine)
    for what, key, *shape in (("first", KEY, 3, 4), ("other", KEY, 2, 5),
                              ("none", None, 2, 5), ("again", KEY, 2, 5)):
        yield what, engine.forward(
            model, *batch_of("dropped", *shape), key=key)["output"]


@like_the_reference(*BOTH)
def test_words_above_16_bits(engine):
    """More words than 17 bits count, a loss, its gradient, and searches."""
    config = SMALL.replace(source_vocab=LEXICON, target_vocab=LEXICON)
    model = engine.build("transformer", config, probe_weights(config, 3))
    ids = np.array([[LEXICON - 1, 40_000, 5], [ALIAS, 32_768, 255]])
    batch = Batch.of_ids(ids, ids[:, ::-1].copy(), config.pad_id)
    yield "output", engine.predict(model, *batch)
    loss, gradients = engine.gradients(model, *batch, batch.source)
    yield "loss", loss
    for name in ("source_embedding.table", "target_embedding.table",
                 "projection.bias"):
        yield f"gradient {name}", gradients[name]
    for method in CHOICES["method"]:
        for name, array in engine.generate(model, batch.source, (
                GenerationConfig(method=method, max_tokens=3))).items():
            yield f"{method}, {name}", array


@like_the_reference(READABLE)
def test_random_bits_above_float32(engine):
    """Random bits of more places than float32 counts."""
    theirs = importlib.import_module(f"{engine.__package__}.random")
    found = np.asarray(engine.to_numpy(theirs.bits(theirs.key(3), (PLACES,))))
    for place in (0, 2**16, PLACES - 1):
        yield f"bits of {place}", found.view(np.uint32)[[place]].astype(float)


@like_the_reference(READABLE)
def test_cache_of_many_tokens(engine):
    """A token behind many that a cache keeps, by each word for positions."""
    for word in WORDS_OF["positions"]:
        yield from cached(engine, word, KEPT, (*LENGTHS, KEPT - 1), "float64")


@like_the_reference(READABLE)
def test_cache_of_many_tokens_in_float32(engine):
    """Far behind, where angles computed in float32 would be others."""
    for word in WORDS_OF["positions"]:
        yield from cached(engine, word, DISTANT, (DISTANT - 1,), FLOAT32)


def cached(engine, word, kept, places, dtype):
    """What a decoder layer makes of a token at each of some places.

    Args:
        word: for positions.
        kept: how many tokens the cache has room for.
    """
    theirs = importlib.import_module(f"{engine.__package__}.cache")
    numbers = np.zeros(1, dtype)
    config = SMALL.replace(positions=word, d_head=4, max_length=kept)
    weights = probe_weights(config, 3)
    layer, positions = (engine.build(name, config, {
        end: array.astype(dtype)
        for end, array in select(weights, f"{path}.").items()}, dtype)
        for name, path in (("decoder_layer", "decoder.layers.0"),
                           ("positional_encoding", "target_positions")))
    memory = cases.values("memory", 2, 3, SMALL.d_model).astype(dtype)
    for written in places:
        x = cases.values(f"x {written}", 2, 1, SMALL.d_model).astype(dtype)
        where = f"{dtype}, {word}, {written}"
        yield f"{where}, positioned", engine.call(
            positions, x, np.full((2, 1), 4), start=written)[0]
        cache = theirs.Cache(
            (2, config.kv_heads, kept, config.d_k),
            engine.to_native(numbers, "cpu").dtype)
        cache.written = written
        yield where, engine.run(
            layer, x, memory, np.ones((2, 1, 1, 3), bool),
            (np.arange(kept) <= written)[None, None, None].repeat(2, 0),
            cache=cache)["output"]
        yield f"{where}, keys", engine.to_numpy(cache.keys)


@like_the_reference(*BOTH)
def test_buckets_above_255(engine):
    """More buckets of distances than 8 bits count, and ones before a query."""
    config = SMALL.replace(
        positions="relative", relative_buckets=600, relative_distance=900,
        max_length=400)
    model = engine.build("transformer", config, probe_weights(config, 3))
    yield "output", engine.predict(model, *batch_of("buckets", 1, 320))


@like_the_reference(READABLE)
def test_gradients_of_what_is_shared(engine):
    """A table that an output with a bias reads too; distances' of two layers;
    heads of keys that several heads of queries read."""
    batch, labels = batch_of("shared", 2, 6), batch_of("labels", 2, 6).target
    usual = SMALL.replace(dropout=0.0)
    two = {"n_encoder_layers": 2, "n_decoder_layers": 2}
    for changes in ({"positions": "relative", **two}, {"n_kv_heads": 1}, *(
            {"tied": tied, "output_bias": tied != "none"}
            for tied in ("none", "output", "all"))):
        config = usual.replace(**changes)
        model = engine.build("transformer", config, probe_weights(config, 3))
        _, gradients = engine.gradients(model, *batch, labels)
        for name in engine.export(model):
            if name.endswith(("table", "projection.kernel", "value.kernel")):
                yield f"gradient {name}, {changes}", gradients[name]


@like_the_reference(*BOTH)
def test_gradients_of_padding(engine):
    """Of what padding reads, wherever it stands, of tables tied or not."""
    batch, labels = batch_of("padded", 3, 5), batch_of("labels", 3, 5).target
    for ids in batch.source, batch.target:
        ids[1:, 0] = ids[2, 2] = SMALL.pad_id
    batch = Batch.of_ids(batch.source, batch.target, SMALL.pad_id)
    for tied in WORDS_OF["tied"]:
        for learns in True, False:
            config = SMALL.replace(
                tied=tied, padding_learns=learns, dropout=0.0)
            model = engine.build(
                "transformer", config, probe_weights(config, 3))
            _, gradients = engine.gradients(model, *batch, labels)
            for name in ("source_embedding.table", "target_embedding.table",
                         "projection.kernel"):
                if name in gradients:
                    yield f"gradient {name}, {tied}, {learns}", gradients[name]
