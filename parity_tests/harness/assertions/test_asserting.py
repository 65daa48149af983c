"""``parity.assert_parity``, as a user's tests call it."""

import math

import ml_dtypes
import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity.assertions.assert_parity import as_array, assert_parity
from parity.causes.formulas import activation, masks
from parity.causes.formulas.tables import SINUSOIDS, sinusoids
from parity.numerics import dtypes, tolerances
from parity.numerics.softmax import log_softmax
from parity_tests.support.processes import printed

EPS = dtypes.EPS


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def message(*arguments, **keywords):
    """What is said of a divergence."""
    with pytest.raises(AssertionError) as caught:
        assert_parity(*arguments, **keywords)
    return str(caught.value)


def off(array, error):
    """An array that is off by about a relative error, in every element."""
    signs = np.where(numbers(*array.shape, seed=7) > 0, 1, -1)
    return array * (1 + error * signs)


# What fails

def test_equal_arrays_match():
    x = numbers(3, 4)
    found = assert_parity(x + 0, x, name="logits")
    assert [one.verdict for one in found] == ["match"]
    assert found[0].error == 0 and found[0].limit == 1e-12
    assert found[0].name == "logits" and found[0].shape == (3, 4)


def test_it_is_had_from_the_package():
    assert parity.assert_parity is assert_parity


@pytest.mark.parametrize("actual, words", [
    (np.ones((3, 1)), "shape [3, 1], not [3, 4]"),
    (np.ones(4), "the shapes would broadcast, which is never done"),
    (np.ones((3, 4), np.float32), "dtype float32, not float64"),
    (np.where(np.eye(3, 4) > 0, np.nan, 1.0), "NaN or infinity where"),
    (1.0, "shape [], not [3, 4]"),
    ([1.0, 1.0, 1.0], "list, not array"),
    (None, "nothing, not array"),
])
def test_strict(actual, words):
    assert words in message(actual, np.ones((3, 4)))


def test_what_compares_nothing_fails():
    assert "zero everywhere" in message(np.zeros(3), np.zeros(3))
    assert "no element" in message(np.ones((0, 3)), np.ones((0, 3)))
    assert "nothing was compared" in message({}, {})
    assert "nothing was compared" in message([None], [None])


def test_nan_in_the_same_places_is_no_divergence():
    x = numbers(3, 4)
    x[1, 2], x[0, 0] = np.nan, -np.inf
    assert_parity(x.copy(), x)
    y = x.copy()
    y[1, 2], y[1, 3] = 0, np.nan
    text = message(y, x)
    assert "other places" in text and "[1, 2]" in text and "nan" in text


def test_zero_by_mathematics():
    tiny = np.array([1e-17, -2e-17])
    found = assert_parity(tiny, np.zeros(2), zero_scale=3.0)
    assert found[0].verdict == "zero"
    assert "not zero" in message(tiny + 1, np.zeros(2), zero_scale=3.0)
    with pytest.raises(InputError, match="one array"):
        assert_parity([tiny], [np.zeros(2)], zero_scale=1.0)


def test_integers_and_booleans_are_equal():
    assert_parity(np.arange(4), np.arange(4), "float32")
    text = message(np.array([True, False]), np.array([True, True]))
    assert "1 of 2 elements differ" in text and "[1]" in text
    assert "dtype int32, not int64" in message(
        np.arange(4, dtype=np.int32), np.arange(4))


# Limits

@pytest.mark.parametrize("dtype, eps", [
    ("float32", 16), ("bfloat16", 4), ("float16", 4)])
def test_limits_without_an_own_error(dtype, eps):
    truth = numbers(50)
    stored = as_array(truth.astype(
        ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))[0]
    found, = assert_parity(stored, truth, dtype)
    assert found.limit == eps * EPS[dtype]
    assert 0 < found.error < EPS[dtype]
    worse = off(stored.astype(np.float64), 4 * eps * EPS[dtype])
    assert message(worse.astype(stored.dtype), truth, dtype)


def test_limits_with_an_own_error():
    truth = numbers(50)
    own = off(truth, 3 * EPS["float32"]).astype(np.float32)
    found, = assert_parity(own, truth, "float32", own=own)
    assert found.limit == tolerances.limit("float32", found.error)
    assert 9 < found.limit / EPS["float32"] < 12
    awful = off(truth, 1e-3).astype(np.float32)
    assert "1.9e-06" in message(awful, truth, "float32", own=awful)
    exact, = assert_parity(truth, truth, "float64", own=awful)
    assert exact.limit == 1e-12


def test_a_limit_of_ones_own():
    truth = numbers(50)
    assert_parity(off(truth, 1e-3), truth, limit=2e-3)
    assert message(off(truth, 1e-3), truth, limit=1e-4)
    assert message(off(truth, 1e-15), truth, limit=0)


def test_one_wrong_row_cannot_hide():
    truth = numbers(10_000, 8)
    wrong = truth.copy()
    wrong[1234] *= 1 + 1e-10
    assert "[1234, " in message(wrong, truth)


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), "float32"])
def test_a_dtype_is_named_in_any_way(dtype):
    x = numbers(3).astype(np.float32)
    found, = assert_parity(x, x.astype(np.float64), dtype)
    assert found.dtype == "float32"


@pytest.mark.parametrize("keywords, words", [
    ({"dtype": "float8"}, "dtype 'float8' is unknown"),
    ({"limit": -1}, "limit -1 is not a relative error"),
    ({"limit": math.nan}, "is not a relative error"),
    ({"limit": 3}, "from 0 to 1"), ({"limit": True}, "from 0 to 1"),
    ({"zero_scale": math.inf}, "is not a scale"),
    ({"own": [1.0]}, "own is not nested like expected"),
    ({"own": np.ones(2), "dtype": "float32"}, "has shape \\[2\\]"),
    ({"zero_scale": 0}, "is not a scale"),
])
def test_mistakes_are_told(keywords, words):
    with pytest.raises(InputError, match=words):
        assert_parity(np.ones(3), np.ones(3), **keywords)


@pytest.mark.parametrize("value", [
    "text", np.ma.masked_array([1.0, 2.0], [True, False]), object(), 1j,
    np.array([1j]), np.array(["a"]), {1.0}])
def test_what_is_no_array_is_told(value):
    with pytest.raises(InputError):
        assert_parity(value, np.ones(2))


# Nests

def nest(seed=0):
    return {"layers": [{"scores": numbers(2, 3, seed=seed),
                        "mask": np.array([True, False])},
                       {"scores": numbers(2, 3, seed=seed + 1),
                        "mask": np.array([True, True])}],
            "cache": None, "loss": 0.5, "aux": ()}


def test_nests_by_name():
    ours = {key: nest()[key] for key in ("aux", "loss", "cache", "layers")}
    ours["layers"] = tuple(ours["layers"])
    found = assert_parity(ours, nest(), name="out")
    assert [one.name for one in found] == [
        "out.layers[0].scores", "out.layers[0].mask", "out.layers[1].scores",
        "out.layers[1].mask", "out.loss"]


def test_nests_that_differ():
    ours = nest()
    del ours["layers"][0]["mask"]
    ours["layers"][1]["scores"] = ours["layers"][1]["scores"] + 1
    ours["cache"] = ours["extra"] = np.ones(2)
    text = message(ours, nest())
    first, *lines = text.splitlines()
    assert first.endswith(" (and 3 more)")
    assert lines[0] == "4 of 7 comparisons diverge:"
    for name, words in {
            "layers[0].mask": "missing from actual",
            "layers[1].scores": "",
            "cache": "array, not nothing",
            "extra": "in actual only"}.items():
        row = next(i for i, line in enumerate(lines)
                   if line.split()[0] == name)
        assert words in lines[row + 1] if words else "e+0" in lines[row]


def test_lists_of_other_lengths():
    one, two = numbers(3), numbers(3, seed=1)
    assert "[1]" in message([one], [one, two])
    assert "in actual only" in message([one, two], [one])


def test_own_follows_the_nest():
    truth = {"a": [numbers(9)]}
    low = {"a": [truth["a"][0].astype(np.float32)]}
    found, = assert_parity(low, truth, "float32", own=low)
    assert found.limit < 5 * EPS["float32"]
    with pytest.raises(InputError, match="own has other names"):
        assert_parity(low, truth, "float32", own={"b": low["a"]})


def test_keys_that_read_alike():
    with pytest.raises(InputError, match="the same text"):
        assert_parity({1: 1.0, "1": 2.0}, {1: 1.0, "1": 2.0})


def test_what_is_returned_prints_as_a_line():
    x = np.arange(1.0, 7.0)
    assert repr(assert_parity(x * (1 + 1e-13), x)) == (
        "match, 1.0e-13 of 1.0e-12")
    found = assert_parity({"a": x, "b": x * (1 + 5e-13)}, {"a": x, "b": x})
    assert repr(found) == (
        "match, 5.0e-13 of 1.0e-12 at b, the worst of 2")
    assert repr(assert_parity(np.arange(3), np.arange(3))) == "match, equal"


# The message

def test_the_table():
    truth = numbers(5, 6)
    wrong = truth.copy()
    wrong[3, 4] += 0.25
    first, *lines = message(
        wrong, truth, name="encoder.output").splitlines()
    assert first.startswith("encoder.output: ") and " > 1.0e-12" in first
    assert lines[0] == "1 of 1 comparison diverges:"
    assert lines[1].split() == ["name", "shape", "error", "limit", "worst",
                                "at", "actual", "expected"]
    words = lines[2].split()
    assert words[:2] == ["encoder.output", "5×6"]
    assert float(words[2]) > float(words[3]) == 1e-12
    assert words[4:6] == ["[3,", "4]"]
    assert float(words[6]) - float(words[7]) == pytest.approx(0.25, abs=1e-4)
    assert len(lines) == 3


def test_values_have_the_digits_that_tell_them_apart():
    line = message(np.array([1.0 + 1e-11]), np.ones(1)).splitlines()[3]
    assert line.split()[-2:] == ["1.00000000001", "1"]


def test_a_long_list_is_cut():
    truth = {f"step {i}": numbers(4, seed=i) for i in range(25)}
    text = message({name: x + 1 for name, x in truth.items()}, truth)
    assert "\n25 of 25" in text and text.endswith("and 15 more")
    assert len(text.splitlines()) < 25


def test_hints():
    x, square = numbers(6, 8), numbers(5, 5)
    order = np.array([0, 2, 1, 3, 5, 4])
    halves = np.arange(8).reshape(4, 2).T.ravel()
    for actual, expected, words in (
            (square.T, square, "transposed: actual.transpose(1, 0)"),
            (x.T, x, "transposed: actual.transpose(1, 0)"),
            (x[None], x, "the same numbers in another shape"),
            (-x, x, "actual is -1 times expected"),
            (x * 8**0.5, x, "√8 being axis 1"),
            (x / 6, x, "1/6 for axis 0"),
            (x * 1.5, x, "actual is 1.5 times expected"),
            (x[order], x, "row [1] is expected's row [2]; 4 of 6"),
            (x[:, halves], x, "column 1 is expected's column 2; 6 of 8"),
            (x.astype(np.float32).astype(float), x,
             "every value of actual is a float32 number"),
            (x, x.astype(np.float32).astype(float),
             "every expected value is a float32 number"),
            (off(x, 3e-8), x, "something was computed in float32"),
            (x.astype(np.float32), x, "dtype='float32' would compare it")):
        assert words in message(actual, expected), words


def test_hints_in_the_catalogues_words():
    x, causal = numbers(6, 8), np.tri(5, dtype=bool)[None]
    keep = np.random.default_rng(3).random(x.shape) > 0.25
    for actual, expected, words in (
            (log_softmax(x), x, "actual is log-softmax of expected "
             "(“log-probabilities, not logits”)"),
            (x, log_softmax(x), "expected is log-softmax of actual "
             "(“logits, not log-probabilities”)"),
            (activation.gelu(x), x, "actual is gelu of expected"),
            (x / 8**0.5, x, "1/√8 for axis 1 (“embedding not scaled”)"),
            (x * (7 / 8)**0.5, x, "(“layer norm's variance unbiased” or “RMS "
             "norm's mean square over D - 1”)"),
            (np.float64(1 / np.log(2)), np.ones(()), "(“loss in bits”)"),
            (x + 0.5, x, "actual is expected plus 0.5"),
            (x * keep / 0.75, x, "(“dropout left on”)"),
            (masks.with_next(causal), causal,
             "(“causal mask off by one, to the future”)"),
            (~causal, causal, "as a mask, turned round"),
            (sinusoids(SINUSOIDS | {"first position": 1}, 9, 6),
             sinusoids(SINUSOIDS, 9, 6),
             "1 in actual, 0 in expected (“positions begin at 1”)")):
        assert words in message(actual, expected), words


def test_no_hint_is_made_up():
    assert len(message(numbers(6, 8), numbers(6, 8, seed=1)).splitlines()) == 4
    assert len(message(off(numbers(6, 8), 1e-4), numbers(6, 8))
               .splitlines()) == 4


# Frameworks

def test_no_framework_is_imported():
    code = ("import sys, numpy, parity; "
            "parity.assert_parity(numpy.ones(2), numpy.ones(2)); "
            "sys.exit(any(name in sys.modules for name in "
            "('torch', 'tensorflow', 'keras', 'jax', 'rich')))")
    printed("-c", code)


def test_torch():
    torch = pytest.importorskip("torch")
    truth = numbers(3, 4)
    tensor = torch.tensor(truth, requires_grad=True)
    found, = assert_parity(tensor, truth, torch.float64)
    assert found.framework == "torch"
    assert_parity(torch.nn.Parameter(tensor).T, truth.T)
    assert_parity({"x": tensor.float()}, {"x": truth}, torch.float32)
    assert_parity(tensor.to(torch.bfloat16), truth, torch.bfloat16)
    assert_parity(tensor, tensor.detach().clone())
    assert_parity(tensor.sum(), truth.sum())
    with pytest.raises(InputError, match="cannot be read as an array"):
        assert_parity(torch.ones(2, device="meta"), np.ones(2))


def test_keras():
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    truth = numbers(3, 4)
    for tensor in (tf.constant(truth), tf.Variable(truth),
                   keras.Variable(truth, dtype="float64"),
                   tf.IndexedSlices(truth, tf.range(3), (3, 4))):
        found, = assert_parity(tensor, truth)
        assert found.framework == "keras"
    half = tf.constant(truth[0, 0], tf.bfloat16)
    assert_parity([half], [truth[0, 0]], tf.bfloat16)
    with pytest.raises(InputError, match="RaggedTensor, which is not recogn"):
        assert_parity(tf.ragged.constant([[1.0], [2.0, 3.0]]), truth)


def test_jax():
    jax = pytest.importorskip("jax")
    truth = numbers(3, 4)
    with jax.enable_x64(True):
        array = jax.numpy.asarray(truth)
        found, = assert_parity(array, truth, jax.numpy.float64)
        assert found.framework == "jax"
        assert_parity((array.astype("bfloat16"),), [truth], "bfloat16")
    with jax.enable_x64(False):
        short = jax.numpy.asarray(truth)
    assert "jax_enable_x64" in message(short, truth)
    with pytest.raises(InputError, match="cannot be read as an array"):
        jax.jit(lambda x: assert_parity(x, truth) and x)(short)


def test_flax():
    nnx = pytest.importorskip("flax.nnx")
    linear = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    truth = {"kernel": np.asarray(linear.kernel[...]),
             "bias": np.asarray(linear.bias[...]) + 1}
    linear.bias = nnx.Param(linear.bias[...] + 1)
    found = assert_parity(nnx.state(linear), truth)
    assert [one.framework for one in found] == ["jax", "jax"]
