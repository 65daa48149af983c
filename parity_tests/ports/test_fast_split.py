"""What JAX's fast form keeps of a model, and that it sees what is changed."""

import gc
import weakref

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import probe_weights
from parity.check import cases
from parity_tests.support.conformance import MANY, ODD
from parity_tests.support.engines import usable

jax = pytest.importorskip("jax", reason="not checked: JAX is not installed")
nnx = pytest.importorskip("flax.nnx", reason="not checked: no Flax")
split = pytest.importorskip("impl_jax.fast.split")

SOURCE = cases.ids("source", 3, 7, 203)


def built(seed=3):
    """A fast model of probe weights."""
    return usable("jax", "fast").build(
        "transformer", ODD, probe_weights(ODD, seed))


def answer(model):
    """What the model answers, as the engine compiles it."""
    return usable("jax", "fast").predict(
        model, *Batch.of_ids(SOURCE, SOURCE))


def anew(model):
    """What NNX makes of the model now."""
    graph, state = nnx.split(model)
    return nnx.merge(graph, state)(*map(
        jax.numpy.asarray, Batch.of_ids(SOURCE, SOURCE)))


def larger(model):
    """Give one array another value."""
    kernel = model.encoder.layers[0].self_attention.query.kernel
    kernel.set_value(2 * kernel.get_value())


def other_variable(model):
    """Put another Variable in the place of one."""
    query = model.encoder.layers[0].self_attention.query
    query.kernel = nnx.Param(2 * query.kernel.get_value())


def other_module(model):
    """Put another module in the place of one."""
    layer = model.encoder.layers[0]
    layer.feed_forward = built(4).encoder.layers[0].feed_forward


def other_number(model):
    """Change a number that stands in a module."""
    model.encoder.layers[0].feed_forward_residual.norm.eps = 0.5


@pytest.mark.parametrize("change", [
    larger, other_variable, other_module, other_number])
def test_a_change_is_seen(change):
    with jax.enable_x64(True):
        model = built()
        before = answer(model)
        change(model)
        assert not np.array_equal(before, answer(model))
        model.eval()
        np.testing.assert_allclose(answer(model), anew(model), atol=1e-12)


def test_arrays_are_in_nnxs_order():
    model = built()
    _, arrays = split.split(model)
    assert all(one is other for one, other in zip(
        arrays, jax.tree.leaves(nnx.state(model)), strict=True))


def test_models_of_one_structure_share_a_graph():
    assert split.split(built())[0] is split.split(built(4))[0]


def test_a_model_goes_when_nobody_has_it():
    model = built()
    usable("jax", "fast").generate(
        model, SOURCE, GenerationConfig(eos_id=2, max_tokens=MANY))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
