"""Random numbers: known answers, JAX's own, and the weights made of them."""

import importlib
import zlib

import numpy as np
import pytest

from transformer_contract import random, weights
from transformer_contract.config import PRESETS, at_test_size
from transformer_contract.schema import schema
from parity.numerics.comparator import relative_error
from parity_tests.support.engines import usable

#: Random123's known answers for Threefry-2x32 with 20 rounds.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF),
     (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344),
     (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("counter, key, answer", KNOWN)
def test_known_answers(counter, key, answer):
    x0, x1 = (np.array([word], np.uint32) for word in counter)
    found = random.threefry2x32(np.array(key, np.uint32), x0, x1)
    assert (int(found[0][0]), int(found[1][0])) == answer
    assert (int(x0[0]), int(x1[0])) == counter  # its input is left alone


@pytest.mark.parametrize("seed", [0, 1, 2**32 + 7, 2**63 - 1])
def test_equal_to_jax_to_the_bit(seed):
    usable("jax")
    import jax
    with jax.threefry_partitionable(True):
        ours, theirs = random.key(seed), jax.random.key(seed)
        assert (jax.random.key_data(theirs) == ours).all()
        ours, theirs = random.fold_in(ours, 5), jax.random.fold_in(theirs, 5)
        assert (jax.random.key_data(theirs) == ours).all()
        size = 2 * random.BLOCK + 3
        np.testing.assert_array_equal(
            random.bits64(ours, (size,)),
            jax.random.bits(theirs, (size,), "uint64"))
        np.testing.assert_array_equal(
            random.bits(ours, (size,)),
            jax.random.bits(theirs, (size,), "uint32"))
        np.testing.assert_array_equal(
            random.uniform(ours, (5, 7), 0.0, 1.0),
            jax.random.uniform(theirs, (5, 7), "float64"))


def test_a_number_depends_on_its_place_alone():
    key = random.key(3)
    np.testing.assert_array_equal(
        random.bits(key, (3 * random.BLOCK,))[:100],
        random.bits(key, (100,)))


def test_uniform_is_uniform():
    found = random.uniform(random.key(4), (100_000,), -2.0, 6.0)
    assert -2 <= found.min() < -1.99 and 5.99 < found.max() < 6
    assert abs(found.mean() - 2) < 0.03
    assert abs(found.std() - 8 / 12**0.5) < 0.02
    assert np.unique(found).size == found.size


def test_names_have_keys_of_their_own():
    names = list(schema(PRESETS["vaswani2017_big"].replace(tied=False)))
    assert len({zlib.crc32(name.encode()) for name in names}) == len(names)


def test_an_array_does_not_depend_on_the_others():
    config = at_test_size(PRESETS["complete"])
    small = weights.initial_weights(config, 7)
    large = weights.initial_weights(config.replace(n_encoder_layers=4), 7)
    for name, array in small.items():
        np.testing.assert_array_equal(array, large[name])


def test_initial_weights():
    found = weights.initial_weights(PRESETS["complete"].replace(
        source_vocab=1000, target_vocab=999, n_encoder_layers=1,
        n_decoder_layers=1))
    kernel = found["encoder.layers.0.feed_forward.inner.kernel"]
    assert np.isclose(kernel.var(), 2 / (512 + 2048), rtol=0.01)
    assert np.isclose(found["source_embedding.table"].var(), 1 / 512, rtol=0.01)
    for name, array in found.items():
        if name.endswith("scale"):
            assert (array == 1).all()
        if name.endswith("bias"):
            assert (array == 0).all()


def test_initial_weights_are_the_same_everywhere():
    """A change of any of them is a change of every training run."""
    config = at_test_size(PRESETS["vaswani2017_base"])
    found = weights.digest(weights.initial_weights(config))
    assert found.startswith("39d7b2fa42c07889")


def test_probe_weights_hide_nothing():
    for name, array in weights.probe_weights(
            at_test_size(PRESETS["lesson"])).items():
        assert not (array == 0).any() and not (array == 1).any(), name


def random_of(port):
    """A port's random module, and what makes arrays of what it gives."""
    module = importlib.import_module(f"impl_{port.NAME}.random")
    kinds = {"int32": "uint32", "int64": "uint64"}

    def array(value):
        value = np.asarray(value)
        return value.view(kinds.get(value.dtype.name, value.dtype.name))
    return module, array


@pytest.mark.parametrize("seed", [0, 1, 2**32 + 7, 2**63 - 1])
def test_every_port_draws_the_same_bits(port, seed):
    """Keys, bits and uniforms to the bit; normals to rounding."""
    theirs, array = random_of(port)
    key, other = random.key(seed), theirs.key(seed)
    np.testing.assert_array_equal(array(other), key)
    for name in ("encoder.layers.0", 5, 2**32 - 1):
        key, other = random.fold_in(key, name), theirs.fold_in(other, name)
        np.testing.assert_array_equal(array(other), key)
    names = ["a", "encoder.layers.0.dropout", "b"]
    np.testing.assert_array_equal(array(theirs.fold_in_each(other, names)),
                                  random.fold_in_each(key, names))
    shape = (7, 3, 1001)
    for draw in ("bits", "bits64"):
        np.testing.assert_array_equal(
            array(getattr(theirs, draw)(other, shape)),
            getattr(random, draw)(key, shape))
    found = np.asarray(theirs.uniform(other, shape, -0.3, 0.7))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(
        found, random.uniform(key, shape, -0.3, 0.7))
    found = np.asarray(theirs.normal(other, shape))
    assert found.dtype == np.float64
    assert relative_error(found, random.normal(key, shape))[0] < 1e-12


def test_several_keys_at_once(port):
    """Bits of [n 2] keys are the bits of each."""
    theirs, array = random_of(port)
    names = ["a", "b", "c"]
    found = array(theirs.bits(theirs.fold_in_each(theirs.key(3), names),
                              (4, 5)))
    for row, name in zip(found, names):
        np.testing.assert_array_equal(
            row, random.bits(random.fold_in(random.key(3), name), (4, 5)))


def test_normal_is_that_of_jax():
    usable("jax")
    import jax
    key = random.fold_in(random.key(7), "normal")
    ours = random.normal(key, (100, 100))
    with jax.threefry_partitionable(True):
        theirs = jax.random.normal(
            jax.random.wrap_key_data(key), (100, 100), "float64")
    assert relative_error(ours, np.asarray(theirs))[0] < 1e-12
    assert abs(ours.mean()) < 0.03 and abs(ours.std() - 1) < 0.03


def test_normal_against_mpmath():
    """The quantile itself, in the middle and in both tails."""
    import mpmath
    key = random.key(11)
    unit = random.uniform(key, (200,), np.nextafter(-1.0, 0.0), 1.0)
    found = random.normal(key, (200,))
    for u, x in zip(unit, found):
        truth = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(float(u)))
        assert abs(x - truth) <= 8e-16 * abs(truth)


@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
@pytest.mark.long(12)
def test_initial_weights_are_bit_equal_in_every_port(port, preset):
    config = at_test_size(PRESETS[preset])
    found = port.initial_weights(config, 7)
    expected = weights.initial_weights(config, 7)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
