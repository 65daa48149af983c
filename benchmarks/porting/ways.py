"""Ways to plant a fault into a model of Hugging Face's, or of anybody's."""

import functools
import sys
from unittest import mock

from benchmarks.porting.hugging_face import H, T, W

#: What is told of common faults: (cause, what it is in a, and in b).
UNMASKED = [("mask", "", "ignored in b"),
            ("mask", "", "the future is seen in b")]
TRANSPOSED = [("kernel", "", "transposed")]
REORDERED = [("kernel", "", "in b the same numbers in another order")]
SCALES = (("1/√d_model", W**-0.5), ("1", 1.0), ("1/d_k", H / W))
SCALED = [("factor", "1", "4.89898")]
UNSCALED = [("input's factor", "1.0", "4.898979485566356")]


def patched(kind, **functions):
    """Functions of a model's file, replaced while modules of a kind run."""
    def change(model):
        for module in model.modules():
            if kind in type(module).__name__:
                _patch(module, functions)
    return change


def _patch(module, functions):
    forward = module.forward
    scope = vars(sys.modules[type(module).__module__])
    replacements = {name: make(scope[name]) for name, make in functions.items()}

    @functools.wraps(forward)
    def called(*arguments, **keywords):
        with mock.patch.dict(scope, replacements):
            return forward(*arguments, **keywords)
    module.forward = called


def wrapped(kind, make, last=False):
    """The forward of modules of a kind, replaced by ``make(module, old)``."""
    def change(model):
        modules = [m for m in model.modules() if kind in type(m).__name__]
        for module in modules[-last:]:
            forward = module.forward
            module.forward = functools.wraps(forward)(make(module, forward))
    return change


def attribute(kind, **values):
    """Attributes of modules of a kind, or what a function makes of them."""
    def change(model):
        for module in model.modules():
            if kind in type(module).__name__:
                for name, value in values.items():
                    setattr(module, name, value(getattr(module, name))
                            if callable(value) else value)
    return change


def weights(*pairs):
    """Parameters: (the end of a path, what is made of the array)."""
    def change(model):
        import torch
        with torch.no_grad():
            for name, array in model.named_parameters():
                for end, function in pairs:
                    if name.endswith(end):
                        array.copy_(function(array.clone()))
    return change


def exchanged(one, two):
    """Parameters whose paths end so, each in the other's place."""
    def change(model):
        import torch
        arrays = dict(model.named_parameters())
        with torch.no_grad():
            for name, array in arrays.items():
                other = arrays.get(name.removesuffix(one) + two)
                if name.endswith(one) and other is not None:
                    kept = array.clone()
                    array.copy_(other)
                    other.copy_(kept)
    return change


def activation(one, two):
    """That a function is another; far from 6, ReLU and ReLU6 are one."""
    told = [("activation", one, two)]
    return told + [("activation", one, "relu or relu6")] * (two == "relu")


def scaled(factor):
    """An embedding times a factor."""
    return lambda module, forward: lambda *a, **k: factor * forward(*a, **k)


def shifted(by):
    """Position ids that begin elsewhere."""
    def make(module, forward):
        def called(*arguments, **keywords):
            if "position_ids" in keywords:
                keywords["position_ids"] = keywords["position_ids"] + by
                return forward(*arguments, **keywords)
            first, *rest = arguments
            return forward(first + by, *rest, **keywords)
        return called
    return make


def places(first):
    """Position ids."""
    import torch
    return torch.arange(first, first + T)[None]


def times(factor):
    """A module's output, or its first, times a factor."""
    def make(module, forward):
        def called(*arguments, **keywords):
            result = forward(*arguments, **keywords)
            if isinstance(result, tuple):
                return result[0] * factor, *result[1:]
            return result * factor
        return called
    return make


def previous_seen(share):
    """A share of the position before is added."""
    def make(module, forward):
        def called(*arguments, **keywords):
            result = forward(*arguments, **keywords)
            return result + share * result.roll(1, 1)
        return called
    return make


def several(*changes):
    """Some changes, one after another."""
    def change(model):
        for each in changes:
            each(model)
    return change


def interleaved_heads(array):
    """Rows of a kernel by feature, not by head."""
    return array.reshape(H, -1, array.shape[-1]).swapaxes(0, 1).reshape(
        array.shape)


def roll(by):
    """Rows rolled by a part of them: another order of what is packed."""
    return lambda array: array.roll(by, -1)


def by_head(array):
    """Query, key and value of a head stand together."""
    *lead, width = array.shape
    return array.reshape(*lead, 3, H, width // 3 // H).swapaxes(
        -3, -2).reshape(array.shape)


def transposed(array):
    """A square kernel, the other way."""
    return array.T


def first_embedding(model):
    """The token embedding times √d_model."""
    module = model.get_input_embeddings()
    module.forward = scaled(W**0.5)(module, module.forward)
