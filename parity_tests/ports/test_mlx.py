"""MLX's own functions in float64, and what its port has in their place.

docs/mlx.md has these numbers. A test that fails because MLX has become exact
says that something of impl_mlx/exact.py can go.
"""

import math
import statistics

import numpy as np
import pytest

from transformer_contract import random as draws
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases
from parity.check.run import EngineRunner
from parity.numerics import comparator

mx = pytest.importorskip(
    "mlx.core", reason="not checked: mlx is not installed",
    exc_type=ImportError)

from impl_mlx import attention, exact, projection, random  # noqa: E402

X = np.random.default_rng(0).uniform(-9, 9, (50, 37))
SIZE = np.abs(X) + 0.1


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def each(function):
    return lambda x: np.vectorize(function)(x)


#: What MLX computes in float32: its function, NumPy's, and ours.
IN_FLOAT32 = {
    "exp": (mx.exp, np.exp, exact.exp),
    "sigmoid": (mx.sigmoid, sigmoid, exact.sigmoid),
    "softmax": (lambda x: mx.softmax(x, axis=-1), softmax, attention.softmax),
    "logsumexp": (lambda x: mx.logsumexp(x, axis=-1),
                  lambda x: np.log(np.exp(x).sum(-1)), None),
    "sin": (mx.sin, np.sin, None),
    "cos": (mx.cos, np.cos, None),
    "erf": (mx.erf, each(math.erf), lambda x: 1 - exact.erfc(x)),
    "1 - erf": (lambda x: 1 - mx.erf(x), each(math.erfc), exact.erfc),
}

#: What it computes in float64.
IN_FLOAT64 = {
    "expm1": (mx.expm1, np.expm1),
    "tanh": (mx.tanh, np.tanh),
    "log": (lambda x: mx.log(mx.abs(x)), lambda x: np.log(np.abs(x))),
    "sqrt": (lambda x: mx.sqrt(mx.abs(x)), lambda x: np.sqrt(np.abs(x))),
    "sum": (lambda x: mx.sum(mx.abs(x), axis=-1),
            lambda x: np.abs(x).sum(-1)),
    "matmul": (lambda x: x @ x.T, lambda x: x @ x.T),
}


def relative_error(ours, truth):
    """Of the whole or of the worst row, in the L2 norm."""
    return comparator.relative_error(ours, truth)[0]


def error(function, truth, x):
    """The relative error of MLX's function of float64."""
    return relative_error(
        np.array(function(mx.array(x, mx.float64))), truth(x))


@pytest.mark.parametrize("name", IN_FLOAT32)
def test_what_mlx_has_in_float32(name):
    own, truth, ours = IN_FLOAT32[name]
    print(f"\n{name}: MLX {error(own, truth, X):.1e}", end="")
    assert 1e-10 < error(own, truth, X) < 1e-3
    if ours:
        print(f", ours {error(ours, truth, X):.1e}", end="")
        assert error(ours, truth, X) < 1e-14


@pytest.mark.parametrize("name", IN_FLOAT64)
def test_what_mlx_has_in_float64(name):
    own, truth = IN_FLOAT64[name]
    print(f"\n{name}: MLX {error(own, truth, X):.1e}", end="")
    assert error(own, truth, X) < 1e-14


@pytest.mark.parametrize("function, truth, ends", [
    (exact.exp, math.exp, (-700, 700)),
    (exact.exp, math.exp, (-1e-6, 1e-6)),
    (exact.sigmoid, lambda x: math.exp(x) / (1 + math.exp(x)), (-300, 30)),
    (exact.erfc, math.erfc, (-6, 6)),
    (exact.erfc, math.erfc, (0, 1e-6)),
])
def test_ours_are_exact_number_by_number(function, truth, ends):
    x = np.random.default_rng(1).uniform(*ends, 10000)
    ours = np.array(function(mx.array(x, mx.float64)))
    truths = each(truth)(x)
    assert np.max(np.abs(ours - truths) / truths) < 1e-14


def test_far_tails_of_erfc():
    """exp(-x²) has x² times the rounding of x²."""
    x = np.linspace(6, 26, 2001)
    ours, truths = np.array(exact.erfc(mx.array(x, mx.float64))), each(
        math.erfc)(x)
    assert np.max(np.abs(ours - truths) / truths) < 1e-13


def test_ends():
    x = mx.array(np.array([-np.inf, -800, 800, np.inf, np.nan]), mx.float64)
    for function, expected in ((exact.exp, [0, 0, np.inf, np.inf, np.nan]),
                               (exact.sigmoid, [0, 0, 1, 1, np.nan]),
                               (exact.erfc, [2, 2, 0, 0, np.nan])):
        np.testing.assert_array_equal(np.array(function(x)), expected)


@pytest.mark.parametrize("function, slope", [
    (exact.exp, np.exp),
    (exact.sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    (exact.erfc, lambda x: -2 / math.sqrt(math.pi) * np.exp(-x * x)),
])
def test_slopes(function, slope):
    x = np.array([-5.0, -1.0, 0.0, 0.5, 4.0])
    ours = np.array(mx.grad(lambda x: mx.sum(function(x)))(
        mx.array(x, mx.float64)))
    np.testing.assert_allclose(ours, slope(x), rtol=1e-14)


def test_erf_inv():
    """By the standard library's quantile, which is right to rounding."""
    x = np.concatenate([np.linspace(1e-3, 1, 999, endpoint=False),
                        [math.nextafter(1, 0)]])
    truths = [-statistics.NormalDist().inv_cdf((1 - x) / 2) / math.sqrt(2)
              for x in x]
    for sign in (1, -1):
        ours = np.array(exact.erf_inv(mx.array(sign * x, mx.float64)))
        np.testing.assert_allclose(ours, sign * np.array(truths), rtol=1e-13)
    key = draws.key(3)
    np.testing.assert_allclose(
        np.array(random.normal(mx.array(key), (1000,))),
        draws.normal(key, (1000,)), rtol=1e-13)


def test_the_mean_of_float32():
    """MLX's own loses digits where a mean is small beside what it is of."""
    x = (X - X.mean(-1, keepdims=True)).astype(np.float32)
    x = np.tile(x, 14)
    truth = x.astype(np.float64).mean(-1, keepdims=True)
    own, ours = (np.array(f(mx.array(x))) for f in (
        lambda x: mx.mean(x, axis=-1, keepdims=True), exact.mean_of))
    assert relative_error(own, truth) > 4 * relative_error(ours, truth)


def test_the_log_softmax_of_a_sure_token():
    """MLX's own sum of float32 loses what is small beside the first."""
    others = np.random.default_rng(0).normal(size=999)
    x = np.concatenate([[14.0], others]).astype(np.float32)[None]
    truth = np.log(softmax(x.astype(np.float64)))[0, 0]
    own, ours = (abs(float(f(mx.array(x))[0, 0]) - truth) / -truth for f in (
        lambda x: x - 14 - mx.log(mx.sum(mx.exp(x - 14), axis=-1)),
        projection.log_softmax))
    assert own > 1e-4
    assert ours < 1e-5


def test_a_naive_softmax_is_caught(monkeypatch):
    """The check sees 1e-8 in what MLX computes in float32."""
    config = cases.test_size("lesson")
    weights = probe_weights(config)
    truth, mlx = (EngineRunner(ports.engine(name), config, weights, "float64")
                  for name in ("numpy", "mlx"))
    case = next(case for case in cases.component_cases(config)
                if case.component == "multi_head_attention")

    def worst():
        ours = mlx.steps(case, case.inputs)
        return relative_error(ours["weights"], truth.steps(
            case, case.inputs)["weights"])

    assert worst() < 1e-14
    monkeypatch.setattr(
        attention, "softmax", lambda x: mx.softmax(x, axis=-1))
    assert worst() > 1e-10
