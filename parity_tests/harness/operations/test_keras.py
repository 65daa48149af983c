"""A Keras model's run as operations: as it is, exact, and edited."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.operations.program import CONSTANT, LEAF, OPERAND, RESULT
from parity_tests.support.engines import usable

usable("keras")

import keras  # noqa: E402
from keras import layers, ops  # noqa: E402

from parity.operations.keras import Runner  # noqa: E402
from parity.tracing.keras import modules  # noqa: E402
from parity_tests.support.processes import printed  # noqa: E402

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 8, 6))
IMAGES = RANDOM.normal(size=(2, 8, 8, 4))
WORDS = RANDOM.integers(0, 9, (2, 5))

on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of TensorFlow alone")


def sequence(*parts, shape):
    return keras.Sequential([keras.Input(shape), *parts])


class KerasAttention(keras.Model):
    def __init__(self):
        super().__init__()
        self.norm = layers.LayerNormalization(epsilon=1e-5)
        self.attention = layers.MultiHeadAttention(2, 4)

    def call(self, x):
        h = self.norm(x)
        return {"mixed": x + self.attention(h, h, use_causal_mask=True)}


class Table(keras.Model):
    """Has tables that it computes, frozen weights, and a rounded number."""

    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(6)
        self.inner.trainable = False
        self.sines = self.add_weight(
            shape=(8, 6), trainable=False, name="sines",
            initializer=lambda shape, dtype: ops.sin(ops.reshape(
                ops.arange(48, dtype=dtype), shape)))
        self.table = ops.cos(ops.arange(6, dtype="float32") * 0.1)

    def call(self, x):
        return self.inner(x) * self.sines * self.table / math.sqrt(6)


MODELS = {
    "attention": lambda: (KerasAttention(), X),
    "gru": lambda: (sequence(layers.GRU(5, return_sequences=True),
                             shape=(8, 6)), X),
    "lstm": lambda: (sequence(layers.LSTM(5, return_sequences=True),
                              shape=(8, 6)), X),
    "conv1d": lambda: (sequence(layers.Conv1D(
        5, 3, padding="causal", activation="silu"), shape=(8, 6)), X),
    "conv2d": lambda: (sequence(
        layers.Conv2D(6, 3, strides=2, padding="same", groups=2),
        layers.DepthwiseConv2D(2), layers.AveragePooling2D(2),
        layers.Flatten(), layers.Dense(3, activation="softmax"),
        shape=(8, 8, 4)), IMAGES),
    "norms": lambda: (sequence(
        layers.Dense(6, activation="gelu"), layers.BatchNormalization(),
        layers.GroupNormalization(3), layers.RMSNormalization(),
        layers.LeakyReLU(0.2), shape=(8, 6)), X),
    "embedding": lambda: (sequence(
        layers.Embedding(9, 4, mask_zero=True), layers.LSTM(3),
        shape=(5,)), WORDS),
}


def weights(model):
    return [ops.convert_to_numpy(variable.value).copy()
            for variable in model.variables]


def outputs(program):
    return [program.values[i].array for i in program.outputs.values()]


def distance(one, other):
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b)))
               for a, b in zip(one, other, strict=True))


@pytest.fixture(autouse=True)
def policy():
    """float32, and the seed 1, whatever others leave behind."""
    before, floatx = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(1)
    yield
    keras.config.set_dtype_policy(before)
    keras.config.set_floatx(floatx)


def asked(x, dtype="float32"):
    return ops.convert_to_tensor(x.astype(dtype) if x.dtype.kind == "f" else x)


@pytest.mark.parametrize("name", MODELS)
def test_as_it_is_and_exact(name):
    """A plain run is the call itself; exact runs of float32 and of float64
    are one, with the weights of float32."""
    model, x = MODELS[name]()
    runner = Runner(model, (asked(x),), {})
    before = weights(model)
    plain, exact = runner.run(), runner.run(exact=True)
    result = [ops.convert_to_numpy(each)
              for each in keras.tree.flatten(model(asked(x)))]
    if keras.backend.backend() == "tensorflow":
        assert all(map(np.array_equal, outputs(plain), result))
    assert distance(outputs(plain), result) < 1e-6
    assert all(map(np.array_equal, before, weights(model)))
    assert all(array.dtype == np.float64 for array in outputs(exact))
    assert [op.name for op in plain.operations] == [
        op.name for op in exact.operations]

    if keras.backend.backend() == "jax":
        return  # float64 is to be asked of the whole process there
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    longer, _ = MODELS[name]()
    if x.dtype.kind == "f":
        x = x.astype(np.float32)
    twin = Runner(longer, (asked(x, "float64"),), {})
    longer.set_weights([each.astype(np.float64) if each.dtype.kind == "f"
                        else each for each in model.get_weights()])
    assert distance(outputs(exact), outputs(twin.run(exact=True))) < 1e-14


def test_by_hand():
    """Keras' layers under float64 round inside; the exact run does not."""
    if keras.backend.backend() == "jax":
        pytest.skip("JAX has float64 for the whole process or not at all")
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    given = keras.Input((12,))
    h = layers.Activation("gelu")(layers.Dense(12)(given))
    h = layers.LayerNormalization(epsilon=1e-5)(h)
    model = keras.Model(given, layers.Dense(5)(layers.LeakyReLU(0.01)(h)))
    x = RANDOM.normal(size=(7, 12))
    w = [ops.convert_to_numpy(each) for each in model.weights]
    a = x @ w[0] + w[1]
    a = a / 2 * (1 + np.vectorize(math.erf)(a / math.sqrt(2)))
    a = (a - a.mean(-1, keepdims=True)) / np.sqrt(
        a.var(-1, keepdims=True) + 1e-5) * w[2] + w[3]
    truth = np.where(a > 0, a, 0.01 * a) @ w[4] + w[5]
    program = Runner(model, (x,), {}).run(exact=True)
    assert distance(outputs(program), [truth]) < 1e-14
    assert {"inputs", "layers.0.kernel", "layers.0.bias"} <= {
        value.name for value in program.values}
    assert list(program.outputs) == ["output"]


def test_names_places_and_modules():
    model = Table()
    program = Runner(model, (asked(X),), {}).run()
    paths = {path for path, _ in modules(model)}
    assert {op.module for op in program.operations} <= paths
    _, product, quotient = [op for op in program.operations
                            if op.name in ("multiply", "divide")]
    assert str(product.place).startswith("test_keras.py:")
    assert product.place.function == "call"
    assert product.module == "(model)"
    constant = program.values[quotient.operands[1]]
    assert constant.kind == CONSTANT and constant.array.shape == ()
    product = next(op for op in program.operations if op.name == "matmul")
    assert product.module == "inner"
    assert program.values[product.operands[1]].name == "inner.kernel"


def test_a_table_is_made_anew():
    """It is float64's cosine; weights stay those of the plain model."""
    def make():
        keras.utils.set_random_seed(3)
        model = Table()
        model(asked(X))
        return model, (asked(X),), {}
    model = make()[0]
    state = np.random.get_state()[1].copy()
    runner = Runner(model, (asked(X),), {}, make)
    program = runner.run(exact=True)
    assert (state == np.random.get_state()[1]).all()
    kernel, bias = (each.astype(np.float64)
                    for each in model.inner.get_weights())
    truth = (X.astype(np.float32) @ kernel + bias) * np.sin(
        np.arange(48.).reshape(8, 6)) * np.cos(
            np.arange(6) * 0.1) / math.sqrt(6)
    assert distance(outputs(program), [truth]) < 1e-15
    if keras.backend.backend() == "tensorflow":
        assert program.roundings  # of the root of 6
        assert all(each.dtype == "float32" for each in program.roundings)


def test_edits():
    """An epsilon, a parameter and a result are others."""
    model = sequence(layers.BatchNormalization(), shape=(8, 6))
    keras.utils.set_random_seed(2)
    for variable, value in zip(model.layers[0].weights, RANDOM.uniform(
            0.1, 0.2, size=(4, 6))):
        variable.assign(value.astype(np.float32))
    gamma, beta, mean, variance = (
        each.astype(np.float64) for each in model.layers[0].get_weights())
    runner = Runner(model, (asked(X),), {})
    program = runner.run(exact=True)
    at = next(op for op in program.operations if op.name == "add" and any(
        program.values[i].kind == CONSTANT for i in op.operands))
    slot = next(slot for slot, i in enumerate(at.operands)
                if program.values[i].kind == CONSTANT)
    x = X.astype(np.float32).astype(np.float64)

    def truth(epsilon, gamma=gamma):
        return [(x - mean) / np.sqrt(variance + epsilon) * gamma + beta]
    assert distance(outputs(program), truth(1e-3)) < 1e-14
    edited = runner.run(True, {(OPERAND, at.number, slot): np.float64(0.5)})
    assert distance(outputs(edited), truth(0.5)) < 1e-14
    edited = runner.run(True, {(LEAF, next(
        value.name for value in program.values
        if value.name.endswith("gamma"))): np.ones(6)})
    assert distance(outputs(edited), truth(1e-3, np.ones(6))) < 1e-14
    edited = runner.run(edits={
        (RESULT, len(program.operations) - 1, 0): np.float64(7)})
    assert (outputs(edited)[0] == 7).all()
    assert distance(outputs(runner.run(exact=True)), truth(1e-3)) < 1e-14


def test_what_is_kept():
    runner = Runner(Table(), (asked(X),), {})
    program = runner.run(keep=lambda value: value.name == "inner.kernel")
    assert [value.name for value in program.values
            if value.array is not None] == ["inner.kernel"]
    assert all(value.signature for value in program.values)


def test_draws_are_the_same_and_nothing_changes():
    """In training: dropout, running averages and the state of the seed."""
    model = sequence(layers.Dense(6), layers.Dropout(0.5),
                     layers.BatchNormalization(), layers.GaussianNoise(0.1),
                     shape=(8, 6))
    runner = Runner(model, (asked(X),), {"training": True})
    before = weights(model)
    plain, exact = runner.run(), runner.run(exact=True)
    assert all(map(np.array_equal, before, weights(model)))
    assert 0 < distance(outputs(plain), outputs(exact)) < 1e-5
    result = ops.convert_to_numpy(model(asked(X), training=True))
    assert distance(outputs(plain), [result]) < 1e-6


def test_two_threads():
    runners = []
    for name in ("attention", "norms", "conv2d"):
        model, x = MODELS[name]()
        runners.append(Runner(model, (asked(x),), {}))
    jobs = [(runner, exact) for runner in runners for exact in (0, 1)] * 2
    expected = [outputs(runner.run(exact=exact)) for runner, exact in jobs]
    with ThreadPoolExecutor(2) as pool:
        programs = pool.map(lambda job: job[0].run(exact=job[1]), jobs)
        for program, arrays in zip(programs, expected, strict=True):
            assert all(map(np.array_equal, outputs(program), arrays))


@on_tensorflow
def test_functions_of_tensorflow():
    """What is compiled is taken apart; its captured tensors are known."""
    import tensorflow as tf
    from tensorflow.python.eager import execute

    @tf.function
    def scaled(x):
        while tf.reduce_max(x) > 0.1:
            x = x * 0.3
        if tf.reduce_sum(x) > 100:
            x = -x
        return x

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = layers.Dense(6)

        def call(self, x):
            h = self.inner(x)
            return scaled(h), ops.vectorized_map(lambda row: ops.tanh(row), h)
    model = Model()
    runner = Runner(model, (asked(X),), {})
    exact = runner.run(exact=True)
    kernel, bias = (each.astype(np.float64) for each in model.get_weights())
    h = X.astype(np.float32) @ kernel + bias
    found, tanh = outputs(exact)
    assert distance([tanh], [np.tanh(h)]) < 1e-14
    while h.max() > 0.1:
        h *= 0.3
    assert distance([found], [h]) < 1e-14
    assert execute.execute is execute.quick_execute
    assert {op.place.function for op in exact.operations
            if op.name == "multiply"} == {"scaled"}


@on_tensorflow
def test_what_numpy_hands_on_is_known():
    class Model(keras.Model):
        def call(self, x):
            return ops.convert_to_tensor(ops.exp(x).numpy()) * 2
    program = Runner(Model(), (asked(X),), {}).run(exact=True)
    assert [op.name for op in program.operations] == ["exp", "multiply"]
    assert distance(outputs(program), [
        2 * np.exp(X.astype(np.float32).astype(np.float64))]) < 1e-15


def test_no_layer_is_refused():
    with pytest.raises(InputError, match="not a Keras layer"):
        Runner(lambda x: x, (X,), {})


@pytest.mark.long
def test_bert_of_keras_hub():
    hub = pytest.importorskip("keras_hub", reason="not checked: no keras_hub")
    model = hub.models.BertBackbone(30, 2, 2, 8, 16, max_sequence_length=9)
    given = {"token_ids": ops.convert_to_tensor(WORDS),
             "segment_ids": ops.zeros_like(WORDS),
             "padding_mask": ops.ones_like(WORDS)}
    runner = Runner(model, (given,), {})
    plain, exact = runner.run(), runner.run(exact=True)
    assert sorted(plain.outputs) == ["output.pooled_output",
                                     "output.sequence_output"]
    assert 0 < distance(outputs(plain), outputs(exact)) < 1e-5
    assert exact.notes == []


@pytest.mark.long
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_on_other_backends(backend):
    """This file again, on another backend."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("asked from TensorFlow")
    pytest.importorskip(backend)
    printed("-m", "pytest", "-q", "-x", __file__, "-p", "no:cacheprovider",
            KERAS_BACKEND=backend)
