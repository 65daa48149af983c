"""NumPy's array, whose functions a NumpyRecording carries out."""

import numpy as np

from parity.operations.numpy_names import WHOLE
from parity.tracing.recorder import mapped


class RecordedArray(np.ndarray):
    """An array whose operations are recorded.

    Attributes:
        recording: the NumpyRecording; None of one that no Value is known of.
        number: of its Value.
        declared: the dtype that the program has it in.
        scalar: the Python number that it stands for, or None.
    """

    recording, number, declared, scalar = None, None, None, None

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        recording = recording_of((*inputs, *keywords.get("out", ())))
        if recording is None:
            return getattr(ufunc, method)(
                *plain(inputs), **plain(keywords))
        return recording.ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function, types, args, keywords):
        recording = recording_of(leaves_of((args, keywords)))
        written = getattr(function, "_implementation", None)
        if recording is None or (hasattr(written, "__code__") and (
                function.__name__ not in WHOLE)):
            return super().__array_function__(function, types, args, keywords)
        return recording.call(function.__name__, function, args, keywords)

    def __getitem__(self, index):
        if self.recording is None:
            return plain(self)[plain(index)]
        return self.recording.item(self, index)

    def __setitem__(self, index, value):
        np.ndarray.__setitem__(self, plain(index), plain(value))
        if self.recording is not None:
            self.recording.written(self, index, value)

    @property
    def T(self):
        """The transpose."""
        return self.transpose()


def _method(name):
    function = getattr(np.ndarray, name)

    def method(self, *args, **keywords):
        if self.recording is None:
            return function(plain(self), *plain(args), **plain(keywords))
        if name in ("reshape", "transpose") and len(args) > 1:
            args = (args,)
        return self.recording.call(name, function, (self, *args), keywords)
    method.__name__, method.__doc__ = name, function.__doc__
    return method


for _name in ("all any argmax argmin argsort astype clip copy cumprod cumsum "
              "dot flatten max mean min prod ravel repeat reshape round "
              "squeeze sum swapaxes take transpose var").split():
    setattr(RecordedArray, _name, _method(_name))


def leaves_of(value):
    """The leaves of tuples, lists and dicts."""
    found = []
    mapped(value, "", lambda _, leaf: found.append(leaf))
    return found


def recording_of(values):
    """The NumpyRecording of the first array that has one, or None."""
    return next((value.recording for value in values if isinstance(
        value, RecordedArray) and value.recording is not None), None)


def plain(value):
    """Arrays as NumPy's own, in any nest."""
    return mapped(value, "", lambda _, leaf: leaf.view(np.ndarray)
                  if isinstance(leaf, RecordedArray) else leaf)
