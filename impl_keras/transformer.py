"""The Transformer: source tokens in, a score for every target token out.

    memory  = Encoder(positions + embedding of the source)
    decoded = Decoder(positions + embedding of the target, memory)
    logits  = decoded Eᵀ
"""

import keras

from transformer_contract.trace import tap
from impl_keras import parts, public
from impl_keras.whole import WholeModel, parts_in


@keras.saving.register_keras_serializable("impl_keras")
class Transformer(WholeModel):
    """Vaswani et al. 2017, figure 1: two sides, two stacks and an output.

    One table serves both embeddings and the projection (section 3.4).
    """

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        public.check_class(self, config)
        with parts_in(self.dtype_policy):
            self.source_embedding = parts.source_embedding(config)
            self.source_positions = parts.source_positions(config)
            self.target_embedding = parts.target_embedding(
                config, self.source_embedding)
            self.target_positions = parts.target_positions(config)
            self.encoder = parts.encoder(config)
            self.decoder = parts.decoder(config)
            self.projection = parts.projection(config, self.target_embedding)

    def embed_source(self, source):
        """Source tokens [B S] to what the encoder reads, [B S D]."""
        x = self.source_embedding(source)
        # keras: what is no tensor goes by name
        return self.source_positions(x, source, start=0)

    def embed_target(self, target, start):
        """Target tokens [B T], from position start, to the decoder's input."""
        x = self.target_embedding(target)
        return self.target_positions(x, target, start=start)

    def encode(self, source, source_mask):
        """Source tokens [B S] to the memory, [B S D]."""
        x = self.embed_source(source)
        # [1] memory [B S D]: Encoder(embedded source)
        memory = tap(self, "memory", self.encoder(x, source_mask))
        return memory

    def decode(self, target, memory, source_mask, target_mask, caches):
        """Target tokens [B T], reading the memory, to vectors [B T D]."""
        start = 0 if caches is None else caches[0].written
        x = self.embed_target(target, start)
        # [2] decoded [B T D]: Decoder(embedded target, memory)
        decoded = tap(self, "decoded", self.decoder(
            x, memory, source_mask, target_mask, caches=caches))
        return decoded

    def project(self, decoded):
        """Vectors [B T D] to a score for every token, [B T V]."""
        # [3] output [B T V]: the logits, decoded Eᵀ  (§3.4)
        output = tap(self, "output", self.projection(decoded))
        return output

    def call(self, source, target=None, source_mask=None, target_mask=None):
        """Score every next target token: [B T V]. Masks follow from ids.

        Args:
            source: int [B S]; or both, as Keras' fit hands them on.
            target: int [B T].
            source_mask: bool [B 1 1 S] or [B S]; True may be read.
            target_mask: bool [B 1 T T].
        """
        source, target = public.pair(source, target)
        source_mask, target_mask = public.given_masks(
            self, source, target, source_mask, target_mask)
        memory = self.encode(source, source_mask)
        decoded = self.decode(
            target, memory, source_mask, target_mask, None)
        return self.project(decoded)

    def compute_output_spec(self, source, target=None, *masks, **others):
        """What call returns for ids of any sizes, as Keras' functions ask."""
        _, target = public.pair(source, target)
        return keras.KerasTensor(
            (*target.shape, self.config.target_vocab), self.compute_dtype)

    def generate(self, source, **settings):
        """Find the targets of source [B S]; see public.generate."""
        return public.generate(self, source, settings)
