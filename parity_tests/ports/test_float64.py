"""Conformance with a dtype: float64 is float64, from end to end.

A float32 that hides in a float64 run costs eight digits and raises nothing: a
Python float on its way through a framework, a default, a table. The dtype of a
result does not show it; its last bits do. The same holds for the other dtypes.
"""

import functools
import math

import numpy as np
import pytest

from transformer_contract import weights
from parity import ports
from parity.check import cases, golden
from parity.numerics import rounding
from parity.numerics.comparator import relative_error
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity_tests.support.processes import printed

PRESETS = "lesson", "complete", "vaswani2017_base"

#: Values that are equal to their own float32 in sound float64 runs: those that
#: are 0 by a mask or by ReLU, and first rows of the position table.
OFTEN_SHORT = ("weights", "context", "activated", "positions")

#: Elsewhere one value in a thousand may be so, by chance or by symmetry.
SELDOM = 1e-3

# keras: TensorFlow hands bfloat16 to NumPy in a way that NumPy 2 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")

keras_only = pytest.mark.parametrize("port", ["keras"], indirect=True)
jax_only = pytest.mark.parametrize("port", ["jax"], indirect=True)


@functools.cache
def steps(engine_name, preset, dtype="float64"):
    """Every step on the padded batch; the engine must have been set up."""
    engine, config = ports.engine(engine_name), cases.test_size(preset)
    arrays = {name: rounding.rounded(array, dtype)
              for name, array in golden.shipped(preset).items()}
    model = engine.build("transformer", config, arrays, dtype)
    return engine.forward(model, *cases.padded_batch(config))


def short(array):
    """Where an array is equal to its own float32."""
    return array == array.astype(np.float32)


def test_the_weights_need_53_bits():
    """Otherwise nothing below would show anything."""
    for preset in PRESETS:
        for name, array in golden.shipped(preset).items():
            assert array.dtype == np.float64
            assert short(array).mean() < 0.1, name


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.long(12)
def test_every_step_is_float64(engine, preset):
    """By its dtype, and by its last 29 bits, which a float32 lacks.

    Zeros are left out: a mask and ReLU make them.
    """
    found = steps(engine.NAME, preset)
    assert len(found) > 100
    for name, value in found.items():
        assert value.dtype == np.float64, name
        rest = value[value != 0]
        assert not short(rest).all(), name
        if not name.endswith(OFTEN_SHORT):
            assert short(rest).mean() < SELDOM + 1 / rest.size, name


@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
def test_the_reference_computes_in_float32_too(preset):
    """As it must, to tell how much float32 costs."""
    found = steps("numpy", preset, "float32")
    assert {value.dtype.name for value in found.values()} == {"float32"}
    errors = [relative_error(value, steps("numpy", preset)[name])[0]
              for name, value in found.items()]
    assert 1e-8 < max(errors) < 1e-4


# Keras

def keras_attention(own_scale):
    """Our attention's context in Keras, with or without Keras' own scale."""
    config = cases.test_size("practical")
    engine = ports.engine("keras")
    layer = engine.build("multi_head_attention", config, weights.select(
        golden.shipped("practical"), "encoder.layers.0.self_attention."))
    if own_scale:
        import keras
        layer._inverse_sqrt_key_dim = keras.layers.MultiHeadAttention(
            config.n_heads, config.d_k)._inverse_sqrt_key_dim
    x = cases.values("x", 5, 9, config.d_model)
    found = engine.run(layer, x, x, np.ones((5, 1, 1, 9), bool), cache=None)
    return layer, found


@keras_only
def test_keras_scale_is_float64(port):
    """Keras' own 1/√d_k is a Python float, which TensorFlow makes float32.

    The attribute that holds it is private, so that it may go or be renamed;
    then its replacement has no effect and this fails (R12).
    """
    import keras
    theirs = keras.layers.MultiHeadAttention(6, 8)
    assert "_inverse_sqrt_key_dim" in vars(theirs)
    layer, found = keras_attention(own_scale=False)
    assert type(layer._inverse_sqrt_key_dim) is np.float64
    assert layer._inverse_sqrt_key_dim == 1 / math.sqrt(8)
    truth = (found["query"] @ found["key"].swapaxes(-1, -2)) / math.sqrt(8)
    assert relative_error(found["scores"], truth)[0] < FLOAT64_LIMIT
    if keras.backend.backend() != "tensorflow":
        pytest.skip("not checked: Keras does not run on TensorFlow here")
    assert type(theirs._inverse_sqrt_key_dim) is float
    _, found = keras_attention(own_scale=True)
    assert 1e-9 < relative_error(found["scores"], truth)[0] < 1e-7


@keras_only
@pytest.mark.parametrize("make", ["activations", "ops"])
def test_keras_gelu_is_not_float64(port, make):
    """Why ours is written with erfc: theirs passes through float32 (R17)."""
    import keras
    if keras.backend.backend() != "tensorflow":
        pytest.skip("not checked: Keras does not run on TensorFlow here")
    from impl_keras.dialects.feed_forward import gelu
    x = cases.values("x", 5, 9, 48)
    truth = x * np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2
    theirs = getattr(keras, make).gelu(x, approximate=False)
    assert 1e-10 < relative_error(np.asarray(theirs), truth)[0] < 1e-7
    ours = np.asarray(gelu(keras.ops.convert_to_tensor(x)))
    assert relative_error(ours, truth)[0] < FLOAT64_LIMIT


# JAX

WITHOUT_X64 = """
import jax
from transformer_contract import weights
from parity.check import cases, golden
from impl_jax import engine
assert not jax.config.jax_enable_x64
given = "feed_forward", cases.test_size("complete"), weights.select(
    golden.shipped("complete"), "encoder.layers.0.feed_forward.")
try:
    engine.build(*given)
except RuntimeError as error:
    print("refused:", error)
engine.set_precision()
found = engine.run(engine.build(*given), cases.values("x", 5, 9, 48))
print({value.dtype.name for value in found.values()})
"""


@jax_only
def test_jax_without_x64_is_refused(port):
    """Left alone JAX computes everything in float32, and says nothing."""
    refused, dtypes = printed(
        "-c", WITHOUT_X64, timeout=120).splitlines()
    assert refused.startswith("refused: ") and "set_precision" in refused
    assert dtypes == "{'float64'}"


# The position table

def test_position_table_is_rounded_once(port):
    """In float32 it is float64's, rounded; 5000 angles in float32 are not.

    Computed in float32 the table would be off by more than 1e-4 (R7).
    """
    config = cases.test_size("complete").replace(max_length=5000)
    x = np.zeros((1, 5000, config.d_model), np.float32)
    module = port.build("positional_encoding", config, {}, "float32")
    found = port.run(module, x, np.ones((1, 5000), int), start=0)["positions"]
    place, pair = np.arange(5000), np.arange(0, config.d_model, 2)
    angle = place[:, None] / 10000.0 ** (pair / config.d_model)
    truth = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(x.shape[1:])
    assert found.dtype == np.float32
    # Half a unit in the last place of numbers below 1.
    assert np.abs(found - truth).max() <= 2.0**-25 * (1 + 1e-6)
    low = place.astype(np.float32)[:, None] / np.float32(10000) ** (
        pair.astype(np.float32) / np.float32(config.d_model))
    assert low.dtype == np.float32
    assert 1e-4 < np.abs(np.sin(low) - truth[:, 0::2]).max() < 1e-2
