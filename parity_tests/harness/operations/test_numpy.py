"""A function of NumPy arrays as operations: as it is, exact, and edited."""

import math

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.operations.numpy import Runner
from parity.operations.program import LEAF, OPERAND, RESULT

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 5, 6)).astype(np.float32)


class NumpyNorm:
    def __init__(self, dtype):
        self.scale = RANDOM.normal(size=6).astype(dtype)

    def __call__(self, x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-5) * self.scale


class NumpyAttention:
    """One layer, in which much of NumPy's way of writing occurs."""

    def __init__(self, dtype="float32"):
        self.norm = NumpyNorm(dtype)
        self.kernels = [RANDOM.normal(size=(6, 6)).astype(dtype)
                        for _ in range(3)]

    def __call__(self, x, heads=2):
        b, t, d = x.shape
        h = self.norm(x)
        q, k, v = (np.transpose((h @ w).reshape(b, t, heads, d // heads),
                                (0, 2, 1, 3)) for w in self.kernels)
        a = q @ k.swapaxes(-1, -2) / math.sqrt(d // heads)
        a = np.where(np.tril(np.ones((t, t), bool)), a, -np.inf)
        a = np.exp(a - a.max(-1, keepdims=True))
        a /= np.sum(a, axis=-1, keepdims=True)
        o = np.einsum("bhqk,bhkd->bqhd", a, v).reshape(b, t, d)
        o = np.concatenate([o[:, :3], np.stack([o[:, 3], o[:, 4]], 1)], 1)
        o[:, 0] = 0
        return {"sum": x + o.astype(np.float32), "spread": np.std(o),
                "turned": o.T, "sorted": np.sort(o, -1)[..., ::-1]}


def outputs(program):
    return {name.removeprefix("output."): program.values[i].array
            for name, i in program.outputs.items()}


def longer(model):
    """The same model in float64."""
    twin = NumpyAttention("float64")
    twin.norm.scale = model.norm.scale.astype(np.float64)
    twin.kernels = [each.astype(np.float64) for each in model.kernels]
    return twin


def test_as_it_is_and_exact():
    model = NumpyAttention()
    runner = Runner(model, (X,), {})
    before = [each.copy() for each in model.kernels]
    plain, exact = runner.run(), runner.run(exact=True)
    result = model(X)
    assert all(np.array_equal(outputs(plain)[name], array)
               for name, array in result.items())
    truth = longer(model)(X.astype(np.float64))
    for name in ("spread", "turned", "sorted"):
        error = np.abs(outputs(exact)[name] - truth[name]).max()
        assert error < 1e-15 < np.abs(result[name] - truth[name]).max()
    assert all(map(np.array_equal, before, model.kernels))
    assert type(model.kernels[0]) is np.ndarray
    assert [op.name for op in plain.operations] == [
        op.name for op in exact.operations]


def test_names_places_and_modules():
    program = Runner(NumpyAttention(), (X,), {}).run()
    assert {value.name for value in program.values if value.name} == {
        "x", "norm.scale", "kernels.0", "kernels.1", "kernels.2"}
    product = next(op for op in program.operations if op.name == "matmul")
    assert product.settings == {
        "contract": ((2,), (0,)), "batch": ((), ())}
    assert str(product.place).startswith("test_numpy.py:")
    root = next(op for op in program.operations if op.name == "sqrt")
    assert (root.module, product.module) == ("norm", "(model)")


def test_edits():
    model = NumpyAttention()
    runner = Runner(model, (X,), {})
    program = runner.run(exact=True)
    at = next(op.number for op in program.operations if op.name == "add")
    twin = longer(model)
    twin.norm.scale = np.ones(6)
    edited = runner.run(True, {(LEAF, "norm.scale"): np.ones(6)})
    truth = twin(X.astype(np.float64))
    assert np.abs(outputs(edited)["turned"] - truth["turned"]).max() < 1e-14
    edited = runner.run(True, {(OPERAND, at, 1): np.float64(0.5)})
    variance = X.astype(np.float64).var(-1, keepdims=True)
    made = edited.values[edited.operations[at].results[0]].array
    assert np.allclose(made, variance + 0.5, rtol=1e-14)
    edited = runner.run(edits={(RESULT, at, 0): np.float64(4)})
    made = edited.values[edited.operations[at + 1].results[0]].array
    assert (made == 2).all()


def test_a_rounding_is_told():
    def function(x):
        return x.astype(np.float32) * 0.1
    x = RANDOM.normal(size=9)
    program = Runner(function, (x,), {}).run(exact=True)
    assert np.array_equal(outputs(program)["output"], x * 0.1)
    rounding, = program.roundings
    assert (rounding.dtype, rounding.count) == ("float32", 9)
    assert str(rounding.place).startswith("test_numpy.py:")


def test_no_function_is_refused():
    with pytest.raises(InputError, match="cannot be called"):
        Runner(3, (X,), {})
