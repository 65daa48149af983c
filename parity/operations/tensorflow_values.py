"""What is known of TensorFlow's tensors: their Values and their twins."""

import numpy as np

from parity.operations.frames import KerasFrames
from parity.operations.keeping import put_down
from parity.operations.program import (
    CONSTANT, LEAF, Program)
from parity.operations.signature import TELLING, signature
from parity.operations.tensorflow_eager import (
    LONGER, LONGEST, as_original, cast, has_values, of_array, to_numpy)


class KnownTensor:
    """What is known of a tensor: its twin, and its Value's number."""

    __slots__ = "tensor", "twin", "number", "drawn", "shape_only"

    def __init__(self, tensor, twin, number, drawn=False, shape_only=False):
        self.tensor, self.twin, self.number = tensor, twin, number
        self.drawn, self.shape_only = drawn, shape_only


class TensorValues:
    """The tensors of a run, which a TensorFlowRecording adds to."""

    def __init__(self, leaves=(), exact=False, edits=None, keep=True,
                 paths=None, before=None):
        self.before = before
        self.program = Program("keras", exact)
        self.exact, self.edits, self.keep = exact, dict(edits or {}), keep
        self.frames = KerasFrames(paths or {})
        self.known, self.written, self.handles = {}, {}, []
        self.roundings, self.notes, self.place = {}, {}, ""
        self.originals = {}  # id of a constant -> it, what it was made of
        self.leaves = {id(tensor): (kind, name, tensor, twin)
                       for kind, name, tensor, twin in leaves}

    def value(self, tensor, twin, kind, name="", made_by=None):
        """Put down a Value; return its number."""
        array = to_numpy(twin)
        array = np.array(
            array, LONGEST.get(array.dtype.kind) if self.exact else None)
        return put_down(self.program, self.keep, array, kind, name,
                        tensor.dtype.name, made_by, self.before)

    def of(self, tensor, original=None):
        """What is known of a tensor; one that is new is a leaf.

        Args:
            original: the Python or NumPy number that it was made of.
        """
        if id(tensor) in self.known:
            return self.known[id(tensor)]
        kind, name, _, twin = self.leaves.get(
            id(tensor), (CONSTANT, "", None, None))
        if id(tensor) not in self.leaves and (
                same := self.equal(to_numpy(tensor), tensor.dtype)):
            return self.known.setdefault(id(tensor), self.alias(tensor, same))
        twin = tensor if twin is None or not self.exact else twin
        if self.exact and tensor.dtype in LONGER:
            twin = cast(twin, LONGER[tensor.dtype])
            exact = None if original is None else as_original(
                original, tensor)
            if exact is not None:
                twin = of_array(exact)
                self.rounded(tensor, twin)
        if name and (LEAF, name) in self.edits:
            twin = self.edited(twin, (LEAF, name))
        known = KnownTensor(tensor, twin, self.value(tensor, twin, kind, name))
        known.shape_only = kind == CONSTANT and tensor.dtype.is_integer
        self.known[id(tensor)] = known
        return known

    def equal(self, array, dtype):
        """What is known of a tensor with the same numbers: one that went by
        way of NumPy, or into a function as a constant; None if there is none.
        """
        if array.dtype.kind != "f" or np.unique(
                array.reshape(-1)[:4096]).size < TELLING:
            return None
        return next((known for known in reversed(self.known.values())
                     if known.tensor.dtype == dtype
                     and known.tensor.shape == array.shape
                     and np.array_equal(to_numpy(known.tensor), array)), None)

    def edited(self, twin, key):
        """A twin, or what an edit puts in its place."""
        array = self.edits.get(key)
        if array is None:
            return twin
        array = np.broadcast_to(np.asarray(array), tuple(twin.shape))
        return cast(of_array(array), twin.dtype)

    def alias(self, tensor, known):
        """The same Value for another tensor."""
        plain = known.twin is known.tensor and not self.exact
        twin = tensor if plain else known.twin
        return KnownTensor(
            tensor, twin, known.number, known.drawn, known.shape_only)

    def instead(self, outputs, made):
        """Tensors that are made anew out of smaller operations.

        A run that is neither exact nor edited keeps what TensorFlow gave.
        """
        for tensor, part in zip(outputs, made):
            if part is None or not has_values(tensor):
                continue
            known = self.known[id(tensor)] = self.alias(tensor, self.of(part))
            value = self.program.values[known.number]
            if known.twin is tensor and tensor is not part and not self.exact:
                array = to_numpy(tensor)
                value.signature = signature(array)
                if value.array is not None:
                    value.array = np.array(array)

    def widened(self, tensor):
        """A tensor in float64 if the run is exact."""
        if self.exact and has_values(tensor) and tensor.dtype in LONGER:
            return cast(tensor, LONGER[tensor.dtype])
        return tensor

    def rounded(self, tensor, twin, inputs=()):
        """Put down a rounding: of numbers that came in longer."""
        if tensor.dtype not in LONGER or any(
                source.dtype.size <= tensor.dtype.size for source in inputs
                if source.dtype.is_floating or source.dtype.is_complex):
            return
        exact, kept = to_numpy(twin), to_numpy(cast(
            cast(twin, tensor.dtype), twin.dtype))
        count = int(np.sum((exact != kept) & ~np.isnan(exact)))
        if count:
            key = self.frames.here()[0], tensor.dtype.name
            self.roundings[key] = self.roundings.get(key, 0) + count
