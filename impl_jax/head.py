"""The head: what vectors pass before the projection."""

from flax import nnx

from contract.trace import tap
from impl_jax.feed_forward import ACTIVATIONS
from impl_jax.layer_norm import NORMS


class NoHead(nnx.Module):
    """Hands on vectors as they are."""

    def __init__(self, config, *, rngs):
        pass

    def __call__(self, x):
        """Return x [B T D] as it is."""
        return x


class TransformHead(nnx.Module):
    """BERT's: dense, activation, norm."""

    def __init__(self, config, *, rngs):
        self.inner = nnx.Linear(config.d_model, config.d_model, rngs=rngs)
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
