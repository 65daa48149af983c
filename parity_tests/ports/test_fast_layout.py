"""Weights that are laid out for a search: only those that are a model's own."""

import contextlib
import gc
import warnings
import weakref

import numpy as np
import pytest

from transformer_contract import fast_forms
from transformer_contract.batch import Batch
from transformer_contract.errors import InputError
from transformer_contract.generation import GenerationConfig
from transformer_contract.trace import recording
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import branches, cases, changed_models, fast_searches
from parity_tests.support.engines import usable

torch = pytest.importorskip("torch")

SEARCHES = {
    "greedy": GenerationConfig(eos_id=2, max_tokens=fast_searches.MANY),
    "beam": GenerationConfig(eos_id=2, max_tokens=fast_searches.MANY,
                             method="beam", beam=3)}


@pytest.fixture(params=SEARCHES)
def answers(request):
    """What both forms answer after a change of the model."""
    def of(change, rows=3, **changes):
        config = branches.CONFIG.replace(tied="none", **changes)
        source = cases.ids("source", rows, 7, config.source_vocab)
        found = []
        for form in "readable", "fast":
            engine = usable("torch", form)
            model = engine.build(
                "transformer", config, probe_weights(config, 3), "float32")
            with change(model) or torch.no_grad():
                found.append(engine.generate(
                    model, source, SEARCHES[request.param]))
        return found
    return of


def equal(readable, fast, limit=1e-5):
    """Whether both wrote the same."""
    np.testing.assert_array_equal(readable["tokens"], fast["tokens"])
    np.testing.assert_allclose(
        readable["scores"], fast["scores"], rtol=limit)


def inner(model):
    """One of its linear maps."""
    return model.decoder.layers[0].feed_forward.inner


def value(model):
    """One of three maps of an input."""
    return model.decoder.layers[0].self_attention.value


class Adapted(torch.nn.Linear):
    """A linear map with something of its own, as LoRA's."""

    def forward(self, x):
        """Map x [... in] to [... out]."""
        return 3 * super().forward(x)


class Wrapper(torch.nn.Module):
    """A map in another, which it calls its module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        """Map x [... in] to [... out]."""
        return self.module(x)


def hooked(model):
    inner(model).register_forward_hook(lambda module, given, y: 3 * y)


def value_hooked(model):
    value(model).register_forward_hook(lambda module, given, y: 3 * y)


def value_adapted(model):
    value(model).__class__ = Adapted


def projection_hooked(model):
    model.projection.register_forward_hook(lambda module, given, y: 3 * y)


def adapted(model):
    inner(model).__class__ = Adapted


def pruned(model):
    from torch.nn.utils import prune
    prune.identity(inner(model), "weight")
    with torch.no_grad():
        inner(model).weight_orig.mul_(3)


def wrapped(model):
    model.decoder.layers[0].feed_forward.inner = Wrapper(inner(model))


def double(model):
    model.double()


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("change", [
    hooked, projection_hooked, value_hooked, adapted, value_adapted, pruned,
    wrapped, double])
def test_what_was_added_to_a_model_counts(answers, change, rows):
    equal(*answers(change, rows))


def test_what_was_added_to_a_model_of_jax_counts():
    nnx = pytest.importorskip("flax.nnx")

    class Thrice(nnx.Linear):
        """A linear map with something of its own."""

        def __call__(self, x):
            """Map x [... in] to [... out]."""
            return 3 * super().__call__(x)

    found = []
    for form in "readable", "fast":
        engine = usable("jax", form)
        model = engine.build("transformer", branches.CONFIG, probe_weights(
            branches.CONFIG, 3))
        value(model).__class__ = Thrice
        found.append(engine.generate(
            model, cases.ids("source", 3, 7, 203), SEARCHES["greedy"]))
    equal(*found, 1e-12)


def of_another_dtype(name, model):
    """A norm in float32, or the words' table where there is no other way."""
    if name == "torch":
        model.decoder.layers[0].feed_forward_residual.norm.float()
    elif name == "numpy":
        table = model.source_embedding
        table.table = table.table.astype(np.float32)
    elif name == "jax":
        model.decoder.layers[0].self_attention.query.dtype = np.float32


def of_another_softmax(name, model):
    """Attention's weights halved, by what Keras has beside its layers."""
    attention = model.decoder.layers[0].self_attention
    if name == "keras":
        softmax = attention._masked_softmax
        attention._masked_softmax = lambda *given: 0.5 * softmax(*given)


def of_another_factor(name, model):
    """Keras' factor of scores, which it keeps by a name of its own."""
    if name == "keras":
        model.decoder.layers[0].self_attention._inverse_sqrt_key_dim = (
            np.float64(0.01))


@pytest.mark.parametrize("name, change", [
    *((name, of_another_dtype) for name in ("numpy", "torch", "jax")),
    ("keras", of_another_softmax), ("keras", of_another_factor)])
@pytest.mark.parametrize("before", [False, True])
def test_what_a_user_changed_counts(name, change, before):
    source, found = cases.ids("source", 3, 7, 203), []
    inputs = Batch.of_ids(source, source)
    for form in "readable", "fast":
        engine = usable(name, form)
        model = engine.build("transformer", branches.CONFIG, probe_weights(
            branches.CONFIG, 3))
        if before:
            engine.predict(model, *inputs)
            engine.generate(model, source, SEARCHES["greedy"])
        change(name, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fast_forms.NotAsBuilt)
            found.append({
                "output": engine.predict(model, *inputs),
                **engine.generate(model, source, SEARCHES["greedy"])})
    assert np.abs(found[0]["output"] - found[1].pop("output")).max() < 1e-12
    equal(*found, 1e-12)


class Own:
    """What of a trainer a user may change: each a function of it."""

    @staticmethod
    def optimizer(trainer):
        kind = type(trainer.optimizer)
        trainer.optimizer.__class__ = type("Another", (kind,), {})

    @staticmethod
    def settings(trainer):
        trainer.training = trainer.training.replace(beta1=0.5)

    @staticmethod
    def draw(trainer):
        trainer.draw = lambda key, shapes: {}


@pytest.mark.parametrize("name", ["numpy", "torch", "keras", "jax"])
@pytest.mark.parametrize("change", [Own.optimizer, Own.settings, Own.draw])
def test_a_trainer_that_was_changed_is_refused(name, change):
    engine, source = usable(name, "fast"), cases.ids("source", 3, 7, 203)
    trainer = engine.trainer(engine.build(
        "transformer", branches.CONFIG, probe_weights(branches.CONFIG, 3)),
        TrainingConfig())
    change(trainer)
    with pytest.raises(InputError, match="was changed after the trainer"):
        engine.train_step(trainer, source[None], source[None])


def test_a_keras_model_that_was_compiled_is_as_built():
    engine = usable("keras", "fast")
    model = engine.build("transformer", branches.CONFIG, probe_weights(
        branches.CONFIG, 3))
    model.compile(optimizer="adam", loss="mse")
    assert not engine.strange(model)


@pytest.mark.parametrize("name", ["numpy", "torch", "keras"])
def test_what_a_trainer_is_given_between_steps_counts(name):
    """Another smoothing of labels, and moments of zeros."""
    source, found = cases.ids("source", 3, 7, 203), []
    for form in "readable", "fast":
        engine = usable(name, form)
        model = engine.build("transformer", branches.CONFIG, probe_weights(
            branches.CONFIG, 3))
        trainer, losses = engine.trainer(model, TrainingConfig()), []
        for step in range(4):
            losses.append(float(engine.train_step(
                trainer, source[None], source[None])["loss"]))
            if step == 0:
                model.config = model.config.replace(label_smoothing=0.3)
            elif step == 1:
                trainer.m = [0 * moment for moment in trainer.m]
        found.append(losses)
    assert np.allclose(*found, rtol=1e-10, atol=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numpys_short_dtypes(dtype):
    source, found = cases.ids("source", 3, 7, 203), []
    for form in "readable", "fast":
        engine = usable("numpy", form)
        said = (pytest.warns(UserWarning, match="bfloat16 is not in NumPy's")
                if (form, dtype) == ("fast", "bfloat16")
                else contextlib.nullcontext())
        with said:
            model = engine.build("transformer", branches.CONFIG, probe_weights(
                branches.CONFIG, 3), dtype)
        output = engine.predict(model, *Batch.of_ids(source, source))
        trained = engine.train_step(engine.trainer(
            model, TrainingConfig()), source[None], source[None])
        found.append((output.astype("float32"), trained["loss"]))
    for readable, fast in zip(*found):
        np.testing.assert_allclose(readable, fast, rtol=2e-2, atol=2e-2)


def test_a_hook_of_all_modules_counts():
    source, found = cases.ids("source", 3, 7, 203), []
    for form in "readable", "fast":
        engine = usable("torch", form)
        model = engine.build("transformer", branches.CONFIG, probe_weights(
            branches.CONFIG, 3))
        hook = torch.nn.modules.module.register_module_forward_hook(
            lambda module, given, y: 2 * y if "Dropout" in str(
                type(module)) else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fast_forms.NotAsBuilt)
            found.append(engine.generate(model, source, SEARCHES["greedy"]))
        hook.remove()
    equal(*found, 1e-12)


def test_a_loop_of_a_users_own_has_dense_gradients():
    model = usable("torch", "fast").build(
        "transformer", branches.CONFIG.replace(tied="none"), probe_weights(
            branches.CONFIG.replace(tied="none"), 3))
    source = cases.ids("source", 3, 7, 203)
    model(*map(torch.from_numpy, Batch.of_ids(source, source))).sum().backward()
    assert not any(weight.grad.is_sparse for weight in model.parameters())


def test_a_hook_that_came_and_went_between_steps():
    """Its parts were those of the readable form, and are not any more."""
    engine, source = usable("torch", "fast"), cases.ids("source", 3, 7, 203)
    source[1, 4:] = 0
    losses = []
    for hooked in False, True:
        model = engine.build("transformer", branches.CONFIG, probe_weights(
            branches.CONFIG, 3))
        trainer = engine.trainer(model, TrainingConfig())
        for step in 1, 2:
            found = engine.train_step(trainer, source[None], source[None])
            if hooked and step == 1:
                norm = model.decoder.layers[0].feed_forward_residual.norm
                hook = norm.register_forward_hook(
                    lambda *given: None)
                with pytest.warns(fast_forms.NotAsBuilt):
                    engine.predict(model, *Batch.of_ids(source, source))
                hook.remove()
        losses.append(float(found["loss"]))
    assert abs(losses[0] - losses[1]) < 1e-12


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(answers, dtype):
    """It computes; in 16 bits tokens may part."""
    readable, fast = answers(lambda model: torch.autocast("cpu", dtype))
    assert readable["tokens"].shape == fast["tokens"].shape


def test_a_search_that_is_traced_has_its_steps():
    names = set()

    class Names:
        """Notes what is recorded."""

        def record(self, module, name, value):
            """Note a step."""
            names.add((type(module).__name__, name))
            return value

    engine = usable("torch", "fast")
    model = engine.build("transformer", branches.CONFIG, probe_weights(
        branches.CONFIG, 3), "float32")
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
        config = branches.CONFIG.replace(tied="none")
        model = engine.build("transformer", config, probe_weights(config, 3))
        bias = (model.projection.bias if name == "numpy"
                else model.projection.bias.data)
        bias[5] = float("nan")
        with np.errstate(invalid="ignore"):
            found.append(engine.generate(
                model, cases.ids("source", 2, 7, 203), SEARCHES[search]))
    np.testing.assert_array_equal(*(answer["tokens"] for answer in found))


@pytest.mark.parametrize("name", ["numpy", "torch", "keras", "jax"])
def test_a_trainer_is_not_given_another_model(name):
    """What a trainer made ready of a model's parts would not know a new one."""
    engine = usable(name, "fast")
    config = branches.CONFIG
    model = engine.build("transformer", config, probe_weights(config))
    trainer = engine.trainer(model, TrainingConfig())
    ids = cases.ids("source", 2, 6, config.source_vocab)[None]
    engine.train_step(trainer, ids, ids)
    changed_models.doubled(model.decoder.layers[0].feed_forward)
    with pytest.raises(InputError, match="feed_forward was changed after"):
        engine.train_step(trainer, ids, ids)


@pytest.mark.parametrize("name", ["numpy", "torch", "keras", "jax"])
def test_a_model_of_another_process_is_as_built(name, monkeypatch):
    """As one that was unpickled where no other of its config was built."""
    engine = usable(name, "fast")
    model = engine.build("transformer", branches.CONFIG,
                         probe_weights(branches.CONFIG, 3))
    monkeypatch.setattr(engine, "PLANS", {})
    assert not engine.strange(model)


@pytest.mark.parametrize("tied", ["none", "all"])
def test_a_hook_of_a_weight_changes_its_gradient(tied):
    """A table's gradient is sparse in the fast form, or has two parts."""
    config = branches.CONFIG.replace(tied=tied)
    ids, found = cases.ids("source", 2, 6, config.source_vocab), []
    for form in "readable", "fast":
        engine = usable("torch", form)
        model = engine.build("transformer", config, probe_weights(config))
        model.source_embedding.table.weight.register_hook(
            lambda gradient: gradient.clamp(-0.01, 0.01))
        found.append(engine.gradients(
            model, *Batch.of_ids(ids, ids), ids)[1]["source_embedding.table"])
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)
