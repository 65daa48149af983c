"""The encoder: N layers of self-attention and feed-forward (section 3.1)."""

import mlx.nn as nn

from contract.trace import tap
from impl_mlx.attention import MultiHeadAttention
from impl_mlx.feed_forward import FEED_FORWARDS
from impl_mlx.layer_norm import NORMS, NoNorm
from impl_mlx.relative import tie
from impl_mlx.residual import RESIDUALS


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each within a residual."""

    def __init__(self, config):
        super().__init__()
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config, "bidirectional")
        self.self_attention_residual = Residual(config)
        self.feed_forward = FEED_FORWARDS[config.gated](config)
        self.feed_forward_residual = Residual(config)

    def __call__(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, None)
        # [1] attended [B S D]: x and its self-attention, in a residual
        attended = tap(
            self, "attended", self.self_attention_residual.after(x, y))
        y = self.feed_forward_residual.before(attended)
        y = self.feed_forward(y)
        # [2] output [B S D]: attended and its feed-forward, in a residual
        output = tap(
            self, "output", self.feed_forward_residual.after(attended, y))
        return output


class Encoder(nn.Module):
    """N encoder layers and, where the config asks for it, a final norm."""

    def __init__(self, config):
        super().__init__()
        self.layers = [
            EncoderLayer(config) for _ in range(config.n_encoder_layers)]
        tie(self.layers)
        self.norm = (
            NORMS[config.norm_form](config.d_model, config.final_norm_eps)
            if config.final_norm else NoNorm())

    def __call__(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        for layer in self.layers:
            x = layer(x, mask)
        # [1] output [B S D]: the last layer's output, normalised if R11 says so
        output = tap(self, "output", self.norm(x))
        return output
