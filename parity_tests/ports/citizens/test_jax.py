"""What JAX's port is to users of NNX, and what no other framework has."""

import numpy as np
import pytest

from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases

nnx = pytest.importorskip(
    "flax.nnx", reason="not asked: flax is not installed")
jax = pytest.importorskip("jax", reason="not asked: jax is not installed")

CONFIG = cases.test_size("vaswani2017_base").replace(
    dropout=0.25, n_encoder_layers=1, n_decoder_layers=1)


@pytest.fixture(autouse=True)
def float64():
    """Who computes in float64 enables it."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def engine():
    return ports.engine("jax")


def new(config=CONFIG, seed=0):
    from impl_jax import Transformer
    return Transformer(config, rngs=nnx.Rngs(seed))


def batch(config=CONFIG):
    source = cases.ids("source", 3, 7, config.source_vocab)
    source[1, 5:] = config.pad_id
    target = cases.ids("target", 3, 5, config.target_vocab)
    return Batch.of_ids(source, target, config.pad_id)


def test_weights_are_params_and_streams_are_not(engine):
    """So that an optimiser of nnx.Param moves weights alone."""
    model = new()
    _, weights, rest = nnx.split(model, nnx.Param, ...)
    assert len(jax.tree.leaves(weights)) == len(engine.export(model))
    assert all(isinstance(value, nnx.RngState) for value in jax.tree.leaves(
        rest, is_leaf=lambda x: isinstance(x, nnx.Variable)))


def test_a_constructor_makes_float32_whatever_is_enabled(engine):
    assert {array.dtype for array in engine.export(new()).values()} == {
        np.dtype("float32")}


def test_a_view_for_evaluation_leaves_the_model_in_training():
    model, ids = new(), batch()
    view = nnx.view(model, deterministic=True)
    first, second = (view(ids.source, ids.target) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not model.target_positions.dropout.deterministic


def test_a_run_of_the_harness_moves_no_stream(engine):
    """Its key says what is dropped; the model's own numbers wait."""
    model, ids = new(), batch()
    before = jax.tree.leaves(nnx.state(model, nnx.RngCount))
    key = np.array([3, 4], np.uint32)
    first, second = (
        engine.forward(model, *ids, key=key)["output"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - engine.predict(model, *ids)).max() > 1e-3
    assert before == jax.tree.leaves(nnx.state(model, nnx.RngCount))


def test_a_loaded_model_can_be_trained():
    """Built for its shapes alone, it has streams all the same."""
    from impl_jax import load
    model = load("dates")
    model.train()
    ids = cases.ids("source", 2, 5, model.config.source_vocab)
    first, second = (np.asarray(model(ids, ids)) for _ in range(2))
    if model.config.dropout:
        assert np.abs(first - second).max() > 0


def test_ids_are_not_looked_at_where_they_are_not_known():
    """A compiled function takes shapes; an id outside the table is NaN."""
    model = new()
    model.eval()
    ids = batch()
    wrong = ids.source.copy()
    wrong[0, 0] = CONFIG.source_vocab
    found = nnx.jit(lambda model, *ids: model(*ids))(model, wrong, ids.target)
    assert np.isnan(np.asarray(found)[0]).any()
    with pytest.raises(InputError, match="outside"):
        model(wrong, ids.target)


@pytest.mark.parametrize("changes", [
    {}, {"residual": "pre", "final_norm": True, "n_kv_heads": 3},
    {"stacks": "decoder", "tied": "output"}, {"positions": "relative"}])
def test_layers_in_a_loop_train_as_one_by_one(changes, monkeypatch):
    """With dropout and padding; what is not alike is not put in a loop."""
    from impl_jax.fast import layers
    engine = ports.engine("jax", "fast")
    config = CONFIG.replace(
        n_encoder_layers=2, n_decoder_layers=2, **changes)
    ids, calls, found = batch(config), [], []
    real = layers.through
    monkeypatch.setattr(layers, "through", lambda *given: (
        calls.append(len(given)), real(*given))[1])
    for many in (3, 2):
        monkeypatch.setattr(layers, "MANY", many)
        trainer = engine.trainer(
            engine.build("transformer", config, probe_weights(config, 3)),
            TrainingConfig(warmup_steps=3))
        loss = engine.train_step(trainer, ids.source[None], ids.target[None])
        found.append({**loss, **engine.moments(trainer)})
        assert bool(calls) == (
            many == 2 and config.positions != "relative")
    for name, array in found[0].items():
        np.testing.assert_allclose(
            array, found[1][name], rtol=1e-9, atol=1e-15, err_msg=name)
