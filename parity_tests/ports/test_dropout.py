"""Dropout by name: equal masks in all four, where they belong, off by default.
"""

import importlib
import zlib

import numpy as np
import pytest

from transformer_contract import random, weights
from transformer_contract.config import PRESETS
from transformer_contract.dropping import places
from parity import ports
from parity.check import cases
from parity_tests.support.engines import usable

KEY = random.fold_in(random.key(5), "dropout")
RATE = 0.3


def package(engine):
    return ("reference_numpy" if engine.NAME == "numpy"
            else f"impl_{engine.NAME}")


def dropout_of(engine):
    return importlib.import_module(f"{package(engine)}.dropout")


def native_key(engine, key=KEY):
    """A key as an engine's own random module makes it."""
    module = importlib.import_module(f"{package(engine)}.random")
    return module.fold_in(module.key(5), "dropout")


def configured(preset, rate=RATE):
    return cases.test_size(preset).replace(dropout=rate)


@pytest.mark.long(12)
def test_masks_are_bit_equal_in_every_port(port):
    """Place by place, all drawn together or one by one."""
    shapes = places(configured("vaswani2017_base"), 4, 11, 9)
    reference = dropout_of(ports.engine("numpy")).draw(
        KEY, shapes, RATE, False)
    found = dropout_of(port).draw(native_key(port), shapes, RATE, False)
    assert found.keys() == reference.keys() == shapes.keys()
    for name, mask in reference.items():
        assert mask.shape == shapes[name] and mask.dtype == bool
        np.testing.assert_array_equal(np.asarray(found[name]), mask)


@pytest.mark.parametrize("rate", [1e-9, 0.1, 0.5, 0.999])
def test_masks_are_those_of_jax(rate):
    """Kept is what jax.random.bits are not below rate · 2³²."""
    usable("jax")
    import jax
    with jax.threefry_partitionable(True):
        bits = np.asarray(jax.random.bits(
            jax.random.wrap_key_data(KEY), (50, 70), "uint32"))
    kept = dropout_of(ports.engine("numpy")).kept(KEY, (50, 70), rate)
    np.testing.assert_array_equal(kept, bits / 2**32 >= rate)


@pytest.mark.long(24)
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
def test_places_are_every_dropout_with_its_shape(engine, preset):
    """The contract's table against the modules of a built model."""
    config = configured(preset)
    parameters = importlib.import_module(f"{package(engine)}.parameters")
    model = engine.build(
        "transformer", config, weights.probe_weights(config))
    dropouts = {path for path, module in parameters.modules(model)
                if type(module).__name__ == "Dropout"}
    assert dropouts == set(places(config, 2, 3, 4))


def test_names_have_keys_of_their_own():
    names = places(PRESETS["vaswani2017_big"], 1, 1, 1)
    assert len({zlib.crc32(name.encode()) for name in names}) == len(names)


def test_the_scale_keeps_the_mean():
    """What is kept is divided by 1 - rate."""
    from transformer_contract.dropping import dropping
    module = dropout_of(ports.engine("numpy")).Dropout(RATE)
    x = cases.values("x", 300, 300) + 2
    mask = dropout_of(ports.engine("numpy")).kept(KEY, x.shape, RATE)
    with dropping({id(module): "it"}, {"it": mask}):
        y, c = module.forward(x)
    assert abs(y.mean() - 2) < 0.02
    np.testing.assert_array_equal(y[mask], x[mask] / (1 - RATE))
    assert not y[~mask].any()
    np.testing.assert_array_equal(module.backward(np.ones_like(x), c),
                                  mask / (1 - RATE))
    same, c = module.forward(x)  # off again
    assert same is x and module.backward(x, c) is x
