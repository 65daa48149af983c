"""Three normalisations; test_native.py shows what nn.LayerNorm equals."""

import torch
from torch import nn

from contract.trace import tap


class LayerNorm(nn.Module):
    """Ba et al. 2016. Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", torch.mean(x, dim=-1, keepdim=True))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = tap(self, "variance", torch.mean(
            centered * centered, dim=-1, keepdim=True))
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = tap(self, "normalized",
                         centered / torch.sqrt(variance + self.eps))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output


class StdLayerNorm(nn.Module):
    """Divided by the unbiased standard deviation; scale and bias are [D]."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", torch.mean(x, dim=-1, keepdim=True))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        # [3] std [B T 1]: √(Σ centered² / (D - 1))  (R4)
        std = tap(self, "std", torch.sqrt(torch.sum(
            centered * centered, dim=-1, keepdim=True) / (x.shape[-1] - 1)))
        # [4] normalized [B T D]: centered / (std + ε)  (R4)
        normalized = tap(self, "normalized", centered / (std + self.eps))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output


class ScalarStdLayerNorm(StdLayerNorm):
    """StdLayerNorm with ``scale`` [1] and ``bias`` [1] (R5)."""

    def __init__(self, d_model, eps):
        super().__init__(d_model=1, eps=eps)


NORMS = {
    "layer": LayerNorm,
    "std": StdLayerNorm,
    "scalar_std": ScalarStdLayerNorm,
}


class NoNorm(nn.Module):
    """The identity, where a stack ends without a norm (R11)."""

    def forward(self, x):
        """Return x [B T D] as it is."""
        return x
