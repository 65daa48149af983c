"""Models of one stack: an encoder alone, as BERT; a decoder alone, as GPT-2.

A decoder that has no source has no cross-attention either: its layers are an
encoder's under a causal mask. Both models are called as a Transformer is, and
leave aside what is of the other stack (R53). In a search the source of a
decoder is its prompt, which the target continues.
"""

import numpy as np

from reference_numpy import parts
from reference_numpy.dialects.output import Output
from reference_numpy.dialects.stacks import CausalStack
from reference_numpy.dialects.transformer import DialectTransformer
from reference_numpy.masks import causal_mask


class EncoderModel(Output):
    """An encoder and a projection: a score for every source token."""

    training = False
    __call__ = DialectTransformer.__call__
    generate = DialectTransformer.generate
    embed_source = DialectTransformer.embed_source
    encode = DialectTransformer.encode
    encode_backward = DialectTransformer.encode_backward

    def __init__(self, config):
        self.config = config
        self.source_embedding = parts.source_embedding(config)
        self.source_positions = parts.source_positions(config)
        self.encoder = parts.encoder(config)
        self.end(config, self.source_embedding)

    def forward(self, source, target, source_mask, target_mask):
        """Score the tokens that source [B S] may have: [B S V]."""
        memory, encoding = self.encode(source, source_mask)
        output, projecting = self.project(memory)
        return output, {**encoding, **projecting}

    def backward(self, doutput, c):
        """From doutput [B S V]: g, every parameter's and every step's."""
        dmemory, g = self.project_backward(doutput, c)
        self.encode_backward(dmemory, c, g)
        if self.config.output_tied:
            g["source_embedding"]["table"] += g["projection"].pop("table")
        return g


class DecoderModel(Output):
    """A decoder and a projection: a score for every next token."""

    training = False
    __call__ = DialectTransformer.__call__
    generate = DialectTransformer.generate
    embed_target = DialectTransformer.embed_target
    embed_target_backward = DialectTransformer.embed_target_backward

    def __init__(self, config):
        self.config = config
        self.target_embedding = parts.target_embedding(config, None)
        self.target_positions = parts.target_positions(config)
        self.decoder = CausalStack(config)
        self.end(config, self.target_embedding)

    def read(self, tokens, mask, caches):
        """Tokens [B T] to vectors [B T D]; mask and caches as a Decoder's."""
        c = {}
        start = 0 if caches is None else caches[0].written
        x = self.embed_target(tokens, start, c)
        # [1] decoded [B T D]: Decoder(embedded tokens)
        decoded, c["decoder"] = self.decoder.forward(x, mask, caches)
        c["decoded"] = decoded
        return decoded, c

    def encode(self, source, source_mask):
        """The prompt as it is: what a target continues, int [B S]."""
        return source, {}

    def decode(self, target, memory, source_mask, target_mask, caches):
        """Target tokens [B T] behind a prompt, memory [B S]: [B T D].

        The target's first token is in the place of the prompt's last one,
        which is read instead. With caches, the prompt is read token by token
        before the target's first.
        """
        prompt = memory.shape[1]
        if caches is None:
            tokens = np.concatenate([memory, target[:, 1:]], axis=1)
            seen = np.concatenate(
                [source_mask, target_mask[:, :, -1:, 1:]], axis=-1)
            decoded, c = self.read(
                tokens, seen & causal_mask(tokens.shape[1]), None)
            return decoded[:, prompt - 1:], c
        seen = np.concatenate([source_mask, target_mask[:, :, :, 1:]], axis=-1)
        place = np.arange(seen.shape[-1])
        if caches[0].written:
            return self.read(target, seen, caches)
        for i in range(prompt):
            decoded, c = self.read(
                memory[:, i:i + 1], seen & (place <= i), caches)
        return decoded, c

    def forward(self, source, target, source_mask, target_mask):
        """Score every next token of target [B T]: [B T V]."""
        decoded, decoding = self.read(target, target_mask, None)
        output, projecting = self.project(decoded)
        return output, {**decoding, **projecting}

    def backward(self, doutput, c):
        """From doutput [B T V]: g, every parameter's and every step's."""
        ddecoded, g = self.project_backward(doutput, c)
        g["decoded"] = ddecoded
        # [1'] x: decoded = Decoder(x)
        dx, g["decoder"] = self.decoder.backward(ddecoded, c["decoder"])
        self.embed_target_backward(dx, c, g)
        if self.config.output_tied:
            g["target_embedding"]["table"] += g["projection"].pop("table")
        return g
