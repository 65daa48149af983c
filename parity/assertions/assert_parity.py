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
import numbers
import sys

import ml_dtypes  # teaches NumPy bfloat16
import numpy as np

from contract.errors import InputError, one_of
from parity.numerics import dtypes, tolerances
from parity.numerics.comparator import (
    DIVERGENCE, Difference, compare, relative_error)

#: Between these an error in float64 has the size of float32's rounding.
LEAK = 1e-9, 1e-6

#: How many divergences a message lists.
LISTED = 10


@dataclasses.dataclass(frozen=True)
class NamedDifference(Difference):
    """A Difference of a named array.

    Attributes:
        name: the path of the array in the nest.
        shape, dtype: of the expected array.
        framework: of the actual array: "torch", "keras", "jax" or "numpy".
        index: of the worst element, if there is one.
        values: that element, (actual, expected).
        hint: a likely cause of the divergence, or "".
    """

    name: str = ""
    shape: tuple = ()
    dtype: str = ""
    framework: str = "numpy"
    index: tuple | None = None
    values: tuple = ()
    hint: str = ""


def assert_parity(actual, expected, dtype=None, *, name="", limit=None,
                  own=None, zero_scale=None):
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
        limit: the largest relative error, instead of the dtype's.
        own: what NumPy itself computes in ``dtype``, nested like ``expected``.
        zero_scale: for one array that is zero by mathematics: the scale that
            the limit is relative to.

    Returns:
        A list of NamedDifferences, one per array, in ``expected``'s order.

    Raises:
        AssertionError: something diverges, or nothing was compared. The
            message is a table.
        InputError: something cannot be compared at all.
    """
    __tracebackhide__ = True
    differences = compared(actual, expected, dtype, name=name, limit=limit,
                           own=own, zero_scale=zero_scale)
    fail_on(differences, name)
    return differences


def compared(actual, expected, dtype=None, *, name="", limit=None, own=None,
             zero_scale=None):
    """The NamedDifferences that assert_parity returns, without failing."""
    if dtype is not None:
        dtype = dtype_name(dtype)
    if limit is not None and not (
            isinstance(limit, numbers.Real)
            and 0 <= float(limit) < math.inf):
        raise InputError(
            f"limit {limit!r} is not a limit; give a number, 0 or larger.")
    if zero_scale is not None:
        if _kind(expected) != "array":
            raise InputError(
                "zero_scale is for one array, not for a nest; compare the "
                "arrays that are zero by themselves.")
        if not zero_scale > 0:
            raise InputError(
                f"zero_scale {zero_scale!r} is not a scale; give a number "
                "greater than 0.")
    return list(_nest(name, actual, expected, own, own is not None,
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


# Values of the frameworks

def as_array(value, name="actual"):
    """A framework's array as NumPy's, of the same dtype.

    Returns:
        The array, and the name of the framework that it came from.

    Raises:
        InputError: it cannot be read as an array.
    """
    reader, framework = _reader(value)
    if reader is None:
        raise InputError(
            f"{name} is of {_class(value)}, which is not recognised; give an "
            "array of NumPy, PyTorch, TensorFlow, Keras or JAX.")
    try:
        array = reader(value)
    except Exception as error:  # the framework's own, whatever it is
        words = (str(error).splitlines() or [""])[0][:120]
        raise InputError(
            f"{name} is of {_class(value)} and cannot be read as an array; "
            f"give an array of numbers ({type(error).__name__}: "
            f"{words}).") from error
    if (array.dtype.kind not in "biuf"
            and array.dtype.name not in dtypes.EPS):
        raise InputError(
            f"{name} has dtype {array.dtype.name}, which is not compared; "
            "give floating point, integers or booleans.")
    return array, framework


def _reader(value):
    """How to read a value, and its framework; (None, "") if unknown."""
    if isinstance(value, np.ma.MaskedArray):
        return None, ""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray, "numpy"
    if type(value) in (bool, int, float):
        return np.asarray, "numpy"
    for module, names, reader, framework in (
            ("torch", ("Tensor",), _of_torch, "torch"),
            ("keras", ("Variable",), _of_keras, "keras"),
            ("tensorflow", ("Tensor", "Variable", "IndexedSlices"),
             _of_tensorflow, "keras"),
            ("jax", ("Array",), np.asarray, "jax"),
            ("flax.nnx", ("Variable",), _of_nnx, "jax")):
        library = sys.modules.get(module)
        classes = tuple(filter(None, (
            getattr(library, word, None) for word in names)))
        if classes and isinstance(value, classes):
            return reader, framework
    return None, ""


def _of_torch(tensor):
    torch = sys.modules["torch"]
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _of_tensorflow(tensor):
    tensorflow = sys.modules["tensorflow"]
    tensor = tensorflow.convert_to_tensor(tensor)
    # As a vector, because a bfloat16 scalar cannot be converted to NumPy.
    flat = tensorflow.reshape(tensor, (-1,)).numpy()
    return flat.reshape(tuple(tensor.shape))


def _of_keras(variable):
    reader, _ = _reader(variable.value)
    return reader(variable.value)


def _of_nnx(variable):
    return np.asarray(variable[...])


def _class(value):
    kind = type(value)
    return f"type {kind.__module__}.{kind.__qualname__}".replace(
        "builtins.", "")


# Nests

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
        index = _worst(array, truth)
        if index is not None:
            values = array[index], truth[index]
        hint = _hint(array, truth, difference, required, dtype, framework)
    return NamedDifference(
        *dataclasses.astuple(difference), name=name, shape=truth.shape,
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


# The message about a divergence

def _worst(actual, expected):
    """The index of the element with the largest error in the worst row."""
    if actual.shape != expected.shape or not expected.size:
        return None
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    for wrong in (np.isnan(a) != np.isnan(e),
                  (a != e) & ~(np.isfinite(a) & np.isfinite(e))
                  & ~(np.isnan(a) & np.isnan(e))):
        if wrong.any():
            return _index(wrong.argmax(), wrong.shape)
    finite = np.isfinite(e)
    gap = np.abs(np.where(finite, a, 0) - np.where(finite, e, 0))
    if not gap.any():
        return None
    truth = np.where(finite, e, 0)
    if not truth.any() or not e.ndim:
        return _index(gap.argmax(), gap.shape)
    _, row = relative_error(np.where(finite, a, 0), truth)
    if e.ndim == 1:
        return _index(gap.argmax(), gap.shape)
    return (*row, int(gap[row].argmax()))


def _index(flat, shape):
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _hint(actual, expected, difference, required, given_dtype, framework):
    """A likely cause of a divergence in a few words; "" if none is known."""
    if actual.dtype.name != required and actual.shape == expected.shape:
        if framework == "jax" and required in ("float64", "int64"):
            return "JAX has no 64 bits until jax_enable_x64 is set"
        if given_dtype is None and actual.dtype.name in dtypes.EPS and (
                required in dtypes.EPS):
            return (f"dtype={actual.dtype.name!r} would compare it at that "
                    "precision")
        return ""
    from parity.causes import hint
    if not actual.size or actual.size > hint.MOST_SEARCHED:
        return ""
    if expected.dtype.kind == "b":
        return hint.of_masks(actual, expected)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(e).all() and e.any()):
        return ""
    return "; ".join(filter(None, (
        "" if expected.dtype.kind in "iu"
        else _leak(a, e, difference, required),
        hint.Hint(a, e, difference.error, difference.limit).text())))


def _leak(a, e, difference, required):
    if required != "float64" or difference.error is None or not (
            LEAK[0] <= difference.error <= LEAK[1]):
        return ""
    size = "an error of the size of float32's rounding: "
    with np.errstate(over="ignore"):
        if np.array_equal(e.astype(np.float32), e):
            return size + "every expected value is a float32 number"
        if np.array_equal(a.astype(np.float32), a):
            return size + "every value of actual is a float32 number"
    return size + "something was computed in float32"


def _number(value):
    if value is None:
        return "–"
    if value == 0:
        return "0"
    return f"{value:.1e}" if math.isfinite(value) else "inf"


def _pair(values):
    """Two values with as many digits as show their difference, at least six.
    """
    if not values:
        return "", ""
    if values[1].dtype.kind in "biu":
        return tuple(str(value) for value in values)
    for digits in range(6, 18):
        words = tuple(f"{float(value):.{digits}g}" for value in values)
        if words[0] != words[1]:
            break
    return words


def table(wrong, count):
    """The message: a line per divergence, with its likely cause below."""
    rows = [("name", "shape", "error", "limit", "worst at", "actual",
             "expected")]
    notes = [""]
    for one in wrong[:LISTED]:
        shape, allowed = "–", "–"
        if one.dtype:  # an array, not something of the nest
            shape = "×".join(map(str, one.shape)) or "scalar"
            allowed = _number(one.limit)
        rows.append((
            one.name, shape, _number(one.error), allowed,
            "" if one.index is None else str(list(one.index)),
            *_pair(one.values)))
        reason = "" if one.reason.startswith("worst at") else one.reason
        notes.append("; ".join(filter(None, (reason, one.hint))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [f"{len(wrong)} of {count} comparisons "
             f"{'diverges' if len(wrong) == 1 else 'diverge'}:"]
    for row, note in zip(rows, notes):
        lines.append("  " + "  ".join(
            word.ljust(width) for word, width in zip(row, widths)).rstrip())
        if note:
            lines.append(f"    {note}")
    if len(wrong) > LISTED:
        lines.append(f"  and {len(wrong) - LISTED} more")
    return "\n".join(lines)
