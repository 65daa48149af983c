"""What a card says to write runs, and does what it says."""

import numpy as np
import pytest

from parity.causes import fit
from parity.causes.write import LINES, write_of
from parity_tests.support.engines import usable

X = np.linspace(-2, 2, 12)


def names_of(framework):
    """What its lines of code are about, by name."""
    usable(framework)
    if framework == "torch":
        import torch
        return {"torch": torch, "x": torch.from_numpy(X)}
    if framework == "jax":
        import jax
        import jax.numpy as jnp
        from flax import nnx
        return {"jax": jax, "jnp": jnp, "nnx": nnx, "x": jnp.asarray(X),
                "d_k": 8}
    import keras
    return {"keras": keras, "x": keras.ops.convert_to_tensor(X)}


FEATURES = "num_features=8, rngs=nnx.Rngs(0), "


@pytest.mark.parametrize("framework, kind, others", [
    ("torch", "LayerNorm", "normalized_shape=8, "),
    ("torch", "RMSNorm", "normalized_shape=8, "),
    ("torch", "BatchNorm1d", "num_features=8, "),
    ("torch", "GroupNorm", "num_groups=2, num_channels=8, "),
    ("jax", "LayerNorm", FEATURES), ("jax", "RMSNorm", FEATURES),
    ("jax", "BatchNorm", FEATURES),
    ("jax", "GroupNorm", f"num_groups=2, {FEATURES}"),
    ("keras", "LayerNormalization", ""), ("keras", "RMSNormalization", ""),
    ("keras", "BatchNormalization", ""),
    ("keras", "GroupNormalization", "groups=2, ")])
def test_an_epsilon_is_that_of_a(framework, kind, others):
    line = write_of(framework, "rms_norm_eps", "0.0003", kind)
    made = eval(line.replace("…, ", others), names_of(framework))
    assert getattr(made, "eps" if framework == "torch" else "epsilon") == 3e-4


@pytest.mark.parametrize("framework", ["torch", "jax", "keras"])
@pytest.mark.parametrize("word", sorted(LINES["activation"]["jax"]))
def test_an_activation_is_that_of_a(framework, word):
    made = eval(write_of(framework, "activation", word), names_of(framework))
    np.testing.assert_allclose(
        np.asarray(made), fit.activations()[word](X), atol=1e-6)


def test_what_is_not_known_says_nothing():
    assert write_of("torch", "summand", "there") == ""
    assert write_of("jax", "scale", "used") == ""
    assert write_of("jax", "epsilon", "another") == ""
    assert write_of("", "epsilon", "1e-05") == ""


def test_words_of_a():
    assert write_of("jax", "bias", "used", "Linear") == (
        "nnx.Linear(…, use_bias=True)")
    assert write_of("torch", "rms_norm_eps", "1e-06", "OlmoNorm") == "eps=1e-06"
    assert write_of("jax", "momentum", "0.1", "BatchNorm", of="torch") == (
        "nnx.BatchNorm(…, momentum=0.9)")
    assert write_of("torch", "momentum", "0.1", "BatchNorm1d", "torch") == (
        "torch.nn.BatchNorm1d(…, momentum=0.1)")
    assert write_of("torch", "padding", "zero, id 3") == (
        "torch.nn.Embedding(…, padding_idx=3)")
    assert write_of("torch", "future", "hidden").endswith("is_causal=True)")
    assert write_of("torch", "dropout", "off") == "model.eval()"


def test_every_line_is_code():
    for frameworks in LINES.values():
        for lines in frameworks.values():
            for line in lines.values() if isinstance(lines, dict) else [lines]:
                compile(line.format(1).replace("…", "1"), "line", "exec")
