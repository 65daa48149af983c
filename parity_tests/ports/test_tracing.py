"""Conformance of what is seen with what is computed.

A trace must be a mere look: no number changes by it, the same steps are seen
in all four, and a compiled model is the model that was traced.
"""

import concurrent.futures
import functools
import sys

import numpy as np
import pytest

from transformer_contract import trace, weights
from parity import ports
from parity.check import cases, golden
from parity.numerics.comparator import MATCH, compare

#: What compiling may change: the order of a sum.
COMPILED_LIMIT = 1e-13

NAMES = "lesson", "complete", "vaswani2017_base"

presets = pytest.mark.parametrize("preset", NAMES)


@functools.cache
def model(engine_name, preset):
    """A model, built once; its engine must have been set up."""
    return ports.engine(engine_name).build(
        "transformer", cases.test_size(preset), golden.shipped(preset))


def batch(preset):
    return cases.padded_batch(cases.test_size(preset))


@functools.cache
def steps(engine_name, preset):
    """Every step on the padded batch, run once."""
    return ports.engine(engine_name).forward(
        model(engine_name, preset), *batch(preset))


def untraced(port, preset):
    """What the native model returns to native inputs, no trace being open."""
    inputs = [port.to_native(array, "cpu") for array in batch(preset)]
    return port.to_numpy(model(port.NAME, preset)(*inputs))


# What a trace sees

@pytest.mark.long(24)
@presets
def test_tracing_changes_no_number(port, preset):
    """Bit by bit the same output with and without a trace."""
    traced = steps(port.NAME, preset)["output"]
    found = untraced(port, preset)
    assert found.dtype == traced.dtype
    np.testing.assert_array_equal(found, traced)


@presets
def test_steps_are_recorded_in_the_order_of_computation(port, preset):
    """Where a step is fed by another, that one was recorded before.

    So the first divergence in a report is the first in the computation.
    """
    config = cases.test_size(preset)
    order = {name: i for i, name in enumerate(steps(port.NAME, preset))}
    attention = ["query", "key", "value", "scores", "weights", "context",
                 "output"]
    feed_forward = ["inner", "activated", "output"]
    norm = ["mean", "centered",
            "variance" if config.norm == "layer" else "std", "normalized",
            "output"]
    before, after = ("summed", None), (None, "output")
    if config.residual == "pre":
        before, after = after, before
    chain = []
    for side, stack, ends in (("source", "encoder", "memory"),
                              ("target", "decoder", "decoded")):
        chain += [f"{side}_embedding.embedded", f"{side}_positions.positions",
                  f"{side}_positions.positioned"]
        parts = {"self_attention": "attended", "cross_attention": "informed",
                 "feed_forward": "output"}
        if stack == "encoder":
            del parts["cross_attention"]
        for i in range(getattr(config, f"n_{stack}_layers")):
            for part, layer_step in parts.items():
                at = f"{stack}.layers.{i}."
                inner = feed_forward if part == "feed_forward" else attention
                inner = [f"{at}{part}.{step}" for step in inner]
                normed = [f"{at}{part}_residual.norm.{step}" for step in norm]
                chain += (
                    [*normed, *inner, f"{at}{part}_residual.output"]
                    if config.residual == "pre" else
                    [*inner, f"{at}{part}_residual.summed", *normed])
                chain.append(at + layer_step)
        if config.final_norm:
            chain += [f"{stack}.norm.{step}" for step in norm]
        chain += [f"{stack}.output", ends]
    chain += ["projection.logits", "output"]
    assert list(order) == chain


def test_attention_weights_are_had_by_name(engine):
    """Those of every attention, [B H T S], and each row sums to 1 or is 0."""
    config, source = cases.test_size("lesson"), cases.SOURCE
    found = trace.attention_weights(steps(engine.NAME, "lesson"))
    lengths = {
        **{f"encoder.layers.{i}.self_attention.weights": (source, source)
           for i in range(config.n_encoder_layers)},
        **{f"decoder.layers.{i}.{part}.weights": (cases.TARGET, keys)
           for i in range(config.n_decoder_layers)
           for part, keys in (("self_attention", cases.TARGET),
                              ("cross_attention", source))}}
    assert found.keys() == lengths.keys()
    masks = dict(zip(golden.INPUTS, batch("lesson")))
    for name, value in found.items():
        assert value.shape == (cases.BATCH, config.n_heads, *lengths[name])
        mask = masks["target_mask" if "decoder" in name and "self" in name
                     else "source_mask"]
        mask = np.broadcast_to(mask, value.shape)
        np.testing.assert_allclose(
            value.sum(axis=-1), mask.any(axis=-1), rtol=0, atol=1e-14)
        assert (value[~mask] == 0).all() and (value[mask] > 0).all()


# The trace itself

class Module:
    """Something that a trace can name."""


def test_a_tap_without_a_trace_is_the_identity():
    value = object()
    assert trace.tap(Module(), "step", value) is value


def test_a_trace_records_under_the_modules_path():
    root, below, value = Module(), Module(), object()
    with trace.tracing({id(root): "", id(below): "layers.0"}) as found:
        assert trace.tap(below, "inner", value) is value
        assert trace.tap(root, "output", 2) == 2
    assert list(found.values.items()) == [
        ("layers.0.inner", value), ("output", 2)]


def test_a_name_is_recorded_once():
    """A layer that is run twice, as Keras does unbuilt ones, is noticed."""
    root = Module()
    with trace.tracing({id(root): ""}):
        trace.tap(root, "output", 1)
        with pytest.raises(RuntimeError, match="output was recorded twice"):
            trace.tap(root, "output", 1)


def test_a_trace_inside_a_trace():
    """The inner one sees its own steps, and the outer one goes on after."""
    root = Module()
    paths = {id(root): ""}
    with trace.tracing(paths) as outer:
        trace.tap(root, "first", 1)
        with trace.tracing(paths) as inner:
            trace.tap(root, "first", 2)
        trace.tap(root, "second", 3)
    trace.tap(root, "third", 4)
    assert outer.values == {"first": 1, "second": 3}
    assert inner.values == {"first": 2}


def test_an_exception_closes_the_trace():
    root = Module()
    with pytest.raises(KeyError), trace.tracing({id(root): ""}) as found:
        raise KeyError
    trace.tap(root, "output", 1)
    assert not found.values


def test_a_run_that_fails_leaves_no_trace_open(port):
    """A sum of two widths fails within a trace; the next run is as ever."""
    config = cases.test_size("lesson")
    residual = port.build("residual", config, weights.select(
        golden.shipped("lesson"),
        "encoder.layers.0.self_attention_residual."))
    x = cases.values("x", 1, 2, config.d_model)
    with pytest.raises(Exception):  # noqa: B017  each framework's own
        port.run_residual(residual, x, x[..., :3])
    assert not trace.is_open()
    assert "output" in port.run_residual(residual, x, x * x)


def test_threads_run_forward_at_once(port):
    """Each run's steps are its own, and a run beside it is not recorded."""
    whole, inputs = model(port.NAME, "lesson"), batch("lesson")
    truth = port.forward(whole, *inputs)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            runs = [*pool.map(
                lambda _: port.forward(whole, *inputs), range(6))]
    finally:
        sys.setswitchinterval(before)
    for found in runs:
        assert list(found) == list(truth)
        assert all(found[name].tobytes() == value.tobytes()
                   for name, value in truth.items())
    assert not trace.is_open()


# Compiled

def close(found, truth):
    """Whether compiling changed nothing but roundings."""
    difference = compare(found, truth, COMPILED_LIMIT)
    assert difference.verdict == MATCH, difference
    return True


@pytest.mark.parametrize("port", ["jax"], indirect=True)
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
@pytest.mark.long(12)
def test_jax_compiled_is_eager(port, preset):
    """Every step under jit, in the same order."""
    eager = steps("jax", preset)
    found = port.run(model("jax", preset), *batch(preset), compiled=True)
    assert list(found) == list(eager)
    for name, value in found.items():
        assert close(value, eager[name]), name


@pytest.mark.parametrize("port", ["keras"], indirect=True)
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
@pytest.mark.long(12)
def test_keras_in_a_graph_is_eager(port, preset):
    """Every step, recorded while tf.function traces, and returned by it."""
    import keras
    if keras.backend.backend() != "tensorflow":
        pytest.skip("not checked: Keras does not run on TensorFlow here")
    import tensorflow as tf
    whole = model("keras", preset)
    paths = {id(layer): path for path, layer in port.modules(whole)}

    @tf.function
    def graph(*inputs):
        with trace.tracing(paths) as found:
            whole(*inputs)
        return found.values
    found = graph(*(port.to_native(a, "cpu") for a in batch(preset)))
    eager = steps("keras", preset)
    assert found.keys() == eager.keys()
    for name, value in found.items():
        assert close(port.to_numpy(value), eager[name]), name
