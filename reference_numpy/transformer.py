"""The Transformer: source tokens in, a score for every target token out.

    memory  = Encoder(positions + embedding of the source)
    decoded = Decoder(positions + embedding of the target, memory)
    logits  = decoded Eᵀ
"""

from reference_numpy import parts, public


class Transformer:
    """Vaswani et al. 2017, figure 1: two sides, two stacks and an output.

    Parameters: those of ``source_embedding``, ``encoder`` and ``decoder``. One
    table serves both embeddings and the projection (section 3.4).

    Attributes:
        training: whether a call drops values, by NumPy's own numbers.
    """

    training = False

    def __init__(self, config):
        public.check_class(self, config)
        self.config = config
        self.source_embedding = parts.source_embedding(config)
        self.source_positions = parts.source_positions(config)
        self.target_embedding = parts.target_embedding(
            config, self.source_embedding)
        self.target_positions = parts.target_positions(config)
        self.encoder = parts.encoder(config)
        self.decoder = parts.decoder(config)
        self.projection = parts.projection(config, self.target_embedding)

    def embed_source(self, source, c):
        """Source tokens [B S] to what the encoder reads, [B S D]."""
        x, c["source_embedding"] = self.source_embedding.forward(source)
        x, c["source_positions"] = self.source_positions.forward(x, source, 0)
        return x

    def embed_target(self, target, start, c):
        """Target tokens [B T], from position start, to the decoder's input."""
        x, c["target_embedding"] = self.target_embedding.forward(target)
        x, c["target_positions"] = self.target_positions.forward(
            x, target, start)
        return x

    def encode(self, source, source_mask):
        """Source tokens [B S] to the memory, [B S D]."""
        c = {}
        x = self.embed_source(source, c)
        # [1] memory [B S D]: Encoder(embedded source)
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
        x = self.embed_target(target, start, c)
        # [2] decoded [B T D]: Decoder(embedded target, memory)
        decoded, c["decoder"] = self.decoder.forward(
            x, memory, source_mask, target_mask, caches)
        c["decoded"] = decoded
        return decoded, c

    def project(self, decoded):
        """Vectors [B T D] to a score for every token, [B T V]."""
        c = {}
        # [3] output [B T V]: the logits, decoded Eᵀ  (§3.4)
        output, c["projection"] = self.projection.forward(decoded)
        c["output"] = output
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

    def __call__(self, source, target, source_mask=None, target_mask=None):
        """Score every next target token; see public.answer."""
        return public.answer(self, source, target, source_mask, target_mask)

    def generate(self, source, **settings):
        """Find the targets of source [B S]; see public.generate."""
        return public.generate(self, source, settings)

    def backward(self, doutput, c):
        """From doutput [B T V]: g, every parameter's and every step's."""
        ddecoded, g = self.project_backward(doutput, c)
        dmemory = self.decode_backward(ddecoded, c, g)
        self.encode_backward(dmemory, c, g)
        self.tie_backward(g)
        return g

    def project_backward(self, doutput, c):
        """From doutput [B T V]: ddecoded [B T D] and g."""
        g = {"output": doutput}
        # [3'] decoded: output = decoded Eᵀ
        ddecoded, g["projection"] = self.projection.backward(
            doutput, c["projection"])
        return ddecoded, g

    def decode_backward(self, ddecoded, c, g):
        """From ddecoded [B T D]: dmemory."""
        g["decoded"] = ddecoded
        # [2'] memory, x: decoded = Decoder(x, memory)
        dx, dmemory, g["decoder"] = self.decoder.backward(
            ddecoded, c["decoder"])
        self.embed_target_backward(dx, c, g)
        return dmemory

    def embed_target_backward(self, dx, c, g):
        """From dx, of what the decoder reads, [B T D]."""
        dx, g["target_positions"] = self.target_positions.backward(
            dx, c["target_positions"])
        g["target_embedding"] = self.target_embedding.backward(
            dx, c["target_embedding"])

    def encode_backward(self, dmemory, c, g):
        """From dmemory [B S D]."""
        g["memory"] = dmemory
        # [1'] x: memory = Encoder(x)
        dx, g["encoder"] = self.encoder.backward(dmemory, c["encoder"])
        dx, g["source_positions"] = self.source_positions.backward(
            dx, c["source_positions"])
        g["source_embedding"] = self.source_embedding.backward(
            dx, c["source_embedding"])

    def tie_backward(self, g):
        """Add up what the two embeddings and the projection found of E."""
        table = g["source_embedding"]["table"]
        table += g["target_embedding"].pop("table")
        table += g["projection"].pop("table")
