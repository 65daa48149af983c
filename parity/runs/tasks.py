"""What can be trained on: dates, phrases, or a file of pairs.

A task says which pairs a step trains on as a function of the step's number
alone, so that a run that is resumed sees what it would have seen.
"""

import functools
import hashlib
import pathlib

import numpy as np

from transformer_contract import random
from transformer_contract.config import PRESETS
from parity_io.errors import InputError, one_of
from transformer_contract.tokenizer import Tokenizer, read_pairs
from parity.runs import dates, phrases

#: The key of everything that a task draws.
KEY = random.fold_in(random.key(0), "tasks")

#: The model of a task, unless other sizes are given.
SMALL = PRESETS["vaswani2017_base"].replace(
    d_model=128, n_heads=4, d_ff=512, n_encoder_layers=2, n_decoder_layers=2,
    max_length=64)

#: The share of a file's pairs for validation, and the largest number of them.
VALIDATED, MOST_VALIDATED = 0.05, 500


class Drawn:
    """A task whose pairs are drawn without end; see its module.

    Attributes:
        name: the task's.
        module: parity.runs.dates or its like, with ``batch``, ``pairs`` and
            ``unseen``.
        config: the default TransformerConfig.
        digest: SHA-256 of the data.
        longest: the largest number of tokens in an answer.
        steps, rows: the default number of steps, and of pairs in a batch.
        training: the default settings, as TrainingConfig's fields.
    """

    rows = 64

    def __init__(self, name, module, steps, longest, sizes, training):
        self.name, self.module = name, module
        self.steps, self.longest = steps, longest
        self.config, self.training = SMALL.replace(**sizes), training

    @functools.cached_property
    def tokenizer(self):
        """Byte-level BPE over what the first 300 steps are trained on."""
        texts = [text for step in range(300)
                 for column in self.module.batch(step, 64) for text in column]
        return Tokenizer.train(
            texts, self.config.source_vocab, single_digits=True)

    @property
    def digest(self):
        """SHA-256 of the validation set, as Babel writes it."""
        return hashlib.sha256(repr(self.validation()).encode()).hexdigest()

    def batch(self, step, rows):
        """Sources and targets of a step, as ids."""
        sources, targets = self.module.batch(step, rows)
        return encoded(self.tokenizer, sources, targets)

    def validation(self):
        """(source, target, group) of the validation set."""
        return self.module.pairs("validation", self.module.VALIDATED)

    def test(self):
        """(source, target, group) of the test set."""
        return self.module.pairs("test", self.module.TESTED)


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
        self.config = SMALL.replace(
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
                    "raise max_length.")

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


def _vocab(size, **sizes):
    return {"source_vocab": size, "target_vocab": size, **sizes}


#: What makes a Drawn task, by name. Phrases come only once, so that nothing
#: would be gained from dropping values.
TASKS = {
    "dates": (dates, 4500, 16, _vocab(1000), {
        "warmup_steps": 1000, "clip_norm": 1.0}),
    "phrases": (phrases, 3600, 40, _vocab(2000, dropout=0.0), {
        "warmup_steps": 700, "learning_rate": 0.8, "clip_norm": 1.0}),
}


def task(name):
    """The task called ``name``; an unknown name raises InputError."""
    return Drawn(name, *TASKS[one_of(name, TASKS, "task")])
