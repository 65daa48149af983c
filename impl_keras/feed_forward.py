"""The feed-forward network, the same at every position (section 3.3).

    FFN(x) = max(0, x W₁ + b₁) W₂ + b₂                               (eq. 2)

Other activations and gates are in dialects/feed_forward.py.
"""

from keras import ops

from transformer_contract.trace import tap
from impl_keras.dropout import Dropout
from impl_keras.whole import Layer, dense


class FeedForward(Layer):
    """Two linear maps with max(0, x) between."""

    def __init__(self, config):
        super().__init__()
        self.inner = dense(config.d_model, config.d_ff, use_bias=True)
        self.outer = dense(config.d_ff, config.d_model, use_bias=True)
        self.activated_dropout = Dropout(config.dropout)

    def hidden(self, x):
        """What is between the two maps, [B T F]."""
        # [1] inner [B T F]: x W₁ + b₁  (eq. 2)
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T F]: max(0, inner)  (eq. 2)
        activated = tap(self, "activated", ops.relu(inner))
        return activated

    def call(self, x):
        """Map x [B T D] position by position."""
        activated = self.hidden(x)
        dropped = self.activated_dropout(activated)
        # [3] output [B T D]: activated W₂ + b₂  (eq. 2)
        output = tap(self, "output", self.outer(dropped))
        return output
