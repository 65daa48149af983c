"""The reader's own text: what the models make of it, one text at a time.

The reference is there at once. The frameworks are imported behind, one after
the other, and each one's answer is shown as it comes.
"""

import collections
import threading
import time
import warnings

from transformer_contract.batch import Batch
from parity_io.errors import InputError, plural
from transformer_contract.generation import GenerationConfig
from parity import ports
from parity.check.run import LONGEST
from parity.ports import NotChecked
from parity.reading.breaking import Breaking, breakable
from parity.reading.tree import tree_of
from parity.reading.model_run import ModelRun
from parity.reading.shipped_model import Shipped
from parity.render.maps import figures

#: How many characters a text may have.
MOST = 80

#: Sources are padded to one of these lengths, so that a framework that
#: prepares itself for each shape does so seldom.
LENGTHS = (16, 32, 64)

#: How many answers are kept, for pages that ask again.
KEPT = 250


class Loading(Shipped):
    """The shipped model in the reference, and in ports that load behind.

    Attributes:
        not_checked: column -> why there is no model of it.
    """

    def __init__(self, port_names):
        super().__init__()
        self.models = {"numpy": self.built(self.engines["numpy"])}
        self.not_checked = {column: "it was not asked for" for column
                            in ports.usual_ports() if column not in port_names}
        self.waiting = [column for column in ports.usual_ports()
                        if column in port_names]
        self.change = threading.Condition()
        threading.Thread(target=self._load, daemon=True).start()

    def _load(self):
        for column in list(self.waiting):
            try:
                engine = ports.engine(column)
                if isinstance(engine, NotChecked):
                    self.not_checked[column] = engine.reason
                else:
                    engine.set_precision()
                    self.models[column] = self.built(engine)
                    self.engines[column] = engine
            except Exception as error:  # the others are still worth reading
                self.not_checked[column] = f"it cannot be loaded: {error}"
            with self.change:
                self.waiting.remove(column)
                self.change.notify_all()

    def loaded(self, column):
        """A column's engine and model, once they are loaded, or None."""
        with self.change:
            self.change.wait_for(lambda: column not in self.waiting)
        if column in self.not_checked:
            return None
        return self.engines[column], self.models[column]


class RequestQueue:
    """Texts that wait to be read, first come first, and the last answers.

    One thread reads them, for the models' traces are one at a time. A text
    that is asked for again keeps its place.

    Args:
        read: what yields answers to a text, each fuller than the last.
    """

    def __init__(self, read):
        self.read = read
        self.waiting, self.answers = [], collections.OrderedDict()
        self.parts = {}
        self.change = threading.Condition()
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, text, seconds):
        """(answer, 0); after so many seconds (part, place in line from 1).

        The part of an answer that is there by then, or None.

        Raises:
            Exception: what reading the text raised.
        """
        with self.change:
            if text not in self.answers and text not in self.waiting:
                self.waiting.append(text)
                self.change.notify_all()
            self.change.wait_for(lambda: text in self.answers, seconds)
            if text not in self.answers:
                return self.parts.get(text), self.waiting.index(text) + 1
            answer = self.answers[text]
        if isinstance(answer, Exception):
            raise answer
        return answer, 0

    def _work(self):
        while True:
            with self.change:
                self.change.wait_for(lambda: self.waiting)
                text = self.waiting[0]
            answer = None
            try:
                for answer in self.read(text):
                    self.parts[text] = answer
            except Exception as error:  # it goes to who asked
                answer = error
            with self.change:
                self.waiting.remove(text)
                self.parts.pop(text, None)
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
            f"the text has {plural(len(ids), 'token')}, but the model reads "
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
    """Yield what the models answer and look at, anew after each column.

    Each time (the figures of a text, {column: how far it is}).
    """
    batch, tokens = answered(values, text)
    answer = values.tokenizer.decode(tokens[0])
    run = ModelRun({}, values.config, values.weights, batch)
    columns = ["numpy", *ports.usual_ports()]
    told = dict.fromkeys(columns, "")
    tree = tree_of(values, text)
    for column in columns:
        model = values.loaded(column)
        start = time.perf_counter()
        if model is None:
            told[column] = "not checked: " + values.not_checked[column]
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run.add(column, *model)
            told[column] = f"read in {time.perf_counter() - start:.1f} s"
        yield figures(run, values.tokenizer, 0, text, answer, 0) | {
            "tree": tree}, dict(told)


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
