"""Layers of other systems: x + f(norm(x)), and a decoder's without a source."""

from transformer_contract.trace import tap
from impl_keras import parts
from impl_keras.decoder import DecoderLayer
from impl_keras.encoder import EncoderLayer
from impl_keras.whole import Layer


class PreNormEncoderLayer(EncoderLayer):
    """An encoder layer whose residual connections normalise first (R11)."""

    def call(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, None)
        # [1] attended [B S D]: x + SelfAttention(norm(x))
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.feed_forward_residual.before(attended)
        y = self.feed_forward(y)
        # [2] output [B S D]: attended + FeedForward(norm(attended))
        output = tap(self, "output", self.feed_forward_residual(attended, y))
        return output


class PreNormDecoderLayer(DecoderLayer):
    """A decoder layer whose residual connections normalise first (R11)."""

    def call(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], or one token with a cache, reading memory [B S D]."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, cache=cache)
        # [1] attended [B T D]: x + SelfAttention(norm(x))
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.cross_attention_residual.before(attended)
        y = self.cross_attention(y, memory, memory_mask, None)
        # [2] informed [B T D]: attended + Attention(norm(attended), memory)
        informed = tap(
            self, "informed", self.cross_attention_residual(attended, y))
        y = self.feed_forward_residual.before(informed)
        y = self.feed_forward(y)
        # [3] output [B T D]: informed + FeedForward(norm(informed))
        output = tap(self, "output", self.feed_forward_residual(informed, y))
        return output


class CausalLayer(EncoderLayer):
    """A decoder's layer without a source: no cross-attention."""

    def __init__(self, config):
        Layer.__init__(self)  # keras: another attention than its own
        self.self_attention = parts.attention(config, "causal")
        self.self_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def call(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        y = self.self_attention(x, x, mask, cache=cache)
        # [1] attended [B T D]: norm(x + SelfAttention(x))
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.feed_forward(attended)
        # [2] output [B T D]: norm(attended + FeedForward(attended))
        output = tap(self, "output", self.feed_forward_residual(attended, y))
        return output


class PreNormCausalLayer(CausalLayer, PreNormEncoderLayer):
    """The same, whose residual connections normalise first (R11)."""

    def call(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, cache=cache)
        # [1] attended [B T D]: x + SelfAttention(norm(x))
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.feed_forward_residual.before(attended)
        y = self.feed_forward(y)
        # [2] output [B T D]: attended + FeedForward(norm(attended))
        output = tap(self, "output", self.feed_forward_residual(attended, y))
        return output
