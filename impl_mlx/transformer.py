"""The Transformer: source tokens in, a score for every target token out."""

import mlx.nn as nn

from contract.trace import tap
from impl_mlx.decoder import Decoder
from impl_mlx.embedding import (
    BEGINS, EMBEDDINGS, TiedEmbedding, TokenEmbedding)
from impl_mlx.encoder import Encoder
from impl_mlx.head import HEADS
from impl_mlx.positional import ENCODINGS
from impl_mlx.projection import OUTPUTS, SCALES, projection_of


class Transformer(nn.Module):
    """Vaswani et al. 2017, figure 1, and the variants that a config names."""

    #: Whether a search may keep keys and values.
    cached = True

    def __init__(self, config):
        super().__init__()
        self.config = config
        Positions = ENCODINGS[config.position_padding][config.positions]
        self.source_embedding = EMBEDDINGS[config.token_types > 0](
            config, config.source_vocab)
        self.source_positions = Positions(config, config.source_length)
        self.target_embedding = (
            TiedEmbedding(self.source_embedding) if config.embeddings_tied
            else TokenEmbedding(config, config.target_vocab))
        self.target_begin = BEGINS[config.begin]()
        self.target_positions = Positions(config, config.max_length)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.head = HEADS[config.output_transform](config)
        self.projection = projection_of(config, self.target_embedding)
        self.output_factor = SCALES[config.output_scale](config.d_model)
        self.output_function = OUTPUTS[config.output]

    def room(self, source, length):
        """How many tokens a cache keeps for a target of ``length``."""
        return length

    def encode(self, source, source_mask):
        """Source tokens [B S] to the memory, [B S D]."""
        x = self.source_embedding(source)
        x = self.source_positions(x, source, 0)
        # [1] memory [B S D]: the encoder's output
        memory = tap(self, "memory", self.encoder(x, source_mask))
        return memory

    def decode(self, target, memory, source_mask, target_mask, caches):
        """Target tokens [B T], reading the memory, to vectors [B T D]."""
        start = 0 if caches is None else caches[0].written
        x = self.target_embedding(target)
        x = self.target_begin(x, start)
        x = self.target_positions(x, target, start)
        # [2] decoded [B T D]: the decoder's output
        decoded = tap(self, "decoded", self.decoder(
            x, memory, source_mask, target_mask, caches))
        return decoded

    def project(self, decoded):
        """Vectors [B T D] to a score for every token, [B T V]."""
        x = self.head(decoded)
        logits = self.projection(x * self.output_factor)
        # [3] output [B T V]: the logits, or their log-softmax  (R16)
        output = tap(self, "output", self.output_function(logits))
        return output

    def __call__(self, source, target, source_mask, target_mask):
        """Score every next target token: [B T V]."""
        memory = self.encode(source, source_mask)
        decoded = self.decode(
            target, memory, source_mask, target_mask, None)
        return self.project(decoded)
