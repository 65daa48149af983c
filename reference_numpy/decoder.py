"""The decoder: N layers that also read the encoder's output (section 3.1)."""

from reference_numpy.attention import MultiHeadAttention
from reference_numpy.feed_forward import FEED_FORWARDS
from reference_numpy.layer_norm import NORMS, NoNorm
from reference_numpy.relative import tie, tie_backward
from reference_numpy.residual import RESIDUALS


class DecoderLayer:
    """Masked self-attention, cross-attention, feed-forward.

    Parameters: those of ``self_attention``, ``cross_attention``,
    ``feed_forward`` and of the residual around each.
    """

    def __init__(self, config):
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config, "causal")
        self.self_attention_residual = Residual(config)
        self.cross_attention = MultiHeadAttention(config, "cross")
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FEED_FORWARDS[config.gated](config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], reading memory [B S D].

        ``memory_mask`` [B 1 1 S] says which of the memory may be read, ``mask``
        [B 1 T T] which of x. With a cache, x is one token [B 1 D], and ``mask``
        [B 1 1 N] says which of those that the cache keeps.
        """
        c = {}
        y, c["self_attention_residual"] = self.self_attention_residual.before(x)
        y, c["self_attention"] = self.self_attention.forward(y, y, mask, cache)
        # [1] attended [B T D]: x and its self-attention, in a residual
        attended = c["attended"] = self.self_attention_residual.after(
            x, y, c["self_attention_residual"])
        y, c["cross_attention_residual"] = (
            self.cross_attention_residual.before(attended))
        y, c["cross_attention"] = self.cross_attention.forward(
            y, memory, memory_mask, None)
        # [2] informed [B T D]: attended and its cross-attention, in a residual
        informed = c["informed"] = self.cross_attention_residual.after(
            attended, y, c["cross_attention_residual"])
        y, c["feed_forward_residual"] = self.feed_forward_residual.before(
            informed)
        y, c["feed_forward"] = self.feed_forward.forward(y)
        # [3] output [B T D]: informed and its feed-forward, in a residual
        output = c["output"] = self.feed_forward_residual.after(
            informed, y, c["feed_forward_residual"])
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        g = {"output": doutput}
        # [3'] informed: output = informed and its feed-forward, in a residual
        dinformed, dy, g["feed_forward_residual"] = (
            self.feed_forward_residual.after_backward(
                doutput, c["feed_forward_residual"]))
        dy, g["feed_forward"] = self.feed_forward.backward(
            dy, c["feed_forward"])
        dinformed = g["informed"] = (
            dinformed + self.feed_forward_residual.before_backward(
                dy, c["feed_forward_residual"], g["feed_forward_residual"]))
        # [2'] attended: informed = attended and its cross-attention, likewise
        dattended, dy, g["cross_attention_residual"] = (
            self.cross_attention_residual.after_backward(
                dinformed, c["cross_attention_residual"]))
        dy, dmemory, g["cross_attention"] = self.cross_attention.backward(
            dy, c["cross_attention"])
        dattended = g["attended"] = (
            dattended + self.cross_attention_residual.before_backward(
                dy, c["cross_attention_residual"],
                g["cross_attention_residual"]))
        # [1'] x: attended = x and its self-attention, in a residual
        dx, dy, g["self_attention_residual"] = (
            self.self_attention_residual.after_backward(
                dattended, c["self_attention_residual"]))
        dy, dy_memory, g["self_attention"] = self.self_attention.backward(
            dy, c["self_attention"])
        dx = dx + self.self_attention_residual.before_backward(
            dy + dy_memory, c["self_attention_residual"],
            g["self_attention_residual"])
        return dx, dmemory, g


class Decoder:
    """N decoder layers and, where the config asks for it, a final norm.

    Parameters: those of ``layers.0``, ``layers.1``, … and ``norm``.
    """

    def __init__(self, config):
        self.layers = [
            DecoderLayer(config) for _ in range(config.n_decoder_layers)]
        tie(self.layers)
        self.norm = (
            NORMS[config.norm_form](config.d_model, config.final_norm_eps)
            if config.final_norm else NoNorm())

    def forward(self, x, memory, memory_mask, mask, caches):
        """Map x [B T D], reading memory [B S D]; masks as in a layer.

        ``caches`` has a cache for each layer; None where all of x is given.
        """
        c = {}
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x, c[f"layers.{i}"] = layer.forward(
                x, memory, memory_mask, mask, cache)
        # [1] output [B T D]: the last layer's output, normalised if R11 says so
        output, c["norm"] = self.norm.forward(x)
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g.

        Every layer read the memory, so its gradient is a sum over layers.
        """
        g = {"output": doutput}
        # [1'] x: output = the last layer's output, normalised if R11 says so
        dx, g["norm"] = self.norm.backward(doutput, c["norm"])
        dmemory = 0
        for i, layer in reversed(list(enumerate(self.layers))):
            dx, dlayer, g[f"layers.{i}"] = layer.backward(
                dx, c[f"layers.{i}"])
            dmemory = dmemory + dlayer
        tie_backward([g[f"layers.{i}"] for i in range(len(self.layers))])
        return dx, dmemory, g
