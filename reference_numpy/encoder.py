"""The encoder: N layers of self-attention and feed-forward (section 3.1).

    attended = LayerNorm(x + SelfAttention(x))
    output   = LayerNorm(attended + FeedForward(attended))
"""

from reference_numpy import parts


class EncoderLayer:
    """Self-attention, then feed-forward, each in a residual connection.

    Parameters: those of ``self_attention``, ``self_attention_residual``,
    ``feed_forward`` and ``feed_forward_residual``.
    """

    def __init__(self, config):
        self.self_attention = parts.attention(config, "bidirectional")
        self.self_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        c = {}
        y, c["self_attention"] = self.self_attention.forward(x, x, mask, None)
        # [1] attended [B S D]: norm(x + SelfAttention(x))  (§3.1)
        attended, c["self_attention_residual"] = (
            self.self_attention_residual.forward(x, y))
        c["attended"] = attended
        y, c["feed_forward"] = self.feed_forward.forward(attended)
        # [2] output [B S D]: norm(attended + FeedForward(attended))  (§3.1)
        output, c["feed_forward_residual"] = (
            self.feed_forward_residual.forward(attended, y))
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B S D]: dx and g."""
        g = {"output": doutput}
        # [2'] attended: output = norm(attended + FeedForward(attended))
        dattended, dy, g["feed_forward_residual"] = (
            self.feed_forward_residual.backward(
                doutput, c["feed_forward_residual"]))
        dy, g["feed_forward"] = self.feed_forward.backward(
            dy, c["feed_forward"])
        dattended = g["attended"] = dattended + dy
        # [1'] x: attended = norm(x + SelfAttention(x))
        dx, dy, g["self_attention_residual"] = (
            self.self_attention_residual.backward(
                dattended, c["self_attention_residual"]))
        dy, dmemory, g["self_attention"] = self.self_attention.backward(
            dy, c["self_attention"])
        return dx + (dy + dmemory), g


class Encoder:
    """N encoder layers. Parameters: those of ``layers.0``, ``layers.1``, …"""

    def __init__(self, config):
        self.layers = [parts.encoder_layer(config)
                       for _ in range(config.n_encoder_layers)]

    def through(self, x, mask, c):
        """x [B S D] after the last layer; mask is [B 1 1 S]."""
        for i, layer in enumerate(self.layers):
            x, c[f"layers.{i}"] = layer.forward(x, mask)
        return x

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        c = {}
        # [1] output [B S D]: layer_N(… layer_1(x))  (§3.1)
        output = c["output"] = self.through(x, mask, c)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B S D]: dx and g."""
        g = {"output": doutput}
        # [1'] x: output = layer_N(… layer_1(x))
        dx = self.through_backward(doutput, c, g)
        return dx, g

    def through_backward(self, dx, c, g):
        """From dx, of what is after the last layer [B S D]: x's."""
        for i, layer in reversed(list(enumerate(self.layers))):
            dx, g[f"layers.{i}"] = layer.backward(dx, c[f"layers.{i}"])
        return dx
