"""Linear maps in the way that is quickest for so many rows.

Weights are stored [out in]. With AVX-512, MKL multiplies them by a few columns
in half the time that it takes to multiply a few rows by their transpose, as
long as the rows stay in the first cache; and by two columns sooner than by one.
Elsewhere rows are the quicker way. Many rows of float32 are multiplied by
oneDNN, which takes nine tenths of MKL's time on an AMD EPYC.
"""

import platform

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from contract.trace import tap
from impl_torch import projection

#: Bytes of rows up to which columns pay, and of one row.
SMALL, SMALL_ROW = 16 * 2**10, 4 * 2**10

#: Rows from which oneDNN pays.
MANY = 64

#: Whether columns are the quicker way here.
COLUMNS = torch.backends.cpu.get_cpu_capability() == "AVX512"

#: Whether oneDNN can be asked.
ONEDNN = (platform.machine() in ("x86_64", "AMD64")
          and torch.backends.mkldnn.is_available()
          and hasattr(torch.ops.mkldnn, "_linear_pointwise"))


def product(x, weight, bias):
    """x Wᵀ + b of x [... in], W [out in] and b [out] or None: [... out]."""
    if COLUMNS and _few(x):
        return _by_columns(x, weight, bias)
    if ONEDNN and _many(x, weight):
        return ManyRows.apply(x, weight, bias)
    return F.linear(x, weight, bias)


def _few(x):
    size = x.numel() * x.element_size()
    alone = x.numel() == x.shape[-1]
    return (not torch.is_grad_enabled() and x.is_cpu
            and 0 < size <= (SMALL_ROW if alone else SMALL))


def _by_columns(x, weight, bias):
    rows = x.reshape(-1, x.shape[-1])
    alone = len(rows) == 1
    y = weight @ (rows.repeat(2, 1) if alone else rows).t()
    y = y[:, :len(rows)].t().contiguous()
    if bias is not None:
        y += bias
    return y.view(*x.shape[:-1], -1)


def _many(x, weight):
    return (x.is_cpu and x.dtype == weight.dtype == torch.float32
            and x.numel() >= MANY * x.shape[-1]
            and not torch.is_autocast_enabled("cpu"))


class ManyRows(torch.autograd.Function):
    """The product by oneDNN, whose gradient by W is MKL's, the quicker."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        """Map x [... in] by W [out in] and b [out] or None: [... out]."""
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return torch.ops.mkldnn._linear_pointwise(
            x, weight, bias, "none", [], "")

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        """The gradients by x, W and b from dy [... out]."""
        x, weight = ctx.saved_tensors
        dx = dweight = dbias = None
        if ctx.needs_input_grad[0]:
            dx = torch.ops.mkldnn._linear_pointwise(
                dy, weight.t(), None, "none", [], "")
        rows = dy.reshape(-1, dy.shape[-1])
        if ctx.needs_input_grad[1]:
            dweight = rows.t() @ x.reshape(-1, x.shape[-1])
        if ctx.biased and ctx.needs_input_grad[2]:
            dbias = rows.sum(dim=0)
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
