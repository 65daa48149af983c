"""The arrays that a plain function of JAX has with it, and where they are.

A function that is a model has its parameters from ``functools.partial``, or
from the function around it. They are named as they are called there.
"""

import functools
import inspect
import sys
import types

import numpy as np


def is_plain(model):
    """Whether something is a function in Python, or one with arguments."""
    return isinstance(model, (types.FunctionType, functools.partial))


def asks(model):
    """Whether a plain function has arguments that it is still to be given."""
    return is_plain(model) and any(
        each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        for each in inspect.signature(model).parameters.values())


def of_jax(model, inputs=(), keywords=None):
    """Whether a plain function takes arrays of JAX, or has them with it."""
    jax = sys.modules.get("jax")
    return jax is not None and asks(model) and any(
        isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(
            (held(model), tuple(inputs), keywords or {})))


def held(model):
    """{name: value} of what is with a function: arguments of
    ``functools.partial`` by the names of its parameters, and what it reads of
    the function that it was made in."""
    if isinstance(model, functools.partial):
        names = inspect.signature(model.func).parameters
        return held(innermost(model.func)) | dict(
            zip(names, model.args)) | model.keywords
    if not isinstance(model, types.FunctionType):
        return {}
    return {name: cell.cell_contents for name, cell in zip(
        model.__code__.co_freevars, model.__closure__ or ())
        if not _is_no_array(cell)}


def innermost(model):
    """The function that was compiled, where it is plain; else as it is."""
    inner = getattr(model, "__wrapped__", model)
    return inner if is_plain(inner) else model


def parameters(model):
    """{name: array} of what is with a function, its nests opened."""
    import jax
    found, _ = jax.tree_util.tree_flatten_with_path(held(model))
    return {".".join(_word(key) for key in path): leaf
            for path, leaf in found
            if isinstance(leaf, (jax.Array, np.ndarray))
            and not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)}


def with_arrays(model, arrays):
    """The function with other arrays in the places of its own.

    Args:
        arrays: {name: array}, named as ``parameters`` does.
    """
    import jax
    of = jax.tree_util.tree_map_with_path(
        lambda path, leaf: arrays.get(".".join(map(_word, path)), leaf),
        held(model))
    return _with(model, of)


def _with(model, of):
    """The function with other values, by name, of what is with it."""
    if isinstance(model, functools.partial):
        names = inspect.signature(model.func).parameters
        return functools.partial(
            _with(innermost(model.func), of),
            *(of[name] for name, _ in zip(names, model.args)),
            **{name: of[name] for name in model.keywords})
    if not isinstance(model, types.FunctionType) or not model.__closure__:
        return model
    made = types.FunctionType(
        model.__code__, model.__globals__, model.__name__,
        model.__defaults__, tuple(
            cell if _is_no_array(cell) else types.CellType(of[name])
            for name, cell in zip(model.__code__.co_freevars,
                                  model.__closure__)))
    made.__kwdefaults__ = model.__kwdefaults__
    return made


def _is_no_array(cell):
    """Whether a variable holds a function, or no value yet."""
    try:
        return callable(cell.cell_contents)
    except ValueError:
        return True


def _word(key):
    """A part of a path in a nest, as a word."""
    return str(next(getattr(key, name) for name in ("key", "idx", "name")
                    if hasattr(key, name)))
