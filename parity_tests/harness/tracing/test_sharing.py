"""Several traces at once, and several processes: each has its own numbers."""

import asyncio
import copy
import gc
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity import ports
from parity.tracing import wrapping
from parity.tracing.storage import LARGE, stored
from parity.tracing.trace import WHOLE, array_digest, trace
from parity_tests.support.engines import usable
from parity_tests.support.models import MODELS, ORDER, X, total
from parity_tests.support.processes import printed

COUNT = LARGE // 8


@pytest.fixture(params=MODELS)
def port(request):
    if request.param not in ports.known_ports():
        pytest.skip(f"not checked: no port {request.param}")
    return usable(request.param)


@pytest.fixture
def busy():
    """Threads take turns very often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*functions):
    """What functions return, each run in a thread of its own."""
    found, start = {}, threading.Barrier(len(functions))

    def run(i):
        start.wait()
        found[i] = functions[i]()
    threads = [threading.Thread(target=run, args=(i,))
               for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[i] for i in range(len(functions))]


def calls(model):
    """{class: its __call__} of a model's parts, bases included."""
    return {base: vars(base)["__call__"] for part in vars(model).values()
            for kind in (type(model), type(part)) for base in kind.__mro__
            if "__call__" in vars(base)}


def paths(port, model):
    return [step.path for step in trace(
        model, port.to_native(X, "cpu"), scale=2.0).steps]


def test_two_threads_trace_at_once(port, busy):
    models = [MODELS[port.NAME]() for _ in range(2)]
    before = calls(models[0])
    for model in models:
        model(port.to_native(X, "cpu"))
    found = together(*(
        lambda model=model: [paths(port, model) for _ in range(20)]
        for model in models))
    assert found == [[ORDER] * 20] * 2
    assert calls(models[0]) == before and not wrapping._replaced


def test_a_thread_that_runs_a_model_is_not_traced(port, busy):
    model = MODELS[port.NAME]()
    y = port.to_numpy(model(port.to_native(X, "cpu"), scale=2.0)["y"])
    done = threading.Event()

    def run():
        outputs = []
        while not done.is_set():
            outputs.append(port.to_numpy(
                model(port.to_native(X, "cpu"), scale=2.0)["y"]))
        return outputs

    def look():
        try:
            return [paths(port, model) for _ in range(10)]
        finally:
            done.set()
    ran, found = together(run, look)
    assert found == [ORDER] * 10
    assert ran and all(each.tobytes() == y.tobytes() for each in ran)


def test_coroutines_trace_in_threads(port):
    models = [MODELS[port.NAME]() for _ in range(8)]

    async def main():
        return await asyncio.gather(*(
            asyncio.to_thread(paths, port, model) for model in models))
    assert asyncio.run(main()) == [ORDER] * 8
    assert not wrapping._replaced


def test_a_library_that_forks_by_itself():
    """It may say that it has forked without having said that it would."""
    wrapping._after_fork()
    wrapping._before_fork()
    wrapping._after_fork()
    assert not wrapping._mine.forking


def test_a_trace_within_a_trace():
    """Both see what the inner one runs, each under its own paths."""
    usable("torch")
    import torch

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            self.inner = trace(self.layer, x)
            return self.layer(x)
    model = Outer()
    made = trace(model, torch.ones(1, 2))
    assert [step.path for step in made.steps] == ["layer", "layer#2", WHOLE]
    assert [step.path for step in model.inner.steps] == [WHOLE]


def test_threads_fill_one_file(busy):
    def keep(first):
        kept = [stored(large, array_digest(large)) for large in (
            np.full(COUNT, float(first + i)) for i in range(20))]
        return [(array.min(), array.max()) for array in kept]
    found = together(lambda: keep(100), lambda: keep(200), lambda: keep(300))
    assert found == [[(first + i, first + i) for i in range(20)]
                     for first in (100, 200, 300)]


FORKING = """
import multiprocessing
import numpy as np
from parity.tracing.storage import LARGE, stored

def keep(first):
    kept = [stored(np.full(LARGE // 8, first + i), str(first + i))
            for i in range(5)]
    return [float(array.max()) for array in kept]

mine = stored(np.full(LARGE // 8, 7.), "7")
firsts = 100., 200., 300., 400.
with multiprocessing.get_context("fork").Pool(2) as pool:
    found = pool.map(keep, firsts, chunksize=1)
assert found == [[first + i for i in range(5)] for first in firsts], found
assert (mine == 7).all() and keep(8.) == [8, 9, 10, 11, 12]
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(),
                    reason="not checked: this system does not fork")
def test_forked_processes_write_to_files_of_their_own():
    printed("-c", FORKING, timeout=60)


def test_gradients_leave_no_tensor_behind():
    port = usable("torch")
    import torch
    model, x = MODELS["torch"](), port.to_native(X, "cpu")

    def alive():
        gc.collect()
        return sum(issubclass(type(each), torch.Tensor)
                   for each in gc.get_objects())

    def graded():
        return trace(model, x, gradients=lambda output: total(port, output))
    made = graded()
    assert made.gradients and made.step("by_name.norm").gradients
    before = alive()
    for _ in range(5):
        graded()
    assert alive() <= before
    with pytest.raises(ZeroDivisionError):
        trace(model, x, gradients=lambda output: 1 / 0)
    assert alive() <= before


def test_a_trace_is_pickled_and_copied():
    port = usable("torch")
    model, x = MODELS["torch"](), port.to_native(X, "cpu")
    made = trace(model, x, gradients=lambda output: total(port, output))
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made),
                  copy.deepcopy(made)):
        assert other.content_hash == made.content_hash and not other.live
        assert parity.compare(made, other).verdict == "match"
        with pytest.raises(InputError, match="or copied"):
            other.rerun(WHOLE, {})
    assert made.live and made.rerun(WHOLE, {})
