"""Models of one stack: an encoder alone, as BERT; a decoder alone, as GPT-2.

A decoder that has no source has no cross-attention either: its layers are an
encoder's under a causal mask. Both models are called as a Transformer is, and
leave aside what is of the other stack (R53). In a search the source of a
decoder is its prompt, which the target continues.
"""

import keras
from keras import ops

from transformer_contract.trace import tap
from impl_keras import parts, public
from impl_keras.dialects.output import Output
from impl_keras.dialects.stacks import CausalStack
from impl_keras.dialects.transformer import DialectTransformer
from impl_keras.masks import causal_mask
from impl_keras.whole import WholeModel, parts_in


@keras.saving.register_keras_serializable("impl_keras")
class EncoderModel(Output, WholeModel):
    """An encoder and a projection: a score for every source token."""

    embed_source = DialectTransformer.embed_source
    encode = DialectTransformer.encode

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        public.check_class(self, config)
        with parts_in(self.dtype_policy):
            self.source_embedding = parts.source_embedding(config)
            self.source_positions = parts.source_positions(config)
            self.encoder = parts.encoder(config)
            self.end(config)
            self.projection = parts.projection(
                config, self.source_embedding)

    def call(self, source, target=None, source_mask=None, target_mask=None):
        """Score the tokens that source [B S] may have: [B S V]."""
        source, target = public.pair(source, target)
        source_mask, _ = public.given_masks(
            self, source, None, source_mask, None)
        memory = self.encode(source, source_mask)
        return self.project(memory)

    def compute_output_spec(self, source, target=None, *masks, **others):
        """What call returns for ids of any sizes, as Keras' functions ask."""
        source, _ = public.pair(source, target)
        return keras.KerasTensor(
            (*source.shape, self.config.target_vocab), self.compute_dtype)


@keras.saving.register_keras_serializable("impl_keras")
class DecoderModel(Output, WholeModel):
    """A decoder and a projection: a score for every next token."""

    compute_output_spec = DialectTransformer.compute_output_spec
    embed_target = DialectTransformer.embed_target
    generate = DialectTransformer.generate

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        public.check_class(self, config)
        with parts_in(self.dtype_policy):
            self.target_embedding = parts.target_embedding(config, None)
            self.target_positions = parts.target_positions(config)
            self.decoder = CausalStack(config)
            self.end(config)
            self.projection = parts.projection(
                config, self.target_embedding)

    def read(self, tokens, mask, caches):
        """Tokens [B T] to vectors [B T D]; mask and caches as a Decoder's."""
        start = 0 if caches is None else caches[0].written
        x = self.embed_target(tokens, start)
        # [1] decoded [B T D]: Decoder(embedded tokens)
        decoded = tap(self, "decoded", self.decoder(x, mask, caches=caches))
        return decoded

    def encode(self, source, source_mask):
        """The prompt as it is: what a target continues, int [B S]."""
        return source

    def decode(self, target, memory, source_mask, target_mask, caches):
        """Target tokens [B T] behind a prompt, memory [B S]: [B T D].

        The target's first token is in the place of the prompt's last one,
        which is read instead. With caches, the prompt is read token by token
        before the target's first.
        """
        prompt = memory.shape[1]
        if caches is None:
            tokens = ops.concatenate([memory, target[:, 1:]], axis=1)
            seen = ops.concatenate(
                [source_mask, target_mask[:, :, -1:, 1:]], axis=-1)
            decoded = self.read(
                tokens, seen & causal_mask(tokens.shape[1]), None)
            return decoded[:, prompt - 1:]
        seen = ops.concatenate([source_mask, target_mask[:, :, :, 1:]], axis=-1)
        place = ops.arange(seen.shape[-1])
        if caches[0].written:
            return self.read(target, seen, caches)
        for i in range(prompt):
            decoded = self.read(
                memory[:, i:i + 1], seen & (place <= i), caches)
        return decoded

    def call(self, source, target=None, source_mask=None, target_mask=None):
        """Score every next token of target [B T]: [B T V]."""
        source, target = public.pair(source, target)
        _, target_mask = public.given_masks(
            self, None, target, None, target_mask)
        decoded = self.read(target, target_mask, None)
        return self.project(decoded)
