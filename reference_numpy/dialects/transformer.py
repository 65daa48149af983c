"""The Transformer of other systems: its begin, its ties and its output."""

import numpy as np

from reference_numpy.dialects.output import Output
from reference_numpy.transformer import Transformer


def from_zeros(x, start):
    """x [B T D], zeros at position 0; its first position is start (R52)."""
    place = np.arange(start, start + x.shape[1])[:, None]
    return np.where(place > 0, x, 0)


class DialectTransformer(Output, Transformer):
    """A Transformer that may begin with zeros, and end otherwise.

    Which of the three tables are one is ``config.tied`` (R13).
    """

    def __init__(self, config):
        super().__init__(config)
        self.end(config, self.target_embedding)

    def embed_target(self, target, start, c):
        """Target tokens [B T], from position start, to the decoder's input.

        T2T's and Marian's targets begin with zeros, whatever their first id.
        """
        x, c["target_embedding"] = self.target_embedding.forward(target)
        if self.config.begin == "zero":
            x = from_zeros(x, start)
        x, c["target_positions"] = self.target_positions.forward(
            x, target, start)
        return x

    def embed_target_backward(self, dx, c, g):
        """From dx, of what the decoder reads, [B T D]."""
        dx, g["target_positions"] = self.target_positions.backward(
            dx, c["target_positions"])
        if self.config.begin == "zero":
            dx = from_zeros(dx, 0)
        g["target_embedding"] = self.target_embedding.backward(
            dx, c["target_embedding"])

    def tie_backward(self, g):
        """Add up what each reader of a table found of it."""
        owner = g["target_embedding"]
        if self.config.embeddings_tied:
            owner = g["source_embedding"]
            owner["table"] += g["target_embedding"].pop("table")
        if self.config.output_tied:
            owner["table"] += g["projection"].pop("table")
