"""Why an edit of Keras' port changes nothing: functions that fail if it does.
"""

import importlib
import os
import warnings

import numpy as np

from parity import ports, quiet
from parity.check import golden
from parity.mutation import proofs
from parity.mutation.proofs import CONFIG
from parity.numerics import dtypes


def keras():
    """Keras, or None where it is not installed."""
    return None if ports.absent("keras") else importlib.import_module("keras")


def built_by_the_first_call():
    """A layer that makes nothing is built once it was called."""
    if library := keras():
        layer = type("Twice", (library.layers.Layer,), {
            "call": lambda self, x: 2 * x})()
        assert not layer.built and float(layer(np.ones(1))[0]) == 2
        assert layer.built


def keras_model():
    """A model of the port, built with Keras."""
    return ports.engine("keras").build(
        "transformer", CONFIG, golden.shipped("complete"))


def no_masks_of_keras():
    """No layer of a model makes a mask of what it is given."""
    if keras():
        assert not any(getattr(layer, "mask_zero", False)
                       for layer in keras_model()._flatten_layers())


def names_of_keras_are_not_ours():
    """Many of a model's variables have one name, so that none is found by it.
    """
    if keras():
        names = [variable.name for variable in keras_model().variables]
        assert len(names) > 2 * len(set(names))


def reshaped_is_contiguous():
    """A contiguous array stays so in every shape."""
    x = np.arange(24).reshape(2, 3, 4)
    for shape in ((2, -1), (-1, 4), (24,)):
        assert x.reshape(shape).flags.c_contiguous


def any_negative_length():
    """The length that is to be found may be -2 as well."""
    x = np.arange(24).reshape(2, 3, 4)
    for one, other in ((x.reshape(2, -1), x.reshape(2, -2)),
                       (x.reshape(-1, 4), x.reshape(-2, 4))):
        assert one.shape == other.shape and np.array_equal(one, other)


def width_of_what_comes_in():
    """A layer of Keras is told its outputs alone."""
    if library := keras():
        layer = library.layers.Dense(7)
        layer(np.ones((1, 3)))
        assert layer.kernel.shape == (3, 7)


def hides_what_is_printed():
    """Inside, nothing that is printed shows; before and after, it does."""
    before = os.fstat(2)
    with quiet.without_chatter():
        assert os.path.samestat(os.fstat(2), os.stat(os.devnull))
    assert os.path.samestat(os.fstat(2), before)


def powers_of_two():
    """2⁻⁵² is one number in both dtypes, and float64 stays float64."""
    assert np.float32(2.0**-52) == np.float64(2.0**-52)
    if library := keras():
        x = library.ops.cast(np.array([2**52 - 1, 5]), "float64")
        one, other = x * np.float32(2.0**-52), x * np.float64(2.0**-52)
        assert one.dtype == other.dtype and np.array_equal(one, other)


def a_warning_changes_nothing():
    """A softmax over one key is 1, with the warning or without it."""
    if library := keras():
        x = np.linspace(-3, 3, 7).reshape(7, 1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            loud = library.ops.convert_to_numpy(library.ops.softmax(x))
        with ports.engine("keras").on("cpu"):
            quiet = library.ops.convert_to_numpy(library.ops.softmax(x))
        assert len(told) == 1 and np.array_equal(loud, quiet)


def arrays_for_tensors():
    """Products, sums and rows of arrays are those of their tensors."""
    if library := keras():
        ops, x = library.ops, np.linspace(-1, 1, 12).reshape(3, 4)
        ids = np.array([[2, 0, 1]], np.int32)
        for dtype in dtypes.DTYPES:
            tensor = ops.cast(ops.convert_to_tensor(x), dtype)
            array, row = ops.convert_to_numpy(tensor), ops.convert_to_tensor
            for one, other in (
                    (ops.matmul(array, array.T),
                     ops.matmul(tensor, ops.transpose(tensor))),
                    (ops.add(array, array), ops.add(tensor, tensor)),
                    (ops.take(tensor, ids, 0), ops.take(tensor, row(ids), 0))):
                assert one.dtype == other.dtype
                assert np.array_equal(ops.convert_to_numpy(one),
                                      ops.convert_to_numpy(other))


def an_array_beside_a_tensor():
    """A product of a tensor and an array has the tensor's dtype."""
    proofs.one_backend()
    if library := keras():
        array = np.linspace(-1, 1, 7)
        for dtype in dtypes.DTYPES:
            x = library.ops.convert_to_tensor(np.linspace(0.1, 3, 7), dtype)
            one, other = x * array, x * library.ops.convert_to_tensor(
                array, dtype)
            assert one.dtype == other.dtype and np.array_equal(one, other)


def whole_numbers_of_keras():
    """Whole numbers beside int32 or int64 take that dtype, and lists int32."""
    if library := keras():
        ops, bits = library.ops, np.array([-7, 5, 2**31 - 1], np.int32)
        x = ops.convert_to_tensor(bits)
        for one, other in (
                (x + np.int32(3), x + 3),
                (x, ops.convert_to_tensor(bits.tolist())),
                (ops.left_shift(ops.cast(x, "int64"), np.int64(32)),
                 ops.left_shift(ops.cast(x, "int64"), np.int32(32))),
                *((join(x, np.int32(6)), join(np.int32(6), x))
                  for join in (ops.bitwise_and, ops.bitwise_or))):
            assert one.dtype == other.dtype
            assert np.array_equal(ops.convert_to_numpy(one),
                                  ops.convert_to_numpy(other))
