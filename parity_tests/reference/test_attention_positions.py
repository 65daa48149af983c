"""Rotary and relative positions, by other means than the reference itself."""

import math

import mpmath
import numpy as np
import pytest

from transformer_contract.buckets import boundaries, buckets
from transformer_contract.config import PLAIN
from parity_io.errors import InputError
from transformer_contract.rotary import rotations
from transformer_contract.weights import initial_weights, probe_weights
from parity.check import cases
from reference_numpy import engine
from reference_numpy.dialects.rotary import RotaryHalves, RotaryInterleaved

CONFIG = cases.test_size("practical")


def test_t5s_buckets():
    """The first distance of each, as T5's own code has them."""
    assert boundaries(16, 128) == (
        0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91)
    assert boundaries(32, 128) == (
        *range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87,
        99, 113)


@pytest.mark.parametrize("count, greatest", [(32, 128), (8, 10), (6, 1000)])
def test_boundaries_against_a_logarithm(count, greatest):
    """T5's formula with 50 digits, but where it is a whole number itself."""
    half = count // 2
    for distance in range(half, 2 * greatest):
        share = mpmath.log(mpmath.mpf(distance) / half) / mpmath.log(
            mpmath.mpf(greatest) / half) * (count - half)
        bucket = min(half + int(mpmath.floor(share + mpmath.mpf(10)**-40)),
                     count - 1)
        found = sum(first <= distance for first in boundaries(count, greatest))
        assert found - 1 == bucket, distance


def test_buckets_of_both_directions():
    """Keys to the right add half; a causal stack has them in bucket 0."""
    both = buckets(3, 200, 100, 32, 128, causal=False)
    assert both[0, 100] == 0 and both[0, 99] == 1 and both[0, 101] == 17
    assert both[0, 0] == 15 and both[0, 199] == 31 and both[2, 102] == 0
    causal = buckets(3, 200, 100, 32, 128, causal=True)
    assert not causal[0, 100:].any() and causal[0, 84] == 16
    assert causal[0, 0] == 30 and causal[1, 100] == 1


def turned(x, place, base, pairs):
    """x [K] as complex numbers, each multiplied by e^(iθ)."""
    first, second = pairs
    z = x[first] + 1j * x[second]
    theta = place / base ** (2 * np.arange(len(first)) / len(x))
    z = z * np.exp(1j * theta)
    y = np.empty_like(x)
    y[first], y[second] = z.real, z.imag
    return y


@pytest.mark.parametrize("kind, pairs", [
    (RotaryHalves, (np.arange(4), np.arange(4, 8))),
    (RotaryInterleaved, (np.arange(0, 8, 2), np.arange(1, 8, 2)))])
def test_rotary_turns_complex_numbers(kind, pairs):
    module = kind(CONFIG.replace(positions="rotary_halves"))
    x = cases.values("rotated", 2, 6, 5, 8)
    found, _ = module.forward(x, 3)
    for place in range(5):
        truth = np.apply_along_axis(
            turned, -1, x[:, :, place], 3 + place, 10000.0, pairs)
        np.testing.assert_allclose(
            found[:, :, place], truth, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", [RotaryHalves, RotaryInterleaved])
def test_rotary_products_depend_on_the_distance(kind):
    """Wherever both stand; and no length changes."""
    module = kind(CONFIG.replace(positions="rotary_halves"))
    query, key = cases.values("q", 1, 1, 1, 8), cases.values("k", 1, 1, 1, 8)
    products = [
        (module.forward(query, start + 5)[0]
         @ module.forward(key, start)[0].mT).item() for start in (0, 9, 40)]
    assert max(products) - min(products) < 1e-14
    length = np.linalg.norm(module.forward(query, 50)[0])
    assert length == pytest.approx(np.linalg.norm(query), rel=1e-14)


def test_rotary_angles_against_mpmath():
    cosines, sines = rotations(5000, 8, 10000.0, "none")
    for place in (1, 4999):
        for pair in range(4):
            theta = place / mpmath.mpf(10000) ** (mpmath.mpf(2 * pair) / 8)
            assert cosines[place, pair] == pytest.approx(
                float(mpmath.cos(theta)), abs=1e-12)
            assert sines[place, pair] == pytest.approx(
                float(mpmath.sin(theta)), abs=1e-12)


def test_one_table_a_stack():
    """It is the first layer's, and its gradient is that of all layers."""
    config = CONFIG.replace(positions="relative")
    names = [name for name in initial_weights(config) if "relative" in name]
    assert names == [
        f"{stack}.layers.0.self_attention.relative.table"
        for stack in ("encoder", "decoder")]
    model = engine.build("transformer", config, probe_weights(config))
    batch = cases.padded_batch(config)
    _, g = engine.gradients(model, *batch, batch.target)
    for name in names:
        stack = name.partition(".")[0]
        layers = getattr(model, stack).layers
        parts = sum(
            np.bincount(
                rows.ravel(), g[f"{stack}.layers.{i}.self_attention.relative."
                                "position_bias"][0].ravel(),
                config.relative_buckets)
            for i, layer in enumerate(layers)
            for rows in [buckets(*g[
                f"{stack}.layers.{i}.self_attention.scores"].shape[2:], 0, 32,
                128, layer.self_attention.relative.causal)])
        np.testing.assert_allclose(g[name][:, 0], parts, atol=1e-15)


def test_cross_attention_knows_no_positions():
    """With relative positions, or rotary ones, its scores are products."""
    for positions in ("relative", "rotary_halves"):
        config = CONFIG.replace(positions=positions)
        model = engine.build("transformer", config, probe_weights(config))
        steps = engine.forward(model, *cases.padded_batch(config))
        cross, own = (
            np.abs(steps[f"{path}.scores"] - steps[f"{path}.query"]
                   @ steps[f"{path}.key"].mT / math.sqrt(config.d_k)).max()
            for path in ("decoder.layers.0.cross_attention",
                         "decoder.layers.0.self_attention"))
        assert cross == 0 and own > 0.01


@pytest.mark.parametrize("changes, words", [
    ({"positions": "rotary_halves", "d_head": 7}, "make d_head even"),
    ({"rotary_base": 0.0}, "rotary_base is 0.0"),
    ({"relative_buckets": 7}, "relative_buckets is 7"),
    ({"relative_buckets": 2}, "relative_buckets is 2"),
    ({"relative_distance": 16}, "relative_distance is 16"),
    ({"n_kv_heads": 4}, "n_kv_heads 4 does not divide n_heads 6"),
    ({"d_head": 0}, "d_head is 0"),
    ({"d_head": 2**31}, "choose smaller sizes"),
    ({"token_types": 2**31}, "token_types is .* choose smaller sizes"),
    ({"n_encoder_layers": 100_000}, "choose at most 4096"),
    ({"n_decoder_layers": 4097}, "n_decoder_layers is 4097; choose at most")])
def test_settings_that_cannot_be(changes, words):
    with pytest.raises(InputError, match=words):
        CONFIG.replace(**changes)


def test_the_words_are_among_the_configs():
    assert PLAIN.replace(positions="relative").relative_buckets == 32
