"""For tests of your own: ``assert_parity(actual, expected)``.

It takes tensors of PyTorch, TensorFlow and Keras, arrays of JAX and NumPy,
numbers, and dicts, lists and tuples of them, and compares as strictly as the
harness does: the same names, shapes and dtypes, NaN in the same places, and
the relative L2 error of the whole and of its worst row below a limit. Nothing
broadcasts, and a comparison of nothing fails.

A framework is recognised among the loaded modules, so that none is imported
here.
"""

import collections.abc
import dataclasses
import math
from typing import Any

import numpy as np

from parity_io.errors import InputError, is_real, one_of
from parity.assertions.arrays import as_array
from parity.assertions.message import (
    Differences, NamedDifference, hint_of, table, worst_index)
from parity.numerics import dtypes, tolerances
from parity.numerics.comparator import DIVERGENCE, compare, relative_error


def assert_parity(actual: Any, expected: Any, dtype: Any = None, *,
                  name: str = "", limit: float | None = None, own: Any = None,
                  zero_scale: float | None = None,
                  **others: Any) -> Differences:
    """Fail unless ``actual`` is ``expected``, as strictly as the harness.

    Args:
        actual: a tensor or array of any framework, a number, or a dict, list
            or tuple of them. None equals only None.
        expected: the truth, with the same nesting; float64, or exact integers
            or booleans, which must be equal.
        dtype: that of ``actual`` where ``expected`` is floating point. It
            chooses the limit: in float64 1e-12; in float32 twice NumPy's own
            error and 4 eps, at most 16 eps, and 16 eps where ``own`` is not
            given; in 16 bits twice the own error and 2 eps, and 4 eps where it
            is not given. By default the dtype of ``expected``.
        name: the name of ``actual`` in the message.
        limit: the largest relative error, from 0 to 1, instead of the
            dtype's.
        own: what NumPy itself computes in ``dtype``, nested like ``expected``.
        zero_scale: for one array that is zero by mathematics: the scale that
            the limit is relative to.

    Returns:
        A list of NamedDifferences, one per array, in ``expected``'s order,
        which prints as "match, 5.8e-08 of 1.9e-06".

    Raises:
        AssertionError: something diverges, or nothing was compared. The
            message is a table.
        TypeError: another keyword, such as NumPy's rtol.
        InputError: something cannot be compared at all.
    """
    __tracebackhide__ = True
    differences = compared(actual, expected, dtype, name=name, limit=limit,
                           own=own, zero_scale=zero_scale, **others)
    fail_on(differences, name)
    return differences


def compared(actual, expected, dtype=None, *, name="", limit=None, own=None,
             zero_scale=None, **others):
    """The NamedDifferences that assert_parity returns, without failing."""
    for word in others:
        raise TypeError(
            f"assert_parity takes no {word}; limit= is the largest relative "
            "error, and zero_scale= its scale where the truth is 0.")
    if dtype is not None:
        dtype = dtype_name(dtype)
    if limit is not None and not (
            is_real(limit) and 0 <= float(limit) <= 1):
        raise InputError(
            f"limit {limit!r} is not a relative error; give a number from 0 "
            "to 1.")
    if zero_scale is not None:
        if _kind(expected) != "array":
            raise InputError(
                "zero_scale is for one array, not for a nest; compare the "
                "arrays that are zero by themselves.")
        if not (is_real(zero_scale) and 0 < zero_scale < math.inf):
            raise InputError(
                f"zero_scale {zero_scale!r} is not a scale; give a number "
                "greater than 0.")
    return Differences(_nest(name, actual, expected, own, own is not None,
                             dtype, limit, zero_scale))


def fail_on(differences, name=""):
    """Raise AssertionError if one of these diverges, or there is none."""
    __tracebackhide__ = True
    if not differences:
        raise AssertionError(
            f"{name or 'actual'}: no array to compare, so nothing was "
            "compared")
    wrong = [one for one in differences if one.verdict == DIVERGENCE]
    if wrong:
        raise AssertionError(table(wrong, len(differences)))


def dtype_name(dtype):
    """The name of a dtype given as a name or as a framework's object."""
    if isinstance(dtype, str):
        word = dtype
    else:
        word = (getattr(dtype, "name", None)
                or getattr(dtype, "__name__", None)
                or str(dtype).rpartition(".")[2])
    return one_of(word, dtypes.DTYPES, "dtype")


def _kind(value):
    if value is None:
        return "nothing"
    if isinstance(value, collections.abc.Mapping):
        return "dict"
    if isinstance(value, (list, tuple)):
        return "list"
    return "array"


def _parts(value, name):
    """{name: part} of a dict or a list."""
    if _kind(value) == "list":
        return {f"{name}[{i}]": part for i, part in enumerate(value)}
    parts = {f"{name}.{key}" if name else str(key): value[key]
             for key in value}
    if len(parts) != len(value):
        raise InputError(
            f"{name or 'a dict'} has two keys with the same text; rename one.")
    return parts


def _nest(name, actual, expected, own, has_own, *rest):
    """Yield the NamedDifferences of a nest, in the order of ``expected``."""
    ours, theirs = _kind(actual), _kind(expected)
    if has_own and _kind(own) != theirs:
        raise InputError(
            f"own is not nested like expected at {name or 'the top'!r}; give "
            "an array for every array of expected.")
    if ours != theirs:
        yield _structural(name, f"{ours}, not {theirs}")
    elif theirs == "nothing":
        return
    elif theirs == "array":
        yield _leaf(name or "actual", actual, expected, own, *rest)
    else:
        actual, expected = _parts(actual, name), _parts(expected, name)
        own = _parts(own, name) if has_own else {}
        if has_own and own.keys() != expected.keys():
            raise InputError(
                f"own has other names than expected at {name or 'the top'!r}; "
                "give an array for every array of expected.")
        for key, part in expected.items():
            if key in actual:
                yield from _nest(key, actual[key], part, own.get(key),
                                 has_own, *rest)
            else:
                yield _structural(key, "missing from actual")
        for key in actual:
            if key not in expected:
                yield _structural(key, "in actual only")


def _structural(name, reason):
    return NamedDifference(None, 0.0, DIVERGENCE, reason, name=name or "actual")


def _leaf(name, actual, expected, own, dtype, limit, zero_scale):
    """The NamedDifference of one array."""
    truth, _ = as_array(expected, f"expected {name}")
    array, framework = as_array(actual, name)
    exact = truth.dtype.kind in "biu"
    required = dtype if dtype and not exact else truth.dtype.name
    if exact:
        bound = 0.0
    elif limit is not None:
        bound = float(limit)
    else:
        bound = _limit(required, own, truth, name)
    difference = compare(array, truth, bound, required, zero_scale)
    index, values, hint = None, (), ""
    if difference.verdict == DIVERGENCE:
        index = worst_index(array, truth)
        if index is not None:
            values = array[index], truth[index]
        hint = hint_of(array, truth, difference, required, dtype, framework)
    return NamedDifference(
        **dataclasses.asdict(difference), name=name, shape=truth.shape,
        dtype=required, framework=framework, index=index, values=values,
        hint=hint)


def _limit(dtype, own, truth, name):
    """The limit of an array; see assert_parity."""
    if dtype not in dtypes.EPS:
        raise InputError(
            f"{name}: dtype {dtype} has no limit of its own; give limit=.")
    if own is None or dtype == "float64":
        return tolerances.fixed_limit(dtype)
    own, _ = as_array(own, f"own {name}")
    if own.shape != truth.shape:
        raise InputError(
            f"own {name} has shape {list(own.shape)}, not "
            f"{list(truth.shape)}; give NumPy's own result in that shape.")
    own, truth = own.astype(np.float64), truth.astype(np.float64)
    finite = np.isfinite(truth)
    own, truth = np.where(finite, own, 0), np.where(finite, truth, 0)
    if not truth.any():
        return tolerances.limit(dtype, 0.0)
    if not np.isfinite(own).all():
        return tolerances.limit(dtype, math.inf)
    return tolerances.limit(dtype, relative_error(own, truth)[0])
