"""The Transformer of other systems: its begin, its ties and its output."""

import keras
from keras import ops

from impl_keras.dialects.output import Output
from impl_keras.transformer import Transformer
from impl_keras.whole import parts_in


def from_zeros(x, start):
    """x [B T D], zeros at position 0; its first position is start (R52)."""
    place = ops.arange(start, start + ops.shape(x)[1])[:, None]
    return ops.where(place > 0, x, 0)


@keras.saving.register_keras_serializable("impl_keras")
class DialectTransformer(Output, Transformer):
    """A Transformer that may begin with zeros, and end otherwise.

    Which of the three tables are one is ``config.tied`` (R13).
    """

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        with parts_in(self.dtype_policy):
            self.end(config)

    def embed_target(self, target, start):
        """Target tokens [B T], from position start, to the decoder's input.

        T2T's and Marian's targets begin with zeros, whatever their first id.
        """
        x = self.target_embedding(target)
        if self.config.begin == "zero":
            x = from_zeros(x, start)
        return self.target_positions(x, target, start=start)
