"""From sound to text: Whisper's stacks in any of the four.

The log-mel picture and the two convolutions are computed once, in NumPy; their
frames are the source's table of a model of this sound alone, and all that
follows is the port's: its search with its keys and values kept.
"""

import dataclasses
import time

import numpy as np
import tokenizers

from contract import sound
from contract.errors import InputError
from contract.generation import GenerationConfig
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
        score: the sum of log p of the tokens after the prompt.
        seconds: how long the port took.
    """

    port: str
    text: str
    tokens: list
    score: float
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
        self.never = self._listed(original, "suppress_ids", "suppress_tokens")
        self.never_first = self._listed(
            original, "suppress_ids_begin", "begin_suppress_tokens")
        self.languages = self._languages(original)

    @staticmethod
    def _listed(original, *keys):
        """The ids of the first key that is told; [-1] there means none."""
        key = next((key for key in keys if original.get(key)), None)
        ids = original.get(key, [])
        if not isinstance(ids, list):
            raise InputError(f"{key} in the model's files is no list of ids; "
                             "fetch them again.")
        return [i for i in ids if i != -1]

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
        frames = 1 + np.arange(vectors.shape[1])  # 0 is padding, of which none
        config = self.config.replace(source_vocab=1 + len(frames), pad_id=0)
        model = engine.build("transformer", config, {
            **self.arrays, "source_embedding.table": np.concatenate(
                [0 * vectors[0, :1], vectors[0]])}, dtype)
        settings = GenerationConfig(
            bos_id=self.begin, eos_id=self.end, allow_padding=True,
            max_tokens=1, suppress_tokens=sorted(
                set(range(config.target_vocab)) - set(self.languages)))
        prompt = []
        if self.languages:
            heard = engine.generate(
                model, frames[None], settings.check(config))["tokens"]
            prompt = [int(heard[0, 0, 1]), self._id(TRANSCRIBE)]
        prompt.append(self.no_times)
        settings = settings.replace(
            prompt=prompt, suppress_tokens=self.never,
            begin_suppress_tokens=self.never_first, max_tokens=min(
                most + len(prompt), config.max_length - 1))
        heard = engine.generate(model, frames[None], settings.check(config))
        tokens = heard["tokens"][0, 0].tolist()
        if self.end in tokens:
            tokens = tokens[:1 + tokens.index(self.end)]
        return Hearing(port, self.tokenizer.decode(tokens).strip(), tokens,
                       float(heard["scores"][0, 0]),
                       time.perf_counter() - start)
