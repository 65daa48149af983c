"""The head: what vectors pass before the projection."""

import mlx.nn as nn

from contract.trace import tap
from impl_mlx.feed_forward import ACTIVATIONS
from impl_mlx.layer_norm import NORMS


class NoHead(nn.Module):
    """Hands on vectors as they are."""

    def __init__(self, config):
        super().__init__()

    def __call__(self, x):
        """Return x [B T D] as it is."""
        return x


class TransformHead(nn.Module):
    """BERT's: dense, activation, norm."""

    def __init__(self, config):
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = NORMS[config.norm_form](config.d_model, config.norm_eps)

    def __call__(self, x):
        """Map x [B T D] to what the projection reads."""
        # [1] inner [B T D]: x W + b  (R57)
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T D]: max(0, inner), or as R37 names
        activated = tap(self, "activated", self.activation(inner))
        return self.norm(activated)


#: By whether there is one.
HEADS = {False: NoHead, True: TransformHead}
