"""Drawn models as users have them: called alone, beside others, converted."""

import dataclasses
import functools
import importlib
import itertools

import pytest

from parity_io.errors import InputError
from transformer_contract.config import CHOICES
from transformer_contract.schema import schema
from parity import assert_parity, ports
from parity.check import cases, covering, drawn
from parity.numerics.tolerances import FLOAT64_LIMIT

pytestmark = pytest.mark.long

#: How many models there are, so that they have every word of every choice.
COUNT = 16

#: How many of them are asked of a framework that compiles, beside others.
FEW = 4

#: [B S T], where distances between tokens have many buckets; and more.
SHAPE, LONGEST = (2, 34, 30), 50


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
