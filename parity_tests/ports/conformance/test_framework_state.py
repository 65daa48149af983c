"""What an engine does with its framework's own settings, and leaves alone."""

import contextlib
import copy
import functools
import importlib
import warnings
from unittest import mock

import numpy as np
import pytest

from transformer_contract import random
from transformer_contract.batch import Batch
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights, select
from parity import ports
from parity.check import cases, golden, manners, training_runs
from parity.numerics import dtypes
from parity_tests.support.conformance import equal, refuses

pytestmark = pytest.mark.long

CONFIG = at_test_size(PRESETS["complete"])

#: Component -> where a decoder has one.
PATHS = {
    "norm": "layers.1.feed_forward_residual.norm.",
    "residual": "layers.1.feed_forward_residual.",
    "feed_forward": "layers.0.feed_forward.",
    "multi_head_attention": "layers.0.cross_attention.",
    "decoder_layer": "layers.1.", "decoder": ""}


def test_filters_of_warnings_stay(subject):
    with warnings.catch_warnings():
        warnings.resetwarnings()
        subject.to_native(np.ones((2, 3)), "cpu")
        equal("filters of warnings", warnings.filters, [])


@pytest.mark.parametrize("dtype", dtypes.DTYPES)
def test_one_number_of_an_array(subject, dtype):
    native = subject.to_native(
        np.arange(6).reshape(2, 3).astype(dtypes.NUMPY[dtype]), "cpu")
    found = subject.to_numpy(native[1, 2])
    equal("shape", found.shape, ())
    equal("dtype", found.dtype.name, dtype)
    equal("value", float(found), 5.0)


@pytest.mark.parametrize("component", PATHS)
def test_a_component_hands_its_weights_out_again(subject, component):
    given = select(golden.shipped("complete"), f"decoder.{PATHS[component]}")
    found = subject.export(subject.build(component, CONFIG, given))
    equal("names", found.keys(), given.keys())
    for name, array in found.items():
        equal(name, array, given[name])


def test_what_was_handed_in_and_out_stays(subject):
    """Weights, batches and moments, while training goes on."""
    engine, config = subject, training_runs.TINY
    pairs = [cases.ids(what, 2, 4, vocab)[None] for what, vocab in (
        ("source", config.source_vocab), ("target", config.target_vocab))]
    training = TrainingConfig(learning_rate=0.1, schedule="constant")
    given = probe_weights(config)
    model = engine.build("transformer", config, given)
    trainer = engine.trainer(model, training)
    handed = {"weights in": given, "weights out": engine.export(model),
              "pairs": dict(enumerate(pairs))}
    before = copy.deepcopy(handed)
    engine.train_step(trainer, *pairs)
    moments = {"moments": engine.moments(trainer)}
    other = engine.trainer(engine.build(
        "transformer", config, probe_weights(config)), training)
    engine.resume(other, 1, moments["moments"])
    before |= copy.deepcopy(moments)
    for one in (trainer, other):
        engine.train_step(one, *pairs)
    for what, arrays in (handed | moments).items():
        for name, array in arrays.items():
            equal(f"{what} {name}", array, before[what][name])


def failing(self, *arguments, **keywords):
    """What stands in the place of a method. Keras reads its parameters."""
    raise ArithmeticError


def test_what_is_global_stays_where_a_call_fails(subject):
    """An error amid a constructor or a call leaves nothing behind."""
    face = importlib.import_module(subject.__package__)
    citizen = importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}")
    config = cases.test_size("vaswani2017_base")
    weights = probe_weights(config)
    model = subject.build("transformer", config, weights)
    batch = Batch.of_ids(*(cases.ids(what, 2, 4, vocab) for what, vocab in (
        ("source", config.source_vocab), ("target", config.target_vocab))))
    norm = ports.module_of(subject.NAME, "layer_norm").LayerNorm
    works = {
        "a constructor": (norm, "__init__", lambda: citizen.new(config)),
        "create": (norm, "__init__", lambda: face.create(
            config, dtype="float64")),
        "build": (norm, "__init__", lambda: subject.build(
            "transformer", config, weights)),
        "predict": (type(model), "decode", lambda: subject.predict(
            model, *batch)),
        "forward": (type(model), "decode", lambda: subject.forward(
            model, *batch)),
        "gradients": (type(model), "decode", lambda: subject.gradients(
            model, *batch, batch.target)),
        "generate": (type(model), "decode", lambda: subject.generate(
            model, batch.source, GenerationConfig(max_tokens=2))),
        "train_step": (type(model), "decode", lambda: subject.train_step(
            subject.trainer(model, TrainingConfig()), batch.source[None],
            batch.target[None]))}
    for name, (where, what, work) in works.items():
        work()  # what a framework changes once, it has changed
        before, answer = manners.state(subject), subject.predict(model, *batch)
        with mock.patch.object(where, what, failing):
            refuses(name, work, kind=ArithmeticError)
        after = manners.state(subject)
        for each, value in before.items():
            if not each.endswith("random numbers"):  # they may be drawn
                equal(f"{each} after {name} failed", after[each], value)
        equal(f"answer after {name} failed", subject.predict(
            model, *batch), answer)


@contextlib.contextmanager
def set_otherwise(name):
    """What a framework's user may have set, and an engine sets otherwise."""
    if name not in ("torch", "keras", "jax"):
        yield
        return
    framework = importlib.import_module(name)

    def set_all(by_user):
        if name == "jax":
            framework.config.update("jax_enable_x64", not by_user)
        elif name == "keras":
            framework.config.set_floatx("float64" if by_user else "float32")
        else:
            framework.set_grad_enabled(not by_user)
            framework.set_float32_matmul_precision(
                "medium" if by_user else "highest")
    set_all(True)
    try:
        yield
    finally:
        set_all(False)


def test_what_is_global_stays_for_users(subject, tmp_path):
    """What users call leaves what is global, where they set it otherwise."""
    face = importlib.import_module(subject.__package__)
    citizen = importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}")
    config, path = cases.test_size("vaswani2017_base"), tmp_path / "model"
    source, target = (cases.ids(what, 2, 4, vocab) for what, vocab in (
        ("source", config.source_vocab), ("target", config.target_vocab)))
    with set_otherwise(subject.NAME):
        model = face.create(config)
        for name, work in {
                "create": lambda: face.create(config, seed=1),
                "save": lambda: face.save(model, path),
                "load": lambda: face.load(path),
                "call": lambda: citizen.logits(model, source, target),
                "generate": lambda: model.generate(
                    citizen.ids(source), max_tokens=2)}.items():
            before = manners.state(subject)
            work()
            after = manners.state(subject)
            for each, value in before.items():
                if each not in manners.CHANGED.get(subject.NAME, {}):
                    equal(f"{each} after {name}", after[each], value)


def only(engine, name):
    """Skip what is asked of one framework alone."""
    if engine.NAME != name:
        pytest.skip(f"it is asked of {name} alone")


def test_jax_without_64_bits(subject):
    only(subject, "jax")
    jax, weights = importlib.import_module("jax"), golden.shipped("complete")
    build = functools.partial(
        subject.build, "transformer", CONFIG, weights)
    model, source = build("float32"), cases.padded_batch(CONFIG).source
    with jax.enable_x64(False):
        refuses("float64 without it", build, "float64", kind=RuntimeError)
        found = subject.generate(model, source, GenerationConfig(max_tokens=3))
        equal("dtype of scores", found["scores"].dtype.name, "float64")
        theirs = importlib.import_module(f"{subject.__package__}.random")
        compiled = jax.jit(functools.partial(theirs.fold_in, theirs.key(4)))
        equal("a number inside a compiled function", np.asarray(
            compiled(np.int32(6))), random.fold_in(random.key(4), 6))


def test_keras_symbols_and_policy(subject):
    """Symbols have a shape and no numbers; the policy of dtypes stays."""
    only(subject, "keras")
    keras = importlib.import_module("keras")
    path, policy = "encoder.layers.0.self_attention.", (
        keras.config.dtype_policy())
    for dtype in dtypes.BOTH:
        subject.build("norm", CONFIG, select(
            golden.shipped("complete"), f"decoder.{PATHS['norm']}"), dtype)
    equal("policy of dtypes", keras.config.dtype_policy(), policy)
    attention = subject.build("multi_head_attention", CONFIG, select(
        golden.shipped("complete"), path))
    x = keras.KerasTensor((2, 5, CONFIG.d_model), "float64")
    mask = keras.KerasTensor((2, 1, 1, 5), "bool")
    found = attention(x, x, mask, cache=None)
    equal("shape of a symbol", found.shape, x.shape)
    equal("dtype of a symbol", found.dtype, x.dtype)
