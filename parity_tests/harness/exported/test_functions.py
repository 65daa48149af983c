"""Plain functions of JAX, with their parameters bound, beside modules."""

import functools

import numpy as np
import pytest

import parity
from parity.exported import bound
from parity_tests.support.engines import usable


@pytest.fixture(autouse=True)
def jax():
    return usable("jax")


def forward(params, x, slope=0.0):
    """Two products with an activation between."""
    import jax.numpy as jnp
    for layer in params["layers"]:
        x = x @ layer["kernel"]
        x = jnp.where(x > 0, x, slope * x)
    return x + params["bias"]


def params():
    """Drawn parameters, the same each time."""
    import jax.numpy as jnp
    rng = np.random.default_rng(0)
    return {"layers": [{"kernel": jnp.asarray(rng.normal(size=(4, 4)),
                                              jnp.float32)}
                       for _ in range(2)],
            "bias": jnp.asarray(rng.normal(size=4), jnp.float32)}


def x():
    import jax.numpy as jnp
    return jnp.asarray(np.random.default_rng(1).normal(size=(3, 4)),
                       jnp.float32)


def around(held):
    """A function that has its parameters from the one around it."""
    return lambda x: forward(held, x)


def jitted(held):
    import jax
    return jax.jit(functools.partial(forward, held))


def partial(held):
    return functools.partial(forward, held)


@pytest.mark.parametrize("way", [partial, around, jitted])
def test_a_function_is_a_model(way):
    """It is compared, its parameters have names, and it is as it was."""
    held = params()
    given = way(held)
    assert [*bound.parameters(bound.innermost(given))][-1].endswith(
        "layers.1.kernel")
    assert parity.diff(partial(params()), given, x()).status == 0
    answer = parity.diff(functools.partial(forward, held, slope=0.1),
                         given, x())
    cause, = answer.explanations
    assert answer.status == 1 and "0.1" in cause.in_a
    assert cause.place_b.startswith("test_functions.py:")
    np.testing.assert_array_equal(held["bias"], params()["bias"])


def test_another_parameter_is_named():
    held = params()
    held["bias"] = held["bias"].at[0].add(1)
    cause, = parity.diff(partial(params()), partial(held), x()).explanations
    assert "params.bias" in cause.text()


def test_functions_that_make_are_none():
    """A function without parameters makes a model; it is not one."""
    held = params()
    assert parity.diff(lambda: (partial(held), x()),
                       lambda: (around(held), x())).status == 0
