"""From text to text: a model with its tokenizer, in any of the four.

A text that cannot be answered (not UTF-8, longer than the model reads) gets a
sentence that says why; the others get their answers. A text without tokens has
an empty answer, and no model runs for it.
"""

import dataclasses
import pathlib

import numpy as np
from threadpoolctl import threadpool_limits

from transformer_contract import weights
from transformer_contract.batch import Batch
from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError, plural, is_real
from transformer_contract.generation import an_id_beside
from parity_io.memory import check_memory
from transformer_contract.schema import schema
from transformer_contract.tokenizer import Tokenizer
from parity import ports
from parity.numerics.comparator import MATCH, compare
from parity.numerics.tolerances import FLOAT64_LIMIT, score_limit
from parity.runs import doubt, pieces
from parity.runs.evaluation import padded


#: The longest text that is read, in bytes or characters.
LONGEST = 100_000

#: Models of fewer parameters compute on one thread.
SMALL = 5_000_000


@dataclasses.dataclass(frozen=True)
class Model:
    """Weights with their tokenizer.

    Attributes:
        name: the weights' path, as given.
        config, arrays: the model's.
        tokenizer: the one that it was trained with.
        doubtful_below: answers with a token less likely than this are
            doubtful; None where it was not measured. See parity.runs.doubt.
    """

    name: str
    config: TransformerConfig
    arrays: dict
    tokenizer: Tokenizer
    doubtful_below: float | None = None

    @classmethod
    def load(cls, path, tokenizer_path=None):
        """Read weights, and the tokenizer beside them unless one is given.

        Raises:
            InputError: a file cannot be read, or they do not belong together.
        """
        path = pathlib.Path(path)
        arrays, metadata = weights.load(path)
        try:
            description = weights.described(metadata)
            config = TransformerConfig(**description["config"])
        except (KeyError, TypeError):
            raise InputError(
                f"{str(path)!r} does not say which model it is; choose "
                "weights that parity train wrote.") from None
        weights.check_layers(config, len(arrays), str(path))
        weights.check(arrays, schema(config), str(path))
        foreign = description.get("framed") is True
        if tokenizer_path is None and foreign and pieces.stored(path.parent):
            tokenizer_path = path.parent
            tokenizer = pieces.Pieces(path.parent)
        else:
            tokenizer_path = tokenizer_path or beside(path)
            tokenizer = Tokenizer.load(tokenizer_path, foreign)
        sizes = {config.source_vocab, config.target_vocab}
        if foreign:  # its model may have rows that no token has
            matches = len(sizes) == 1 and tokenizer.last_id < max(sizes)
            tokenizer.pad_id = config.pad_id
        else:
            matches = (sizes == {tokenizer.vocab_size}
                       and tokenizer.pad_id == config.pad_id)
        if not matches or description.get(
                "tokenizer", tokenizer.digest) != tokenizer.digest:
            raise InputError(
                f"{str(tokenizer_path)!r} is not the tokenizer of "
                f"{str(path)!r}; give the one that it was trained with.")
        border = description.get("doubtful_below")
        if border is not None and not (
                is_real(border) and 0 <= border <= 1):
            raise InputError(
                f"{str(path)!r} says that answers are doubtful below "
                f"{border!r}, which is no probability; choose weights that "
                "parity train wrote.")
        return cls(str(path), config,
                   {name: arrays[name] for name in schema(config)},
                   tokenizer, border)


def beside(path):
    """The tokenizer's file beside weights; InputError if there is none."""
    for name in (f"{path.stem}.tokenizer.json", "tokenizer.json"):
        if (tokenizer_path := path.with_name(name)).is_file():
            return tokenizer_path
    raise InputError(
        f"there is no {path.stem}.tokenizer.json nor tokenizer.json beside "
        f"{str(path)!r}; put it there, or give it to parity translate with "
        "--tokenizer. transformers' AutoTokenizer writes one of older files.")


@dataclasses.dataclass
class Answer:
    """A model's answer to a text.

    Attributes:
        text: the source; None where it could not be read.
        problem: why there is no answer, in a sentence, or "".
        ids: the text's, int64 [S].
        tokens: int64 [W N], the best hypothesis first.
        scores: float64 [W].
        texts: each hypothesis with a finite score, as text.
        least: the probability of the best one's least likely token, or None.
    """

    text: str | None
    problem: str = ""
    ids: np.ndarray | None = None
    tokens: np.ndarray | None = None
    scores: np.ndarray | None = None
    texts: tuple = ()
    least: float | None = None

    @property
    def best(self):
        """The best hypothesis as text; "" where there is none."""
        return self.texts[0] if self.texts else ""


def read(model, text, what):
    """An Answer without hypotheses, of a text or of a line's bytes."""
    if len(text) > LONGEST:
        return Answer(None, f"{what} has more than {LONGEST:,} "
                      f"{'bytes' if isinstance(text, bytes) else 'characters'}"
                      "; shorten it, or divide it into several.")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            return Answer(None, f"{what} is not UTF-8 (byte "
                          f"{error.start + 1}); save it as UTF-8.")
    elif any("\ud800" <= sign <= "\udfff" for sign in text):
        return Answer(None, f"{what} is not UTF-8; write it in UTF-8.")
    ids = np.array(model.tokenizer.encode(text), np.int64)
    if len(ids) > model.config.max_length:
        return Answer(text, f"{what} has {plural(len(ids), 'token')}, "
                      f"but the model reads {model.config.max_length}; "
                      "shorten it, or divide it into several.")
    config = model.config
    if config.stacks != "decoder" and config.pad_id in ids:
        return Answer(text, f"{what} has the token {config.pad_id}, which the "
                      "model takes for padding and would not read; leave it "
                      "out.")
    return Answer(text, "", ids)


def by_length(answers, most):
    """Lists of indices of texts of similar length, to be answered at once.

    Padding costs as much as tokens.
    """
    order = sorted(
        (i for i, answer in enumerate(answers)
         if answer.ids is not None and len(answer.ids)),
        key=lambda i: len(answers[i].ids))
    return [order[start:start + most] for start in range(0, len(order), most)]


class Translator:
    """One implementation of a model, ready to answer.

    Raises:
        InputError: it cannot run here.
    """

    def __init__(self, port, model, dtype="float64", device="cpu"):
        engine = ports.ready(port, device, "fast")
        self.port, self.engine, self.model = port, engine, model
        # Small products gain nothing from a second thread, and on a busy
        # machine the threads wait for one another.
        self.small = sum(a.size for a in model.arrays.values()) < SMALL
        self.dtype, self.device = dtype, device
        check_memory(np.dtype(dtype).itemsize * sum(
            array.size for array in model.arrays.values()), model.name)
        self.native_model = self._built(engine)

    def _built(self, engine, **changes):
        return engine.build("transformer", self.model.config.replace(
            **changes), {
            name: array.astype(self.dtype)
            for name, array in self.model.arrays.items()},
            self.dtype, self.device)

    def answer(self, questions, settings, most=32, first_row=0):
        """Answers to texts that were read, in their order.

        Args:
            questions: the Answers of read.
            settings: a GenerationConfig.
            most: how many are answered at once.
            first_row: the number of the first, from which its samples follow.
        """
        answers = [dataclasses.replace(answer) for answer in questions]
        prompts = self.model.config.stacks == "decoder"
        for places in by_length(questions, 1 if prompts else most):
            source = questions[places[0]].ids[None] if prompts else padded(
                self.model.tokenizer,
                [questions[i].ids.tolist() for i in places],
                self.model.config.max_length)
            native_model = self.native_model
            if prompts and self.model.config.pad_id in source:
                native_model = self._built(self.engine, pad_id=an_id_beside(
                    [*source[0], *settings.eos_ids]))
            with threadpool_limits(1 if self.small else None):
                result = self.engine.generate(
                    native_model, source, settings,
                    rows=first_row + np.array(places))
            for i, tokens, scores in zip(
                    places, result["tokens"], result["scores"]):
                answers[i].tokens, answers[i].scores = tokens, scores
                answers[i].texts = tuple(
                    self.text(row, settings) for row, score
                    in zip(tokens, scores) if np.isfinite(score))
        return answers

    def weigh(self, answers, settings):
        """Note how likely the best hypotheses are; see parity.runs.doubt."""
        answered = [answer for answer in answers if answer.texts]
        with threadpool_limits(1 if self.small else None):
            least = doubt.least_probability(
                self.engine, self.native_model, self.model.tokenizer,
                [answer.ids.tolist() for answer in answered],
                [read_and_written(answer, settings) for answer in answered])
        for answer, probability in zip(answered, least.tolist()):
            answer.least = probability

    def text(self, tokens, settings):
        """A hypothesis as text: all between its bos and eos ids."""
        return self.model.tokenizer.decode(written(tokens, settings))

    def attention(self, answer, settings):
        """The attention weights of every step of the best hypothesis.

        The readable form computes them: the fast one has no such step.

        Returns:
            {kind: weights [layers H T S]} of "encoder", "decoder" and "cross".
            The decoder's rows are those of ``decoder_ids``.
        """
        config = self.model.config
        target = np.array(decoder_ids(answer, settings), np.int64)
        batch = Batch.of_ids(answer.ids[None], target[None], config.pad_id)
        readable = ports.ready(self.port, self.device)
        steps = readable.forward(self._built(readable), *batch)
        kinds = {
            "encoder": ("encoder", config.n_encoder_layers, "self_attention"),
            "decoder": ("decoder", config.n_decoder_layers, "self_attention"),
            "cross": ("decoder", config.n_decoder_layers, "cross_attention")}
        return {kind: np.stack([
            np.asarray(steps[f"{stack}.layers.{i}.{part}.weights"])[0]
            for i in range(count)])
            for kind, (stack, count, part) in kinds.items()}


def translators(port_names, model, dtype="float64", device="cpu"):
    """Translators of those ports that are here, and the names of the others.

    Raises:
        InputError: only one port was named, and it cannot run here.
    """
    here, absent = [], []
    for name in port_names:
        try:
            here.append(Translator(name, model, dtype, device))
        except InputError:
            if len(port_names) == 1:
                raise
            absent.append(name)
    return here, absent


def written(tokens, settings):
    """A hypothesis' ids, without its bos id and before its eos id."""
    ids = tokens.tolist()[1:]
    return ids[:end_of(ids, settings)]


def end_of(ids, settings):
    """The place of the first eos id among ids; behind them without one."""
    return next((place for place, each in enumerate(ids)
                 if each in settings.eos_ids), len(ids))


def ends(tokens, settings):
    """Whether a hypothesis has an eos id, and was not cut off."""
    ids = tokens.tolist()[1:]
    return end_of(ids, settings) < len(ids)


def read_and_written(answer, settings):
    """The best hypothesis: bos id, tokens, and the eos id unless cut off."""
    ids = answer.tokens[0].tolist()
    return ids[:2 + end_of(ids[1:], settings)]


def decoder_ids(answer, settings):
    """What the decoder read for the best hypothesis: all but the last."""
    return read_and_written(answer, settings)[:-1]


def agree(first, others, dtype="float64"):
    """Whether answers of several ports are the same.

    Returns:
        The worst relative error of the scores, and a sentence on the first
        difference, or "".
    """
    worst = 0.0
    limit = FLOAT64_LIMIT if dtype == "float64" else score_limit(dtype, 0.0)
    for port, answers in others.items():
        for ours, theirs in zip(first, answers):
            if ours.tokens is None:
                continue
            if not np.array_equal(ours.tokens, theirs.tokens):
                return worst, (f"{port} answers {theirs.best!r} to "
                               f"{ours.text!r}, not {ours.best!r}")
            difference = compare(theirs.scores, ours.scores, limit)
            if difference.verdict != MATCH:
                return worst, (f"{port}'s scores of {ours.text!r} have an "
                               f"error of {difference.error:.1e}")
            worst = max(worst, difference.error)
    return worst, ""
