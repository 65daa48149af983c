"""Models of one stack: an encoder alone, as BERT; a decoder alone, as GPT-2."""

import mlx.core as mx
import mlx.nn as nn

from contract.trace import tap

from impl_mlx.attention import MultiHeadAttention
from impl_mlx.embedding import BEGINS, EMBEDDINGS, TokenEmbedding
from impl_mlx.encoder import Encoder, EncoderLayer
from impl_mlx.feed_forward import FEED_FORWARDS
from impl_mlx.head import HEADS
from impl_mlx.layer_norm import NORMS, NoNorm
from impl_mlx.masks import causal_mask
from impl_mlx.positional import ENCODINGS
from impl_mlx.projection import OUTPUTS, SCALES, projection_of
from impl_mlx.relative import tie
from impl_mlx.residual import RESIDUALS
from impl_mlx.transformer import Transformer


class CausalLayer(EncoderLayer):
    """Masked self-attention, then feed-forward, each within a residual."""

    def __init__(self, config):
        nn.Module.__init__(self)
        Residual = RESIDUALS[config.residual]
        self.self_attention = MultiHeadAttention(config, "causal")
        self.self_attention_residual = Residual(config)
        self.feed_forward = FEED_FORWARDS[config.gated](config)
        self.feed_forward_residual = Residual(config)

    def __call__(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        y = self.self_attention_residual.before(x)
        y = self.self_attention(y, y, mask, cache)
        # [1] attended [B T D]: x and its self-attention, in a residual
        attended = tap(
            self, "attended", self.self_attention_residual.after(x, y))
        y = self.feed_forward_residual.before(attended)
        y = self.feed_forward(y)
        # [2] output [B T D]: attended and its feed-forward, in a residual
        output = tap(
            self, "output", self.feed_forward_residual.after(attended, y))
        return output


class CausalStack(Encoder):
    """N such layers and, where the config asks for it, a final norm."""

    def __init__(self, config):
        nn.Module.__init__(self)
        self.layers = [
            CausalLayer(config) for _ in range(config.n_decoder_layers)]
        tie(self.layers)
        self.norm = (
            NORMS[config.norm_form](config.d_model, config.final_norm_eps)
            if config.final_norm else NoNorm())

    def __call__(self, x, mask, caches):
        """Map x [B T D]; mask and caches as in a Decoder."""
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x = layer(x, mask, cache)
        # [1] output [B T D]: the last layer's output, normalised if R11 says so
        output = tap(self, "output", self.norm(x))
        return output


class EncoderModel(Transformer):
    """An encoder and a projection: a score for every source token."""

    def __init__(self, config):
        nn.Module.__init__(self)
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

    def __call__(self, source, target, source_mask, target_mask):
        """Score the tokens that source [B S] may have: [B S V]."""
        memory = self.encode(source, source_mask)
        return self.project(memory)



class DecoderModel(Transformer):
    """A decoder and a projection: a score for every next token."""

    def __init__(self, config):
        nn.Module.__init__(self)
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

    def read(self, tokens, mask, caches):
        """Tokens [B T] to vectors [B T D], as Transformer.decode has them."""
        start = 0 if caches is None else caches[0].written
        x = self.target_embedding(tokens)
        x = self.target_begin(x, start)
        x = self.target_positions(x, tokens, start)
        # [1] decoded [B T D]: the decoder's output
        decoded = tap(self, "decoded", self.decoder(x, mask, caches))
        return decoded

    @property
    def cached(self):
        """Whether a search may keep keys and values.

        With a prompt that is padded, tokens that are counted without padding
        have other positions in each row.
        """
        return not self.config.position_padding

    def encode(self, source, source_mask):
        """The prompt as it is: what a target continues, int [B S]."""
        return source

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
            tokens = mx.concatenate([memory, target[:, 1:]], axis=1)
            seen = mx.concatenate(
                [source_mask, target_mask[:, :, -1:, 1:]], axis=-1)
            decoded = self.read(
                tokens, seen & causal_mask(tokens.shape[1]), None)
            return decoded[:, prompt - 1:]
        seen = mx.concatenate([source_mask, target_mask[:, :, :, 1:]], axis=-1)
        place = mx.arange(seen.shape[-1])
        if caches[0].written:
            return self.read(target, seen, caches)
        for i in range(prompt):
            decoded = self.read(
                memory[:, i:i + 1], seen & (place <= i), caches)
        return decoded

    def __call__(self, source, target, source_mask, target_mask):
        """Score every next token of target [B T]: [B T V]."""
        decoded = self.read(target, target_mask, None)
        return self.project(decoded)


#: By which stacks a model has.
MODELS = {
    "both": Transformer, "encoder": EncoderModel, "decoder": DecoderModel}
