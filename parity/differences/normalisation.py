"""Known differences of norms."""

import functools
import math

import numpy as np

from parity.causes.formulas import norm as formula
from parity.differences.asking import Effect, add
from parity.differences.tensors import (
    as_numpy, gap_of, jax_array, normals, onnx_answer, torch_tensor, word)


def _torch_norm(x, **more):
    import torch
    x = torch_tensor(x)
    return as_numpy(torch.nn.LayerNorm(x.shape[-1], dtype=x.dtype, **more)(x))


def _torch_f_norm(x):
    import torch
    return as_numpy(
        torch.nn.functional.layer_norm(torch_tensor(x), x.shape[-1:]))


def _keras_norm(x, **more):
    import keras
    return as_numpy(
        keras.layers.LayerNormalization(dtype=x.dtype.name, **more)(x))


def _keras_ops_norm(x):
    from keras import ops
    ones = np.ones(x.shape[-1], x.dtype)
    return as_numpy(ops.layer_normalization(ops.convert_to_tensor(x), ones,
                                            0 * ones))


def _nnx_norm(x, **more):
    from flax import nnx
    return as_numpy(
        nnx.LayerNorm(x.shape[-1], rngs=nnx.Rngs(0), **more)(jax_array(x)))


def _linen_norm(x):
    import jax
    from flax import linen
    return as_numpy(linen.LayerNorm().init_with_output(
        jax.random.key(0), jax_array(x))[0])


def _onnx_norm(x):
    ones = np.ones(x.shape[-1], x.dtype)
    return as_numpy(onnx_answer(
        "LayerNormalization", {"x": x, "s": ones, "b": 0 * ones}))


NORMS = {"torch nn.LayerNorm": _torch_norm,
         "torch F.layer_norm": _torch_f_norm,
         "keras LayerNormalization": _keras_norm,
         "keras ops.layer_normalization": _keras_ops_norm,
         "flax nnx.LayerNorm": _nnx_norm,
         "flax linen.LayerNorm": _linen_norm,
         "onnx LayerNormalization": _onnx_norm}


def _normalised(x, eps, **settings):
    """A layer norm written out, in float64, with settings of its formula."""
    return formula.steps(x, 1.0, 0.0, {
        **formula.LAYER, "epsilon": eps, **settings})["normalized"]


def _epsilon_of(norm):
    """The ε of a norm: of ±s it makes ±s / √(s² + ε)."""
    s = 1e-3
    y = norm(np.array([[-s, s]], np.float32))[0, 1]
    return float(s**2 / y**2 - s**2)


def norms(recorded, ask, norms=NORMS):
    return {who: (value, functools.partial(ask, norms[who]))
            for who, value in zip(norms, recorded, strict=True)}


def _epsilon_effect():
    """ε 1e-5 against 1e-6 on rows of several deviations."""
    x = normals(64, 512)
    x /= x.std(-1, keepdims=True)
    return {f"std {std:g}": gap_of(_normalised(std * x, 1e-5),
                                   _normalised(std * x, 1e-6))
            for std in (1, 0.1, 0.02, 0.01)}


add("layer_norm_epsilon", "normalisation",
    "Each layer norm adds another ε to the variance. On rows of deviation 1 "
    "nobody sees it; on narrow rows, as embeddings are at first, the output "
    "shrinks by a hundredth or by half.",
    norms((1e-5, 1e-5, 1e-3, 1e-7, 1e-6, 1e-6, 1e-5), _epsilon_of),
    tolerance=1e-2,
    effect=Effect("output with ε 1e-5 against 1e-6", _epsilon_effect,
                  hidden=("std 1",)))


def _spread(norm):
    """The deviation of the output on rows of deviation 0.02."""
    x = normals(4, 512)
    x *= 0.02 / x.std(-1, keepdims=True)
    return float(norm(x.astype(np.float32)).std())


add("layer_norm_on_narrow_rows", "normalisation",
    "What the default ε makes of rows whose deviation is 0.02: a norm that "
    "should give deviation 1 gives half of it in Keras.",
    norms((0.98773, 0.98773, 0.53452, 0.99987, 0.99875, 0.99875, 0.98773),
          _spread))


def _variance_of(norm):
    """Which variance: of ±1 the unbiased one is 2, the biased one 1."""
    y = norm(np.array([[-1, 1]], np.float32))[0, 1]
    return word(y > 0.9, "biased", "unbiased")


def _unbiased_effect():
    """A norm by the unbiased deviation against a standard one."""
    gaps = {}
    for width in (4, 64, 512):
        x = normals(64, width)
        gaps[f"width {width}"] = gap_of(
            _normalised(x, 0, variance="over D - 1"), _normalised(x, 0))
    return gaps


add("layer_norm_variance", "normalisation",
    "Built-in layer norms divide the squares by the width D. A norm written "
    "with torch's std divides by D - 1, which multiplies every output by "
    "√((D - 1) / D).",
    norms(("biased",) * 7, _variance_of),
    effect=Effect("unbiased against biased", _unbiased_effect))


_FOUR = np.array([1, 2, 3, 4], np.float32)


def _torch_std():
    return torch_tensor(_FOUR).std().item()


def _keras_std():
    from keras import ops
    return float(ops.std(_FOUR))


def _tf_std():
    import tensorflow as tf
    return float(tf.math.reduce_std(_FOUR))


add("std_of_four", "normalisation",
    "The deviation of 1, 2, 3, 4: torch's std is the unbiased one, every "
    "other is the biased one.",
    {"numpy": (1.118, lambda: float(_FOUR.std())),
     "torch": (1.291, _torch_std),
     "keras": (1.118, _keras_std),
     "tensorflow": (1.118, _tf_std),
     "jax": (1.118, lambda: float(jax_array(_FOUR).std()))})


def _far_from_zero(norm, offset):
    """A norm's error in float32 on rows of deviation 1 about an offset."""
    x = (normals(64, 512) + offset).astype(np.float32)
    truth = _normalised(x.astype(np.float64), 1e-6)
    return gap_of(norm(x), truth)


def _cancels(norm):
    """Whether digits are lost as the mean of the squares would lose them."""
    return word(_far_from_zero(norm, 1000) > 5e-3, "E[x²] − E[x]²",
                "E[(x − E[x])²]")


def _slow_nnx_norm(x):
    return _nnx_norm(x, use_fast_variance=False)


def _fast_effect():
    """Flax's two forms of the variance, far from zero."""
    gaps = {}
    for offset in (10, 100, 1000):
        gaps[f"fast, mean {offset}"] = _far_from_zero(_nnx_norm, offset)
    for offset in (10, 100, 1000):
        gaps[f"slow, mean {offset}"] = _far_from_zero(_slow_nnx_norm, offset)
    return gaps


add("fast_variance", "normalisation",
    "Flax takes the variance as the mean of the squares less the square of "
    "the mean, unless told not to. Where the mean is large that loses the "
    "digits; others centre first.",
    norms(("E[(x − E[x])²]", "E[(x − E[x])²]", "E[(x − E[x])²]",
           "E[(x − E[x])²]", "E[x²] − E[x]²", "E[x²] − E[x]²",
           "E[(x − E[x])²]"), _cancels),
    effect=Effect("float32 output against float64", _fast_effect,
                  hidden=("fast, mean 10", "slow, mean 10", "slow, mean 100"),
                  needs=("flax",)))


def _epsilon_place(norm):
    """Inside the root s² and ε add up, outside s and ε do."""
    eps = _epsilon_of(norm)
    s = 10 * math.sqrt(eps)
    y = norm(np.array([[-s, s]], np.float32))[0, 1]
    inside, outside = s / math.sqrt(s**2 + eps), s / (s + eps)
    return word(abs(y - inside) < abs(y - outside), "inside the root",
                "outside the root")


def _place_effect():
    """ε 1e-6 outside the root against inside."""
    x = normals(64, 512)
    x /= x.std(-1, keepdims=True)
    outside = {"epsilon's place": "outside the root"}
    return {f"std {std:g}": gap_of(_normalised(std * x, 1e-6, **outside),
                                   _normalised(std * x, 1e-6))
            for std in (1, 0.02, 1e-3)}


add("epsilon_place", "normalisation",
    "Built-in norms divide by √(variance + ε). Lessons that divide by "
    "deviation + ε compute another function, which parts from it on narrow "
    "rows.",
    norms(("inside the root",) * 7, _epsilon_place),
    effect=Effect("ε 1e-6 outside the root against inside", _place_effect,
                  hidden=("std 1",)))


def _final_norms():
    import torch
    model = torch.nn.Transformer(4, 1, 1, 1, 8)
    return word(model.encoder.norm is not None
                and model.decoder.norm is not None
                and not model.encoder.layers[0].norm_first,
                "a final norm after a post-norm stack", "none")


def _final_norm_effect():
    """A second norm after a post-norm layer, with its first weights or not."""
    x = _normalised(normals(64, 512), 1e-5)
    scale = np.random.default_rng(1).uniform(0.5, 1.5, 512)
    return {"first weights": gap_of(_normalised(x, 1e-5), x),
            "γ from 0.5 to 1.5": gap_of(_normalised(x * scale, 1e-5) * scale,
                                        x * scale)}


add("final_norm", "normalisation",
    "nn.Transformer ends both stacks in a norm, also where its layers are "
    "post-norm and the paper has none. With its first weights that is almost "
    "invisible; trained ones show it.",
    {"torch": ("a final norm after a post-norm stack", _final_norms)},
    effect=Effect("with the final norm against without", _final_norm_effect,
                  hidden=("first weights",)))


def _axes_of(norm):
    """What a norm told to take the last two axes makes one deviation of."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    y = norm(x)
    return word(np.abs(y.mean(-1)).max() < 1e-3, "features",
                "positions and features")


def _torch_two_axes(x):
    import torch
    return as_numpy(torch.nn.LayerNorm(x.shape[1:])(torch_tensor(x)))


add("norm_over_positions", "normalisation",
    "A norm told to take axes 1 and 2 of [batch, position, feature] mixes "
    "positions, later ones and padding too. Told nothing it takes features "
    "alone.",
    {"torch nn.LayerNorm(D)": (
         "features", lambda: _axes_of(_torch_norm)),
     "torch nn.LayerNorm((T, D))": (
          "positions and features", lambda: _axes_of(_torch_two_axes)),
     "keras LayerNormalization()": (
          "features", lambda: _axes_of(_keras_norm)),
     "keras LayerNormalization(axis=[1, 2])": (
          "positions and features",
          lambda: _axes_of(functools.partial(_keras_norm, axis=[1, 2]))),
     "flax nnx.LayerNorm": ("features", lambda: _axes_of(_nnx_norm))})
