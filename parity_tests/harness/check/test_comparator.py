"""The comparator itself, on pairs that it must not let pass."""

import functools
import importlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from parity import ports
from parity.check import cases
from parity.check.run import Oracle, compare_steps
from parity.check import kinks
from parity.numerics import cancelling, dtypes, rounding, tolerances
from parity.numerics.comparator import (
    DIVERGENCE, MATCH, ZERO, compare, relative_error)

TRUTH = cases.values("truth", 7, 5)
LIMIT = 1e-12


def verdict(actual, expected=TRUTH, limit=LIMIT, **more):
    return compare(actual, expected, limit, **more).verdict


@pytest.mark.parametrize("limit", [1e-12, 1e-6, 1e-2])
def test_ten_limits_fail_and_a_tenth_passes(limit):
    noise = cases.values("noise", 7, 5)
    noise *= np.linalg.norm(TRUTH) / np.linalg.norm(noise)
    assert verdict(TRUTH + limit / 10 * noise, limit=limit) == MATCH
    assert verdict(TRUTH + limit * 10 * noise, limit=limit) == DIVERGENCE


def test_one_wrong_row_cannot_hide():
    """Among ten thousand right ones it moves the whole by a hundredth."""
    truth = cases.values("many", 10_000, 4)
    wrong = truth.copy()
    wrong[1234] *= 1 + 20 * LIMIT
    assert np.linalg.norm(wrong - truth) < LIMIT * np.linalg.norm(truth)
    found = compare(wrong, truth, LIMIT)
    assert found.verdict == DIVERGENCE and "1234" in found.reason
    wrong[1234] = truth[1234] * (1 + 2 * LIMIT)
    assert verdict(wrong, truth) == MATCH


def test_a_small_row_is_held_against_an_average_one():
    """A row of zeros that comes out as rounding is no divergence."""
    truth = TRUTH.copy()
    truth[3] = 0
    found = truth.copy()
    found[3] = 1e-16
    assert verdict(found, truth) == MATCH
    found[3] = 1e-9
    assert verdict(found, truth) == DIVERGENCE


def test_wrong_shapes():
    square = cases.values("square", 4, 4)
    for actual, expected in (
        (TRUTH.T, TRUTH), (square.T, square), (TRUTH[None], TRUTH),
        (TRUTH[0], TRUTH), (TRUTH[:1], TRUTH), (np.float64(1.0), np.ones(3)),
        (np.ones((1, 3)), np.ones(3)), (np.ones(3), np.ones((1, 3))),
        (np.array(1.0), np.ones(1)), (TRUTH.ravel(), TRUTH),
    ):
        assert verdict(actual, expected) == DIVERGENCE


@pytest.mark.parametrize("actual", [None, 1.0, [1.0, 2.0], "text"])
def test_what_is_no_array(actual):
    assert verdict(actual, np.array([1.0, 2.0])) == DIVERGENCE


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_wrong_dtypes(dtype):
    ones = np.ones(3)
    assert verdict(ones.astype(dtype), ones) == DIVERGENCE
    assert verdict(ones, ones, dtype="float32") == DIVERGENCE
    assert verdict(ones.astype("float32"), ones, dtype="float32") == MATCH


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(wrong):
    broken = TRUTH.copy()
    broken[2, 3] = wrong
    other = TRUTH.copy()
    other[4, 1] = wrong
    assert verdict(broken, TRUTH) == DIVERGENCE
    assert verdict(TRUTH, broken) == DIVERGENCE
    assert verdict(broken, other) == DIVERGENCE
    assert verdict(broken, broken) == MATCH
    assert verdict(-broken, broken) == DIVERGENCE
    nowhere = np.full(3, wrong)
    assert verdict(nowhere, nowhere) == DIVERGENCE  # nothing is compared


def test_infinities_of_the_other_sign():
    assert verdict(np.array([1, np.inf]), np.array([1, -np.inf])) == DIVERGENCE


def test_empty_and_zero_truths_compare_nothing():
    assert verdict(np.ones((0, 3)), np.ones((0, 3))) == DIVERGENCE
    assert verdict(np.zeros(3), np.zeros(3)) == DIVERGENCE


@pytest.mark.parametrize("actual, expected, scale, wanted", [
    (1e-16, 0.0, 1.0, ZERO), (1e-16, 2e-16, 1.0, ZERO),
    (1e-9, 0.0, 1.0, DIVERGENCE), (1e-9, 0.0, 1e4, ZERO),
    (0.0, 1e-3, 1.0, DIVERGENCE), (np.nan, 0.0, 1.0, DIVERGENCE)])
def test_tensors_that_are_zero_by_mathematics(actual, expected, scale, wanted):
    found = compare(np.full(3, actual), np.full(3, expected), LIMIT,
                    zero_scale=scale)
    assert found.verdict == wanted


@pytest.mark.parametrize("sum_, least, wanted", [
    (1e-9, 0.0, DIVERGENCE), (1e-9, 1.0, MATCH), (0.0, 1.0, MATCH),
    (0.0, 0.0, DIVERGENCE), (1e-9, 1e-3, DIVERGENCE), (3.0, 1.0, MATCH)])
def test_a_sum_that_cancels_is_measured_against_its_terms(
        sum_, least, wanted):
    for shape in (1,), (2, 3, 1):
        found = compare(np.full(shape, sum_ + 1e-13), np.full(shape, sum_),
                        LIMIT, least=least)
        assert found.verdict == wanted


def test_terms_do_not_count_where_nothing_cancels():
    truth, wrong = np.array([4.0]), np.array([4.0 + 3 * LIMIT])
    assert compare(wrong, truth, LIMIT, least=3.0).error == compare(
        wrong, truth, LIMIT).error


def test_which_gradients_are_sums():
    arrays = {"norm.output": np.full((2, 8), 0.25), "norm.scale": np.ones(1),
              "norm.bias": np.ones(8), "norm.mean": np.ones((2, 1)),
              "attention.output": np.ones(4), "attention.bias": np.ones(1)}
    assert {name: cancelling.least(name, arrays, {}) for name in arrays} == {
        **dict.fromkeys(arrays, 0.0), "norm.scale": 1.0}
    arrays["norm.output"][0] = np.inf
    assert cancelling.least("norm.scale", arrays, {}) == 0


def test_the_terms_of_a_mean_square():
    """Those of which the gradient by hand is the sum; none of zeros."""
    x, g = np.random.default_rng(3).normal(size=(2, 2, 3, 5))
    norm = importlib.import_module(
        f"{ports.package('numpy')}.dialects.norms").RMSNorm(5, 0.3)
    _, values = norm.forward(x)
    _, gradients = norm.backward(g, values)
    values = {f"a.norm.{name}": value for name, value in values.items()}
    gradients = {f"grad a.norm.{name}": value
                 for name, value in gradients.items()}
    name = "grad a.norm.mean_square"
    terms = cancelling.terms_of_mean_square("grad a.norm", gradients, values)
    assert np.allclose(-terms.sum(-1, keepdims=True), gradients[name], 1e-13)
    assert cancelling.least(name, gradients, values) == np.linalg.norm(terms)
    assert cancelling.least(name, gradients, {}) == 0
    values["a.norm.mean_square"] = np.zeros((2, 3, 1))
    values["a.norm.normalized"] = np.zeros_like(x)
    assert cancelling.least(name, gradients, values) == 0


@pytest.mark.parametrize("kind", [bool, np.int64])
def test_exact_arrays(kind):
    truth = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)
    wrong = truth.copy()
    wrong[1, 1] = 1
    assert verdict(truth.copy(), truth, 0.0) == MATCH
    found = compare(wrong, truth, 1e9)
    assert found.verdict == DIVERGENCE and found.error == 1 / 6
    assert verdict(truth.astype(float), truth, 0.0) == DIVERGENCE


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_huge_and_tiny_numbers(scale):
    """Squares of them would overflow or vanish."""
    assert verdict(TRUTH * scale, TRUTH * scale) == MATCH
    assert verdict(TRUTH * scale * (1 + 1e-10), TRUTH * scale) == DIVERGENCE


finite = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)
matrices = arrays(np.float64, (3, 4), elements=finite).filter(np.any)


@given(matrices)
def test_everything_matches_itself(x):
    assert verdict(x.copy(), x, 0.0) == MATCH


@given(matrices, matrices, st.integers(-40, 40))
def test_the_error_has_no_unit(x, y, power):
    factor = 2.0**power
    assert relative_error(y * factor, x * factor) == relative_error(y, x)


@given(matrices, matrices)
def test_the_error_is_at_least_that_of_the_whole(x, y):
    whole = np.linalg.norm(y - x) / np.linalg.norm(x)
    assert relative_error(y, x)[0] >= whole * (1 - 1e-12)


def test_missing_and_surplus_steps():
    truth = Oracle({"a": TRUTH, "b": TRUTH}, {})
    found = compare_steps({"b": TRUTH, "c": TRUTH}, truth, "float64")
    assert {name: f.verdict for name, f in found.items()} == {
        "a": DIVERGENCE, "b": MATCH, "c": DIVERGENCE}
    assert "no such step" in found["a"].reason
    assert "no such step" in found["c"].reason


def test_limits():
    eps = dtypes.EPS["float32"]
    assert eps == np.finfo(np.float32).eps
    assert dtypes.EPS["float64"] == np.finfo(np.float64).eps
    assert dtypes.EPS["float16"] == np.finfo(np.float16).eps
    assert dtypes.EPS["bfloat16"] == float(
        ml_dtypes.finfo(ml_dtypes.bfloat16).eps)
    assert tolerances.limit("float64", 1.0) == 1e-12
    assert tolerances.limit("float32", eps) == 6 * eps
    assert tolerances.limit("float32", 100 * eps) == 16 * eps
    assert tolerances.limit("float32", 100 * eps, inner=True) == 204 * eps
    assert tolerances.limit("bfloat16", 0.0) == 2 * 2**-7
    assert tolerances.gradient_limit("float64", 1e-15) == 1e-12
    assert tolerances.gradient_limit("float64", 1e-12) == 8e-12
    assert tolerances.gradient_limit("float64", 1.0) == 1e-10
    assert tolerances.gradient_limit("float64", 0.0, of_one=True) == 1e-10
    assert tolerances.gradient_limit("float64", 1.0, of_one=True) == 1e-9
    assert tolerances.gradient_limit("float32", 100 * eps) == 32 * eps


def test_a_mean_is_held_against_what_it_adds_up():
    """Of a norm alone and in a model; and of no other step."""
    x = np.array([[[3.0, -1, -2]], [[5, 0, 1]]])
    mean = x.mean(-1, keepdims=True)
    for norm in "", "a.norm.":
        steps = {f"{norm}mean": mean, f"{norm}centered": x - mean,
                 f"{norm}output": x, "other.mean": mean}
        expected = {name: 0.0 for name in steps} | {
            f"{norm}mean": np.sqrt(8.0)}
        assert {name: cancelling.least_mean(name, steps)
                for name in steps} == pytest.approx(expected)


@pytest.mark.parametrize("x, expected", [
    (1 + 2**-24, True), (-(1 + 2**-24), True), (1 + 2**-24 + 2**-48, True),
    (1 + 2**-24 + 2**-40, False), (1.0, False), (0.5 + 2**-25, True),
    (0.0, False), (-np.inf, False), (1e-60, False)])
def test_what_lies_between_two_numbers(x, expected):
    assert kinks.between(np.array([0.25, x])) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_arrays_round_once_an_operation(dtype):
    """As float32 computes it, then to the nearest number of 16 bits."""
    x = rounding.rounded(cases.values("x", 6, 8), dtype)
    y = rounding.rounded(cases.values("y", 8, 5), dtype)
    short = dtypes.NUMPY[dtype]
    single = x.astype(np.float32), y.astype(np.float32)
    for function in (
        lambda a, b: a @ b, lambda a, b: np.exp(a), lambda a, b: a + a * 0.3,
        lambda a, b: np.mean(a, axis=-1, keepdims=True),
        lambda a, b: np.sum(b, axis=0), lambda a, b: np.maximum(b, 0),
        lambda a, b: np.vecdot(a, a),
    ):
        found = function(rounding.emulated(x, dtype),
                         rounding.emulated(y, dtype))
        again = np.asarray(found).astype(short)
        np.testing.assert_array_equal(again.astype(np.float32), found)
    product = rounding.emulated(x, dtype) @ rounding.emulated(y, dtype)
    np.testing.assert_array_equal(
        np.asarray(product),
        (single[0] @ single[1]).astype(short).astype(np.float32))


@pytest.mark.parametrize("limit", [
    tolerances.limit, tolerances.gradient_limit, tolerances.score_limit,
    functools.partial(tolerances.limit, inner=True),
    functools.partial(tolerances.gradient_limit, of_one=True)])
@pytest.mark.parametrize("own_error", [np.inf, np.nan])
def test_no_limit_is_infinite(limit, own_error):
    """Where the reference itself overflows, a port has not matched it."""
    assert limit("float32", own_error) == limit("float32", 0.0) < 1e-4


@pytest.mark.parametrize("scale, verdict", [
    (np.nan, DIVERGENCE), (0.0, DIVERGENCE), (1.0, ZERO)])
def test_a_zero_beside_nothing_is_no_match(scale, verdict):
    with np.errstate(all="ignore"):
        found = compare(np.full(2, 1e-20), np.zeros(2), 1e-10,
                        zero_scale=np.float64(scale))
    assert found.verdict == verdict
