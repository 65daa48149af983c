"""The optimiser: by mpmath, by the frameworks' own, and where those differ."""

import importlib

import mpmath
import numpy as np
import pytest

from parity_io.errors import InputError
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.check import cases
from parity.numerics.comparator import relative_error
from reference_numpy.optimizer import Adam, clip_by_global_norm, inverse_sqrt

#: Gradients from 1 to 1e-8 in one tensor: ε is felt where they are small.
SIZES = 10.0 ** -np.arange(9)
STEPS = 4
TRAINING = TrainingConfig(schedule="constant", learning_rate=1e-3)


def gradients(step):
    return cases.values(f"gradient {step}", 3, 9) * SIZES


def optimizer_of(engine):
    name = ("reference_numpy" if engine.NAME == "numpy"
            else f"impl_{engine.NAME}")
    return importlib.import_module(f"{name}.optimizer")


def native(engine, array):
    """An array as a framework's own; NumPy's as it is."""
    if engine.NAME == "numpy":
        return np.asarray(array)
    return engine.to_native(np.asarray(array), "cpu")


def steps(engine, training, dtype="float64"):
    """Weights and moments after each of a few steps."""
    optimizer = ports.module_of(engine.NAME, "parts").optimizer(training, 48)
    weight, m, v = (native(engine, array.astype(dtype)) for array in (
        cases.values("weight", 3, 9), np.zeros((3, 9)), np.zeros((3, 9))))
    found = []
    for step in range(1, STEPS + 1):
        settings = optimizer.settings(step)
        if engine.NAME in ("keras", "jax"):
            settings = [native(engine, np.asarray(x, dtype))
                        for x in settings]
        weight, m, v = optimizer.update(
            weight, native(engine, gradients(step).astype(dtype)), m, v,
            *settings)
        found.append([np.asarray(x) for x in (weight, m, v)])
    return found


def by_mpmath(training):
    """Algorithm 1 of Kingma and Ba 2015 in 30 digits, number by number."""
    with mpmath.workdps(30):
        number = np.vectorize(mpmath.mpf, otypes=[object])
        root = np.vectorize(mpmath.sqrt, otypes=[object])
        weight = number(cases.values("weight", 3, 9))
        b1, b2, eps, rate, decay = map(mpmath.mpf, (
            training.beta1, training.beta2, training.eps,
            training.learning_rate,
            training.weight_decay))
        m = v = number(np.zeros((3, 9)))
        for t in range(1, STEPS + 1):
            g = number(gradients(t))
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            weight = weight - rate * decay * weight
            weight = weight - rate * (m / (1 - b1**t)) / (
                root(v / (1 - b2**t)) + eps)
        return [array.astype(np.float64) for array in (weight, m, v)]


VARIANTS = {
    "adam": TRAINING,
    "adam with a large ε": TRAINING.replace(eps=1e-3),
    "adamw": TRAINING.replace(optimizer="adamw", weight_decay=0.1),
    "adamw that decays nothing": TRAINING.replace(
        optimizer="adamw", weight_decay=0.0),
    "β₁ of 0": TRAINING.replace(beta1=0.0),
    "β₂ of 0": TRAINING.replace(beta2=0.0),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_against_mpmath(engine, variant):
    """Each size of gradient alone: small ones are divided by themselves."""
    found = steps(engine, VARIANTS[variant])[-1]
    for ours, truth in zip(found, by_mpmath(VARIANTS[variant])):
        assert ours.dtype == np.float64
        scale = np.abs(truth).max(axis=0)
        assert (np.abs(ours - truth).max(axis=0) <= 1e-14 * scale).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_torch_has_the_same(variant):
    torch = pytest.importorskip("torch", reason="not checked: no torch")
    training = VARIANTS[variant]
    weight = torch.nn.Parameter(
        torch.from_numpy(cases.values("weight", 3, 9)))
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    optimizer = kind[training.optimizer](
        [weight], lr=training.learning_rate,
        betas=(training.beta1, training.beta2),
        eps=training.eps, weight_decay=training.weight_decay)
    for step in range(1, STEPS + 1):
        weight.grad = torch.from_numpy(gradients(step))
        optimizer.step()
    np.testing.assert_allclose(weight.detach().numpy(),
                               by_mpmath(training)[0], rtol=1e-13, atol=0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_optax_has_the_same(variant):
    """But for its powers of β, which it takes in float32."""
    optax = pytest.importorskip("optax", reason="not checked: no optax")
    from parity_tests.support.engines import usable
    usable("jax")
    import jax.numpy as jnp
    training = VARIANTS[variant]
    settings = {"b1": training.beta1, "b2": training.beta2,
                "eps": training.eps}
    chain = (optax.adam(training.learning_rate, **settings)
             if training.optimizer == "adam" else optax.adamw(
                 training.learning_rate, weight_decay=training.weight_decay,
                 **settings))
    weight = jnp.asarray(cases.values("weight", 3, 9))
    state = chain.init(weight)
    for step in range(1, STEPS + 1):
        change, state = chain.update(
            jnp.asarray(gradients(step)), state, weight)
        weight = optax.apply_updates(weight, change)
    error, _ = relative_error(np.asarray(weight), by_mpmath(training)[0])
    assert error < 1e-8


def test_keras_has_another(port):
    """Its ε stands beside √v before the correction: felt where g is small."""
    if port.NAME != "keras":
        pytest.skip("not checked: a test of Keras")
    import keras
    first = cases.values("weight", 3, 9)
    weight = keras.Variable(first, dtype="float64")
    optimizer = keras.optimizers.Adam(
        TRAINING.learning_rate, TRAINING.beta1, TRAINING.beta2, TRAINING.eps)
    for step in range(1, STEPS + 1):
        optimizer.apply([port.to_native(gradients(step), "cpu")], [weight])
    moved = np.abs(port.to_numpy(weight.value) - first).mean(axis=0)
    ours = np.abs(by_mpmath(TRAINING)[0] - first).mean(axis=0)
    assert abs(moved[0] / ours[0] - 1) < 1e-4
    assert moved[-1] / ours[-1] < 0.8


def test_inverse_square_root(engine):
    """Equation 3, by its own words, at d_model 512 and 4000 steps."""
    schedule = optimizer_of(engine).inverse_sqrt
    training = TrainingConfig()
    rates = [schedule(training, 512, step) for step in range(1, 20_001)]
    assert rates[0] == pytest.approx(512**-0.5 * 4000**-1.5, rel=1e-15)
    assert int(np.argmax(rates)) + 1 == 4000
    assert rates[3999] == pytest.approx((512 * 4000)**-0.5, rel=1e-15)
    assert rates[15_999] == pytest.approx(rates[3999] / 2, rel=1e-15)
    assert np.ptp(np.diff(rates[:4000])) < 1e-17  # a line
    tripled = training.replace(learning_rate=3.0)
    assert schedule(tripled, 512, 7) == pytest.approx(3 * rates[6], rel=1e-15)
    assert schedule(training, 512, 1) == inverse_sqrt(training, 512, 1)


def test_constant(engine):
    schedule = ports.module_of(engine.NAME, "parts").schedule(TRAINING)
    assert {schedule(TRAINING, 512, step) for step in (1, 10, 99)} == {1e-3}


def test_clipping(engine):
    """To just the limit; torch's own stays 1e-6 below it."""
    clip = optimizer_of(engine).clip_by_global_norm
    arrays = [native(engine, np.array([3.0])), native(engine, np.array([4.0]))]
    found, norm = clip(arrays, 1.0)
    assert float(norm) == 5.0
    np.testing.assert_allclose(
        [float(x[0]) for x in found], [0.6, 0.8], rtol=2e-16)
    for limit in (0.0, 5.0, 7.0):
        found, norm = clip(arrays, limit)
        assert [float(x[0]) for x in found] == [3.0, 4.0]
    nothing, norm = clip([native(engine, np.zeros(3))], 1.0)
    assert float(norm) == 0 and not np.asarray(nothing[0]).any()


def test_clipping_keeps_the_direction():
    arrays = [cases.values("a", 3, 4), cases.values("b", 5)]
    found, norm = clip_by_global_norm(arrays, 0.1)
    flat = np.concatenate([x.ravel() for x in arrays])
    assert norm == pytest.approx(np.linalg.norm(flat), rel=1e-15)
    clipped = np.concatenate([x.ravel() for x in found])
    assert np.linalg.norm(clipped) == pytest.approx(0.1, rel=1e-15)
    assert clipped @ flat == pytest.approx(0.1 * norm, rel=1e-15)


def test_adam_takes_steps_of_the_rate():
    """Its first step is the rate long, whatever the gradient's size."""
    adam = Adam(TRAINING, 512)
    gradient = np.array([1.0, -1e-3, 1e-6])
    weight, _, _ = adam.update(
        np.zeros(3), gradient, np.zeros(3), np.zeros(3), *adam.settings(1))
    np.testing.assert_allclose(
        weight, -1e-3 * np.sign(gradient), rtol=2e-3)


WRONG = {
    "optimizer": "sgd", "schedule": "cosine", "masks": "mine",
    "learning_rate": 0.0, "warmup_steps": 0, "beta1": 1.0, "beta2": -0.1,
    "eps": 0.0, "weight_decay": -1.0, "clip_norm": float("nan"), "seed": -1,
}


@pytest.mark.parametrize("field", WRONG)
def test_wrong_settings_are_refused(field):
    with pytest.raises(InputError, match=field):
        TrainingConfig(**{field: WRONG[field]})


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(InputError, match="adamw"):
        TrainingConfig(weight_decay=0.1)
    with pytest.raises(InputError, match="no field"):
        TrainingConfig().replace(momentum=0.9)
    for value in (True, "1", 1.5):
        with pytest.raises(InputError):
            TrainingConfig(warmup_steps=value)
