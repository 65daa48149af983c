"""Random numbers: known answers, JAX's own, and the weights made of them."""

import zlib

import numpy as np
import pytest
from conftest import usable

from contract import random, weights
from contract.config import PRESETS, at_test_size

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
            random.bits(ours, size), jax.random.bits(theirs, (size,), "uint64"))
        np.testing.assert_array_equal(
            random.uniform(ours, (5, 7), 0.0, 1.0),
            jax.random.uniform(theirs, (5, 7), "float64"))


def test_a_number_depends_on_its_place_alone():
    key = random.key(3)
    np.testing.assert_array_equal(
        random.bits(key, 3 * random.BLOCK)[:100], random.bits(key, 100))


def test_uniform_is_uniform():
    found = random.uniform(random.key(4), (100_000,), -2.0, 6.0)
    assert -2 <= found.min() < -1.99 and 5.99 < found.max() < 6
    assert abs(found.mean() - 2) < 0.03
    assert abs(found.std() - 8 / 12**0.5) < 0.02
    assert np.unique(found).size == found.size


def test_names_have_keys_of_their_own():
    names = list(weights.schema(PRESETS["vaswani2017_big"].replace(tied=False)))
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
