"""The head: what vectors pass before the projection.

The paper has none. BERT's is a linear map of its own, the feed-forward's
activation and a norm (R57). The projection follows, tied, with a bias (R50).
"""

from flax import nnx

from transformer_contract.trace import tap
from impl_jax import parts
from impl_jax.dialects.feed_forward import ACTIVATIONS
from impl_jax.linear import Linear


class TransformHead(nnx.Module):
    """BERT's: dense, activation, norm."""

    def __init__(self, config, *, rngs):
        self.inner = Linear(
            config.d_model, config.d_model, use_bias=True, rngs=rngs)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = parts.norm(config, config.norm_eps, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] to what the projection reads."""
        # [1] inner [B T D]: x W + b  (R57)
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T D]: activation(inner)  (R37)
        activated = tap(self, "activated", self.activation(inner))
        return self.norm(activated)
