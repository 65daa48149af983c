"""What an encoder alone guesses for the masked tokens of a text, as BERT does.
"""

import dataclasses

import numpy as np

from parity_io.errors import InputError
from transformer_contract.generation import an_id_beside
from parity import ports
from parity.numerics.comparator import relative_error
from parity.numerics.softmax import log_softmax

#: What masks a token in a text.
MASK = "[MASK]"


@dataclasses.dataclass(frozen=True)
class Guess:
    """One port's answer to a text.

    Attributes:
        port: whose.
        text: the text with what was guessed in the place of each mask.
        tokens: int [M], the guessed ones.
        log_probs: float [M V], of every token in the place of each mask.
    """

    port: str
    text: str
    tokens: np.ndarray
    log_probs: np.ndarray

    @property
    def score(self):
        """The sum of log p of what was guessed."""
        return float(self.log_probs.max(axis=-1).sum())

    def error(self, other):
        """The relative error of all log p, another's being true."""
        return relative_error(self.log_probs, other.log_probs)[0]


class MaskedLM:
    """A translation.Model that is an encoder alone, with a head.

    Raises:
        InputError: it has none, or its tokenizer masks nothing.
    """

    def __init__(self, model):
        self.model, self.inner = model, model.tokenizer.inner
        self.inner.encode_special_tokens = False  # a mask in a text is one
        self.mask = self.inner.token_to_id(MASK)
        if not model.config.output_transform:
            raise InputError(
                "the model has no head to guess masked tokens; its vectors "
                "are the step memory, and parity check vectors compares them.")
        if self.mask is None:
            raise InputError(f"the tokenizer has no token {MASK!r}; give the "
                             "model's own.")

    def question(self, text):
        """Ids [1 S] of a text; one without a mask raises InputError."""
        ids = np.array([self.inner.encode(text).ids])
        if self.mask not in ids:
            raise InputError(f"{text!r} has no {MASK}; write one where a token "
                             "is to be guessed.")
        if ids.shape[1] > self.model.config.max_length:
            raise InputError(
                f"the text has {ids.shape[1]} tokens, and the model's table "
                f"{self.model.config.max_length} rows; shorten it.")
        return ids

    def answer(self, port, ids, dtype):
        """What one port guesses for ids [1 S]: a Guess."""
        engine, config = ports.ready(port), self.model.config
        model = engine.build("transformer", config, {
            name: np.asarray(array, dtype)
            for name, array in self.model.arrays.items()}, dtype)
        output = engine.predict(model, ids, ids, *engine.masks(
            ids, ids, an_id_beside(ids)).values())  # no token is padding
        log_probs = log_softmax(
            output[0, ids[0] == self.mask].astype(np.float64))
        tokens, filled = log_probs.argmax(axis=-1), ids[0].copy()
        filled[filled == self.mask] = tokens
        return Guess(port, self.inner.decode(filled.tolist()), tokens,
                     log_probs)
