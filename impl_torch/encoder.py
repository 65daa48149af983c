"""The encoder: N layers of self-attention and feed-forward (section 3.1).

    attended = LayerNorm(x + SelfAttention(x))
    output   = LayerNorm(attended + FeedForward(attended))
"""

from torch import nn

from transformer_contract.trace import tap
from impl_torch import parts


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in a residual connection."""

    def __init__(self, config):
        super().__init__()
        self.self_attention = parts.attention(config, "bidirectional")
        self.self_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        y = self.self_attention(x, x, mask, None)
        # [1] attended [B S D]: norm(x + SelfAttention(x))  (§3.1)
        attended = tap(self, "attended", self.self_attention_residual(x, y))
        y = self.feed_forward(attended)
        # [2] output [B S D]: norm(attended + FeedForward(attended))  (§3.1)
        output = tap(self, "output", self.feed_forward_residual(attended, y))
        return output


class Encoder(nn.Module):
    """N encoder layers."""

    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList(
            parts.encoder_layer(config)
            for _ in range(config.n_encoder_layers))

    def through(self, x, mask):
        """x [B S D] after the last layer; mask is [B 1 1 S]."""
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        # [1] output [B S D]: layer_N(… layer_1(x))  (§3.1)
        output = tap(self, "output", self.through(x, mask))
        return output
