"""The decoder: N layers that also read the encoder's output (section 3.1)."""

from reference_numpy.attention import MultiHeadAttention
from reference_numpy.feed_forward import FeedForward
from reference_numpy.layer_norm import NORMS, NoNorm
from reference_numpy.residual import RESIDUALS


class DecoderLayer:
    """Masked self-attention, cross-attention, feed-forward.

    Parameters: those of ``self_attention``, ``cross_attention``,
    ``feed_forward`` and of the residual around each.
    """

    def __init__(self, config):
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x, memory, memory_mask, mask):
        """Map x [B T D], reading memory [B S D].

        ``memory_mask`` [B 1 1 S] says which of the memory may be read, ``mask``
        [B 1 T T] which of x.
        """
        c = {}

        def self_attention(x):
            y, c["self_attention"] = self.self_attention.forward(x, x, mask)
            return y

        def cross_attention(x):
            y, c["cross_attention"] = self.cross_attention.forward(
                x, memory, memory_mask)
            return y

        def feed_forward(x):
            y, c["feed_forward"] = self.feed_forward.forward(x)
            return y

        # [1] attended [B T D]: x and its self-attention, in a residual
        attended, c["self_attention_residual"] = (
            self.self_attention_residual.forward(x, self_attention))
        c["attended"] = attended
        # [2] informed [B T D]: attended and its cross-attention, in a residual
        informed, c["cross_attention_residual"] = (
            self.cross_attention_residual.forward(attended, cross_attention))
        c["informed"] = informed
        # [3] output [B T D]: informed and its feed-forward, in a residual
        output, c["feed_forward_residual"] = (
            self.feed_forward_residual.forward(informed, feed_forward))
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        g = {"output": doutput}

        def self_attention(dy):
            dx, dx_memory, g["self_attention"] = self.self_attention.backward(
                dy, c["self_attention"])
            return dx + dx_memory

        def cross_attention(dy):
            nonlocal dmemory
            dx, dmemory, g["cross_attention"] = self.cross_attention.backward(
                dy, c["cross_attention"])
            return dx

        def feed_forward(dy):
            dx, g["feed_forward"] = self.feed_forward.backward(
                dy, c["feed_forward"])
            return dx

        dmemory = None
        # [3'] informed: output = informed and its feed-forward, in a residual
        dinformed, g["feed_forward_residual"] = (
            self.feed_forward_residual.backward(
                doutput, c["feed_forward_residual"], feed_forward))
        g["informed"] = dinformed
        # [2'] attended: informed = attended and its cross-attention, likewise
        dattended, g["cross_attention_residual"] = (
            self.cross_attention_residual.backward(
                dinformed, c["cross_attention_residual"], cross_attention))
        g["attended"] = dattended
        # [1'] x: attended = x and its self-attention, in a residual
        dx, g["self_attention_residual"] = (
            self.self_attention_residual.backward(
                dattended, c["self_attention_residual"], self_attention))
        return dx, dmemory, g


class Decoder:
    """N decoder layers and, where the config asks for it, a final norm.

    Parameters: those of ``layers.0``, ``layers.1``, … and ``norm``.
    """

    def __init__(self, config):
        self.layers = [
            DecoderLayer(config) for _ in range(config.n_decoder_layers)]
        self.norm = (NORMS[config.norm](config.d_model, config.final_norm_eps)
                     if config.final_norm else NoNorm())

    def forward(self, x, memory, memory_mask, mask):
        """Map x [B T D], reading memory [B S D]; masks as in a layer."""
        c = {}
        for i, layer in enumerate(self.layers):
            x, c[f"layers.{i}"] = layer.forward(x, memory, memory_mask, mask)
        # [1] output [B T D]: the last layer's output, normed if R11 says so
        output, c["norm"] = self.norm.forward(x)
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g.

        Every layer read the memory, so its gradient is a sum over layers.
        """
        g = {"output": doutput}
        # [1'] x: output = the last layer's output, normed if R11 says so
        dx, g["norm"] = self.norm.backward(doutput, c["norm"])
        dmemory = 0
        for i, layer in reversed(list(enumerate(self.layers))):
            dx, dlayer, g[f"layers.{i}"] = layer.backward(
                dx, c[f"layers.{i}"])
            dmemory = dmemory + dlayer
        return dx, dmemory, g
