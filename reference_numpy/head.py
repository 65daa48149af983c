"""The head: what vectors pass before the projection.

The paper has none. BERT's, which is to guess masked tokens, is a linear map of
its own, the feed-forward's activation and a norm (R57); the projection follows,
tied, with a bias (R50).
"""

from reference_numpy.feed_forward import ACTIVATIONS, ACTIVATIONS_BACKWARD
from reference_numpy.layer_norm import NORMS
from reference_numpy.linear import Linear, under


class NoHead:
    """Hands on vectors as they are."""

    def __init__(self, config):
        pass

    def forward(self, x):
        """Return x [B T D] as it is."""
        return x, {}

    def backward(self, dx, c):
        """Return dx [B T D] as it is."""
        return dx, {}


class TransformHead:
    """BERT's: dense, activation, norm.

    Parameters: ``inner`` with ``kernel`` [D D] and ``bias`` [D], and those of
    ``norm``.
    """

    def __init__(self, config):
        self.inner = Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.activation_backward = ACTIVATIONS_BACKWARD[config.activation]
        self.norm = NORMS[config.norm_form](config.d_model, config.norm_eps)

    def forward(self, x):
        """Map x [B T D] to what the projection reads."""
        c = {"inputs": (x,)}
        # [1] inner [B T D]: x W + b  (R57)
        inner = c["inner"] = self.inner(x)
        # [2] activated [B T D]: max(0, inner), or as R37 names
        activated = c["activated"] = self.activation(inner)
        normalized, c["norm"] = self.norm.forward(activated)
        return normalized, c

    def backward(self, dnormalized, c):
        """From dnormalized [B T D]: dx and g."""
        (x,), g = c["inputs"], {}
        dactivated, g["norm"] = self.norm.backward(dnormalized, c["norm"])
        g["activated"] = dactivated
        # [2'] inner: activated = max(0, inner), or as R37 names
        dinner = g["inner"] = self.activation_backward(dactivated, c["inner"])
        # [1'] x, W, b: inner = x W + b
        dx, gradients = self.inner.backward(dinner, x)
        g |= under("inner", gradients)
        return dx, g


#: By whether there is one.
HEADS = {False: NoHead, True: TransformHead}
