"""Linear maps by the library that is the fastest for them.

Weights are stored [out in]. With AVX-512 all of float32 is multiplied by
oneDNN, which takes 0.6 to 1 of MKL's time on an AMD EPYC: one row, and many.
With AVX2 it takes 1.1 to 1.5 of it, unless weights are laid out for it
(fast/layout.py).
"""

import platform

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from transformer_contract.trace import tap
from impl_torch import linear as plain
from impl_torch import projection
from impl_torch.dialects import projection as dialects

#: Whether oneDNN can be asked for a product, and for its own order of weights.
HAS_ONEDNN = (platform.machine() in ("x86_64", "AMD64")
              and torch.backends.mkldnn.is_available()
              and hasattr(torch.ops.mkldnn, "_linear_pointwise")
              and hasattr(torch.ops.mkldnn, "_reorder_linear_weight"))

#: Whether oneDNN is the faster way for weights as they are stored.
ONEDNN = (HAS_ONEDNN
          and torch.backends.cpu.get_cpu_capability() == "AVX512")


def product(x, weight, bias):
    """x Wᵀ + b of x [... in], W [out in] and b [out] or None: [... out]."""
    if not (x.is_cpu and x.numel()):
        return F.linear(x, weight, bias)
    if (ONEDNN and x.dtype == weight.dtype == torch.float32
            and type(x) is torch.Tensor
            and not torch.is_autocast_enabled("cpu")):
        rows = x.reshape(-1, x.shape[-1])
        y = (OneDNN.apply if torch.is_grad_enabled() else by_onednn)(
            rows, weight, bias)
        return y.view(*x.shape[:-1], -1)
    return F.linear(x, weight, bias)


def by_onednn(x, weight, bias):
    """x Wᵀ + b of rows x [N in] alone; torch knows no gradient of it.

    W [out in] may be in oneDNN's order.
    """
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


class Linear(plain.Linear):
    """See impl_torch.linear."""

    def forward(self, x):
        """Map x [... in] to [... out]."""
        return product(x, self.weight, self.bias)


class Projection(dialects.Projection):
    """See impl_torch.dialects.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(x, self.weight, self.bias))


class ProjectionWithoutBias(dialects.ProjectionWithoutBias):
    """See impl_torch.dialects.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(x, self.weight, None))


class TiedProjection(projection.TiedProjection):
    """See impl_torch.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(
            x, self.embedding.table.weight, None))


class BiasedTiedProjection(dialects.BiasedTiedProjection):
    """See impl_torch.dialects.projection."""

    def forward(self, x):
        """Map x [B T D] to logits."""
        return tap(self, "logits", product(
            x, self.embedding.table.weight, self.bias))
