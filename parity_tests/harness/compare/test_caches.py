"""Objects among a model's outputs that hold arrays, such as a cache."""

import pytest

from parity.comparison.compare import compare
from parity.tracing.folder import dump, load
from parity.tracing.trace import trace
from parity_tests.support.engines import usable


class CacheLayer:
    def __init__(self, keys):
        self.keys, self.length, self._hidden = keys, 3, keys


class DeepCache:
    """As deep as those of a library."""

    def __init__(self, keys, wrong=0):
        self.layers = [CacheLayer(keys), CacheLayer(2 * keys + wrong)]
        self.itself, self.function = self, len


class Empty:
    pass


class EmptyCache(Empty):
    pass


RETURNS = {
    "cache": lambda y: (y, DeepCache(y)),
    "wrong": lambda y: (y, DeepCache(y, 1e-3)),
    "longer": lambda y: (y, DeepCache(y[:1])),
    "empty": lambda y: (y, EmptyCache()),
    "none": lambda y: (y, None),
    "object": lambda y: (y, Empty()),
}


def returning(what):
    usable("torch")
    import torch

    class Model(torch.nn.Linear):
        def forward(self, x):
            return RETURNS[what](super().forward(x))
    torch.manual_seed(0)
    return trace(Model(4, 4).double(), torch.ones(2, 4).double())


def test_arrays_of_a_cache_are_outputs(tmp_path):
    made = returning("cache")
    last = made.steps[-1]
    assert [*last.outputs] == [
        "output.0", "output.1.layers.0.keys", "output.1.layers.1.keys"]
    assert last.others["outputs.output.1"] == "opened: DeepCache"
    assert made.rerun(last.path, {}).keys() == last.outputs.keys()
    dump(made, tmp_path / "a")
    assert compare(made, load(tmp_path / "a")).verdict == "match"


@pytest.mark.parametrize("a, b, verdict, noted", [
    ("cache", "cache", "match", 0), ("cache", "wrong", "divergence", 0),
    ("cache", "longer", "match", 2), ("cache", "none", "match", 1),
    ("none", "cache", "match", 1), ("empty", "empty", "match", 2),
    ("empty", "none", "match", 1), ("object", "object", "incomplete", 0),
    ("object", "none", "incomplete", 0)])
def test_a_cache_that_nobody_asked_for(a, b, verdict, noted):
    found = compare(returning(a), returning(b))
    assert found.verdict == verdict
    assert sum("use_cache=False" in note for note in found.notes) == noted
    if verdict == "divergence":
        assert found.first.a_name == "output.1.layers.1.keys"
