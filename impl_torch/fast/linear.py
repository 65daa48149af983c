"""Linear maps in the way that is quickest for so many rows.

Weights are stored [out in]. MKL multiplies them by 2 to 8 columns in half to
two thirds of the time that it takes to multiply as many rows by their
transpose, as long as the rows stay in the first cache. With AVX-512 all else of
float32 is multiplied by oneDNN, which takes 0.6 to 1 of MKL's time on an AMD
EPYC: one row, and many. With AVX2 it takes 1.1 to 1.5 of it.

A search of one row reads little but weights, and these in half the time where
they lie [in out]. Of the largest, a tied table, it makes such a copy.
"""

import copy
import platform

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from contract.trace import tap
from impl_torch import projection

#: Bytes of rows up to which columns pay.
SMALL = 16 * 2**10

#: Tokens of a search of one row from which on a copy of the table pays.
LONG = 32

#: Rows of a table that are laid out anew at once.
ROWS = 64

#: Which of its instructions a processor has.
CAPABILITY = torch.backends.cpu.get_cpu_capability()

#: Whether columns are the quicker way here.
COLUMNS = CAPABILITY in ("AVX2", "AVX512")

#: Whether oneDNN can be asked, and whether it is the quicker way here.
HAS_ONEDNN = (platform.machine() in ("x86_64", "AMD64")
              and torch.backends.mkldnn.is_available()
              and hasattr(torch.ops.mkldnn, "_linear_pointwise"))
ONEDNN = HAS_ONEDNN and CAPABILITY == "AVX512"


def product(x, weight, bias):
    """x Wᵀ + b of x [... in], W [out in] and b [out] or None: [... out]."""
    if not (x.is_cpu and x.numel()):
        return F.linear(x, weight, bias)
    if (COLUMNS and not torch.is_grad_enabled()
            and x.shape[-1] < x.numel() <= SMALL / x.element_size()):
        return by_columns(x, weight, bias)
    if (ONEDNN and x.dtype == weight.dtype == torch.float32
            and type(x) is torch.Tensor
            and not torch.is_autocast_enabled("cpu")):
        rows = x.reshape(-1, x.shape[-1])
        y = (OneDNN.apply if torch.is_grad_enabled() else by_onednn)(
            rows, weight, bias)
        return y.view(*x.shape[:-1], -1)
    return F.linear(x, weight, bias)


def by_columns(x, weight, bias):
    """The same as W xᵀ."""
    y = (weight @ x.reshape(-1, x.shape[-1]).t()).t().contiguous()
    if bias is not None:
        y += bias
    return y.view(*x.shape[:-1], -1)


def by_onednn(x, weight, bias):
    """The same of rows x [N in] alone; torch knows no gradient of it."""
    return torch.ops.mkldnn._linear_pointwise.default(
        x, weight, bias, "none", [], "")


class OneDNN(torch.autograd.Function):
    """The same with a gradient; that by W is MKL's, the quicker."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        """Map x [N in] by W [out in] and b [out] or None: [N out]."""
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return by_onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        """The gradients by x, W and b from dy [N out]."""
        x, weight = ctx.saved_tensors
        dx = dweight = dbias = None
        if ctx.needs_input_grad[0]:
            dx = by_onednn(dy, weight.t(), None)
        if ctx.needs_input_grad[1]:
            dweight = dy.t() @ x
        if ctx.biased and ctx.needs_input_grad[2]:
            dbias = dy.sum(dim=0)
        return dx, dweight, dbias


class Linear(nn.Linear):
    """See torch.nn.Linear."""

    def forward(self, x):
        """Map x [... in] to [... out]."""
        return product(x, self.weight, self.bias)


class Projection(projection.Projection):
    """See impl_torch.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(x, self.weight, self.bias))


class ProjectionWithoutBias(projection.ProjectionWithoutBias):
    """See impl_torch.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(x, self.weight, None))


class TiedProjection(projection.TiedProjection):
    """See impl_torch.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(
            x, self.embedding.table.weight, None))


class BiasedTiedProjection(projection.BiasedTiedProjection):
    """See impl_torch.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(
            x, self.embedding.table.weight, self.bias))


class Turned(nn.Module):
    """A tied projection whose table is kept as a kernel [D V].

    Weights that are changed later do not reach it.
    """

    def __init__(self, tied):
        super().__init__()
        table = tied.embedding.table.weight.detach()
        self.kernel = table.new_empty(table.shape[::-1])
        for i in range(0, len(table), ROWS):
            self.kernel[:, i:i + ROWS] = table[i:i + ROWS].t()
        self.bias = getattr(tied, "bias", None)

    def forward(self, x):
        """Map x [B T D] to logits."""
        logits = x @ self.kernel
        return logits if self.bias is None else logits + self.bias


def turned(model):
    """A model of the same parts, whose tied table is kept as a kernel."""
    own = copy.copy(model)
    own._modules = {**model._modules, "projection": Turned(model.projection)}
    return own
