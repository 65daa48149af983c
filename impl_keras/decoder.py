"""The decoder: N layers that also read the encoder's output (section 3.1).

    attended = LayerNorm(x + SelfAttention(x))
    informed = LayerNorm(attended + CrossAttention(attended, memory))
    output   = LayerNorm(informed + FeedForward(informed))
"""

from transformer_contract.trace import tap
from impl_keras import parts
from impl_keras.whole import Layer


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention, feed-forward."""

    def __init__(self, config):
        super().__init__()
        self.self_attention = parts.attention(config, "causal")
        self.self_attention_residual = parts.residual(config)
        self.cross_attention = parts.attention(config, "cross")
        self.cross_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def call(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], or one token with a cache, reading memory [B S D]."""
        # keras: what is no tensor goes by name
        y = self.self_attention(x, x, mask, cache=cache)
        # [1] attended [B T D]: norm(x + SelfAttention(x))  (§3.1)
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.cross_attention(attended, memory, memory_mask, None)
        # [2] informed [B T D]: norm(attended + Attention(attended, memory))
        informed = tap(
            self, "informed", self.cross_attention_residual(attended, y))
        y = self.feed_forward(informed)
        # [3] output [B T D]: norm(informed + FeedForward(informed))  (§3.1)
        output = tap(self, "output", self.feed_forward_residual(informed, y))
        return output


class Decoder(Layer):
    """N decoder layers."""

    def __init__(self, config):
        super().__init__()
        self.layers = [parts.decoder_layer(config)
                       for _ in range(config.n_decoder_layers)]

    def through(self, x, memory, memory_mask, mask, caches):
        """x [B T D] after the last layer; masks as in a layer."""
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x = layer(x, memory, memory_mask, mask, cache=cache)
        return x

    def call(self, x, memory, memory_mask, mask, caches):
        """Map x [B T D], reading memory [B S D]; masks as in a layer."""
        # [1] output [B T D]: layer_N(… layer_1(x, memory), memory)  (§3.1)
        output = tap(self, "output", self.through(
            x, memory, memory_mask, mask, caches))
        return output
