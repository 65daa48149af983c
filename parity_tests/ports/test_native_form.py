"""The native form: the framework's own layers, with the same weights.

Logits, gradients and tokens are the reference's. What the layers cannot be is
told, and no other model is made of them.
"""

import numpy as np
import pytest

from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import probe_weights
from parity_io.errors import InputError
from parity import ports
from parity.check import cases
from parity_tests.support.engines import usable

CONFIG = cases.test_size("vaswani2017_base").replace(
    n_encoder_layers=1, n_decoder_layers=1, dropout=0.25)

#: How far each may be off: Keras' layers round constants to float32, and
#: MLX's have float32 alone.
NEAR = {"torch": 1e-12, "keras": 1e-7, "jax": 1e-12, "mlx": 1e-4}

#: What each can be, beside CONFIG itself.
TIED = [{"tied": "none"}, {"tied": "output"}, {"tied": "embeddings"}]
CHANGES = {
    "torch": [*TIED, {"tied": "output", "output_bias": True},
              {"residual": "pre", "final_norm": True}],
    "keras": [{"tied": "none", "norm_eps": 1e-5}],
    "jax": [], "mlx": TIED}

#: Those whose attention gives the mean where a query reads nothing, which is
#: 0 here (R2); and the rows of a padded batch where each query reads.
MEAN, READING = ("jax", "mlx"), [0, 1]


@pytest.fixture
def native(port):
    """A port's native form."""
    return usable(port.NAME, "native")


def dtype_of(port):
    """The dtype in which a native form is compared."""
    return "float32" if port.NAME == "mlx" else "float64"


def built(port, native, config):
    """A model of a native form, the reference's, and the weights."""
    weights, dtype = probe_weights(config, 3), dtype_of(port)
    return native.build("transformer", config, {
        name: array.astype(dtype) for name, array in weights.items()},
        dtype), ports.engine("numpy").build(
            "transformer", config, weights), weights


@pytest.mark.parametrize("port, changes", [
    (name, changes) for name, others in CHANGES.items()
    for changes in ({}, *others)], indirect=["port"])
def test_the_native_form_is_the_same_model(port, native, changes):
    config, reference = CONFIG.replace(**changes), ports.engine("numpy")
    own, truth, weights = built(port, native, config)
    for name, array in native.export(own).items():
        np.testing.assert_array_equal(
            array, weights[name].astype(dtype_of(port)))
    batch = [array[READING if port.NAME in MEAN else slice(None)]
             for array in cases.padded_batch(config)]
    labels = np.roll(batch[1], -1, axis=1)
    (loss, found), (right, wanted) = (
        engine.gradients(model, *batch, labels)
        for engine, model in ((native, own), (reference, truth)))
    pairs = [(loss, right), *((found[name], wanted[name])
                              for name in weights), (
        native.predict(own, *batch), reference.predict(truth, *batch))]
    for one, other in pairs:
        assert np.linalg.norm(one - other) < NEAR[port.NAME] * max(
            np.linalg.norm(other), 1)
    settings = GenerationConfig(method="beam", beam=3, max_tokens=6)
    np.testing.assert_array_equal(*(
        engine.generate(model, batch[0], settings)["tokens"]
        for engine, model in ((native, own), (reference, truth))))


@pytest.mark.parametrize("port", MEAN, indirect=True)
def test_a_query_that_reads_nothing_has_the_mean(port, native):
    """What the layers decide; the other rows are ours."""
    own, truth, _ = built(port, native, CONFIG)
    batch = cases.padded_batch(CONFIG)
    found, wanted = native.predict(own, *batch), ports.engine(
        "numpy").predict(truth, *batch)
    off = np.abs(found - wanted).max(axis=(1, 2))
    empty = ~batch.source_mask.any(axis=(1, 2, 3))
    assert empty.any() and (off[empty] > 1e-3).all()
    assert off[READING].max() < NEAR[port.NAME] * np.abs(wanted).max()


@pytest.mark.parametrize("port, changes, word", [
    ("torch", {"norm": "std"}, "nn.LayerNorm"),
    ("torch", {"n_kv_heads": 3}, "Attention"),
    ("torch", {"activation": "silu"}, "feed-forward"),
    ("torch", {"positions": "halves"}, "positions"),
    ("torch", {"token_types": 2}, "embeddings"),
    ("torch", {"output": "log_probs"}, "logits"),
    ("keras", {"norm": "std"}, "LayerNormalization"),
    ("jax", {"norm": "std"}, "variance"),
    ("jax", {"residual": "pre"}, "sums"), ("jax", {"n_kv_heads": 3}, "keys"),
    ("jax", {"output_bias": True}, "logits"),
    ("mlx", {"norm": "std"}, "nn.LayerNorm"),
    ("mlx", {"residual": "pre"}, "normalises"),
    ("mlx", {"attention_bias": "none"}, "Attention")], indirect=["port"])
def test_what_the_layers_cannot_be(port, native, changes, word):
    with pytest.raises(InputError, match=word):
        built(port, native, CONFIG.replace(**changes))


@pytest.mark.parametrize("port", ["mlx"], indirect=True)
def test_mlxs_layers_have_no_float64(native):
    with pytest.raises(InputError, match="float32"):
        native.build("transformer", CONFIG, probe_weights(CONFIG), "float64")
