"""The decoder: N layers that also read the encoder's output (section 3.1)."""

import mlx.nn as nn

from contract.trace import tap
from impl_mlx.attention import MultiHeadAttention
from impl_mlx.feed_forward import FEED_FORWARDS
from impl_mlx.layer_norm import NORMS, NoNorm
from impl_mlx.relative import tie
from impl_mlx.residual import RESIDUALS


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward."""

    def __init__(self, config):
        super().__init__()
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config, "causal")
        self.self_attention_residual = Residual(config)
        self.cross_attention = MultiHeadAttention(config, "cross")
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FEED_FORWARDS[config.gated](config)
        self.feed_forward_residual = Residual(config)

    def __call__(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], or one token with a cache, reading memory [B S D]."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, cache)
        # [1] attended [B T D]: x and its self-attention, in a residual
        attended = tap(
            self, "attended", self.self_attention_residual.after(x, y))
        y = self.cross_attention_residual.before(attended)
        y = self.cross_attention(y, memory, memory_mask, None)
        # [2] informed [B T D]: attended and its cross-attention, in a residual
        informed = tap(
            self, "informed", self.cross_attention_residual.after(attended, y))
        y = self.feed_forward_residual.before(informed)
        y = self.feed_forward(y)
        # [3] output [B T D]: informed and its feed-forward, in a residual
        output = tap(
            self, "output", self.feed_forward_residual.after(informed, y))
        return output


class Decoder(nn.Module):
    """N decoder layers and, where the config asks for it, a final norm."""

    def __init__(self, config):
        super().__init__()
        self.layers = [
            DecoderLayer(config) for _ in range(config.n_decoder_layers)]
        tie(self.layers)
        self.norm = (
            NORMS[config.norm_form](config.d_model, config.final_norm_eps)
            if config.final_norm else NoNorm())

    def __call__(self, x, memory, memory_mask, mask, caches):
        """Map x [B T D], reading memory [B S D]; masks as in a layer."""
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x = layer(x, memory, memory_mask, mask, cache)
        # [1] output [B T D]: the last layer's output, normalised if R11 says so
        output = tap(self, "output", self.norm(x))
        return output
