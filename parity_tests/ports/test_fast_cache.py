"""A beam's cache, of which only what differs is moved, against a whole copy."""

import importlib
import types

import numpy as np
import pytest

from parity import ports

#: Sources, hypotheses of each, tokens; heads and features of a key.
SOURCES, WIDTH, LENGTH, HEADS, FEATURES = 2, 3, 70, 2, 4
ROWS = SOURCES * WIDTH

#: Those that are here.
NAMES = [name for name in ("numpy", "torch", "keras", "jax")
         if name == "numpy" or not ports.absent(name)]


def parents_of(draw, way):
    """Which row of its source each row continues: int [R]."""
    of_source = {
        "any": lambda: draw.integers(WIDTH, size=WIDTH),
        "itself": lambda: np.arange(WIDTH),
        "the first": lambda: np.zeros(WIDTH, int),
        "another order": lambda: draw.permutation(WIDTH)}[way]
    return np.concatenate([
        of_source() + WIDTH * source for source in range(SOURCES)])


class LayerCache:
    """A fast form's cache of one layer, as arrays."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module(
            f"{ports.package(name)}.fast.cache")
        self.engine = ports.engine(name, "fast")
        self.engine.set_precision()
        self.writers = self.module.new_writers(ROWS, LENGTH)
        length = LENGTH + -LENGTH % getattr(self.module, "_BLOCK", 1)
        shape = ((ROWS * HEADS, length, FEATURES) if name == "jax"
                 else (ROWS, HEADS, length, FEATURES))
        self.kept = [self.engine.to_native(np.zeros(shape), "cpu")
                     for _ in range(2)]

    def write(self, place, pair):
        """Write a key and a value [R H K] at a place."""
        for i, one in enumerate(pair):
            if self.name == "jax":
                self.kept[i] = self.kept[i].at[:, place].set(
                    one.reshape(-1, FEATURES))
            elif self.name == "keras":
                self.kept[i] = self.module.write(
                    self.kept[i], place,
                    self.engine.to_native(one[None], "cpu"))
            else:
                self.kept[i][:, :, place] = self.engine.to_native(one, "cpu")

    def reorder(self, parents, written):
        """Have rows continue others."""
        parents = self.engine.to_native(parents.astype(np.int32), "cpu")
        if self.name in ("keras", "jax"):
            (self.kept,), self.writers = self.module.reorder(
                [tuple(self.kept)], self.writers, parents, written)
            self.kept = list(self.kept)
            return
        layer = (types.SimpleNamespace(key=self.kept[0], value=self.kept[1])
                 if self.name == "numpy" else (self.kept, None))
        self.module.reorder([layer], self.writers, parents, written)

    def arrays(self):
        """The key and the value, [R H N K] each."""
        return [self.engine.to_numpy(one).reshape(ROWS, HEADS, -1, FEATURES)
                for one in self.kept]


@pytest.mark.parametrize("way", [
    "any", "itself", "the first", "another order", "each in turn"])
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long(4)] * (name == "jax"))
    for name in NAMES])
def test_it_is_as_if_all_were_moved(name, way):
    draw, cache = np.random.default_rng(3), LayerCache(name)
    whole = np.zeros((2, ROWS, HEADS, LENGTH, FEATURES))
    ways = ["any", "itself", "the first", "another order"]
    for place in range(LENGTH):
        pair = draw.normal(size=(2, ROWS, HEADS, FEATURES))
        cache.write(place, pair)
        whole[:, :, :, place] = pair
        parents = parents_of(draw, ways[place % 4] if "turn" in way else way)
        cache.reorder(parents, place + 1)
        whole = whole[:, parents]
        if place % 7 == 0 or place == LENGTH - 1:
            for found, truth in zip(cache.arrays(), whole):
                np.testing.assert_array_equal(
                    found[:, :, :place + 1], truth[:, :, :place + 1])


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_what_all_have_of_one_ancestor_stays(name):
    """From the second time on that all continue it, one place moves."""
    if name not in NAMES:
        pytest.skip("not checked: torch is not installed")
    cache = LayerCache(name)
    for place in range(9):
        cache.write(place, np.ones((2, ROWS, HEADS, FEATURES)))
        cache.reorder(np.repeat(np.arange(SOURCES) * WIDTH, WIDTH), place + 1)
    for one in cache.kept:
        one[:, :, :8] = np.nan if name == "numpy" else float("nan")
        one[::WIDTH, :, :8] = 1  # what would be moved
    cache.write(9, np.ones((2, ROWS, HEADS, FEATURES)))
    cache.reorder(np.repeat(np.arange(SOURCES) * WIDTH, WIDTH), 10)
    for array in cache.arrays():
        assert np.isnan(array[1, :, :8]).all()
        assert (array[:, :, 9] == 1).all()
