"""JAX's arrays, parameters and inner programs with nothing below float64."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from parity.operations.jax_dispatch import (
    carried_out, is_jaxpr, literal, opened)
from parity.operations.jax_names import CALLS

#: Parameters of primitives that say in which dtype they compute.
DTYPES = ("new_dtype", "dtype", "preferred_element_type", "out_dtype")


def is_key(dtype):
    """Whether a dtype is of random keys."""
    return jnp.issubdtype(dtype, jax.dtypes.extended)


def is_short(dtype):
    """Whether a dtype is floating or complex, and shorter than float64."""
    return (not is_key(dtype) and jnp.issubdtype(dtype, jnp.inexact)
            and jnp.finfo(dtype).bits < 64)


def longer(dtype):
    """float64 for a shorter one, complex128; any other as it is."""
    if not is_short(dtype):
        return dtype
    return np.dtype("complex128" if jnp.issubdtype(
        dtype, jnp.complexfloating) else "float64")


def as_written(number):
    """A short number as float64: the shortest decimal that rounds to it.

    So 1e-6, which is 9.99999997e-7 as float32, is 1e-6 again. What has more
    digits than a dtype holds for sure was computed, and stays as it is.
    """
    exact = np.asarray(number).astype(longer(number.dtype))
    if exact.ndim or exact.dtype.kind != "f" or not np.isfinite(exact):
        return exact
    for digits in range(jnp.finfo(number.dtype).precision):
        written = np.float64(f"{exact:.{digits}e}")
        with np.errstate(over="ignore"):
            if written.astype(number.dtype) == number:
                return written
    return exact


def widened(value):
    """An array or a scalar with nothing below float64."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or not is_short(dtype):
        return value
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, jax.Array):
        return lax.convert_element_type(value, longer(dtype))
    return as_written(np.asarray(value))


def widened_params(params):
    """A primitive's parameters, so that it computes in float64."""
    changed = {}
    for name, value in params.items():
        if name in DTYPES and value is not None and is_short(value):
            changed[name] = longer(jnp.dtype(value))
        elif is_jaxpr(value):
            changed[name] = widened_jaxpr(params, name)
        elif isinstance(value, (lax.DotAlgorithm, lax.DotAlgorithmPreset)):
            changed[name] = None
    return {**params, **changed} if changed else params


def widened_jaxpr(params, name):
    """An inner program of a parameter, traced anew in float64."""
    jaxpr, constants = opened(params, name)

    def evaluate(*args):
        return run(jaxpr, [widened(each) for each in constants], args)
    closed = jax.make_jaxpr(evaluate)(*(
        jax.ShapeDtypeStruct(each.aval.shape, longer(each.aval.dtype))
        for each in jaxpr.invars))
    return closed if jaxpr is not params[name] else closed.jaxpr


def run(jaxpr, constants, args):
    """A program's results in float64, recorded by nobody."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *args]))

    def read(atom):
        is_literal, value = literal(atom)
        return widened(value) if is_literal else known[atom]
    for equation in jaxpr.eqns:
        values = [read(atom) for atom in equation.invars]
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            inner, held = opened(params, CALLS[name])
            results = run(inner, [widened(each) for each in held], values)
        else:
            results = equation.primitive.bind(*values, **widened_params(params))
            if not equation.primitive.multiple_results:
                results = [results]
        known.update(zip(equation.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]


def narrowed(value, dtype):
    """An array or a scalar in the dtype that the program knows it by."""
    if is_key(dtype) or getattr(value, "dtype", dtype) == dtype:
        return value
    return (lax.convert_element_type(value, dtype)
            if isinstance(value, jax.Array) else np.asarray(value, dtype))


def as_asked(primitive, args, params, dtypes):
    """What a primitive gives as the program has it, in float64 afterwards.

    For what has to be as it is: random numbers, bits, foreign functions.
    """
    return [widened(each) for each in carried_out(
        primitive, [narrowed(*pair) for pair in zip(args, dtypes)], params)]
