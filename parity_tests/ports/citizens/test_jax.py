"""What JAX's port is to users of NNX, and what no other framework has."""

import numpy as np
import pytest

from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.generation import GenerationConfig
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


def test_the_same_streams_drop_the_same():
    ids, models = batch(), [new(seed=seed) for seed in (0, 0, 1)]
    first, again, other = (
        np.asarray(model(ids.source, ids.target)) for model in models)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


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


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_models_of_one_stack_make_their_masks(stack):
    from impl_jax import create
    config = CONFIG.replace(stacks=stack, tied="output", target_vocab=37)
    model = create(config, seed=1)
    model.eval()
    ids = batch(config)
    found = (model(ids.source) if stack == "encoder"
             else model(None, ids.target))
    assert found.shape == (3, 7 if stack == "encoder" else 5, 37)
    if stack == "decoder":
        assert model.generate(ids.source, max_tokens=3).shape == (3, 4)


def test_the_native_form_is_the_same_model(engine):
    """NNX's own layers, of the same weights: logits, gradients, tokens."""
    from impl_jax.native import engine as native
    weights, ids = probe_weights(CONFIG, 3), batch()
    ours, theirs = (each.build("transformer", CONFIG, weights)
                    for each in (engine, native))
    for name, array in native.export(theirs).items():
        np.testing.assert_array_equal(array, weights[name])
    wanted = engine.predict(ours, *ids)
    np.testing.assert_allclose(
        native.predict(theirs, *ids), wanted, rtol=0, atol=1e-12)
    labels = np.roll(ids.target, -1, axis=1)
    (loss, found), (right, gradients) = (
        each.gradients(model, *ids, labels)
        for each, model in ((native, theirs), (engine, ours)))
    assert abs(loss - right) < 1e-12
    for name, array in found.items():
        np.testing.assert_allclose(
            array, gradients[name], rtol=0, atol=1e-12)
    settings = GenerationConfig(method="beam", beam=2, max_tokens=5)
    np.testing.assert_array_equal(*(
        each.generate(model, ids.source, settings)["tokens"]
        for each, model in ((native, theirs), (engine, ours))))


def test_a_query_that_reads_nothing_has_the_mean_in_the_native_form(engine):
    """What nnx.MultiHeadAttention decides: here such a context is 0 (R2)."""
    from impl_jax.native import engine as native
    weights, ids = probe_weights(CONFIG, 3), batch()
    ids.source[0] = CONFIG.pad_id
    ids.source_mask[0] = False
    ours, theirs = (
        each.predict(each.build("transformer", CONFIG, weights), *ids)
        for each in (engine, native))
    assert np.abs(ours - theirs)[0].max() > 1e-3
    np.testing.assert_allclose(ours[1:], theirs[1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("changes, words", [
    ({"norm": "std"}, "variance"), ({"residual": "pre"}, "sums"),
    ({"n_kv_heads": 3}, "keys"), ({"output_bias": True}, "logits")])
def test_what_the_native_form_cannot_say(changes, words):
    from impl_jax.native import engine as native
    config = CONFIG.replace(**changes)
    with pytest.raises(InputError, match=words):
        native.build("transformer", config, probe_weights(config, 3))


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
