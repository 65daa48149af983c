"""What MLX's port is to its users, and what no other framework has."""

import numpy as np
import pytest

from parity import ports
from parity.check import cases

mx = pytest.importorskip(
    "mlx.core", reason="not checked: mlx is not installed",
    exc_type=ImportError)

import mlx.nn as nn  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402

CONFIG = cases.test_size("vaswani2017_base").replace(
    dropout=0.25, n_encoder_layers=1, n_decoder_layers=1)


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


def test_dtype_follows_the_model():
    model = new().eval()
    model.set_dtype(mx.bfloat16)
    assert model(*ids()).dtype == mx.bfloat16
