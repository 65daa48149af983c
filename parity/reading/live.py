"""The reader's own text: what the models make of it, one text at a time."""

import collections
import threading
import warnings

from transformer_contract.batch import Batch
from transformer_contract.errors import InputError, amount
from transformer_contract.generation import GenerationConfig
from parity.check.run import LONGEST
from parity.reading.breaking import Breaking, breakable
from parity.reading.tree import tree_of
from parity.reading.model_run import ModelRun
from parity.render.maps import figures

#: How many characters a text may have.
MOST = 80

#: Sources are padded to one of these lengths, so that a framework that
#: prepares itself for each shape does so seldom.
LENGTHS = (16, 32, 64)

#: How many texts may wait; and how many answers are kept: more, so that none
#: is gone when the page of a text asks for it again.
WAITING, KEPT = 200, 250


class FullError(Exception):
    """More texts wait than can be read soon."""


class Line:
    """Texts that wait to be read, first come first, and the last answers.

    One thread reads them, for the models' traces are one at a time. A text
    that is asked for again keeps its place.

    Args:
        read: what makes an answer of a text.
    """

    def __init__(self, read):
        self.read = read
        self.waiting, self.answers = [], collections.OrderedDict()
        self.change = threading.Condition()
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, text, seconds):
        """(answer, 0); or (None, place in line from 1) after so many seconds.

        Raises:
            FullError: too many wait.
            Exception: what reading the text raised.
        """
        with self.change:
            if text not in self.answers and text not in self.waiting:
                if len(self.waiting) == WAITING:
                    raise FullError
                self.waiting.append(text)
                self.change.notify_all()
            self.change.wait_for(lambda: text in self.answers, seconds)
            if text not in self.answers:
                return None, self.waiting.index(text) + 1
            answer = self.answers[text]
        if isinstance(answer, Exception):
            raise answer
        return answer, 0

    def _work(self):
        while True:
            with self.change:
                self.change.wait_for(lambda: self.waiting)
                text = self.waiting[0]
            try:
                answer = self.read(text)
            except Exception as error:  # it goes to who asked
                answer = error
            with self.change:
                self.waiting.remove(text)
                self.answers[text] = answer
                while len(self.answers) > KEPT:
                    self.answers.popitem(last=False)
                self.change.notify_all()


def ids_of(values, text):
    """The token ids of a text.

    Raises:
        InputError: there is no text, or too much of it.
    """
    if not text:
        raise InputError("there is no text; write a date.")
    if len(text) > MOST:
        raise InputError(
            f"the text has {len(text)} characters; give at most {MOST}.")
    ids = values.tokenizer.encode(text)
    if len(ids) > values.config.max_length:
        raise InputError(
            f"the text has {amount(len(ids), 'token')}, but the model reads "
            f"{values.config.max_length}; give a shorter one.")
    return ids


def answered(values, text):
    """A text and the reference's answer as a Batch, and the answer's ids."""
    tokenizer, config = values.tokenizer, values.config
    ids = ids_of(values, text)
    length = next(n for n in (*LENGTHS, config.max_length) if len(ids) <= n)
    source = tokenizer.pad([ids], length=length)
    tokens = values.engines["numpy"].generate(
        values.models["numpy"], source, GenerationConfig(
            bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
            max_tokens=LONGEST))["tokens"][0]
    read = tokens[:, :-1].copy()
    read[read == tokenizer.eos_id] = config.pad_id
    return Batch.of_ids(source, read, config.pad_id), tokens


def attention(values, text):
    """The figures of a text: what the model answers and looks at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch, tokens = answered(values, text)
        run = ModelRun(values.engines, values.config, values.weights, batch,
                       models=values.models)
        return figures(run, values.tokenizer, 0, text,
                       values.tokenizer.decode(tokens[0]), 0) | {
                           "tree": tree_of(values, text)}


def broken(values, name, text):
    """What becomes of the model with a fault in it, on a text.

    Raises:
        InputError: there is no such fault, or with it the model cannot run.
    """
    known(name)
    batch, tokens = answered(values, text)
    try:
        return Breaking(values, (name,), (text,), batch, tokens[:, 1:]).page()
    except Exception as error:
        raise InputError(
            f"{name!r} cannot be put into this model "
            f"({type(error).__name__}); choose another fault."
        ) from None


def known(name):
    """Raise InputError unless there is a fault of this name to be put."""
    if name not in breakable():
        raise InputError(f"there is no fault {name!r}; choose one.")
