"""Tensors of float64 that stand for shorter ones, or for edited ones."""

import math

import numpy as np
import torch
from torch.utils.weak import WeakIdKeyDictionary

from parity.tracing.storage import LARGE

from parity.numerics.dtypes import EPS

#: Twins that are only read take so many bytes at most, or are one alone.
ROOM = 1 << 28

#: How exact each is: bits of the fraction.
SIZE = {getattr(torch, name): 1 - int(math.log2(eps))
        for name, eps in EPS.items()}
SIZE |= {torch.complex32: SIZE[torch.float16],
         torch.complex64: SIZE[torch.float32],
         torch.complex128: SIZE[torch.float64]}

#: What is shorter than float64, and what an exact run has instead.
LONGER = {dtype: torch.complex128 if dtype.is_complex else torch.float64
          for dtype, bits in SIZE.items() if bits < SIZE[torch.float64]}


def longer(value):
    """float64 for a shorter dtype; any other value as it is."""
    return LONGER.get(value, value) if isinstance(value, torch.dtype) else value


def widened(value):
    """A tensor in float64 at least; any other value as it is."""
    return value.to(LONGER[value.dtype]) if isinstance(
        value, torch.Tensor) and value.dtype in LONGER else value


def lie(tensor):
    """Where a tensor's numbers lie, and in which order."""
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        return id(tensor)
    return (tensor.untyped_storage().data_ptr(), tensor.storage_offset(),
            tuple(tensor.shape), tensor.stride(), tensor.dtype)


class Twins:
    """Views of a second storage for each that is shorter, or is edited.

    Views and in-place operations so keep their meaning, and the tensor that
    the caller has is never written. Large twins that are only read are made
    anew where they are needed again.

    Attributes:
        storages, read: {(where a storage lies, dtype): (tensor, twin)}, of
            those that stay, and of those that may go, the latest last.
    """

    def __init__(self, exact):
        self.exact, self.storages, self.read = exact, {}, {}
        self.dtypes = WeakIdKeyDictionary()

    def of(self, value):
        """A tensor's twin; any other value as it is."""
        if not isinstance(value, torch.Tensor):
            return value
        if value.layout != torch.strided or value.device.type == "meta":
            return value
        key = value.untyped_storage().data_ptr(), value.dtype
        if key not in self.storages and key not in self.read:
            if not self.exact or value.dtype not in LONGER:
                return value
            made = whole(value).to(LONGER[value.dtype])
            (self.read if made.nbytes >= LARGE else self.storages)[key] = (
                value, made)
        twin = (self.storages.get(key) or self.read[key])[1].as_strided(
            value.size(), value.stride(), value.storage_offset())
        self.declare(twin, value.dtype)
        return twin

    def forget(self):
        """Let the oldest twins go that are only read; where they lay."""
        size = sum(twin.nbytes for _, twin in self.read.values())
        while size > ROOM:
            _, twin = self.read.pop(next(iter(self.read)))
            size -= twin.nbytes
            yield twin.untyped_storage().data_ptr()

    def hold(self, written):
        """Keep the twin that an operation wrote to."""
        pointer = written.untyped_storage().data_ptr()
        for key, (_, twin) in [*self.read.items()]:
            if twin.untyped_storage().data_ptr() == pointer:
                self.storages[key] = self.read.pop(key)

    def replace(self, tensor, array):
        """Let a tensor's twin have other numbers."""
        dtype = longer(tensor.dtype) if self.exact else tensor.dtype
        twin = whole(tensor).to(dtype, copy=True)
        twin.as_strided(tensor.size(), tensor.stride(),
                        tensor.storage_offset()).copy_(
            torch.from_numpy(np.array(array)))
        self.storages[tensor.untyped_storage().data_ptr(), tensor.dtype] = (
            tensor, twin)

    def declare(self, tensor, dtype):
        """Put down what dtype the program has for a tensor."""
        if dtype != tensor.dtype:
            self.dtypes[tensor] = dtype

    def dtype_of(self, tensor):
        """The dtype that the program has for a tensor."""
        return self.dtypes.get(tensor, tensor.dtype)


def whole(tensor):
    """All numbers of a tensor's storage, in one row."""
    storage = tensor.detach().untyped_storage()
    count = storage.nbytes() // tensor.dtype.itemsize
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
        storage, 0, (count,), (1,))
