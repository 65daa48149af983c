"""Weights that are laid out for a search, and what a fast form computes."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.generation import GenerationConfig
from transformer_contract.trace import recording
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import cases
from parity_tests.support.conformance import MANY, ODD
from parity_tests.support.engines import usable

torch = pytest.importorskip("torch")

SEARCHES = {
    "greedy": GenerationConfig(eos_id=2, max_tokens=MANY),
    "beam": GenerationConfig(eos_id=2, max_tokens=MANY,
                             method="beam", beam=3)}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numpys_short_dtypes(dtype):
    source, found = cases.ids("source", 3, 7, 203), []
    for form in "readable", "fast":
        engine = usable("numpy", form)
        said = (pytest.warns(UserWarning, match="bfloat16 is not in NumPy's")
                if (form, dtype) == ("fast", "bfloat16")
                else contextlib.nullcontext())
        with said:
            model = engine.build("transformer", ODD, probe_weights(
                ODD, 3), dtype)
        output = engine.predict(model, *Batch.of_ids(source, source))
        trained = engine.train_step(engine.trainer(
            model, TrainingConfig()), source[None], source[None])
        found.append((output.astype("float32"), trained["loss"]))
    for readable, fast in zip(*found):
        np.testing.assert_allclose(readable, fast, rtol=2e-2, atol=2e-2)


def test_a_loop_of_a_users_own_has_dense_gradients():
    model = usable("torch", "fast").build(
        "transformer", ODD.replace(tied="none"), probe_weights(
            ODD.replace(tied="none"), 3))
    source = cases.ids("source", 3, 7, 203)
    model(*map(torch.from_numpy, Batch.of_ids(source, source))).sum().backward()
    assert not any(weight.grad.is_sparse for weight in model.parameters())


def test_what_is_laid_out_of_arrays_is_kept_as_long_as_they_live():
    jax = pytest.importorskip("jax")
    from impl_jax.fast import layout
    table = jax.numpy.arange(6.0).reshape(2, 3)
    first = layout.turned(table)
    assert layout.turned(table) is first
    other = layout.turned(table + 1)
    np.testing.assert_array_equal(other, first + 1)
    gone = weakref.ref(first)
    del first
    assert gone() is not None
    del table
    gc.collect()
    assert gone() is None


def test_nothing_is_kept_of_what_may_change():
    pytest.importorskip("jax")
    from impl_jax.fast import layout
    bias = np.arange(6.0)
    layout.side_by_side(bias, bias)
    bias[0] = 7
    np.testing.assert_array_equal(
        layout.side_by_side(bias, bias), np.tile(bias, 2))


def test_an_array_that_stays_is_not_the_heavier_for_others():
    jax = pytest.importorskip("jax")
    from impl_jax.fast import layout
    stays = jax.numpy.ones((2, 3))
    for i in range(3):
        both = layout.side_by_side(stays, stays + i)
        np.testing.assert_array_equal(both[:, 3:], stays + i)
    gc.collect()
    assert weakref.getweakrefcount(stays) == 0


@pytest.mark.parametrize("method", SEARCHES)
def test_a_search_is_compiled_once(method, monkeypatch):
    pytest.importorskip("jax", reason="not checked: JAX is not installed")
    from impl_jax.fast import search
    used, compiled = [], search._compiled

    def noted(*arguments):
        used.append(compiled(*arguments))
        return used[-1]

    monkeypatch.setattr(search, "_compiled", noted)
    engine = usable("jax", "fast")
    model = engine.build("transformer", ODD, probe_weights(ODD, 3))
    programs = []
    for _ in range(2):
        engine.generate(
            model, cases.ids("source", 3, 7, 203), SEARCHES[method])
        programs.append([each._cache_size() for each in dict.fromkeys(used)])
    assert programs[0] == programs[1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("search", SEARCHES)
def test_under_autocast(dtype, search):
    """It computes; in 16 bits tokens may differ."""
    config, found = ODD.replace(tied="none"), []
    for form in "readable", "fast":
        engine = usable("torch", form)
        model = engine.build(
            "transformer", config, probe_weights(config, 3), "float32")
        with torch.autocast("cpu", dtype):
            found.append(engine.generate(
                model, cases.ids("source", 3, 7, 203), SEARCHES[search]))
    assert found[0]["tokens"].shape == found[1]["tokens"].shape


def test_a_search_that_is_traced_has_its_steps():
    names = set()

    class Names:
        """Notes what is recorded."""

        def record(self, module, name, value):
            """Note a step."""
            names.add((type(module).__name__, name))
            return value

    engine = usable("torch", "fast")
    model = engine.build("transformer", ODD, probe_weights(
        ODD, 3), "float32")
    with recording(Names()):
        engine.generate(model, cases.ids("source", 3, 7, 203),
                        SEARCHES["greedy"])
    assert ("TiedProjection", "logits") in names


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_model_that_diverged_is_searched(name, search):
    """NaN is the highest or the lowest, as in the readable form."""
    found = []
    for form in "readable", "fast":
        engine = usable(name, form)
        config = ODD.replace(tied="none")
        model = engine.build("transformer", config, probe_weights(config, 3))
        bias = (model.projection.bias if name == "numpy"
                else model.projection.bias.data)
        bias[5] = float("nan")
        with np.errstate(invalid="ignore"):
            found.append(engine.generate(
                model, cases.ids("source", 2, 7, 203), SEARCHES[search]))
    np.testing.assert_array_equal(*(answer["tokens"] for answer in found))
