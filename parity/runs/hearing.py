"""From sound to text: Whisper's stacks in any of the four.

The log-mel picture and the two convolutions are computed once, in NumPy, and so
are the tables at both ends; the encoder and the decoder are the port's.
"""

import dataclasses
import time

import numpy as np
import tokenizers

from contract import sound
from contract.components import WHOLE
from contract.errors import InputError
from contract.weights import part
from parity import ports
from parity.runs import exchange

#: What the decoder is given first: of a model of many languages also which one
#: it is, as the model itself says, and what is to be done.
BEGIN, NO_TIMES = "<|startoftranscript|>", "<|notimestamps|>"
TASKS = TRANSLATE, TRANSCRIBE = "<|translate|>", "<|transcribe|>"

#: What ends an answer.
END = "<|endoftext|>"

#: A model of many languages has at least so many tokens.
MULTILINGUAL = 51865


@dataclasses.dataclass(frozen=True)
class Hearing:
    """One port's answer to a sound.

    Attributes:
        port: whose.
        text: what was said.
        tokens: its ids, the prompt among them.
        logits: float [N V], by which each token after the prompt was chosen.
        seconds: how long the port took.
    """

    port: str
    text: str
    tokens: list
    logits: np.ndarray
    seconds: float


class Listener:
    """A model of a folder that ``parity import`` or ``fetch`` made.

    Args:
        config, arrays, apart, description: as ``exchange.kept`` gives them.
        path: of its ``tokenizer.json``.
    """

    def __init__(self, config, arrays, apart, description, path):
        if not path.is_file():
            raise InputError(
                f"there is no tokenizer.json in {str(path.parent)!r}; put "
                "the model's own there.")
        self.config, self.arrays, self.apart = config, arrays, apart
        self.names = next(names for names in sound.NAMES
                          if names.format("conv1", "weight") in apart)
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self.begin, self.no_times, self.end = map(
            self._id, (BEGIN, NO_TIMES, END))
        original = {**description["original"],
                    **exchange.generation(path.parent)}
        self.never = original.get(
            "suppress_ids", original.get("suppress_tokens")) or []
        self.never_first = original.get(
            "suppress_ids_begin", original.get("begin_suppress_tokens")) or []
        self.languages = self._languages(original)

    def _languages(self, original):
        """The ids of the languages that it hears; [] of a model of one."""
        told = original.get("lang_to_id")
        if told is not None:
            if not isinstance(told, dict) or not all(
                    isinstance(i, int) and 0 <= i < self.config.target_vocab
                    for i in told.values()):
                raise InputError("lang_to_id in the model's files is no table "
                                 "of ids; fetch them again.")
            return sorted(told.values())
        if self.config.target_vocab < MULTILINGUAL:
            return []
        return list(range(self.begin + 1, min(map(self._id, TASKS))))

    def _id(self, token):
        number = self.tokenizer.token_to_id(token)
        if number is None:
            raise InputError(f"the tokenizer has no token {token!r}.")
        return number

    def vectors(self, samples):
        """What the encoder reads of a sound: float64 [1 S D]."""
        count = self.apart[self.names.format("conv1", "weight")].shape[1]
        return sound.vectors(
            sound.log_mel(samples, count)[None], self.apart, self.names)

    def answer(self, port, vectors, dtype, most):
        """What one port hears, by greedy search; a Hearing."""
        start = time.perf_counter()
        engine = ports.ready(port)
        arrays = {name: np.asarray(array, dtype)
                  for name, array in self.arrays.items()}
        encoder, decoder = (
            engine.build(stack, self.config, part(arrays, f"{stack}."), dtype)
            for stack in ("encoder", "decoder"))
        x = vectors.astype(dtype) + arrays["source_positions.table"]
        everything = np.ones((1, 1, 1, x.shape[1]), bool)
        memory = engine.run(encoder, x, everything)["output"]
        table = arrays["target_embedding.table"]

        def next_logits(tokens):
            """The score of every token that may come next: [V]."""
            length = len(tokens)
            y = table[tokens] + arrays["target_positions.table"][:length]
            earlier = np.tri(length, dtype=bool)[None, None]
            decoded = engine.run(decoder, y[None], memory, everything,
                                 earlier, **WHOLE["decoder"])["output"]
            return decoded[0, -1] @ table.T

        tokens, logits = [self.begin], []
        if self.languages:
            heard = next_logits(tokens)[self.languages].argmax()
            tokens += [self.languages[heard], self._id(TRANSCRIBE)]
        tokens.append(self.no_times)
        most = min(most, self.config.max_length - len(tokens))
        for _ in range(most):
            logits.append(next_logits(tokens))
            tokens.append(self._choice(logits[-1], first=len(logits) == 1))
            if tokens[-1] == self.end:
                break
        return Hearing(port, self.tokenizer.decode(tokens).strip(), tokens,
                     np.stack(logits), time.perf_counter() - start)

    def _choice(self, logits, first):
        """The likeliest token that may stand here."""
        allowed = logits.copy()
        allowed[self.never] = -np.inf
        if first:
            allowed[self.never_first] = -np.inf
        return int(allowed.argmax())
