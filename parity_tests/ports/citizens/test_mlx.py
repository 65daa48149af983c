"""What MLX's port is to its users, and what no other framework has."""

import numpy as np
import pytest

from parity_io.errors import InputError
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases

mx = pytest.importorskip(
    "mlx.core", reason="not checked: mlx is not installed",
    exc_type=ImportError)

import mlx.nn as nn  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402

CONFIG = cases.test_size("vaswani2017_base").replace(
    dropout=0.25, n_encoder_layers=1, n_decoder_layers=1)

#: Of the padded batch those in which each query sees a key.
SEEING = [0, 1]


def new(seed=0, config=CONFIG):
    from impl_mlx import create
    return create(config, seed=seed)


def ids(config=CONFIG):
    """A source and a target; the second source is padded."""
    source = cases.ids("source", 3, 7, config.source_vocab)
    source[1, 5:] = config.pad_id
    target = cases.ids("target", 3, 5, config.target_vocab)
    return mx.array(source), mx.array(target)


def test_what_is_tied_has_one_path():
    """nn.value_and_grad and optimisers go by paths."""
    names = [name for name, _ in tree_flatten(new().parameters())]
    assert [name for name in names if "table" in name] == [
        "source_embedding.table.weight"]
    relative = new(config=CONFIG.replace(
        positions="relative", n_encoder_layers=2))
    assert len([name for name, _ in tree_flatten(relative.parameters())
                if "relative" in name]) == 2  # a stack's


def test_value_and_grad_finds_a_tables_whole_gradient():
    model, batch = new(), cases.padded_batch(CONFIG)
    labels = np.roll(batch.target, -1, axis=1)
    engine = ports.engine("mlx")
    _, wanted = engine.gradients(model, *batch, labels)
    from impl_mlx.loss import cross_entropy
    model.eval()
    inputs = [mx.array(array) for array in batch]

    def loss_of():
        return cross_entropy(
            model(*inputs), mx.array(labels), CONFIG.pad_id,
            CONFIG.label_smoothing, CONFIG.smoothing)
    _, found = nn.value_and_grad(model, loss_of)()
    np.testing.assert_allclose(
        np.array(found["source_embedding"]["table"]["weight"]),
        wanted["source_embedding.table"], atol=1e-6)


def test_a_seed_repeats_what_is_dropped():
    model = new()
    answers = []
    for seed in 1, 1, 2:
        mx.random.seed(seed)
        answers.append(np.array(model(*ids())))
    np.testing.assert_array_equal(answers[0], answers[1])
    assert np.abs(answers[0] - answers[2]).max() > 1e-3


def test_a_run_of_the_harness_leaves_the_mode():
    """Its key says what is dropped; parts keep the mode that each has."""
    model = new()
    model.encoder.eval()
    before = [below.training for below in model.modules()]
    engine, batch = ports.engine("mlx"), cases.padded_batch(CONFIG)
    key = np.array([3, 4], np.uint32)
    first, second = (
        engine.forward(model, *batch, key=key)["output"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert [below.training for below in model.modules()] == before


def test_dtype_follows_the_model():
    model = new().eval()
    model.set_dtype(mx.bfloat16)
    assert model(*ids()).dtype == mx.bfloat16


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_models_of_one_stack_make_their_masks(stack):
    config = CONFIG.replace(stacks=stack, tied="output", target_vocab=37)
    model = new(config=config).eval()
    source, target = ids(config)
    found = model(source) if stack == "encoder" else model(None, target)
    assert found.shape == (3, 7 if stack == "encoder" else 5, 37)


# The native form


@pytest.mark.parametrize("tied", ["all", "none", "embeddings", "output"])
def test_the_native_form_is_the_reference(tied):
    """In float32, where each query sees a key."""
    from impl_mlx.native import engine
    config = CONFIG.replace(tied=tied)
    arrays = probe_weights(config)
    batch = [array[SEEING] for array in cases.padded_batch(config)]
    labels = np.roll(batch[1], -1, axis=1)
    model = engine.build("transformer", config, arrays)
    reference = ports.engine("numpy")
    own = reference.build("transformer", config, arrays)
    for name, array in engine.export(model).items():
        np.testing.assert_array_equal(
            array, arrays[name].astype(np.float32))
    np.testing.assert_allclose(
        engine.predict(model, *batch), reference.predict(own, *batch),
        rtol=1e-4, atol=1e-4)
    loss, found = engine.gradients(model, *batch, labels)
    truth, wanted = reference.gradients(own, *batch, labels)
    assert abs(loss - truth) < 1e-5
    for name in arrays:
        np.testing.assert_allclose(
            found[name], wanted[name], rtol=1e-3, atol=1e-5)


def test_the_native_form_gives_a_masked_row_a_mean():
    """Which is why a source of padding alone is not ours there (R2)."""
    x = mx.random.normal((1, 4, 8))
    layer = nn.MultiHeadAttention(8, 2, bias=True)
    hidden = mx.zeros((1, 1, 1, 4), mx.bool_)
    mean = mx.mean(layer.value_proj(x), axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.array(layer(x, x, x, hidden)),
        np.array(mx.broadcast_to(layer.out_proj(mean), x.shape)), atol=1e-6)


@pytest.mark.parametrize("changes, why", [
    ({"norm": "std"}, "nn.LayerNorm"), ({"residual": "pre"}, "normalises"),
    ({"attention_bias": "none"}, "Attention")])
def test_what_mlxs_layers_cannot_be(changes, why):
    from impl_mlx.native import engine
    config = CONFIG.replace(**changes)
    with pytest.raises(InputError, match=why):
        engine.build("transformer", config, probe_weights(config))
    with pytest.raises(InputError, match="float32"):
        engine.build("transformer", CONFIG, probe_weights(CONFIG), "float64")
