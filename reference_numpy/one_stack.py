"""Models of one stack: an encoder alone, as BERT; a decoder alone, as GPT-2.

A decoder that has no source has no cross-attention either: its layers are an
encoder's under a causal mask. Both models are called as a Transformer is, and
leave aside what is of the other stack (R53). In a search the source of a
decoder is its prompt, which the target continues.
"""

import numpy as np

from reference_numpy.attention import MultiHeadAttention
from reference_numpy.embedding import BEGINS, EMBEDDINGS, TokenEmbedding
from reference_numpy.encoder import Encoder, EncoderLayer
from reference_numpy.feed_forward import FEED_FORWARDS
from reference_numpy.head import HEADS
from reference_numpy.layer_norm import NORMS, NoNorm
from reference_numpy.masks import causal_mask
from reference_numpy.positional import ENCODINGS
from reference_numpy.projection import (
    OUTPUTS, OUTPUTS_BACKWARD, SCALES, projection_of)
from reference_numpy.relative import tie
from reference_numpy.residual import RESIDUALS
from reference_numpy.transformer import Transformer


class CausalLayer(EncoderLayer):
    """Masked self-attention, then feed-forward, each within a residual."""

    def __init__(self, config):
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config, "causal")
        self.self_attention_residual = Residual(config)
        self.feed_forward = FEED_FORWARDS[config.gated](config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        c = {}
        y, c["self_attention_residual"] = self.self_attention_residual.before(x)
        y, c["self_attention"] = self.self_attention.forward(y, y, mask, cache)
        # [1] attended [B T D]: x and its self-attention, in a residual
        attended = c["attended"] = self.self_attention_residual.after(
            x, y, c["self_attention_residual"])
        y, c["feed_forward_residual"] = self.feed_forward_residual.before(
            attended)
        y, c["feed_forward"] = self.feed_forward.forward(y)
        # [2] output [B T D]: attended and its feed-forward, in a residual
        output = c["output"] = self.feed_forward_residual.after(
            attended, y, c["feed_forward_residual"])
        return output, c


class CausalStack(Encoder):
    """N such layers and, where the config asks for it, a final norm."""

    def __init__(self, config):
        self.layers = [
            CausalLayer(config) for _ in range(config.n_decoder_layers)]
        tie(self.layers)
        self.norm = (
            NORMS[config.norm_form](config.d_model, config.final_norm_eps)
            if config.final_norm else NoNorm())

    def forward(self, x, mask, caches):
        """Map x [B T D]; mask and caches as in a Decoder."""
        c = {}
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x, c[f"layers.{i}"] = layer.forward(x, mask, cache)
        # [1] output [B T D]: the last layer's output, normalised if R11 says so
        output, c["norm"] = self.norm.forward(x)
        c["output"] = output
        return output, c


class EncoderModel(Transformer):
    """An encoder and a projection: a score for every source token."""

    def __init__(self, config):
        self.config = config
        Positions = ENCODINGS[config.position_padding][config.positions]
        self.source_embedding = EMBEDDINGS[config.token_types > 0](
            config, config.source_vocab)
        self.source_positions = Positions(config, config.source_length)
        self.encoder = Encoder(config)
        self.head = HEADS[config.output_transform](config)
        self.projection = projection_of(config, self.source_embedding)
        self.output_factor = SCALES[config.output_scale](config.d_model)
        self.output_function = OUTPUTS[config.output]
        self.output_backward = OUTPUTS_BACKWARD[config.output]

    def forward(self, source, target, source_mask, target_mask):
        """Score the tokens that source [B S] may have: [B S V]."""
        memory, encoding = self.encode(source, source_mask)
        output, projecting = self.project(memory)
        return output, {**encoding, **projecting}

    def backward(self, doutput, c):
        """From doutput [B S V]: g, every parameter's and every step's."""
        dmemory, g = self.project_backward(doutput, c)
        g |= self.encode_backward(dmemory, c)
        if self.config.output_tied:
            g["source_embedding"]["table"] += g["projection"].pop("table")
        return g


class DecoderModel(Transformer):
    """A decoder and a projection: a score for every next token."""

    def __init__(self, config):
        self.config = config
        Positions = ENCODINGS[config.position_padding][config.positions]
        self.target_embedding = TokenEmbedding(config, config.target_vocab)
        self.target_begin = BEGINS[config.begin]()
        self.target_positions = Positions(config, config.max_length)
        self.decoder = CausalStack(config)
        self.head = HEADS[config.output_transform](config)
        self.projection = projection_of(config, self.target_embedding)
        self.output_factor = SCALES[config.output_scale](config.d_model)
        self.output_function = OUTPUTS[config.output]
        self.output_backward = OUTPUTS_BACKWARD[config.output]

    def read(self, tokens, mask, caches):
        """Tokens [B T] to vectors [B T D], as Transformer.decode has them."""
        c = {}
        start = 0 if caches is None else caches[0].written
        x, c["target_embedding"] = self.target_embedding.forward(tokens)
        x, c["target_begin"] = self.target_begin.forward(x, start)
        x, c["target_positions"] = self.target_positions.forward(
            x, tokens, start)
        # [1] decoded [B T D]: the decoder's output
        decoded, c["decoder"] = self.decoder.forward(x, mask, caches)
        c["decoded"] = decoded
        return decoded, c

    @property
    def cached(self):
        """Whether a search may keep keys and values.

        With a prompt that is padded, tokens that are counted without padding
        have other positions in each row.
        """
        return not self.config.position_padding

    def encode(self, source, source_mask):
        """The prompt as it is: what a target continues, int [B S]."""
        return source, {}

    def room(self, source, length):
        """How many tokens a cache keeps: the prompt's and the target's."""
        return source.shape[1] - 1 + length

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
        # [1'] x: decoded = the decoder's output
        dx, g["decoder"] = self.decoder.backward(ddecoded, c["decoder"])
        g |= self.embed_backward(dx, c)
        if self.config.output_tied:
            g["target_embedding"]["table"] += g["projection"].pop("table")
        return g


#: By which stacks a model has.
MODELS = {
    "both": Transformer, "encoder": EncoderModel, "decoder": DecoderModel}
