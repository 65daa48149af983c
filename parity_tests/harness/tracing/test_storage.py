"""Large arrays of a trace: they lie in files, and nothing changes them."""

import gc
import os
import weakref

import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity.tracing.storage import LARGE, is_stored, put_away, stored
from parity.tracing.trace import WHOLE, array_digest, trace_alone

WIDE = 400  # a kernel of more than LARGE bytes


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


def test_what_a_model_alone_writes_no_trace_sees(torch):
    models = [layers(torch), layers(torch)]
    first, second = [trace_alone(model, ones(torch)) for model in models]
    kept = first.parameters["0.weight"]
    assert kept is second.parameters["0.weight"]
    before, own = kept.copy(), models[1][0].weight.detach().clone()
    for made in (first, second):
        again = made.rerun("0", {})
        np.testing.assert_array_equal(
            again["output"], made.step("0").outputs["output"])
    with torch.no_grad():
        models[0][0].weight.mul_(2)
    np.testing.assert_array_equal(kept, before)
    assert torch.equal(models[1][0].weight, own)
    fresh = parity.trace(layers(torch), ones(torch))
    np.testing.assert_array_equal(fresh.parameters["0.weight"], before)
    with pytest.raises(ValueError):
        kept.flags.writeable = True


@pytest.mark.parametrize("data", [False, True])
def test_what_the_run_wrote_to_is_left_alone(torch, data):
    class Counting(torch.nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                (self.weight.data if data else self.weight).add_(1)
            return super().forward(x)
    model = Counting(WIDE, WIDE).double()
    before = model.weight.detach().numpy().copy()
    made = trace_alone(model, ones(torch))
    np.testing.assert_array_equal(model.weight.detach().numpy(), before + 1)
    made.rerun(WHOLE, {})
    np.testing.assert_array_equal(made.parameters["weight"], before)
    np.testing.assert_array_equal(model.weight.detach().numpy(), before + 2)


def test_parameters_that_are_not_in_memory_of_their_own_stay(torch):
    whole = torch.arange(3. * WIDE * WIDE, dtype=torch.float64)
    model = torch.nn.Module()
    model.one = torch.nn.Parameter(whole[:WIDE**2].view(WIDE, WIDE))
    model.two = torch.nn.Parameter(whole[1:1 + WIDE**2].view(WIDE, WIDE))
    model.turned = torch.nn.Parameter(
        whole[-WIDE**2:].clone().view(WIDE, WIDE).T)
    model.forward = lambda x: x @ model.one @ model.two @ model.turned
    places = [one.data_ptr() for one in model.parameters()]
    made = trace_alone(model, ones(torch))
    assert places == [one.data_ptr() for one in model.parameters()]
    np.testing.assert_array_equal(
        made.parameters["turned"], model.turned.detach().numpy())


def test_equal_parameters_of_one_model_stay_two(torch):
    model = layers(torch, 2)
    model[1].load_state_dict(model[0].state_dict())
    trace_alone(model, ones(torch))
    with torch.no_grad():
        model[0].weight.mul_(2)
    assert not torch.equal(model[0].weight, model[1].weight)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_other_dtypes(torch, dtype):
    model = torch.nn.Linear(900, 900).to(getattr(torch, dtype))
    made = trace_alone(model, torch.ones(2, 900, dtype=model.weight.dtype))
    assert is_stored(made.parameters["weight"])
    assert made.parameters["weight"].dtype.name == dtype


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"),
    reason="not checked: this system does not list open files")
def test_many_arrays_take_few_files():
    before = len(os.listdir("/proc/self/fd"))
    kept = [stored(large, array_digest(large)) for large in (
        np.full(LARGE // 8, float(i)) for i in range(60))]
    assert all(map(is_stored, kept))
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    assert [array[-1] for array in kept] == list(range(60))
    for array in kept:
        put_away(array)
    assert [array[0] for array in kept] == list(range(60))


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
