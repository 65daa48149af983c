"""What two traces cannot tell is refused, or said."""

import json

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.comparison.arrays import compare_values
from parity.comparison.compare import compare
from parity.comparison.result import INCOMPLETE, NOTHING
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.tolerances import model_limits
from parity.tracing.folder import dump, load
from parity.tracing.trace import WHOLE
from parity_tests.support.layers import (
    RNG, X, Plain, nnx_layer, outputs, traced, weights_of)


def test_a_run_with_itself_matches(layer, tmp_path):
    a = traced(layer, "torch")
    dump(a, tmp_path / "a")
    for b in (a, traced(layer, "torch"), load(tmp_path / "a")):
        assert compare(a, b).verdict == MATCH


def test_different_inputs(layer):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer)), "jax", X + 1e-9)
    with pytest.raises(InputError, match="'src' of a and 'x' of b differ"):
        compare(a, b)


def test_inputs_of_other_sizes(layer):
    """Not only those of one size are the models' inputs."""
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer)), "jax", X[:1])
    with pytest.raises(InputError, match=r"differ, shape \[.*\] in a, \["):
        compare(a, b)


def test_different_precision(layer):
    weights = weights_of(layer)
    a = traced(nnx_layer(weights), "jax")
    b = traced(layer.float(), "torch", X.astype(np.float32))
    with pytest.raises(InputError, match="a was computed in float64 and b in "
                                         "float32"):
        compare(a, b)
    found = compare(a, b, dtype="float32")
    assert found.verdict == MATCH
    assert any("cannot tell a small fault" in note for note in found.notes)
    assert outputs(found)[WHOLE].limit == model_limits("float32")[0]
    with pytest.raises(InputError, match="dtype 'float8'"):
        compare(a, b, dtype="float8")
    other = compare(a, b, dtype="bfloat16")
    assert other.verdict == DIVERGENCE and "dtype" in other.first.reason


def test_nothing_or_not_the_outputs_compared():
    x = {"x": X}
    zeros = {"output": np.zeros((2, 3))}
    found = compare(Plain("torch", x, zeros), Plain("jax", x, dict(zeros)))
    assert found.verdict == NOTHING and found.status == 4
    assert found.first is None and "Nothing was compared" in found.sentence()
    found = compare(Plain("torch", x, {}), Plain("jax", x, {}))
    assert found.verdict == NOTHING
    found = compare(Plain("torch", {}, {}), Plain("jax", {}, {}))
    assert found.verdict == NOTHING
    assert json.dumps(found.as_json(), allow_nan=False)


def test_outputs_of_other_sizes_diverge():
    found = compare(Plain("torch", {"x": X}, {"output": X}),
                    Plain("jax", {"x": X}, {"output": X[:, :3]}))
    assert found.verdict == DIVERGENCE
    assert found.first.reason == (
        "a returns output [2, 7, 12], b output [2, 3, 12]")


def test_outputs_without_a_number_are_not_compared():
    found = compare(Plain("torch", {"x": X}, {"output": X[:0]}),
                    Plain("jax", {"x": X}, {"output": X[:0]}))
    assert found.verdict == NOTHING
    found = compare(
        Plain("torch", {"x": X}, {"output": X[:0], "other": X}),
        Plain("jax", {"x": X}, {"output": X[:0], "other": X}))
    assert found.verdict == INCOMPLETE
    assert "output, which is empty in both" in found.sentence()


def test_nan_on_one_side_or_both():
    holes = X.copy()
    holes[0, 1, 2] = np.nan
    both = compare(Plain("torch", {"x": X}, {"output": holes}),
                   Plain("jax", {"x": X}, {"output": holes.copy()}))
    assert both.verdict == MATCH
    assert outputs(both)[WHOLE].note == "NaN on both sides, 1 of 168 in a"
    one = compare(Plain("torch", {"x": X}, {"output": X}),
                  Plain("jax", {"x": X}, {"output": holes}))
    assert one.verdict == DIVERGENCE and "NaN" in one.first.reason
    full = compare(Plain("torch", {"x": X}, {"output": np.full(4, np.nan)}),
                   Plain("jax", {"x": X}, {"output": np.full(4, np.nan)}))
    assert full.verdict == NOTHING and full.left_out


def test_zero_on_one_side():
    found, _ = compare_values(X, 0 * X, 1e-12, "float64")
    assert found.verdict == DIVERGENCE
    found, _ = compare_values(0 * X, X, 1e-12, "float64")
    assert found.verdict == DIVERGENCE and found.error == 1


def test_large_arrays_are_measured_as_small_ones(monkeypatch):
    from parity.comparison import arrays
    from parity.numerics.comparator import relative_error
    expected = RNG.normal(size=(50, 8, 16)).astype(np.float32)
    actual = expected + RNG.normal(size=expected.shape).astype(
        np.float32) * np.float32(1e-4)
    actual[7, 3] *= 3
    truth = relative_error(actual, expected)[0]
    monkeypatch.setattr(arrays, "CHUNK", 100)
    found, _ = compare_values(actual, expected, 1e-12, "float32")
    assert found.verdict == DIVERGENCE
    assert found.error == pytest.approx(truth, rel=1e-12)


def test_a_limit_that_is_none():
    plain = Plain("torch", {"x": X}, {"output": X})
    for limit in (-1.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="is not valid"):
            compare(plain, Plain("jax", {"x": X}, {"output": X}), limit=limit)
    near = Plain("jax", {"x": X}, {"output": X * (1 + 1e-6)})
    assert compare(plain, near).verdict == DIVERGENCE
    assert compare(plain, near, limit=1e-5).verdict == MATCH
