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


#: Whether the moments of a model that is to be trained are zeros like weights.
MOMENTS = """
import numpy as np
from impl_keras import engine
from transformer_contract.config import TransformerConfig
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import initial_weights

config = TransformerConfig(
    d_model=4, n_heads=2, d_ff=4, n_encoder_layers=1, n_decoder_layers=1,
    source_vocab=9, target_vocab=9, max_length=8)
weights = initial_weights(config)
trainer = engine.trainer(
    engine.build("transformer", config, weights), TrainingConfig())
for moments in map(list, (trainer.m, trainer.v)):
    arrays = [engine.to_numpy(each) for each in moments]
    print(sum(each.size for each in arrays)
          == sum(each.size for each in weights.values()),
          not any(map(np.any, arrays)))
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


def test_training_begins_on_jax():
    for need in ("keras", "jax"):
        if importlib.util.find_spec(need) is None:
            pytest.skip(f"not checked: {need} is not installed")
    assert printed("-c", MOMENTS, KERAS_BACKEND="jax").split() == ["True"] * 4


@pytest.mark.long(3)
def test_openvino_has_no_steps_to_check(monkeypatch):
    """It would compile each of them with all before it, for hours."""
    usable("keras")
    monkeypatch.setenv("KERAS_BACKEND", "openvino")
    done = invoke("check", "--port", "keras", "--preset", "lesson")
    assert done.exit_code == 4, done.output
    assert "OpenVINO runs nothing step by step" in done.output
