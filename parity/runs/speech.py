"""From sound to text: Whisper's stacks in any of the four.

The log-mel picture and the two convolutions are computed once, in NumPy; their
frames are the source's table of a model of this sound alone, and all that
follows is the port's: its search with its keys and values kept.
"""

import dataclasses
import time

import numpy as np
import tokenizers

from transformer_contract import sound
from parity_io.checkpoints.folder import read_json
from transformer_contract.dialects import searches, table
from parity_io.errors import InputError
from transformer_contract.generation import GenerationConfig
from parity import ports
from parity.runs import exchange

#: What the decoder is given first: of a model of many languages also which one
#: it is, as the model itself says, and what is to be done.
BEGIN, NO_TIMES = "<|startoftranscript|>", "<|notimestamps|>"
TASKS = TRANSLATE, TRANSCRIBE = "<|translate|>", "<|transcribe|>"

#: What a file may say of how a sound is seen -> what is done here.
SIGHT = {"sampling_rate": sound.RATE, "n_fft": sound.WINDOW,
         "hop_length": sound.HOP, "chunk_length": sound.SECONDS,
         "padding_value": 0.0, "dither": 0.0, "do_normalize": False}

#: What a file may say of an answer -> what is done here.
USUAL = {"language": None, "task": "transcribe", "return_timestamps": False}

#: What ends an answer.
END = "<|endoftext|>"

#: A model of many languages has at least so many tokens.
MULTILINGUAL = 51865


@dataclasses.dataclass(frozen=True)
class Transcript:
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


class WhisperRunner:
    """A model of a folder that ``parity import`` made.

    Args:
        config, arrays, apart, description: as ``exchange.kept`` gives them.
        path: of its ``tokenizer.json``.

    Attributes:
        undone: in words what the files ask of an answer and is not done.

    Raises:
        InputError: a file is not there, or asks for another picture of a sound.
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
        self.undone = self._undone(
            table.SYSTEMS[description["dialect"]], original)
        self._check_sight(path.parent)

    @staticmethod
    def _listed(original, *keys):
        """The ids of the first key that is told; [-1] there means none."""
        key = next((key for key in keys if original.get(key)), None)
        ids = original.get(key, [])
        if not isinstance(ids, list):
            raise InputError(f"{key} in the model's files is no list of ids; "
                             "fetch them again.")
        return [i for i in ids if i != -1]

    def _undone(self, dialect, original):
        """In words what the files ask of an answer and is not done."""
        fields, undone = searches.fields(dialect, {
            key: value for key, value in original.items()
            if not key.startswith(("suppress_", "begin_", "forced_"))})
        if (method := fields.get("method", "greedy")) != "greedy":
            undone.append(f"a search by {method}")
        undone += [f"{key} {original[key]!r}" for key, usual in USUAL.items()
                   if original.get(key, usual) not in (None, usual)]
        done = [[None], [self.no_times]]
        if self.languages:
            done.append([self._id(TRANSCRIBE)])
        forced = original.get("forced_decoder_ids") or []
        if not isinstance(forced, list) or not all(
                isinstance(each, list) and each[1:] in done
                for each in forced):
            undone.append(f"forced_decoder_ids {forced!r}")
        return undone

    def _check_sight(self, folder):
        """Raise InputError where a file asks for another picture of a sound."""
        seen = {**SIGHT, "feature_size": self._bands}
        for name in exchange.SEEING:
            if not (folder / name).is_file():
                continue
            told = read_json(folder / name)
            told = told.get("feature_extractor", told)
            for key, value in seen.items() if isinstance(told, dict) else ():
                if told.get(key, value) != value:
                    raise InputError(
                        f"{key} is {told[key]!r} in {name}, but a sound is "
                        f"seen here with {value!r}; the model cannot be "
                        "asked.")

    @property
    def _bands(self):
        """Of how many bands of frequency a picture is."""
        return self.apart[self.names.format("conv1", "weight")].shape[1]

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
        return sound.vectors(
            sound.log_mel(samples, self._bands)[None], self.apart, self.names)

    def answer(self, port, vectors, dtype, most):
        """What one port hears, by greedy search; a Hearing."""
        start = time.perf_counter()
        engine = ports.ready(port, form="fast")
        frames = 1 + np.arange(vectors.shape[1])  # 0 is padding, of which none
        config = self.config.replace(source_vocab=1 + len(frames), pad_id=0)
        model = engine.build("transformer", config, {
            **self.arrays, "source_embedding.table": np.concatenate(
                [0 * vectors[0, :1], vectors[0]])}, dtype)
        settings = GenerationConfig(
            bos_id=self.begin, eos_id=self.end, allow_padding=True,
            max_tokens=1, suppress_tokens=tuple(sorted(
                set(range(config.target_vocab)) - set(self.languages))))
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
        return Transcript(port, self.tokenizer.decode(tokens).strip(), tokens,
                       float(heard["scores"][0, 0]),
                       time.perf_counter() - start)
