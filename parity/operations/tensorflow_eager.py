"""TensorFlow's eager operations: called without being seen, and in float64."""

import contextlib
import functools
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import (
    constant_op, op_callbacks, op_def_registry)

from parity.numerics.dtypes import DTYPES

#: What is shorter than float64, and what an exact run has instead.
LONGER = {getattr(tf, name): tf.float64 for name in DTYPES[1:]}
LONGER[tf.complex64] = tf.complex128

#: What an exact run's arrays are of, by kind.
LONGEST = {"f": np.float64, "c": np.complex128, "i": np.int64, "u": np.int64}

#: Operations whose result depends on how numbers are stored.
STORED = {"Bitcast", "DecodeRaw", "EncodeBase64", "AsString", "PyFunc",
          "EagerPyFunc", "PyFuncStateless"}

#: The code that makes a constant; its variable ``value`` is what it is of.
CONVERT = constant_op.convert_to_eager_tensor.__code__

_lock, _open = threading.Lock(), []


@contextlib.contextmanager
def calling(callback):
    """Have a callback called after each operation of this thread.

    TensorFlow itself replaces its function ``execute`` meanwhile; the last of
    several threads puts it back.
    """
    with _lock:
        op_callbacks.add_op_callback(callback)
        _open.append(callback)
    try:
        yield
    finally:
        with _lock:
            context.context().remove_op_callback(callback)
            _open.remove(callback)
            if not _open and not context.context().op_callbacks:
                execute.execute = execute.quick_execute


def has_values(tensor):
    """Whether a tensor is eager and has numbers."""
    return hasattr(tensor, "numpy") and tensor.dtype not in (
        tf.resource, tf.variant, tf.string)


def computed(op, inputs, attributes, count):
    """What an operation gives, not seen by the callback."""
    flat = tuple(part for pair in attributes.items() if pair[1] is not None
                 for part in pair)
    return execute.quick_execute(
        op, count, list(inputs), flat, context.context())


def cast(tensor, dtype):
    """A tensor in another dtype."""
    if tensor.dtype == dtype:
        return tensor
    return computed("Cast", [tensor], {
        "SrcT": tensor.dtype.as_datatype_enum,
        "DstT": dtype.as_datatype_enum, "Truncate": False}, 1)[0]


def of_array(array):
    """A tensor of a NumPy array."""
    return constant_op.convert_to_eager_tensor(
        np.asarray(array), context.context())


def to_numpy(tensor):
    """A tensor's numbers; bfloat16's as float32."""
    if isinstance(tensor, np.ndarray):
        return tensor
    # A bfloat16 scalar fails to become NumPy's, so it goes by way of float32.
    if tensor.dtype == tf.bfloat16:
        tensor = cast(tensor, tf.float32)
    return np.asarray(tensor.numpy())


def is_random(op):
    """Whether an operation draws numbers."""
    return "Random" in op or op in ("Multinomial", "StatelessMultinomial")


def as_stored(op, inputs, twins, attributes, outputs):
    """What an operation gives for twins as short as the program has them."""
    short = shortened(twins, inputs)
    if all(np.array_equal(to_numpy(one), to_numpy(other), equal_nan=(
            one.dtype.is_floating)) for one, other in zip(short, inputs)
            if has_values(other)):
        return outputs
    return computed(op, short, attributes, len(outputs))


def shortened(twins, inputs):
    """Twins in the dtypes that the program has."""
    return [cast(twin, tensor.dtype) if has_values(tensor) else twin
            for twin, tensor in zip(twins, inputs)]


@functools.cache
def _types(op):
    """Which attributes of an operation are dtypes."""
    return {attribute.name for attribute in op_def_registry.get(op).attr
            if attribute.type in ("type", "list(type)")}


def _longer(value):
    """A dtype, its number or a list of them, at least float64."""
    if isinstance(value, (list, tuple)):
        return [_longer(item) for item in value]
    dtype = tf.as_dtype(value)
    return LONGER.get(dtype, dtype).as_datatype_enum


def longer(op, attributes):
    """Attributes in which every dtype is at least float64."""
    return {name: _longer(value) if name in _types(op) else value
            for name, value in attributes.items()}


def is_short(op, attributes):
    """Whether a dtype among the attributes is shorter than float64."""
    return any(tf.as_dtype(dtype) in LONGER
               for name in _types(op) & attributes.keys()
               for dtype in (attributes[name] if isinstance(
                   attributes[name], (list, tuple)) else [attributes[name]]))


def as_original(original, tensor):
    """The number that a constant was made of, as float64 in the constant's
    shape; None where it was not longer than the constant."""
    try:
        array = np.asarray(original)
    except (TypeError, ValueError):
        return None
    shape = tuple(tensor.shape)
    if array.dtype.kind not in "fiuc" or array.dtype.itemsize < 8 or (
            array.size not in (1, tensor.shape.num_elements())):
        return None
    if array.size > 1:
        array = array.reshape(shape)
    return np.broadcast_to(array.reshape(()) if array.size == 1 else array,
                           shape).astype(
        LONGER[tensor.dtype].as_numpy_dtype)
