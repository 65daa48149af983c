"""Weights laid out for a search, as each token's products read them best.

A search multiplies few rows by every weight for each token, so that most of its
time goes into reading weights. oneDNN reads float32 the fastest from blocks in
an order of its own: on an AMD EPYC 4 to 32 rows are then multiplied by a table
of 32 000 words in 0.5 to 0.7 of MKL's time by one thread and in 0.3 to 0.45 by
two. One row by one thread is faster with a kernel [in out].
"""

import copy
import functools

import numpy as np
import torch
from torch import nn

from transformer_contract import trace
from impl_torch.fast import linear

#: Tokens of a search from which on a copy of the weights pays.
LONG = 32

#: The part of an attention that has its query, key and value as one map.
JOINED = "joined"

#: What may be laid out.
KINDS = {linear.Linear, linear.Projection, linear.ProjectionWithoutBias,
         linear.TiedProjection, linear.BiasedTiedProjection}


class Packed(nn.Module):
    """A linear map whose weight is kept in oneDNN's order.

    Weights that are changed after its first call do not reach it.
    """

    def __init__(self, weight, bias):
        super().__init__()
        self.given, self.bias = weight.detach(), bias

    @staticmethod
    def pays(weight):
        """Whether a weight [out in] is read better so: each is."""
        return True

    @functools.cached_property
    def weight(self):
        """The weight; one that is never asked for is not laid out."""
        return torch.ops.mkldnn._reorder_linear_weight.default(self.given)

    def forward(self, x):
        """Map x [... in] to [... out]."""
        if x.dim() == 2:
            return linear.by_onednn(x, self.weight, self.bias)
        rows = x.reshape(-1, x.shape[-1])
        return linear.by_onednn(rows, self.weight, self.bias).view(
            *x.shape[:-1], len(self.given))


class Turned(nn.Module):
    """A linear map whose weight [out in] is kept as a kernel [in out].

    Weights that are changed later do not reach it.
    """

    def __init__(self, weight, bias):
        super().__init__()
        self.kernel, self.bias = blank(weight.t()).copy_(weight.t()), bias

    @staticmethod
    def pays(weight):
        """Whether a weight [out in] is read better so: a wide one is."""
        return weight.shape[0] > weight.shape[1]

    def forward(self, x):
        """Map x [... in] to [... out]."""
        y = x @ self.kernel
        return y if self.bias is None else y + self.bias


def blank(weight):
    """A tensor like a weight, not filled, in large pages where it can be.

    NumPy asks the system for these, PyTorch does not: mapping small ones takes
    as long again as what is then written into them.
    """
    if weight.is_cpu and weight.dtype == torch.float32:
        return torch.from_numpy(np.empty(weight.shape, np.float32))
    return weight.new_empty(weight.shape)


class Joined(nn.Module):
    """Some linear maps of one input, as one of a layout."""

    def __init__(self, layout, maps):
        super().__init__()
        self.sizes = [len(each.weight) for each in maps]
        biases = [each.weight.new_zeros(len(each.weight))
                  if each.bias is None else each.bias for each in maps]
        self.map = layout(
            torch.cat([each.weight for each in maps]), torch.cat(biases))

    def forward(self, x):
        """Map x [... in] to each map's [... out]."""
        return self.map(x).split(self.sizes, dim=-1)


def laid_out(model, rows, tokens):
    """A model of the same parts, for a search of so many rows and tokens.

    Its decoder's and projection's weights are laid out where that pays. Those
    that are changed later do not reach it.
    """
    projection = model.projection
    if tokens < LONG or trace.is_open():
        return model
    tied = getattr(projection, "embedding", None)
    weight = (projection if tied is None else tied.table).weight.detach()
    bias = getattr(projection, "bias", None)
    if (linear.HAS_ONEDNN and weight.is_cpu and weight.dtype == torch.float32
            and not torch.is_autocast_enabled("cpu")
            and (rows > 1 or torch.get_num_threads() > 1)):
        layout = Packed
    elif rows == 1:
        layout = Turned
    else:
        return model
    return with_parts(model, projection=layout(weight, bias),
                      decoder=rearranged(model.decoder, layout))


def rearranged(module, layout):
    """A module of the same parts, its linear maps laid out where that pays."""
    if type(module) in KINDS:
        weight = module.weight
        return layout(weight, module.bias) if layout.pays(weight) else module
    parts = {name: rearranged(part, layout)
             for name, part in module.named_children()}
    attention = parts.get("self_attention")
    if attention is not None:
        maps = [module.self_attention.get_submodule(name)
                for name in ("query", "key", "value")]
        parts["self_attention"] = with_parts(
            attention, **{JOINED: Joined(layout, maps)})
    return with_parts(module, **parts)


def with_parts(module, /, **parts):
    """The module with some other parts; it itself is left as it is."""
    own = copy.copy(module)
    own._modules = {**module._modules, **parts}
    return own
