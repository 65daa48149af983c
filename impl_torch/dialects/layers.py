"""Layers of other systems: x + f(norm(x)), and a decoder's without a source."""

from torch import nn

from transformer_contract.trace import tap
from impl_torch import parts
from impl_torch.decoder import DecoderLayer
from impl_torch.encoder import EncoderLayer


class PreNormEncoderLayer(EncoderLayer):
    """An encoder layer whose residual connections normalise first (R11)."""

    def forward(self, x, mask):
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

    def forward(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], reading memory [B S D]; masks as in the paper's."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, cache)
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
        nn.Module.__init__(self)
        self.self_attention = parts.attention(config, "causal")
        self.self_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def forward(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        y = self.self_attention(x, x, mask, cache)
        # [1] attended [B T D]: norm(x + SelfAttention(x))
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.feed_forward(attended)
        # [2] output [B T D]: norm(attended + FeedForward(attended))
        output = tap(self, "output", self.feed_forward_residual(attended, y))
        return output


class PreNormCausalLayer(CausalLayer):
    """The same, whose residual connections normalise first (R11)."""

    def forward(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, cache)
        # [1] attended [B T D]: x + SelfAttention(norm(x))
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.feed_forward_residual.before(attended)
        y = self.feed_forward(y)
        # [2] output [B T D]: attended + FeedForward(norm(attended))
        output = tap(self, "output", self.feed_forward_residual(attended, y))
        return output
