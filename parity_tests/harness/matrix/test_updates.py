"""A step of training is held against its own moments."""

import numpy as np
import pytest

from transformer_contract.training import TrainingConfig
from parity.matrix.updates import Updates
from parity.numerics.mixed import to_short
from reference_numpy import optimizer

TRAINING = TrainingConfig(
    schedule="constant", learning_rate=2.0**-10, clip_norm=1.0)
SHAPES = {"kernel": (7, 5), "scale": (6,)}


def problems(norm=3.0, steps=4, **change):
    """What is found of some steps in float32, as many lists.

    Args:
        norm: of each gradient, before it is clipped.
        change: {"gradient", "weight", "m" or "v": a function of the array
            that is handed on}.
    """
    def changed(name, array):
        return change.get(name, np.asarray)(array).astype(np.float32)

    rng = np.random.default_rng(0)
    adam = optimizer.Adam(TRAINING, 8)
    weights = {name: rng.normal(size=shape).astype(np.float32)
               for name, shape in SHAPES.items()}
    moments = {f"{kind}.{name}": np.zeros(shape, np.float32)
               for kind in "mv" for name, shape in SHAPES.items()}
    updates, found = Updates(adam, weights), []
    for step in range(1, steps + 1):
        gradients = [rng.normal(size=shape) for shape in SHAPES.values()]
        before = optimizer.clip_by_global_norm(gradients, 0)[1]
        gradients = [(norm / before * one).astype(np.float32)
                     for one in gradients]
        gradients, _ = optimizer.clip_by_global_norm(
            gradients, TRAINING.clip_norm)
        for name, gradient in zip(SHAPES, gradients):
            of = (weights[name], changed("gradient", gradient),
                  moments[f"m.{name}"], moments[f"v.{name}"])
            for key, kind, array in zip(
                    (name, f"m.{name}", f"v.{name}"), ("weight", "m", "v"),
                    adam.update(*of, *adam.settings(step))):
                (weights if kind == "weight" else moments)[key] = changed(
                    kind, array)
        found.append(updates.problems(weights, moments, norm, "bfloat16"))
    return found


@pytest.mark.parametrize("norm", [3.0, 0.25, 1e-9])
def test_float32_has_no_problem(norm):
    assert problems(norm) == [{}] * 4


@pytest.mark.parametrize("change, words", [
    ({"gradient": lambda g: to_short(g, "bfloat16")},
     "clipped gradient of scale"),
    ({"gradient": lambda g: g * (1 + 2.0**-10)}, "clipped norm"),
    ({"weight": lambda w: w + 2.0**-20}, "move of kernel"),
    ({"v": lambda v: v * (1 + 2.0**-10)}, "v of kernel"),
    ({"m": lambda m: m * (1 + 2.0**-10)}, "clipped norm"),
    ({"v": np.zeros_like}, "v of scale"),
    ({"v": lambda v: v * np.nan}, "v of kernel")])
def test_what_is_not_float32_is_seen(change, words):
    assert words in problems(**change)[0]


def test_a_fault_of_a_later_step_is_seen():
    count = iter(range(99))
    found = problems(v=lambda v: v * (1 + 2.0**-10 * (next(count) == 6)))
    assert found[:3] == [{}] * 3
    assert "v of kernel" in found[3]
