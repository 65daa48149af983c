"""Searches of fast forms: long, far, of models of many kinds."""

import copy
import importlib

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import cases
from parity_tests.support.conformance import (
    FAR, FAST, FLOAT32, MANY, ODD, like_the_reference, lowered)

pytestmark = pytest.mark.long

#: Strips of few outputs, of which a small weight has some, on any processor.
STRIPS = {"takes_small": lambda: True, "STRIPS": (5, 3), "SMALL": 400}

#: B and S of sources that are encoded another way.
SOURCES = 10, 33

#: So many that a beam of four has more candidates than 15 bits count.
BEYOND = 20_001

#: More tokens than any cache has room for at first.
BEHIND = 560

#: Few words; and by what weights are multiplied, the projection's besides, and
#: their seed: the likeliest is so by far, two hypotheses go on side by side,
#: and 243, 348 and 409 tokens behind where they part they change places.
FEW, SHARP = 23, ((2.0, 2.0, 1), (1.5, 2.0, 0), (3.0, 4.0, 2))


def searched(engine, what, changes, source, dtype="float64", times=None,
             more=None, weights_seed=3, **settings):
    """Yield what a search of a changed model writes.

    Args:
        times: {end of a weight's name: what it is multiplied by}.
        more: {name: what is added to a weight}.
    """
    config = ODD.replace(**changes)
    weights = probe_weights(config, weights_seed)
    for name, array in (more or {}).items():
        weights[name] = weights[name] + array
    for end, factor in (times or {}).items():
        weights |= {name: factor * array for name, array in weights.items()
                    if name.endswith(end)}
    model = engine.build("transformer", config, weights, dtype)
    for name, array in engine.generate(model, source, GenerationConfig(
            **{"eos_id": 2, **settings})).items():
        yield f"{what}, {name}", array


@like_the_reference(FAST)
def test_long_searches(engine):
    """Searches so long that a tied table is laid out anew."""
    source = cases.ids("source", 6, 7, ODD.source_vocab)
    for what, changes, rows in (
            ("plain", {}, 1), ("plain, 2 rows", {}, 2),
            ("bias", {"output_bias": True}, 1),
            ("heads that share", {"n_kv_heads": 1}, 1),
            ("heads that share, 3 rows", {"n_kv_heads": 1}, 3),
            ("long heads that share",
             {"n_heads": 4, "n_kv_heads": 2, "d_head": 5}, 2),
            ("scale", {"output_scale": "root"}, 1),
            ("log p", {"output": "log_probs"}, 1)):
        yield from searched(
            engine, what, changes, source[:rows], max_tokens=MANY)
    yield from searched(engine, "a beam", {}, source, method="beam", beam=8,
                        max_tokens=ODD.max_length - 1)
    padded = np.where(np.arange(7) < 5, source, ODD.pad_id)
    for what, changes in (
            ("a beam", {}), ("heads that share", {"n_kv_heads": 1})):
        with lowered(engine, "cache", MANY=1):
            yield from searched(
                engine, f"{what}, few places alike", changes,
                np.concatenate([source[:1], padded[1:2]]), method="beam",
                beam=3, max_tokens=12)


@like_the_reference(FAST)
def test_long_searches_in_float32(engine):
    """Searches so long that float32's weights are laid out for a library."""
    source = cases.ids("source", 6, 7, ODD.source_vocab)
    for what, changes, rows, settings in (
            ("plain", {}, 6, {}), ("one row", {}, 1, {}),
            ("a bias, a beam", {"output_bias": True}, 2,
             {"method": "beam", "beam": 3}),
            ("untied", {"tied": "none"}, 6, {}),
            ("no biases", {"tied": "none", "output_bias": False,
                           "attention_bias": "none"}, 6, {}),
            ("gates", {"activation": "silu", "gated": True}, 6, {}),
            ("heads that share", {"n_kv_heads": 1}, 6, {}),
            ("a scale", {"output_scale": "root"}, 6, {})):
        yield from searched(
            engine, f"{FLOAT32}, {what}", changes, source[:rows], FLOAT32,
            max_tokens=MANY, **settings)


@like_the_reference(FAST)
def test_varied_searches(engine):
    """Searches, short and long, of models that no other is like."""
    source = cases.ids("source", 3, 7, ODD.source_vocab)
    for what, changes in (
            ("output tied", {"tied": "output", "n_decoder_layers": 2,
                             "attention_bias": "all_but_key"}),
            ("a head", {"output_transform": True, "positions": "learned"})):
        for dtype, tokens in (
                ("float64", 6), ("float64", MANY), (FLOAT32, MANY)):
            yield from searched(
                engine, f"{dtype}, {what}, {tokens}", changes, source, dtype,
                max_tokens=tokens)
    for dtype, factor in ("float64", 30.0), (FLOAT32, 9.0):
        yield from searched(
            engine, f"{dtype}, high scores", {}, source, dtype,
            {".query.kernel": factor, ".key.kernel": factor}, max_tokens=6)


@like_the_reference(FAST)
def test_long_beams(engine):
    """Beams of three sources and two layers that go on to the last place."""
    source = cases.ids("source", 3, 7, ODD.source_vocab)
    source[1, 4:] = ODD.pad_id
    for width in 2, 4:
        yield from searched(
            engine, f"{width}", {"n_decoder_layers": 2, "n_heads": 4}, source,
            times={".kernel": 1.5, ".table": 1.5}, method="beam", beam=width,
            max_tokens=110, length_rule="hf_never")
    with lowered(engine, "cache", ROOM=16, MANY=1):
        yield from searched(
            engine, "3, more room at times", {"n_decoder_layers": 2}, source,
            times={".kernel": 1.5, ".table": 1.5}, method="beam", beam=3,
            max_tokens=110, length_rule="hf_never")


@like_the_reference(FAST)
def test_searches_of_few_rows(engine):
    """Searches whose products are made in strips, on any processor."""
    source = cases.ids("source", 5, 7, ODD.source_vocab)
    for what, changes, rows, settings in (
            ("gated, a bias, heads that share",
             {"gated": True, "output_bias": True, "n_kv_heads": 1}, 5, {}),
            ("few biases, not tied",
             {"attention_bias": "all_but_key", "feed_forward_bias": False,
              "tied": "none"}, 2, {}),
            ("a beam", {}, 3, {"method": "beam", "beam": 3})):
        with lowered(engine, "layout", **STRIPS):
            yield from searched(engine, f"few rows, {what}", changes,
                                source[:rows], max_tokens=40, **settings)


@like_the_reference(FAST)
def test_far_searches(engine):
    """Searches of more tokens than a cache has room for at first."""
    source = cases.ids("source", 2, 7, ODD.source_vocab)
    far = {"max_length": BEHIND + 1}
    for what, changes, settings in (
            ("greedy", {}, {}), ("heads that share", {"n_kv_heads": 1}, {}),
            ("a sample", {}, {"method": "sample", "seed": 5})):
        yield from searched(engine, what, far | changes, source,
                            max_tokens=BEHIND, **settings)
    with lowered(engine, "cache", ROOM=16, MANY=1):
        for what, dtype, rows, changes in (
                ("greedy", "float64", 1, {}), ("greedy", FLOAT32, 2, {}),
                ("heads that share", "float64", 2, {
                    "n_kv_heads": 1, "attention_scale": "none"})):
            yield from searched(
                engine, f"{dtype}, {what}, more room at times", changes,
                source[:rows], dtype, max_tokens=MANY + 1)


@like_the_reference(FAST)
def test_beams_that_change_places(engine):
    """Beams whose hypotheses part early and change places until the end."""
    source = cases.ids("source", 2, 7, FEW)
    for rows, width, tokens, (factor, sharper, seed) in (
            (1, 2, 300, SHARP[0]), (2, 3, 300, SHARP[0]),
            (2, 3, BEHIND, SHARP[1]), (2, 3, BEHIND, SHARP[2])):
        yield from searched(
            engine, f"{rows} rows, {width}, {tokens}, {seed}", {
                "source_vocab": FEW, "target_vocab": FEW, "residual": "pre",
                "final_norm": True, "tied": "none", "max_length": BEHIND + 1},
            source[:rows], times={".kernel": factor, ".table": factor,
                                  "projection.kernel": sharper},
            weights_seed=seed, method="beam", beam=width, max_tokens=tokens,
            length_rule="hf_never")


@like_the_reference(FAST)
def test_large_sources(engine):
    """Searches of so many source tokens that they are encoded another way."""
    source = cases.ids("source", *SOURCES, ODD.source_vocab)
    padded = np.where(np.arange(SOURCES[1]) < np.arange(5, 35, 3)[:, None],
                      source, ODD.pad_id)
    for what, changes, settings in (
            ("plain", {}, {}),
            ("a beam", {"residual": "pre"}, {"method": "beam", "beam": 2}),
            ("relative", {"positions": "relative"}, {}),
            ("heads that share", {"n_kv_heads": 1},
             {"method": "beam", "beam": 2, "cached": False}),
            ("norms of stacks", {"final_norm": True}, {})):
        yield from searched(engine, what, changes, padded, max_tokens=5,
                            **settings)
    yield from searched(
        engine, f"{FLOAT32}, plain", {}, padded, FLOAT32, max_tokens=5)
    model = engine.build("transformer", ODD, probe_weights(ODD, 3))
    yield "predicted", engine.predict(model, *Batch.of_ids(padded, padded))
    far = cases.ids("source", 1, FAR // 8, ODD.source_vocab)
    yield from searched(
        engine, "blocks", {"max_length": FAR // 8}, far, max_tokens=5)


@like_the_reference(FAST)
def test_short_searches(engine):
    """Searches of many words, of n-grams nearly as long, and of two ends."""
    source = cases.ids("source", 2, 7, ODD.source_vocab)
    yield from searched(
        engine, "words", {"source_vocab": BEYOND, "target_vocab": BEYOND},
        source, method="beam", beam=4, max_tokens=4)
    for n in 4, 6:
        yield from searched(engine, f"{n}-grams", {}, source, max_tokens=6,
                            no_repeat_ngram=n)
    yield from searched(
        engine, "two ends", {}, source, method="beam", beam=1, max_tokens=8,
        more_eos_ids=tuple(range(3, ODD.target_vocab, 2)))
    for method, beam in ("greedy", 1), ("beam", 1), ("beam", 3), ("sample", 1):
        yield from searched(
            engine, f"a begin that ends, {method}, {beam}", {}, source,
            method=method, beam=beam, max_tokens=6, bos_id=4, eos_id=4)
    again = 8 * np.eye(ODD.target_vocab)[1]  # the begin, all the time
    for n in 5, 6, 7:
        yield from searched(
            engine, f"{n} times the same", {"output_bias": True}, source,
            more={"projection.bias": again}, max_tokens=6, no_repeat_ngram=n)


@like_the_reference(FAST, trained=True)
def test_searches_before_and_after_training(engine):
    """Searches, short and long, before training and after it."""
    config = ODD.replace(dropout=0.0)
    for dtype, tokens, sources in (
            ("float64", 8, (2, 6)), ("float64", MANY, (2, 6)),
            ("float64", MANY, (1, 6)), (FLOAT32, MANY, (2, 6)),
            ("float64", 3, SOURCES)):
        source, target = (cases.ids(name, *sources, config.source_vocab)
                          for name in ("source", "target"))
        model = engine.build(
            "transformer", config, probe_weights(config, 3), dtype)
        trainer = engine.trainer(
            model, TrainingConfig(schedule="constant", learning_rate=0.1))
        named = f"{dtype}, {len(source)} rows, {tokens} tokens"
        for time, most in enumerate((tokens, tokens, 5)):
            for name, array in engine.generate(
                    model, source, GenerationConfig(
                        max_tokens=most, eos_id=2)).items():
                yield f"{named}, {time}, {name}", array
            yield f"{named}, {time}, loss", engine.train_step(
                trainer, source[None], target[None])["loss"]
        yield f"{named}, number of weights", np.array(
            [float(len(engine.export(model)))])


@like_the_reference(FAST)
def test_changed_weights(engine):
    """Long searches of one model, between which one of its weights changes."""
    source = cases.ids("source", 2, 6, ODD.source_vocab)
    model = engine.build("transformer", ODD, probe_weights(ODD, 3))
    settings, before = GenerationConfig(max_tokens=MANY, eos_id=2), []
    layer = "decoder.layers.0."
    for name in ("", f"{layer}self_attention.value.kernel",
                 f"{layer}self_attention.query.bias",
                 f"{layer}cross_attention.output.kernel",
                 f"{layer}feed_forward.inner.kernel",
                 "source_embedding.table", "source_embedding.table"):
        if name:  # what was before lives on
            before.append(multiplied(engine, model, name, -3.0))
        with lowered(engine, "layout", **(STRIPS if len(before) % 2 else {})):
            found = engine.generate(model, source, settings)
        for what, array in found.items():
            yield f"{name} {len(before)}, {what}", array


@like_the_reference(FAST)
def test_empty_sources(engine):
    """Searches of sources of which one is padding alone."""
    source = cases.ids("source", 2, 6, ODD.source_vocab)
    source[1] = ODD.pad_id
    for what, settings in (
            ("greedy", {"max_tokens": 10}), ("long", {"max_tokens": MANY}),
            ("a beam", {"method": "beam", "beam": 3, "max_tokens": 10})):
        with lowered(engine, "cache", MANY=1):
            yield from searched(engine, what, {}, source, **settings)


@like_the_reference(FAST, trained=True)
def test_training_in_turn(engine):
    """Training of a model by two trainers, and by a copy of one."""
    source, target = (cases.ids(name, 2, 6, ODD.source_vocab)
                      for name in ("source", "target"))
    model = engine.build("transformer", ODD, probe_weights(ODD, 3))
    training = TrainingConfig(schedule="constant", learning_rate=0.01)
    first, second = (engine.trainer(model, training) for _ in range(2))
    for i, trainer in enumerate((first, first, second, first)):
        yield f"in turn, loss {i}", engine.train_step(
            trainer, source[None], target[None])["loss"]
        if i == 1:
            multiplied(engine, model, "source_embedding.table", 0.5)
    if engine.NAME != "keras":  # which lets no layer be copied
        first = copy.deepcopy(first)
    for i in 1, 2:
        yield f"of a copy, loss {i}", engine.train_step(
            first, source[None], target[None])["loss"]
    model = engine.build("transformer", ODD, probe_weights(ODD, 3))
    for name in ("source_embedding.table",
                 "decoder.layers.0.feed_forward.inner.kernel"):
        multiplied(engine, model, name, 1, np.asfortranarray)
    trainer = engine.trainer(model, training)
    for i in 1, 2:
        yield f"of transposed weights, loss {i}", engine.train_step(
            trainer, source[None], target[None])["loss"]


def multiplied(engine, model, name, factor, ordered=np.array):
    """Multiply a weight of a model, as its users do; returns the old one."""
    module = importlib.import_module(
        f"{engine.__package__.removesuffix('.fast')}.parameters")
    weight = {each.name: each for each in module.leaves(model)}[name]
    old = weight.get()
    weight.set(engine.to_native(ordered(
        factor * np.array(engine.to_numpy(old))), "cpu"))
    return old
