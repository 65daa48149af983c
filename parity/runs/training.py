"""A training run: steps, validation, checkpoints and resuming.

A run is a folder. ``checkpoint.safetensors`` has all that the next step
depends on (see the contract's checkpoint.py), and the settings as metadata, so
that any port can resume from it. It is written as a new file that replaces the
old one: a killed run loses only the steps after its last checkpoint.
"""

import contextlib
import dataclasses
import math
import pathlib

import numpy as np

from transformer_contract import checkpoint, weights
from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError, one_of
from parity_io.files import (
    SUFFIX, check_ordinary, check_room, locked, as_input_error, write_whole)
from transformer_contract.schema import schema
from transformer_contract.tokenizer import Tokenizer
from transformer_contract.training import TrainingConfig
from parity.runs.evaluation import evaluate, padded, translate

CHECKPOINT, TOKENIZER = "checkpoint.safetensors", "tokenizer.json"
WEIGHTS, CURVE, PICTURE = "weights.safetensors", "curve.tsv", "curve.png"

#: The files of a run.
OWN = CHECKPOINT, TOKENIZER, WEIGHTS, CURVE, PICTURE

#: All that a run's folder may hold when the run starts, if it was killed.
BEGUN = {TOKENIZER, CURVE}

COLUMNS = ("step", "loss", "norm", "rate", "validation_loss",
           "validation_exact")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run depends on, except the port.

    Attributes:
        task: its name, or the path of a file of pairs.
        config, training: the model and how it is trained.
        rows: pairs in a batch.
        accumulate: batches in a step.
        dtype: of the computation.
        vocab: the vocabulary size of the tokenizer for a file of pairs.
        steps: up to which it trains; None is as far as its task says.
        every: steps from one checkpoint to the next.
        average: of how many last checkpoints its weights are the mean.
    """

    task: str
    config: TransformerConfig
    training: TrainingConfig
    rows: int
    accumulate: int = 1
    dtype: str = "float32"
    vocab: int = 1000
    steps: int | None = None
    every: int = 500
    average: int = 1

    def __post_init__(self):
        for field, least, most in (
                ("rows", 1, 2**16), ("accumulate", 1, 2**16),
                ("vocab", 260, 2**24), ("steps", 1, 2**53),
                ("every", 1, 2**53), ("average", 1, 1000)):
            value = getattr(self, field)
            if field == "steps" and value is None:
                continue
            if type(value) is not int or not least <= value <= most:
                raise InputError(
                    f"{field} is {value!r}; choose a whole number from "
                    f"{least} to {most}.")
        one_of(self.dtype, ("float32", "float64"), "dtype")

    def as_dict(self):
        """Plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def of_dict(cls, data):
        """The Settings of as_dict's data."""
        return cls(**{**data, "config": TransformerConfig(**data["config"]),
                      "training": TrainingConfig.of_dict(data["training"])})


class Run:
    """One port, training on one task in one folder.

    Attributes:
        step: the number of the last step.
        curve: rows of COLUMNS, by step; the validation's are None for a step
            without one.
    """

    def __init__(self, engine, task, settings, folder, device="cpu"):
        self.engine, self.task, self.settings = engine, task, settings
        self.folder, self.device = pathlib.Path(folder), device
        self.curve = []
        arrays = engine.initial_weights(
            settings.config, settings.training.seed)
        self.trainer = engine.trainer(engine.build(
            "transformer", settings.config,
            {name: array.astype(settings.dtype)
             for name, array in arrays.items()},
            settings.dtype, device), settings.training)

    @property
    def model(self):
        """The port's Transformer."""
        return self.trainer.model

    @property
    def step(self):
        """The number of the last step."""
        return self.trainer.step

    def batches(self, step):
        """Sources [A B S] and targets [A B T] of a step, padded."""
        settings = self.settings
        sources, targets = self.task.batch(
            step, settings.rows * settings.accumulate)
        return tuple(
            padded(self.task.tokenizer, ids, settings.config.max_length)
            .reshape(settings.accumulate, settings.rows, -1)
            for ids in (sources, targets))

    def train_step(self):
        """Make a step and note its loss, norm and learning rate."""
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            result = self.engine.train_step(
                self.trainer, *self.batches(self.step + 1))
        row = [self.step, *(float(result[name])
                            for name in ("loss", "norm", "rate")), None, None]
        if not math.isfinite(row[1]):
            raise InputError(
                f"the loss is {row[1]} at step {self.step}; choose a lower "
                "learning rate, a longer warm-up or a clip norm, and start "
                "from the last checkpoint.")
        self.curve.append(row)
        return row

    def validate(self):
        """Note the validation's loss and its share of exact answers."""
        pairs = self.task.validation()
        if pairs:
            loss = evaluate(self.engine, self.model, self.task.tokenizer,
                            pairs)
            answers = translate(self.engine, self.model, self.task.tokenizer,
                                [source for source, _, _ in pairs],
                                self.task.longest)
            exact = np.mean([answer == target for answer, (_, target, _)
                             in zip(answers, pairs)])
            self.curve[-1][4:] = [loss, float(exact)]
        return self.curve[-1]

    def arrays(self):
        """All that the next step depends on, by name."""
        return checkpoint.arrays(self.engine, self.trainer)

    def save(self):
        """Write the curve and then the checkpoint, each whole or not at all."""
        with as_input_error(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / CHECKPOINT).exists():
            self.task.tokenizer.save(self.folder / TOKENIZER)
        write_curve(self.folder / CURVE, self.curve)
        weights.save(self.folder / CHECKPOINT, self.arrays(),
                     settings=self.settings.as_dict(),
                     made_from=self.made_from)

    @property
    def made_from(self):
        """The SHA-256 of what the run learns from, by name."""
        return {"data": self.task.digest,
                "tokenizer": self.task.tokenizer.full_digest}

    def check_room(self):
        """Raise InputError unless a checkpoint fits, beside an older one.

        The weights that will be averaged are counted as well.
        """
        averaged = self.settings.average
        shapes = schema(self.settings.config)
        size = sum(map(math.prod, shapes.values())) * (
            np.dtype(self.settings.dtype).itemsize)
        older = (self.folder / CHECKPOINT).exists()
        check_room(self.folder, size * (
            (3 if older else 6) + (averaged if averaged > 1 else 0)))

    def save_weights(self, model=None, **results):
        """Write the weights alone, with their config and results.

        Args:
            model: whose; by default the run's own.
        """
        weights.save(
            self.folder / WEIGHTS, self.engine.export(model or self.model),
            config=self.settings.config.as_dict(), task=self.settings.task,
            tokenizer=self.task.tokenizer.digest, step=self.step, **results)

    def load(self):
        """Resume from the folder's checkpoint.

        Raises:
            InputError: it cannot be read, or what it was made from changed.
        """
        settings = self.settings
        self.check_unchanged()
        self.trainer = checkpoint.resumed(
            self.engine, self.folder / CHECKPOINT, settings.config,
            settings.training, settings.dtype, self.device)
        self.curve = [row for row in read_curve(self.folder / CURVE)
                      if row[0] <= self.step]


    def check_unchanged(self):
        """Raise InputError if what the run learned from is another now.

        Checkpoints of earlier versions do not say what it was.
        """
        path = self.folder / CHECKPOINT
        _, metadata = weights.load(path)
        digests = weights.described(metadata).get("made_from", {})
        now, own = self.made_from, self.folder / TOKENIZER
        if digests and own.exists():
            now["own tokenizer"] = Tokenizer.load(own).full_digest
            digests["own tokenizer"] = digests["tokenizer"]
        words = {
            "data": f"the data of {self.settings.task!r} have",
            "tokenizer": f"the tokenizer that {self.settings.task!r} gives "
                         "(or the library tokenizers) has",
            "own tokenizer": f"{str(own)!r} has"}
        for name, digest in digests.items():
            if now.get(name, digest) != digest:
                raise InputError(
                    f"{words[name]} changed since {str(path)!r} was written; "
                    "put back what it was, or start another run.")


@contextlib.contextmanager
def claimed(folder, resume):
    """Hold a run's folder, made if need be, against every other run.

    Raises:
        InputError: it is a file, cannot be made or written to, holds something
            else, or another run is at work in it.
    """
    folder = pathlib.Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; give a folder.")
    fresh = not folder.exists()
    with as_input_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder))
        except BlockingIOError:
            raise InputError(
                f"another run is at work in the folder {str(folder)!r}; wait "
                "for it, or choose another --out.") from None
        try:
            if not resume:
                _check_vacant(folder)
            yield
        except BaseException:
            if fresh:  # nothing was written, so nothing is left
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise


def _check_vacant(folder):
    """Raise InputError unless a run may start in a folder."""
    if (folder / CHECKPOINT).exists():
        raise InputError(
            f"the folder {str(folder)!r} holds a run already; go on with "
            "--resume or choose another --out.")
    others = sorted(path.name for path in folder.iterdir()
                    if path.name not in BEGUN and path.suffix != SUFFIX)
    if others:
        raise InputError(
            f"the folder {str(folder)!r} holds something else, such as "
            f"{others[0]!r}; choose another --out.")


def settings_of(folder):
    """The Settings of a folder's checkpoint; InputError if it has none."""
    path = pathlib.Path(folder) / CHECKPOINT
    arrays, metadata = weights.load(path)
    try:
        settings = Settings.of_dict(weights.described(metadata)["settings"])
        weights.check_layers(settings.config, len(arrays), str(path))
        return settings
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{str(path)!r} does not say how it was trained, so it is not a "
            "checkpoint; choose the folder of a run.") from None


def write_curve(path, rows):
    """Write a curve as a table, whole or not at all."""
    lines = ["\t".join(COLUMNS)] + [
        "\t".join("" if value is None else repr(value) for value in row)
        for row in rows]
    write_whole(path, "\n".join(lines) + "\n")


def read_curve(path):
    """The rows of a curve; InputError if it cannot be read."""
    check_ordinary(path)
    try:
        head, *lines = pathlib.Path(path).read_text("utf-8").splitlines()
        if head.split("\t") != list(COLUMNS):
            raise ValueError
        rows = []
        for step, *values in (line.split("\t") for line in lines):
            row = [float(value) if value else None for value in values]
            if (len(row) != len(COLUMNS) - 1 or None in row[:3]
                    or not all(math.isfinite(value or 0) for value in row)
                    or not 0 < int(step) < 2**53):
                raise ValueError
            rows.append([int(step), *row])
        return rows
    except (OSError, ValueError):
        raise InputError(
            f"{str(path)!r} cannot be read as a learning curve; choose the "
            "folder of a run.") from None


def train(run, steps, every, on_step=lambda row: None,
          on_validation=lambda row: None, on_save=lambda: None):
    """Train up to step ``steps``; validate and save each ``every`` steps."""
    while run.step < steps:
        on_step(run.train_step())
        if run.step % every == 0 or run.step == steps:
            on_validation(run.validate())
            run.save()
            on_save()


def test(run, model=None):
    """A run's model on the task's test set, or on its validation set.

    Args:
        model: another in its place.

    Returns:
        {group: (exact, of)}, and the pairs that were answered exactly.
    """
    pairs = run.task.test() or run.task.validation()
    answers = translate(run.engine, model or run.model, run.task.tokenizer,
                        [source for source, _, _ in pairs],
                        run.task.longest)
    counts: dict[str, tuple[int, int]] = {}
    right = []
    for answer, (source, target, group) in zip(answers, pairs):
        exact, count = counts.get(group, (0, 0))
        counts[group] = exact + (answer == target), count + 1
        if answer == target:
            right.append((source, target))
    return counts, right
