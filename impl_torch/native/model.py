"""The Transformer of torch's own layers, by their documentation (figure 1).

    x = nn.TransformerEncoderLayer(D, H, F)(x)

One call decides what encoder.py and attention.py write out:

- A mask is True where a query may NOT attend, the other way round than here
  (R1). One for each row has an axis of B · H.
- Query, key and value are one kernel [3D D], stored as [out in].
- ε is 1e-5 where none is given, inside the root, and the variance is over D.
- A query that may attend to nothing gets 0 (R2) in training. In evaluation
  without gradients another path is taken, where it gets NaN;
  torch.backends.mha.set_fastpath_enabled(False) closes it.
- Dropout stands where the paper has it, and on weights as well.
"""

import math

import torch
from torch import nn

from transformer_contract import checks
from impl_torch.positional import position_table


class Transformer(nn.Module):
    """Figure 1 of Vaswani et al. 2017, with norms before or after (R11)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.source = nn.Embedding(config.source_vocab, config.d_model)
        self.target = self.source if config.embeddings_tied else nn.Embedding(
            config.target_vocab, config.d_model)
        self.encoder = self.stack(
            nn.TransformerEncoderLayer, config.n_encoder_layers)
        self.decoder = self.stack(
            nn.TransformerDecoderLayer, config.n_decoder_layers)
        self.norms = nn.ModuleList(
            nn.LayerNorm(config.d_model, config.final_norm_eps)
            if config.final_norm else nn.Identity() for _ in range(2))
        self.output = nn.Linear(
            config.d_model, config.target_vocab, config.has_output_bias)
        for table in (self.source, self.target):  # torch's own have std 1
            nn.init.normal_(table.weight, std=config.d_model**-0.5)
        if config.output_tied:
            self.output.weight = self.target.weight
        self.dropout = nn.Dropout(config.dropout)

    def stack(self, layer, count):
        """Layers of a kind; nn.TransformerEncoder would copy one's weights."""
        config = self.config
        return nn.ModuleList(layer(
            config.d_model, config.n_heads, config.d_ff, config.dropout,
            layer_norm_eps=config.norm_eps, batch_first=True,
            norm_first=config.residual == "pre") for _ in range(count))

    def embedded(self, table, ids, max_length):
        """Ids [B T] to what a stack reads, [B T D] (§3.4, §3.5)."""
        checks.length(ids.shape[1], max_length)
        x = table(ids) * math.sqrt(self.config.d_model)
        positions = position_table(max_length, self.config.d_model)
        return self.dropout(
            x + torch.from_numpy(positions[:ids.shape[1]]).to(x))

    def encode(self, source, source_mask):
        """Source ids [B S] to the memory, [B S D]."""
        x = self.embedded(self.source, source, self.config.source_length)
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=~source_mask[:, 0, 0])
        return self.norms[0](x)

    def decode(self, target, memory, source_mask, target_mask, caches=None):
        """Target ids [B T], reading the memory, to vectors [B T D]."""
        x = self.embedded(self.target, target, self.config.max_length)
        hidden = ~target_mask.repeat_interleave(
            self.config.n_heads, dim=1).flatten(0, 1)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=hidden,
                      memory_key_padding_mask=~source_mask[:, 0, 0])
        return self.norms[1](x)

    def project(self, decoded):
        """Vectors [B T D] to logits [B T V]."""
        return self.output(decoded)

    def forward(self, source, target, source_mask, target_mask):
        """Score every next target token: [B T V].

        Args:
            source, target: int [B S] and [B T].
            source_mask, target_mask: bool [B 1 1 S] and [B 1 T T]; True may be
                read.
        """
        memory = self.encode(source, source_mask)
        return self.project(
            self.decode(target, memory, source_mask, target_mask))
