"""The Transformer: source tokens in, a score for every target token out."""

from reference_numpy.decoder import Decoder
from reference_numpy.embedding import (
    BEGINS, EMBEDDINGS, TiedEmbedding, TokenEmbedding)
from reference_numpy.encoder import Encoder
from reference_numpy.head import HEADS
from reference_numpy.positional import ENCODINGS
from reference_numpy.projection import (
    OUTPUTS, OUTPUTS_BACKWARD, SCALES, projection_of)


class Transformer:
    """Vaswani et al. 2017, figure 1, and the variants that a config names.

    Parameters: those of ``source_embedding``, ``target_embedding``,
    ``encoder``, ``decoder`` and ``projection``, and of positions that are
    learned. Of those that the config ties, one table serves all.
    """

    #: Whether a search may keep keys and values.
    cached = True

    def __init__(self, config):
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
        self.output_backward = OUTPUTS_BACKWARD[config.output]

    def room(self, source, length):
        """How many tokens a cache keeps for a target of ``length``."""
        return length

    def encode(self, source, source_mask):
        """Source tokens [B S] to the memory, [B S D]."""
        c = {}
        x, c["source_embedding"] = self.source_embedding.forward(source)
        x, c["source_positions"] = self.source_positions.forward(x, source, 0)
        # [1] memory [B S D]: the encoder's output
        memory, c["encoder"] = self.encoder.forward(x, source_mask)
        c["memory"] = memory
        return memory, c

    def decode(self, target, memory, source_mask, target_mask, caches):
        """Target tokens [B T], reading the memory, to vectors [B T D].

        With ``caches`` (see cache.py) target is the next token alone, [B 1],
        at the position that they have reached; else ``caches`` is None.
        """
        c = {}
        start = 0 if caches is None else caches[0].written
        x, c["target_embedding"] = self.target_embedding.forward(target)
        x, c["target_begin"] = self.target_begin.forward(x, start)
        x, c["target_positions"] = self.target_positions.forward(
            x, target, start)
        # [2] decoded [B T D]: the decoder's output
        decoded, c["decoder"] = self.decoder.forward(
            x, memory, source_mask, target_mask, caches)
        c["decoded"] = decoded
        return decoded, c

    def project(self, decoded):
        """Vectors [B T D] to a score for every token, [B T V]."""
        c = {}
        x, c["head"] = self.head.forward(decoded)
        logits, c["projection"] = self.projection.forward(
            x * self.output_factor)
        # [3] output [B T V]: the logits, or their log-softmax  (R16)
        output = c["output"] = self.output_function(logits)
        return output, c

    def forward(self, source, target, source_mask, target_mask):
        """Score every next target token: [B T V].

        Args:
            source: int [B S].
            target: int [B T], what the decoder reads.
            source_mask: bool [B 1 1 S], True where a key may be attended to.
            target_mask: bool [B 1 T T], True where a query may attend to a key.
        """
        memory, encoding = self.encode(source, source_mask)
        decoded, decoding = self.decode(
            target, memory, source_mask, target_mask, None)
        output, projecting = self.project(decoded)
        return output, {**encoding, **decoding, **projecting}

    def project_backward(self, doutput, c):
        """From doutput [B T V]: ddecoded [B T D] and g."""
        g = {"output": doutput}
        # [3'] logits: output = the logits, or their log-softmax
        dlogits = self.output_backward(doutput, c["output"])
        dscaled, g["projection"] = self.projection.backward(
            dlogits, c["projection"])
        ddecoded, g["head"] = self.head.backward(
            dscaled * self.output_factor, c["head"])
        return ddecoded, g

    def backward(self, doutput, c):
        """From doutput [B T V]: g, every parameter's and every step's."""
        ddecoded, g = self.project_backward(doutput, c)
        g["decoded"] = ddecoded
        # [2'] memory, x: decoded = the decoder's output
        dx, dmemory, g["decoder"] = self.decoder.backward(
            ddecoded, c["decoder"])
        g |= self.embed_backward(dx, c)
        g |= self.encode_backward(dmemory, c)
        owner = g["target_embedding"]
        if self.config.embeddings_tied:
            owner = g["source_embedding"]
            owner["table"] += g["target_embedding"].pop("table")
        if self.config.output_tied:
            owner["table"] += g["projection"].pop("table")
        return g

    def embed_backward(self, dx, c):
        """From dx, of what the decoder reads [B T D]: g."""
        g = {}
        dx, g["target_positions"] = self.target_positions.backward(
            dx, c["target_positions"])
        dx, g["target_begin"] = self.target_begin.backward(
            dx, c["target_begin"])
        g["target_embedding"] = self.target_embedding.backward(
            dx, c["target_embedding"])
        return g

    def encode_backward(self, dmemory, c):
        """From dmemory [B S D]: g."""
        g = {"memory": dmemory}
        # [1'] x: memory = the encoder's output
        dx, g["encoder"] = self.encoder.backward(dmemory, c["encoder"])
        dx, g["source_positions"] = self.source_positions.backward(
            dx, c["source_positions"])
        g["source_embedding"] = self.source_embedding.backward(
            dx, c["source_embedding"])
        return g
