"""The decoder: N layers that also read the encoder's output (section 3.1).

    attended = LayerNorm(x + SelfAttention(x))
    informed = LayerNorm(attended + CrossAttention(attended, memory))
    output   = LayerNorm(informed + FeedForward(informed))
"""

from reference_numpy import parts


class DecoderLayer:
    """Masked self-attention, cross-attention, feed-forward.

    Parameters: those of ``self_attention``, ``cross_attention``,
    ``feed_forward`` and of the residual connection around each.
    """

    def __init__(self, config):
        self.self_attention = parts.attention(config, "causal")
        self.self_attention_residual = parts.residual(config)
        self.cross_attention = parts.attention(config, "cross")
        self.cross_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def forward(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], reading memory [B S D].

        ``memory_mask`` [B 1 1 S] says which of the memory may be read, ``mask``
        [B 1 T T] which of x. With a cache, x is one token [B 1 D], and ``mask``
        [B 1 1 N] says which of those that the cache keeps.
        """
        c = {}
        y, c["self_attention"] = self.self_attention.forward(x, x, mask, cache)
        # [1] attended [B T D]: norm(x + SelfAttention(x))  (§3.1)
        attended, c["self_attention_residual"] = (
            self.self_attention_residual.forward(x, y))
        c["attended"] = attended
        y, c["cross_attention"] = self.cross_attention.forward(
            attended, memory, memory_mask, None)
        # [2] informed [B T D]: norm(attended + Attention(attended, memory))
        informed, c["cross_attention_residual"] = (
            self.cross_attention_residual.forward(attended, y))
        c["informed"] = informed
        y, c["feed_forward"] = self.feed_forward.forward(informed)
        # [3] output [B T D]: norm(informed + FeedForward(informed))  (§3.1)
        output, c["feed_forward_residual"] = (
            self.feed_forward_residual.forward(informed, y))
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        g = {"output": doutput}
        # [3'] informed: output = norm(informed + FeedForward(informed))
        dinformed, dy, g["feed_forward_residual"] = (
            self.feed_forward_residual.backward(
                doutput, c["feed_forward_residual"]))
        dy, g["feed_forward"] = self.feed_forward.backward(
            dy, c["feed_forward"])
        dinformed = g["informed"] = dinformed + dy
        # [2'] attended: informed = norm(attended + CrossAttention(…))
        dattended, dy, g["cross_attention_residual"] = (
            self.cross_attention_residual.backward(
                dinformed, c["cross_attention_residual"]))
        dy, dmemory, g["cross_attention"] = self.cross_attention.backward(
            dy, c["cross_attention"])
        dattended = g["attended"] = dattended + dy
        # [1'] x: attended = norm(x + SelfAttention(x))
        dx, dy, g["self_attention_residual"] = (
            self.self_attention_residual.backward(
                dattended, c["self_attention_residual"]))
        dy, dy_memory, g["self_attention"] = self.self_attention.backward(
            dy, c["self_attention"])
        return dx + (dy + dy_memory), dmemory, g


class Decoder:
    """N decoder layers. Parameters: those of ``layers.0``, ``layers.1``, …"""

    def __init__(self, config):
        self.layers = [parts.decoder_layer(config)
                       for _ in range(config.n_decoder_layers)]

    def through(self, x, memory, memory_mask, mask, caches, c):
        """x [B T D] after the last layer; masks as in a layer."""
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x, c[f"layers.{i}"] = layer.forward(
                x, memory, memory_mask, mask, cache)
        return x

    def forward(self, x, memory, memory_mask, mask, caches):
        """Map x [B T D], reading memory [B S D]; masks as in a layer.

        ``caches`` has a cache for each layer; None where all of x is given.
        """
        c = {}
        # [1] output [B T D]: layer_N(… layer_1(x, memory), memory)  (§3.1)
        output = c["output"] = self.through(
            x, memory, memory_mask, mask, caches, c)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        g = {"output": doutput}
        # [1'] x, memory: output = layer_N(… layer_1(x, memory), memory)
        dx, dmemory = self.through_backward(doutput, c, g)
        return dx, dmemory, g

    def through_backward(self, dx, c, g):
        """From dx, of what is after the last layer [B T D]: x's, dmemory.

        Every layer read the memory, so its gradient is a sum over layers.
        """
        dmemory = 0
        for i, layer in reversed(list(enumerate(self.layers))):
            dx, dlayer, g[f"layers.{i}"] = layer.backward(
                dx, c[f"layers.{i}"])
            dmemory = dmemory + dlayer
        return dx, dmemory
