"""The layer norm as one call, which keeps none of its steps."""

from torch.nn import functional as F

from transformer_contract.trace import tap
from impl_torch import layer_norm


class LayerNorm(layer_norm.LayerNorm):
    """See impl_torch.layer_norm."""

    def forward(self, x):
        """Normalise x [B T D] over D."""
        return tap(self, "output", F.layer_norm(
            x, x.shape[-1:], self.scale, self.bias, self.eps))
