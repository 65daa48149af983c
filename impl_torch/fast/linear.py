"""Linear maps of the few rows of a search, as W xᵀ instead of x Wᵀ.

Weights are stored [out in]. MKL multiplies them by a few columns in half the
time that it takes to multiply a few rows by their transpose, as long as the
rows stay in the first cache; and by two columns sooner than by one. That holds
where it has AVX-512; elsewhere rows are the quicker way.
"""

import torch
from torch import nn
from torch.nn import functional as F

from contract.trace import tap
from impl_torch import projection

#: Bytes of rows up to which it pays, and of one row.
SMALL, SMALL_ROW = 16 * 2**10, 4 * 2**10

#: Whether columns are the quicker way here.
COLUMNS = torch.backends.cpu.get_cpu_capability() == "AVX512"


def product(x, weight, bias):
    """x Wᵀ + b of x [... in], W [out in] and b [out] or None: [... out]."""
    size, width = x.numel() * x.element_size(), x.shape[-1]
    alone = x.numel() == width
    if (torch.is_grad_enabled() or not (COLUMNS and x.is_cpu and size)
            or size > (SMALL_ROW if alone else SMALL)):
        return F.linear(x, weight, bias)
    rows = x.reshape(-1, width)
    y = weight @ (rows.repeat(2, 1) if alone else rows).t()
    y = y[:, :len(rows)].t().contiguous()
    if bias is not None:
        y += bias
    return y.view(*x.shape[:-1], -1)


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
