"""The Transformer of other systems: its begin, its ties and its output."""

import mlx.core as mx

from impl_mlx.dialects.output import Output
from impl_mlx.transformer import Transformer


def from_zeros(x, start):
    """x [B T D], zeros at position 0; its first position is start (R52)."""
    place = mx.arange(start, start + x.shape[1])[:, None]
    return mx.where(place > 0, x, 0)


class DialectTransformer(Output, Transformer):
    """A Transformer that may begin with zeros, and end otherwise.

    Which of the three tables are one is ``config.tied`` (R13).
    """

    def __init__(self, config):
        super().__init__(config)
        self.end(config, self.target_embedding)

    def embed_target(self, target, start):
        """Target tokens [B T], from position start, to the decoder's input.

        T2T's and Marian's targets begin with zeros, whatever their first id.
        """
        x = self.target_embedding(target)
        if self.config.begin == "zero":
            x = from_zeros(x, start)
        return self.target_positions(x, target, start)
