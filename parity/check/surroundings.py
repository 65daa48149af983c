"""What an engine does with its framework's own settings, and leaves alone.

A function of an engine that yields (what is asked, whether the answer is
right); parity.check.face lists it.
"""

import copy
import functools
import importlib
import warnings

import numpy as np

from transformer_contract import random
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import part, probe_weights
from parity.check import cases, golden, training_runs
from parity.check.refusals import raises
from parity.numerics import dtypes

CONFIG = at_test_size(PRESETS["complete"])

#: Component -> where a decoder has one.
PATHS = {
    "norm": "layers.1.feed_forward_residual.norm.",
    "residual": "layers.1.feed_forward_residual.",
    "feed_forward": "layers.0.feed_forward.",
    "multi_head_attention": "layers.0.cross_attention.",
    "decoder_layer": "layers.1.", "decoder": ""}


def surroundings(engine):
    """Settings of its framework: what needs them says so, others stay."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        engine.to_native(np.ones((2, 3)), "cpu")
        yield "filters of warnings", not warnings.filters
    for dtype in dtypes.DTYPES:
        native = engine.to_native(
            np.arange(6).reshape(2, 3).astype(dtypes.NUMPY[dtype]), "cpu")
        found = engine.to_numpy(native[1, 2])
        yield f"one {dtype}", (
            found.shape == () and found.dtype.name == dtype and found == 5)
    yield from alone(engine)
    yield from kept(engine)
    yield from OWN.get(engine.NAME, lambda engine: ())(engine)


def alone(engine):
    """A component is built by itself, and hands its weights out again."""
    weights = golden.shipped("complete")
    for component, path in PATHS.items():
        given = part(weights, f"decoder.{path}")
        found = engine.export(engine.build(component, CONFIG, given))
        yield f"{component} alone", found.keys() == given.keys() and all(
            np.array_equal(array, given[name])
            for name, array in found.items())


def kept(engine):
    """What was handed in and out stays as it is while training goes on."""
    config = training_runs.TINY
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
        yield f"{what} stay", all(np.array_equal(array, before[what][name])
                                  for name, array in arrays.items())


def of_jax(engine):
    """Without numbers of 64 bits, and inside a compiled function."""
    jax, weights = importlib.import_module("jax"), golden.shipped("complete")
    build = functools.partial(engine.build, "transformer", CONFIG, weights)
    model, source = build("float32"), cases.padded_batch(CONFIG).source
    with jax.enable_x64(False):
        yield "float64 without it", raises(RuntimeError, build, "float64")
        found = engine.generate(model, source, GenerationConfig(max_tokens=3))
        yield "scores without it", found["scores"].dtype == np.float64
        theirs = importlib.import_module(f"{engine.__package__}.random")
        compiled = jax.jit(functools.partial(theirs.fold_in, theirs.key(4)))
        yield "a number inside a compiled function", np.array_equal(
            compiled(np.int32(6)), random.fold_in(random.key(4), 6))


def of_keras(engine):
    """Of symbols, which have a shape and no numbers; its policy of dtypes."""
    keras = importlib.import_module("keras")
    path, config = "encoder.layers.0.self_attention.", CONFIG
    policy = keras.config.dtype_policy()
    for dtype in dtypes.BOTH:
        engine.build("norm", config, part(
            golden.shipped("complete"), f"decoder.{PATHS['norm']}"), dtype)
    yield "policy of dtypes", keras.config.dtype_policy() == policy
    attention = engine.build("multi_head_attention", config, part(
        golden.shipped("complete"), path))
    x = keras.KerasTensor((2, 5, config.d_model), "float64")
    mask = keras.KerasTensor((2, 1, 1, 5), "bool")
    found = attention(x, x, mask, cache=None)
    yield "symbols", found.shape == x.shape and found.dtype == x.dtype


#: What is asked of one framework alone.
OWN = {"jax": of_jax, "keras": of_keras}
