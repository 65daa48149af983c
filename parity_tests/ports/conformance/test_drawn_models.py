"""Drawn models as users have them: called alone, beside others, converted."""

import dataclasses
import functools
import importlib
import itertools

import pytest

from parity_io.errors import InputError
from transformer_contract.config import CHOICES
from transformer_contract.generation import GenerationConfig
from transformer_contract.schema import schema
from transformer_contract.weights import probe_weights
from parity import assert_parity, ports
from parity.check import cases, covering, drawn, search_runs
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity_tests.support.conformance import (
    BOTH, FLOAT32, READABLE, SMALL, batch_of, like_the_reference)

pytestmark = pytest.mark.long

#: How many models there are, so that they have every word of every choice.
COUNT = 16

#: How many of them are asked of a framework that compiles, beside others: every
#: field of a config is another one in them.
FEW = 2

#: [B S T], where distances between tokens have many buckets; and more.
SHAPE, LONGEST = (2, 34, 30), 50

#: Sizes of real models, or one more: each alone, all else being small.
LARGE = ({"d_head": 129}, {"n_heads": 17, "d_head": 4}, {"d_ff": 2049},
         {"d_model": 514}, {"n_encoder_layers": 13}, {"n_decoder_layers": 13})


@functools.cache
def models():
    """The paper's model, and drawn ones of ordinary sizes: DrawnModels."""
    every = map(functools.partial(drawn.drawn, 1), itertools.count())
    ordinary = itertools.islice(
        (model for model in every if not model.far), COUNT)
    own = cases.test_size("vaswani2017_base")
    return [dataclasses.replace(
        model, shape=SHAPE, config=(config or model.config).replace(
            max_length=LONGEST, source_max_length=None))
            for model, config in zip(ordinary, [own] + [None] * COUNT)]


def build(engine, model, dtype="float64", config=None):
    """What an engine makes of a DrawnModel, or of another config's."""
    return engine.build(
        "transformer", config or model.config, model.weights, dtype)


def expected(config, weights, source, target):
    """The reference's answer, by the masks that ids have in its stack."""
    reference = ports.engine("numpy")
    masks = reference.masks(source, target, config.pad_id)
    if config.stacks != "encoder":
        masks["target_mask"] = ports.module_of(
            "numpy", "parts").decoder_mask(config)(target, config.pad_id)
    return reference.predict(
        reference.build("transformer", config, weights), source, target,
        masks["source_mask"], masks["target_mask"])


def test_a_call_without_masks(subject):
    """They follow from ids, wherever padding stands, in every stack."""
    citizen = importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}")
    for model in models():
        _, *lengths = SHAPE
        source, target = (
            model.ids(what, length, vocab).astype(int)
            for what, length, vocab in zip(
                ("source", "target"), lengths,
                (model.config.source_ids, model.config.target_vocab)))
        assert_parity(
            citizen.logits(build(subject, model), source, target),
            expected(model.config, model.weights, source, target),
            name=model.name, limit=FLOAT64_LIMIT)


def others(config):
    """{what is changed: config} of the same weights, one field another."""
    found = {}
    fields = {**CHOICES, **drawn.NUMBERS, "max_length": (
        LONGEST + 3,), "pad_id": (config.pad_id - 1,)}
    for field, values in fields.items():
        for value in values:
            try:
                other = config.replace(**{field: value})
            except InputError:
                continue
            if (other != config and schema(other) == schema(config)
                    and covering.possible(dataclasses.asdict(other))):
                found[f"{field} {value}"] = other
                break
    return found


@pytest.mark.parametrize("number", range(COUNT))
def test_models_beside_each_other(subject, number):
    """One model, then others that differ from it in one field, then it."""
    if subject.NAME in ("jax", "keras") and number >= FEW:
        pytest.skip("not asked: each takes it a minute")
    model = models()[number]
    for what, config in {
            "": model.config, **others(model.config),
            "again": model.config}.items():
        assert_parity(
            subject.predict(
                build(subject, model, config=config), *model.batch),
            truth(number, what), name=f"{model.name} {what}",
            limit=FLOAT64_LIMIT)


@functools.cache
def truth(number, what):
    """What the reference answers to a drawn model, one field another."""
    model, reference = models()[number], ports.engine("numpy")
    config = others(model.config).get(what, model.config)
    return reference.predict(
        build(reference, model, config=config), *model.batch)


def test_another_dtype(subject):
    """A model that has answered in float32, and is converted to float64."""
    citizen = importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}")
    if not hasattr(citizen, "converted"):
        pytest.skip("not asked: a model of it is never converted")
    for model in models():
        found = build(subject, model, "float32")
        subject.predict(found, *model.batch)
        found = citizen.converted(found, "float64")
        reference = ports.engine("numpy")
        assert_parity(
            subject.predict(found, *model.batch), reference.predict(
                reference.build("transformer", model.config, {
                    name: array.astype("float32").astype("float64")
                    for name, array in model.weights.items()}), *model.batch),
            name=model.name, limit=FLOAT64_LIMIT)


#: The searches to which others are compared that differ in one field.
BEAM = GenerationConfig(method="beam", beam=3, bos_id=7, eos_id=5, max_tokens=6)
SAMPLE = BEAM.replace(method="sample", top_k=9, top_p=0.6)

#: What a field of either becomes.
OTHERS = (
    (BEAM, {
        "method": "greedy", "bos_id": 9, "eos_id": 11, "max_tokens": 5,
        "beam": 2, "length_rule": "none", "alpha": 2.0, "finishing": "first",
        "unfinished": "fallback", "min_tokens": 4, "prompt": (4,),
        "forced_bos_id": 6, "forced_eos_id": 8, "suppress_tokens": (0, 13),
        "begin_suppress_tokens": (0, 13), "more_eos_ids": (0, 13),
        "no_repeat_ngram": 1, "cached": False}),
    (SAMPLE, {
        "temperature": 4.0, "top_k": 2, "top_p": 1.0, "top_p_of_top_k": True,
        "seed": 3, "allow_padding": True}))


@like_the_reference(*BOTH)
def test_searches_after_each_other(engine):
    """Of one model: one search, others that differ from it in one field."""
    model = search_runs.babbling()
    built = engine.build("transformer", model.config, dict(model.weights))
    for usual, changes in OTHERS:
        for field, value in {"": None, **changes, "again": None}.items():
            settings = usual.replace(
                **{field: value}) if field in changes else usual
            for name, array in engine.generate(
                    built, model.source[:6], settings).items():
                yield f"{usual.method} {field}, {name}", array


def test_every_field_of_a_search_is_asked():
    """So that one that is new is among them."""
    assert {field for _, changes in OTHERS for field in changes} == {
        field.name for field in dataclasses.fields(GenerationConfig)}
    engine, model = ports.engine("numpy"), search_runs.babbling()
    built = engine.build("transformer", model.config, dict(model.weights))
    for usual, changes in OTHERS:
        answers = [engine.generate(
            built, model.source[:6], usual.replace(**{field: value}))
            for field, value in {
                "seed": usual.seed, **changes}.items() if field != "cached"]
        alike = [field for field, answer in zip(
            [each for each in changes if each != "cached"], answers[1:])
            if all(answer[name].tobytes() == array.tobytes()
                   for name, array in answers[0].items())]
        assert not alike


@like_the_reference(*BOTH)
def test_large_sizes(engine):
    """What a model of one large size answers, and a gradient."""
    batch = batch_of("large", 2, 5)
    for changes in LARGE:
        config = SMALL.replace(dropout=0.0, **changes)
        model = engine.build("transformer", config, probe_weights(config, 3))
        yield f"{changes}", engine.predict(model, *batch)
        name = "encoder.layers.0.self_attention.value.kernel"
        _, gradients = engine.gradients(model, *batch, batch.target)
        yield f"gradient {name}, {changes}", gradients[name]


@like_the_reference(READABLE)
def test_every_word_in_float32(engine):
    """A model of each word of each choice, of shared heads, and of types."""
    batch = batch_of("float32", 2, 5)
    for changes in ({"n_kv_heads": 1}, {"token_types": 2}, *(
            {field: word} for field, words in CHOICES.items()
            for word in words)):
        try:
            config = SMALL.replace(d_head=4, **changes)
        except InputError:  # it goes with others alone
            continue
        model = engine.build("transformer", config, {
            name: array.astype(FLOAT32)
            for name, array in probe_weights(config, 3).items()}, FLOAT32)
        yield f"{FLOAT32}, {changes}", engine.predict(model, *batch)
