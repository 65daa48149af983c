"""What can be trained on: the dates, or a file of pairs.

A task says which pairs a step trains on as a function of the step's number
alone, so that a run that is resumed sees what it would have seen.
"""

import functools
import hashlib
import pathlib

import numpy as np

from contract import random
from contract.config import PRESETS
from contract.errors import InputError, one_of
from contract.tokenizer import Tokenizer, read_pairs
from parity.runs import dates

#: The key of everything that a task draws.
KEY = random.fold_in(random.key(0), "tasks")

#: The share of a file's pairs for validation, and the largest number of them.
VALIDATED, MOST_VALIDATED = 0.05, 500


class Dates:
    """Dates in 25 languages to ISO 8601, without end; see parity.runs.dates.

    Attributes:
        name: the task's.
        config: the default TransformerConfig.
        digest: SHA-256 of the data.
        longest: the largest number of tokens in an answer.
        steps, rows: the default number of steps, and of pairs in a batch.
        training: the default settings, as TrainingConfig's fields.
    """

    name = "dates"
    steps, rows = 4000, 64
    training = {"warmup_steps": 1000, "clip_norm": 1.0}
    longest = 16
    config = PRESETS["vaswani2017_base"].replace(
        source_vocab=1000, target_vocab=1000, d_model=128, n_heads=4,
        d_ff=512, n_encoder_layers=2, n_decoder_layers=2, max_length=64)

    @functools.cached_property
    def tokenizer(self):
        """Byte-level BPE over what the first 300 steps are trained on."""
        texts = [text for step in range(300)
                 for column in dates.batch(step, 64) for text in column]
        return Tokenizer.train(
            texts, self.config.source_vocab, single_digits=True)

    @property
    def digest(self):
        """SHA-256 of dates in every language and form, as Babel writes them."""
        return hashlib.sha256(repr(self.validation()).encode()).hexdigest()

    def batch(self, step, rows):
        """Sources and targets of a step, as ids."""
        sources, targets = dates.batch(step, rows)
        return encoded(self.tokenizer, sources, targets)

    def validation(self):
        """(source, target, language) of the validation set."""
        return dates.pairs("validation", dates.VALIDATED)

    def test(self):
        """(source, target, language) of the test set."""
        return dates.pairs("test", dates.TESTED)


class File:
    """The pairs of a file, in another random order in each epoch.

    A twentieth of them, chosen by key, is for validation.
    """

    steps, rows = 2000, 32
    training = {"warmup_steps": 400, "clip_norm": 1.0}

    def __init__(self, path, vocab):
        self.path, self.name = path, pathlib.Path(path).stem
        sources, targets = read_pairs(path)
        self.tokenizer = Tokenizer.train([*sources, *targets], vocab)
        size = self.tokenizer.vocab_size
        self.config = Dates.config.replace(
            source_vocab=size, target_vocab=size, max_length=256)
        self.pairs = list(zip(sources, targets))
        order = self._order("split").tolist()
        count = min(MOST_VALIDATED, int(len(order) * VALIDATED))
        self.validated, self.train = order[:count], np.array(order[count:])
        self.ids = list(zip(*encoded(self.tokenizer, sources, targets)))
        self.longest = 8 + max(len(target) for _, target in self.ids)

    @property
    def digest(self):
        """SHA-256 of the pairs."""
        return hashlib.sha256(repr(self.pairs).encode()).hexdigest()

    def check(self, config):
        """Raise InputError if a pair is longer than the model can read."""
        for number, (source, target) in enumerate(self.ids, start=1):
            longest = max(len(source), len(target))
            if longest > config.max_length:
                raise InputError(
                    f"{self.path}:{number}: the line has {longest} tokens, "
                    f"but the model reads {config.max_length}; shorten it or "
                    "raise --max-length.")

    def _order(self, name):
        key = random.fold_in(random.fold_in(KEY, self.name), name)
        return np.argsort(random.bits64(key, (len(self.pairs),)))

    @functools.lru_cache(maxsize=2)
    def _epoch(self, number):
        order = self._order(f"epoch {number}")
        return order[np.isin(order, self.train)]

    def batch(self, step, rows):
        """Sources and targets of a step, as ids."""
        places = range((step - 1) * rows, step * rows)
        pairs = [self.ids[self._epoch(place // len(self.train))[
            place % len(self.train)]] for place in places]
        return [source for source, _ in pairs], [t for _, t in pairs]

    def validation(self):
        """(source, target, "all") of the pairs that are not trained on."""
        return [(*self.pairs[i], "all") for i in self.validated]

    def test(self):
        """Nothing beyond validation."""
        return []


def encoded(tokenizer, sources, targets):
    """Ids of sources, and of targets with their bos and eos ids."""
    return ([tokenizer.encode(text) for text in sources],
            [[tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id]
             for text in targets])


TASKS = {"dates": Dates}


def task(name):
    """The task called ``name``; an unknown name raises InputError."""
    return TASKS[one_of(name, TASKS, "task")]()
