"""Keras on backends other than TensorFlow, each in a process of its own."""

import importlib.util

import pytest

from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable
from parity_tests.support.processes import printed

#: The largest error of a Dense in float64, once precision was set and before.
PRODUCT = """
import keras, numpy as np
from impl_keras import engine
x, kernel = (np.linspace(-1, 1, size).reshape(shape) / 3 for size, shape in (
    (15, (3, 5)), (35, (5, 7))))

def error():
    y = keras.ops.matmul(*(
        keras.ops.convert_to_tensor(a, "float64") for a in (x, kernel)))
    return np.abs(keras.ops.convert_to_numpy(y) - x @ kernel).max()

before = error()
engine.set_precision()
print(before > 1e-9, error() < 1e-15)
"""


@pytest.mark.parametrize("backend, rounds", [("jax", False), ("torch", True)])
@pytest.mark.long(12)
def test_float64_is_multiplied_in_float64(backend, rounds):
    """Keras 3.15 rounds such products on PyTorch, until it is told."""
    for need in ("keras", backend):
        if importlib.util.find_spec(need) is None:
            pytest.skip(f"not checked: {need} is not installed")
    assert printed("-c", PRODUCT, KERAS_BACKEND=backend, JAX_ENABLE_X64="1"
                   ).split() == [str(rounds), "True"]


@pytest.mark.long(3)
def test_openvino_has_no_steps_to_check(monkeypatch):
    """It would compile each of them with all before it, for hours."""
    usable("keras")
    monkeypatch.setenv("KERAS_BACKEND", "openvino")
    done = invoke("check", "--port", "keras", "--preset", "lesson")
    assert done.exit_code == 4, done.output
    assert "OpenVINO runs nothing step by step" in done.output
