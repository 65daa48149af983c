"""Conformance with the frameworks' own layers.

The ports write their layers out where a built-in cannot give the definition's
numbers. Here the built-ins stand beside the reference in float64: with which
settings they are equal, and where no setting makes them so, how far off they
are. What they do by default is in parity/differences, whose tests hold it.
"""

import numpy as np
import pytest

from transformer_contract import weights
from parity.check import cases
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity_tests.support.native import (
    ATTENTION, BATCH, CONFIG, D, EMPTY, HEADS, MEMORY, NARROW, OTHERS,
    PROJECTIONS, WEIGHTS, X, equal, gap, jax_only, keras_only,
    load_torch_attention, on_tensorflow, reference, torch_mask, torch_only)
from reference_numpy.dialects.feed_forward import ACTIVATIONS


# Activations


def torch_activation(name, x):
    import torch
    functional, x = torch.nn.functional, torch.from_numpy(x)
    return (functional.silu(x) if name == "silu"
            else functional.gelu(x, approximate="tanh"))


def keras_activation(name, x):
    import keras
    on_tensorflow()
    activations, x = keras.activations, keras.ops.convert_to_tensor(x)
    return (activations.silu(x) if name == "silu"
            else activations.gelu(x, approximate=True))


def jax_activation(name, x):
    import jax
    return (jax.nn.silu(x) if name == "silu"
            else jax.nn.gelu(x, approximate=True))


@pytest.mark.parametrize("port, native", [
    ("torch", torch_activation), ("keras", keras_activation),
    ("jax", jax_activation)], indirect=["port"])
@pytest.mark.parametrize("name", ["gelu_tanh", "silu"])
def test_activations(port, native, name):
    """Each is ours, but that a factor of Keras' is float32's (R37)."""
    x = 3 * cases.values("x", 5, 9, D)
    found, truth = native(name, x), ACTIVATIONS[name](x)
    if (port.NAME, name) == ("keras", "gelu_tanh"):
        assert 1e-10 < gap(found, truth) < 1e-9
    else:
        assert equal(found, truth)


# Layer norm


def nn_layer_norm(x, scale, bias, eps):
    import torch
    norm = torch.nn.LayerNorm(D, eps, dtype=torch.float64)
    norm.load_state_dict({"weight": torch.from_numpy(scale),
                          "bias": torch.from_numpy(bias)})
    return norm(torch.from_numpy(x)).detach()


def f_layer_norm(x, scale, bias, eps):
    import torch
    x, scale, bias = map(torch.from_numpy, (x, scale, bias))
    return torch.nn.functional.layer_norm(x, (D,), scale, bias, eps)


def keras_layer_norm(x, scale, bias, eps):
    import keras
    on_tensorflow()
    norm = keras.layers.LayerNormalization(epsilon=eps, dtype="float64")
    norm.build(x.shape)
    norm.set_weights([scale, bias])
    return keras.ops.convert_to_numpy(norm(x))


def nnx_layer_norm(x, scale, bias, eps):
    import jax.numpy as jnp
    from flax import nnx
    norm = nnx.LayerNorm(
        x.shape[-1], epsilon=eps, use_fast_variance=False, dtype=x.dtype,
        param_dtype=x.dtype, rngs=nnx.Rngs(0))
    norm.scale.set_value(jnp.asarray(scale))
    norm.bias.set_value(jnp.asarray(bias))
    return norm(jnp.asarray(x))


EPSILONS = 1e-3, 1e-5, 1e-6


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("port, norm", [
    pytest.param("torch", nn_layer_norm, id="nn.LayerNorm"),
    pytest.param("torch", f_layer_norm, id="F.layer_norm"),
    pytest.param("keras", keras_layer_norm, id="LayerNormalization"),
    pytest.param("jax", nnx_layer_norm, id="nnx.LayerNorm"),
], indirect=["port"])
def test_layer_norm(port, norm, eps):
    """Given epsilon, each is ours, on narrow rows and far from zero (R3)."""
    arrays = weights.select(
        WEIGHTS, "encoder.layers.0.self_attention_residual.norm.")
    config = CONFIG.replace(norm_eps=eps)
    for x in (X, NARROW, X + 100):
        truth = reference("norm", x, config=config, arrays=arrays)["output"]
        assert equal(norm(x, **arrays, eps=eps), truth)


def torch_rms_norm(x, scale, eps):
    import torch
    return torch.nn.functional.rms_norm(
        torch.from_numpy(x), (D,), torch.from_numpy(scale), eps)


def keras_rms_norm(x, scale, eps):
    import keras
    on_tensorflow()
    norm = keras.layers.RMSNormalization(epsilon=eps, dtype="float64")
    norm.build(x.shape)
    norm.set_weights([scale])
    return keras.ops.convert_to_numpy(norm(x))


def nnx_rms_norm(x, scale, eps):
    import jax.numpy as jnp
    from flax import nnx
    norm = nnx.RMSNorm(x.shape[-1], epsilon=eps, dtype=x.dtype,
                       param_dtype=x.dtype, rngs=nnx.Rngs(0))
    norm.scale.set_value(jnp.asarray(scale))
    return norm(jnp.asarray(x))


@pytest.mark.parametrize("port, norm", [
    ("torch", torch_rms_norm), ("keras", keras_rms_norm),
    ("jax", nnx_rms_norm)], indirect=["port"])
@pytest.mark.parametrize("eps", EPSILONS)
def test_rms_norm(port, norm, eps):
    """Each framework's is ours (R40)."""
    arrays = {"scale": cases.values("scale", D)}
    config = CONFIG.replace(norm="rms", norm_eps=eps)
    for x in (X, NARROW, X + 100):
        truth = reference("norm", x, config=config, arrays=arrays)["output"]
        assert equal(norm(x, **arrays, eps=eps), truth)


# Attention


def cross_attention():
    """The steps of attention over a memory, one of which is all padding."""
    return reference("multi_head_attention", X, MEMORY, BATCH.source_mask)


def torch_attention():
    import torch
    module = torch.nn.MultiheadAttention(
        D, HEADS, batch_first=True, dtype=torch.float64)
    load_torch_attention(module, ATTENTION)
    return module


@torch_only
def test_torch_multi_head_attention(port):
    """Ours, weights and all, where every query may attend to something."""
    import torch
    module = torch_attention()
    x, memory = torch.from_numpy(X), torch.from_numpy(MEMORY)
    mask = torch_mask(BATCH.source_mask, cases.TARGET)
    output, found = module(x, memory, memory, attn_mask=mask,
                           average_attn_weights=False)
    truth = cross_attention()
    assert equal(output.detach()[OTHERS], truth["output"][OTHERS])
    assert equal(found.detach()[OTHERS], truth["weights"][OTHERS])
    # By default the weights are those of all heads at once.
    _, mean = module(x, memory, memory, attn_mask=mask)
    assert equal(mean.detach()[OTHERS], truth["weights"][OTHERS].mean(axis=1))


@torch_only
def test_torch_scaled_dot_product_attention(port):
    """Ours: True keeps, and a query without keys has context 0 (R1, R2)."""
    import torch
    steps = cross_attention()
    query, key, value, mask = (torch.from_numpy(array) for array in (
        steps["query"], steps["key"], steps["value"], BATCH.source_mask))
    found = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask)
    assert equal(found, steps["context"])
    assert not found[EMPTY].any()


@torch_only
@pytest.mark.parametrize("n_kv_heads", [1, 3])
def test_torch_grouped_heads(port, n_kv_heads):
    """Its enable_gqa shares heads side by side, as here (R43)."""
    import torch
    config = CONFIG.replace(n_kv_heads=n_kv_heads)
    shared = weights.select(weights.probe_weights(config),
                          "encoder.layers.0.self_attention.")
    steps = reference("multi_head_attention", X, MEMORY, BATCH.source_mask,
                      config=config, arrays=shared)
    query, key, value, mask = (torch.from_numpy(array) for array in (
        steps["query"], steps["key"], steps["value"], BATCH.source_mask))
    found = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, enable_gqa=True)
    assert equal(found, steps["context"])


def keras_attention(n_heads, with_weights):
    """Keras' own answer: the layer, and its output as an array."""
    import keras
    layer = keras.layers.MultiHeadAttention(
        n_heads, D // n_heads, dtype="float64")
    layer.build(X.shape, MEMORY.shape)
    layer.set_weights([
        ATTENTION[f"{name}.{leaf}"].reshape(weight.shape)
        for weight, (name, leaf) in zip(layer.weights, (
            (name, leaf) for name in PROJECTIONS
            for leaf in ("kernel", "bias")))])
    found = layer(X, MEMORY, attention_mask=BATCH.source_mask,
                  return_attention_scores=with_weights)
    return layer, keras.ops.convert_to_numpy(
        found[0] if with_weights else found)


@keras_only
@pytest.mark.parametrize("with_weights", [True, False])
@pytest.mark.parametrize("n_heads", [6, 3])
def test_keras_multi_head_attention(port, n_heads, with_weights):
    """Its 1/√d_k passes through float32, unless d_k is a power of 4 (R12).

    Then it is ours, where every query may attend to something.
    """
    on_tensorflow()
    truth = reference(
        "multi_head_attention", X, MEMORY, BATCH.source_mask,
        config=CONFIG.replace(n_heads=n_heads))["output"][OTHERS]
    _, found = keras_attention(n_heads, with_weights)
    if D // n_heads == 16:
        assert equal(found[OTHERS], truth)
    else:
        assert 1e-9 < gap(found[OTHERS], truth) < 1e-7


@keras_only
def test_our_keras_attention_is_keras_own(port):
    """Its call is written out; Keras' own of the same layer is its equal.

    To the bit, fully masked rows among them.
    """
    import keras
    layer = port.build("multi_head_attention", CONFIG, ATTENTION)
    x, memory, mask = (port.to_native(value, "cpu")
                       for value in (X, MEMORY, BATCH.source_mask))
    ours = layer(x, memory, mask, cache=None)
    own, _ = keras.layers.MultiHeadAttention.call(
        layer, x, memory, attention_mask=mask[:, 0],
        return_attention_scores=True)
    np.testing.assert_array_equal(port.to_numpy(ours), port.to_numpy(own))


def nnx_attention(**keywords):
    """NNX' own answer as an array."""
    import jax.numpy as jnp
    from flax import nnx
    module = nnx.MultiHeadAttention(
        HEADS, D, dtype=jnp.float64, param_dtype=jnp.float64, decode=False,
        rngs=nnx.Rngs(0))
    for name in PROJECTIONS:
        linear = module.out if name == "output" else getattr(module, name)
        for leaf in ("kernel", "bias"):
            variable = getattr(linear, leaf)
            variable.set_value(jnp.asarray(
                ATTENTION[f"{name}.{leaf}"].reshape(variable.shape)))
    return np.asarray(module(
        jnp.asarray(X), jnp.asarray(MEMORY),
        mask=jnp.asarray(BATCH.source_mask), **keywords))


def jax_attention():
    """jax.nn's own context, [B H T K]."""
    import jax
    import jax.numpy as jnp
    steps = cross_attention()
    mask = np.broadcast_to(BATCH.source_mask, steps["scores"].shape)
    query, key, value = (jnp.asarray(steps[name].swapaxes(1, 2))
                         for name in PROJECTIONS[:3])
    found = jax.nn.dot_product_attention(
        query, key, value, mask=jnp.asarray(mask))
    return np.asarray(found).swapaxes(1, 2)


@jax_only
def test_jax_dot_product_attention(port):
    """Its softmax is float32."""
    found, steps = jax_attention(), cross_attention()
    assert found.dtype == np.float64
    assert 1e-9 < gap(found[OTHERS], steps["context"][OTHERS]) < 1e-6


@jax_only
@pytest.mark.filterwarnings("ignore:Using 'Module.sow")
@pytest.mark.parametrize("keywords, low, high", [
    ({}, 1e-9, 1e-6), ({"sow_weights": True}, 0, FLOAT64_LIMIT)])
def test_nnx_multi_head_attention(port, keywords, low, high):
    """By default its softmax is float32; asked for weights, it is not."""
    found, steps = nnx_attention(**keywords), cross_attention()
    assert found.dtype == np.float64
    assert low <= gap(found[OTHERS], steps["output"][OTHERS]) < high
