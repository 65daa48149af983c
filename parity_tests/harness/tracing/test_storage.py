"""Large arrays of a trace: they lie in files, and nothing changes them."""

import gc
import weakref

import numpy as np
import pytest

import parity
from contract.errors import InputError
from parity.tracing.storage import LARGE, is_stored, put_away, stored
from parity.tracing.trace import WHOLE, array_digest, trace_alone
from parity_tests.support.engines import usable

WIDE = 400  # a kernel of more than LARGE bytes


@pytest.fixture
def torch():
    usable("torch")
    import torch
    return torch


def layers(torch, count=1, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(*(
        torch.nn.Linear(WIDE, WIDE) for _ in range(count))).double()


def ones(torch):
    return torch.ones(2, WIDE, dtype=torch.float64)


def test_large_arrays_lie_in_a_file_and_equal_ones_in_one():
    large = np.arange(LARGE // 8, dtype=float).reshape(2, -1)
    kept = [stored(large.copy(), array_digest(large)) for _ in range(2)]
    assert kept[0] is kept[1] and is_stored(kept[0])
    np.testing.assert_array_equal(kept[0], large)
    assert not kept[0].flags.writeable and kept[0].shape == large.shape
    put_away(kept[0])
    np.testing.assert_array_equal(kept[0], large)
    small = stored(np.ones(3), "")
    assert not is_stored(small) and not small.flags.writeable
    put_away(small)


def test_without_room_for_a_file_they_stay_in_memory(monkeypatch):
    def full():
        raise OSError(28, "No space left on device")
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    large = np.random.default_rng(0).normal(size=LARGE // 8)
    kept = stored(large.copy(), array_digest(large))
    assert not is_stored(kept) and not kept.flags.writeable
    np.testing.assert_array_equal(kept, large)


def test_a_model_that_is_trained_leaves_its_trace_as_it_was(torch):
    model = layers(torch)
    before = model[0].weight.detach().numpy().copy()
    made = parity.trace(model, ones(torch))
    with torch.no_grad():
        model[0].weight += 1
    assert is_stored(made.parameters["0.weight"])
    np.testing.assert_array_equal(made.parameters["0.weight"], before)


def test_two_models_alone_read_one_parameter(torch):
    models = [layers(torch), layers(torch)]
    traces = [trace_alone(model, ones(torch)) for model in models]
    assert traces[0].parameters["0.weight"] is traces[1].parameters["0.weight"]
    assert len({model[0].weight.data_ptr() for model in models}) == 1
    for made in traces:
        again = made.rerun("0", {})
        np.testing.assert_array_equal(
            again["output"], made.step("0").outputs["output"])


def test_what_a_model_writes_to_it_keeps_for_itself(torch):
    class Counting(torch.nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                self.weight += 1
            return super().forward(x)
    model = Counting(WIDE, WIDE).double()
    before = model.weight.detach().numpy().copy()
    made = trace_alone(model, ones(torch))
    made.rerun(WHOLE, {})
    np.testing.assert_array_equal(made.parameters["weight"], before)
    np.testing.assert_array_equal(model.weight.detach().numpy(), before + 2)


def test_a_few_layers_alone(torch):
    models = layers(torch, 5), layers(torch, 5)
    with torch.no_grad():
        models[1][3].bias += 1e-3
    a, b = (parity.trace(model, ones(torch)) for model in models)
    one, two = (made.only(range(1, 4)) for made in (a, b))
    assert [step.path for step in one.steps] == ["1", "2", "3", WHOLE]
    assert set(one.parameters) == {
        f"{i}.{name}" for i in (1, 2, 3) for name in ("weight", "bias")}
    assert "its layers from 1 to 3 alone" in one.notes[-1]
    found = parity.compare(one, two)
    assert (found.first.a, found.first.part) == ("3", "output")
    assert WHOLE not in {row.a for row in found.divergences}
    found = parity.compare(a.only(range(3)), b.only(range(3)), allow_same=True)
    assert (found.first, found.status) == (None, 4)
    assert "outputs were not compared" in found.sentence()
    found = parity.compare(a.only(range(4, 5)), b.only(range(4, 5)))
    assert found.first.part == "input" and found.status == 1
    with pytest.raises(InputError, match="layer from 5 to 6; choose"):
        a.only(range(5, 7))


def test_what_cannot_be_given_again_is_not_kept(torch):
    """A cache holds keys, and through their graph every weight before."""
    class Cache:
        pass

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            cache = Cache()
            caches.append(weakref.ref(cache))
            return self.layer(x, cache)

    class Layer(torch.nn.Linear):
        def __init__(self):
            super().__init__(3, 3)

        def forward(self, x, cache):
            cache.kept = super().forward(x)
            return 2 * cache.kept

    caches = []
    made = parity.trace(Model(), torch.ones(2, 3))
    gc.collect()
    assert caches[0]() is None
    with pytest.raises(InputError, match="'layer' was called with a Cache"):
        made.rerun("layer", {})
