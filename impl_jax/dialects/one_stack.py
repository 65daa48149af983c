"""Models of one stack: an encoder alone, as BERT; a decoder alone, as GPT-2.

Both are called as a Transformer is, and leave aside what is of the other stack
(R53). In a search the source of a decoder is its prompt.
"""

import jax.numpy as jnp
from flax import nnx

from transformer_contract.trace import tap
from impl_jax import parts, public
from impl_jax.dialects.output import Output
from impl_jax.dialects.stacks import CausalStack
from impl_jax.dialects.transformer import DialectTransformer
from impl_jax.masks import causal_mask


class EncoderModel(Output, nnx.Module):
    """An encoder and a projection: a score for every source token."""

    embed_source = DialectTransformer.embed_source
    encode = DialectTransformer.encode

    def __init__(self, config, *, rngs):
        self.config = config
        self.source_embedding = parts.source_embedding(config, rngs=rngs)
        self.source_positions = parts.source_positions(config, rngs=rngs)
        self.encoder = parts.encoder(config, rngs=rngs)
        self.end(config, self.source_embedding, rngs=rngs)

    def __call__(
            self, source, target=None, source_mask=None, target_mask=None):
        """Score the tokens that source [B S] may have: [B S V]."""
        source_mask, _ = public.given_masks(
            self, source, None, source_mask, None)
        memory = self.encode(source, source_mask)
        return self.project(memory)


class DecoderModel(Output, nnx.Module):
    """A decoder and a projection: a score for every next token."""

    embed_target = DialectTransformer.embed_target
    generate = DialectTransformer.generate

    def __init__(self, config, *, rngs):
        self.config = config
        self.target_embedding = parts.target_embedding(
            config, None, rngs=rngs)
        self.target_positions = parts.target_positions(config, rngs=rngs)
        self.decoder = CausalStack(config, rngs=rngs)
        self.end(config, self.target_embedding, rngs=rngs)

    def read(self, tokens, mask, caches):
        """Tokens [B T] to vectors [B T D]; mask and caches as a Decoder's."""
        start = 0 if caches is None else caches[0].written
        x = self.embed_target(tokens, start)
        # [1] decoded [B T D]: Decoder(embedded tokens)
        decoded = tap(self, "decoded", self.decoder(x, mask, caches))
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
            tokens = jnp.concatenate([memory, target[:, 1:]], axis=1)
            seen = jnp.concatenate(
                [source_mask, target_mask[:, :, -1:, 1:]], axis=-1)
            decoded = self.read(
                tokens, seen & causal_mask(tokens.shape[1]), None)
            return decoded[:, prompt - 1:]
        seen = jnp.concatenate([source_mask, target_mask[:, :, :, 1:]], axis=-1)
        place = jnp.arange(seen.shape[-1])
        if caches[0].written:
            return self.read(target, seen, caches)
        for i in range(prompt):
            decoded = self.read(
                memory[:, i:i + 1], seen & (place <= i), caches)
        return decoded

    def __call__(self, source, target, source_mask=None, target_mask=None):
        """Score every next token of target [B T]: [B T V]."""
        _, target_mask = public.given_masks(
            self, None, target, None, target_mask)
        decoded = self.read(target, target_mask, None)
        return self.project(decoded)
