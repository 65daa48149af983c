"""The feed-forward network, the same at every position (section 3.3).

    FFN(x) = max(0, x W₁ + b₁) W₂ + b₂                               (eq. 2)

Other activations and gates are in dialects/feed_forward.py.
"""

import jax
from flax import nnx

from transformer_contract.trace import tap
from impl_jax.dropout import Dropout
from impl_jax.linear import Linear


class FeedForward(nnx.Module):
    """Two linear maps with max(0, x) between."""

    def __init__(self, config, *, rngs):
        d, f = config.d_model, config.d_ff
        self.inner = Linear(d, f, use_bias=True, rngs=rngs)
        self.outer = Linear(f, d, use_bias=True, rngs=rngs)
        self.activated_dropout = Dropout(config.dropout, rngs=rngs)

    def hidden(self, x):
        """What is between the two maps, [B T F]."""
        # [1] inner [B T F]: x W₁ + b₁  (eq. 2)
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T F]: max(0, inner)  (eq. 2)
        activated = tap(self, "activated", jax.nn.relu(inner))
        return activated

    def __call__(self, x):
        """Map x [B T D] position by position."""
        activated = self.hidden(x)
        dropped = self.activated_dropout(activated)
        # [3] output [B T D]: activated W₂ + b₂  (eq. 2)
        output = tap(self, "output", self.outer(dropped))
        return output
