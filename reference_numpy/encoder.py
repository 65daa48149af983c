"""The encoder: N layers of self-attention and feed-forward (section 3.1)."""

from reference_numpy.attention import MultiHeadAttention
from reference_numpy.feed_forward import FEED_FORWARDS
from reference_numpy.layer_norm import NORMS, NoNorm
from reference_numpy.relative import tie, tie_backward
from reference_numpy.residual import RESIDUALS


class EncoderLayer:
    """Self-attention, then feed-forward, each within a residual.

    Parameters: those of ``self_attention``, ``self_attention_residual``,
    ``feed_forward`` and ``feed_forward_residual``.
    """

    def __init__(self, config):
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config, "bidirectional")
        self.self_attention_residual = Residual(config)
        self.feed_forward = FEED_FORWARDS[config.gated](config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        c = {}
        y, c["self_attention_residual"] = self.self_attention_residual.before(x)
        y, c["self_attention"] = self.self_attention.forward(y, y, mask, None)
        # [1] attended [B S D]: x and its self-attention, in a residual
        attended = c["attended"] = self.self_attention_residual.after(
            x, y, c["self_attention_residual"])
        y, c["feed_forward_residual"] = self.feed_forward_residual.before(
            attended)
        y, c["feed_forward"] = self.feed_forward.forward(y)
        # [2] output [B S D]: attended and its feed-forward, in a residual
        output = c["output"] = self.feed_forward_residual.after(
            attended, y, c["feed_forward_residual"])
        return output, c

    def backward(self, doutput, c):
        """From doutput [B S D]: dx and g."""
        g = {"output": doutput}
        # [2'] attended: output = attended and its feed-forward, in a residual
        dattended, dy, g["feed_forward_residual"] = (
            self.feed_forward_residual.after_backward(
                doutput, c["feed_forward_residual"]))
        dy, g["feed_forward"] = self.feed_forward.backward(
            dy, c["feed_forward"])
        dattended = g["attended"] = (
            dattended + self.feed_forward_residual.before_backward(
                dy, c["feed_forward_residual"], g["feed_forward_residual"]))
        # [1'] x: attended = x and its self-attention, in a residual
        dx, dy, g["self_attention_residual"] = (
            self.self_attention_residual.after_backward(
                dattended, c["self_attention_residual"]))
        dy, dmemory, g["self_attention"] = self.self_attention.backward(
            dy, c["self_attention"])
        dx = dx + self.self_attention_residual.before_backward(
            dy + dmemory, c["self_attention_residual"],
            g["self_attention_residual"])
        return dx, g


class Encoder:
    """N encoder layers and, where the config asks for it, a final norm.

    Parameters: those of ``layers.0``, ``layers.1``, … and ``norm``.
    """

    def __init__(self, config):
        self.layers = [
            EncoderLayer(config) for _ in range(config.n_encoder_layers)]
        tie(self.layers)
        self.norm = (
            NORMS[config.norm_form](config.d_model, config.final_norm_eps)
            if config.final_norm else NoNorm())

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        c = {}
        for i, layer in enumerate(self.layers):
            x, c[f"layers.{i}"] = layer.forward(x, mask)
        # [1] output [B S D]: the last layer's output, normalised if R11 says so
        output, c["norm"] = self.norm.forward(x)
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B S D]: dx and g."""
        g = {"output": doutput}
        # [1'] x: output = the last layer's output, normalised if R11 says so
        dx, g["norm"] = self.norm.backward(doutput, c["norm"])
        for i, layer in reversed(list(enumerate(self.layers))):
            dx, g[f"layers.{i}"] = layer.backward(dx, c[f"layers.{i}"])
        tie_backward([g[f"layers.{i}"] for i in range(len(self.layers))])
        return dx, g
