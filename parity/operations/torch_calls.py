"""Calls of torch: the tensors in them, and the modes in which they are seen."""

import sys

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import (
    TorchDispatchMode, _disable_current_modes)

from parity.operations.torch_twins import LONGER
from parity.tracing.storage import LARGE


def to_numpy(value):
    """As a NumPy array, a small one as a copy; bfloat16 and 8-bit floats as
    float32."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    if value.layout != torch.strided or value.device.type == "meta":
        return np.zeros(0)
    value = value.detach().resolve_conj().resolve_neg().cpu()
    if value.is_floating_point() and (value.dtype == torch.bfloat16
                                      or value.dtype.itemsize == 1):
        value = value.float()
    array = value.numpy()
    return array if array.nbytes >= LARGE else np.array(array)


def tensors_of(tree):
    """Every tensor in a nest of lists, tuples and dicts."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        return []
    return [tensor for each in tree for tensor in tensors_of(each)]


def tree_map(visit, tree):
    """A nest of lists, tuples and dicts with ``visit(leaf)`` for each leaf."""
    if isinstance(tree, tuple):  # also torch's own, which have names
        return tuple([tree_map(visit, each) for each in tree])
    if isinstance(tree, list):
        return [tree_map(visit, each) for each in tree]
    if isinstance(tree, dict):
        return {name: tree_map(visit, each) for name, each in tree.items()}
    return visit(tree)


def is_random(function):
    """Whether an operation draws numbers."""
    return torch.Tag.nondeterministic_seeded in function.tags


def mutated(function, args, kwargs):
    """The tensors that an operation writes in place."""
    return [tensor for i, argument in enumerate(function._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tensors_of(
                args[i] if i < len(args) else kwargs.get(argument.name))]


def in_full(function, args, kwargs, made):
    """What an operation gives in float64 of what is no floating number.

    A quotient of integers, or a range of Python's numbers, is of the default
    dtype, which may be shorter.
    """
    if not isinstance(made, torch.Tensor) or made.dtype not in LONGER or (
            is_random(function) or mutated(function, args, kwargs)):
        return made
    try:
        if not tensors_of((args, kwargs)):
            return function(*args, **kwargs | {"dtype": LONGER[made.dtype]})
        return function(*tree_map(lambda each: each.double() if isinstance(
            each, torch.Tensor) else each, args), **kwargs)
    except (RuntimeError, TypeError):  # it takes no dtype, or integers alone
        return made


def native(array, instead):
    """An array as a tensor, or a number, like what it stands for."""
    if not isinstance(instead, torch.Tensor):
        return type(instead)(np.asarray(array).reshape(-1)[0].item())
    tensor = torch.from_numpy(np.array(array)).to(instead)
    return tensor.expand(instead.shape).clone()


class Unfused(TorchFunctionMode):
    """Keeps torch.nn off its fused encoder layers, and sees autocast, which
    casts nothing that is float64.

    Args:
        exact: keep what Python's numbers are made into in float64 too: no
            dispatch mode sees these before they are rounded.

    Attributes:
        autocast: whether any function was called inside a region of it.
    """

    autocast = False

    def __init__(self, exact=False):
        super().__init__()
        self.exact = exact

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.autocast = self.autocast or any(map(
            torch.is_autocast_enabled, ("cpu", "cuda")))
        of_numbers = function in (torch.tensor, torch.as_tensor) and args and (
            not isinstance(args[0], (torch.Tensor, np.ndarray)))
        return (self.of_numbers(function, args, kwargs or {})
                if self.exact and of_numbers
                else function(*args, **(kwargs or {})))

    @staticmethod
    def of_numbers(function, args, kwargs):
        """A tensor of Python's numbers, in float64 where it is shorter."""
        with _disable_current_modes():
            dtype = function(*args, **kwargs).dtype
        return function(*args, **kwargs | (
            {"dtype": LONGER[dtype]} if dtype in LONGER else {}))


class Mode(TorchDispatchMode):
    """A TorchDispatchMode that does not import torch's compiler.

    torch keeps the compiler out of what a mode does, and imports it for that,
    a second or more. Where nobody has imported it, it is out.
    """

    def __init_subclass__(cls, **more):
        own = cls.__torch_dispatch__
        super().__init_subclass__(**more)
        kept_out = cls.__torch_dispatch__

        def dispatched(self, *args, **keywords):
            return (kept_out if "torch._dynamo" in sys.modules else own)(
                self, *args, **keywords)
        cls.__torch_dispatch__ = dispatched
