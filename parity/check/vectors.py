"""Replay vector files: numbers that a teaching system computed itself.

A vector file holds a system's inputs (``in.*``), its weights under its own
names (``w.*``) and what it answered (``out.*``), in float64, with one metadata
key ``vector`` that says in JSON which layout it is. The weights are read
through the layout's table, and every answer is compared in the reference and
in every port.
"""

import json
import os
import pathlib
import time

import numpy as np

from transformer_contract import weights
from transformer_contract.components import WHOLE
from transformer_contract.dialects import table
from parity_io.errors import InputError
from transformer_contract.schema import PROJECTIONS
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import finite, select
from parity import ports
from parity.check.stored_outputs import IO, StoredOutputs
from parity.check.report import Report, Row
from parity.numerics import zero_gradients
from parity.numerics.comparator import DIVERGENCE, Difference, compare, within
from parity.numerics.tolerances import FLOAT64_LIMIT, gradient_limit
from parity.ports import NotChecked

#: How the systems that hold ``losses`` and ``final.*`` were trained: ten steps
#: on one batch, by the paper's Adam, a constant learning rate, no dropout.
STEPS = 10
TRAINING = TrainingConfig(schedule="constant", learning_rate=1e-4)

#: How many folders are searched; a disk has hundreds of thousands.
MOST = 1000


def find(paths):
    """Every vector file among the paths and in the folders there.

    A folder with an ``io.safetensors`` is one thing, see ``stored_outputs.py``.
    """
    files = []
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            inside = _inside(path)
            if not inside:
                raise InputError(
                    f"the folder {str(path)!r} holds no .safetensors file; "
                    "give a vector file or a folder of them.")
            folders = sorted(file.parent for file in inside if file.name == IO)
            files += folders + [
                file for file in inside if file.parent not in folders]
        else:
            files.append(path)
    return files


def _inside(folder):
    """Every .safetensors file in a folder and the folders there, sorted."""
    files = []
    for count, (place, _, names) in enumerate(os.walk(folder)):
        if count == MOST:
            raise InputError(
                f"the folder {str(folder)!r} holds more than {MOST} others; "
                "give a folder of vector files.")
        files += [pathlib.Path(place, name) for name in names
                  if name.endswith(".safetensors")]
    return sorted(files)


class Vector:
    """One vector file, read and checked.

    Attributes:
        name: the file's name without its ending.
        config: the TransformerConfig that it describes.
        weights: the arrays under our names.
        answers: its ``out.*`` by their own names, without the prefix.
        stale: the answers that say nothing, see _stale.
        left_out: {answer: why it is not compared}: none.
    """

    left_out: dict = {}

    def __init__(self, path):
        arrays, metadata = weights.load(path)
        self.path, self.name = path, pathlib.Path(path).stem
        try:
            sizes = json.loads(metadata["vector"])
            self.layout = sizes["layout"]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise InputError(
                f"{str(path)!r} has no metadata key 'vector' that says in "
                "JSON which layout it is, so it is not a vector file."
            ) from None
        self.table = table.dialect(self.layout)
        self.config = self.table.config(sizes)
        weights.check_layers(self.config, len(arrays), str(path))
        self.input_arrays = select(arrays, "in.")
        self.answers = select(arrays, "out.")
        weight_arrays = select(arrays, "w.")
        for name, array in {**weight_arrays, **self.answers}.items():
            finite(name, array, str(path))
        self.stale = self._stale(weight_arrays)
        if "x" in self.answers:  # what a module was given, kept among answers
            self.input_arrays["x"] = self.answers.pop("x")
        self.weights = self._complete(
            self.table.read(weight_arrays, self.config))

    def _stale(self, first):
        """The names of final weights that are the first ones, to the bit.

        Training moves every weight that has a gradient. A file whose weights
        after it are those before it, all of them, was written from the wrong
        arrays, and says nothing to compare with.
        """
        final = {name: select(self.answers, "final.").get(name)
                 for name in first}
        equal = [np.array_equal(final[name], first[name])
                 for name in first if final[name] is not None]
        return {f"final.{name}" for name in final} if equal and all(
            equal) else set()

    def _complete(self, arrays):
        """Give a multi-head attention without biases biases of zero."""
        if self.table.component == "multi_head_attention":
            for name in PROJECTIONS:
                arrays.setdefault(
                    f"{name}.bias", np.zeros(self.config.d_model))
        return arrays

    def inputs(self):
        """The component's inputs: with a batch axis and a mask of their own.

        The first lessons have neither; attention then gets a batch of one and
        a mask that allows everything.
        """
        try:
            arrays = [self.input_arrays[name] for name in self.table.inputs]
        except KeyError as missing:
            raise InputError(
                f"{str(self.path)!r} lacks the input 'in.{missing.args[0]}' "
                f"that the layout {self.layout} asks for.") from None
        if self.unbatched:
            arrays = [array[None] for array in arrays]
            length = arrays[0].shape[1]
            arrays.append(np.ones((1, 1, 1, length), bool))
        return arrays

    @property
    def unbatched(self):
        """Whether a batched component is shown without its batch axis."""
        return (self.table.component == "multi_head_attention"
                and self.input_arrays["x"].ndim == 2)

    def replay(self, engine):
        """Our answers under their names, as an engine computes them."""
        module = engine.build(
            self.table.component, self.config, self.weights)
        steps = engine.run(module, *self.inputs(), **WHOLE.get(
            self.table.component, {}))
        answers = {**self._gradients(engine, module), **self._training(engine)}
        for name in self.answers:
            if name == "loss":
                answers[name] = self._loss(engine, steps["output"])
            elif step := self.table.step_of(name, self.config):
                array = steps[step]
                answers[name] = array[0] if self.unbatched else array
        return answers

    def names(self, prefix):
        """{our name of a weight: their name of an answer about it}."""
        return {ours: f"{prefix}{theirs}" for ours, theirs, _
                in self.table.rows_of(self.config)
                if f"{prefix}{theirs}" in self.answers}

    def gradient_names(self):
        """{our name of a weight: their name of its gradient}."""
        return self.names("grad.")

    def _training(self, engine):
        """The losses of a few steps, and the weights after them."""
        if "losses" not in self.answers:
            return {}
        model = engine.build("transformer", self.config.replace(dropout=0.0),
                             self.weights)
        trainer = engine.trainer(model, TRAINING)
        losses = [engine.train_step(trainer, self.input_arrays["src"][None],
                                    self.input_arrays["tgt"][None])["loss"]
                  for _ in range(STEPS)]
        weights_after = engine.export(model)
        return {"losses": np.array(losses),
                **{theirs: weights_after[ours] for ours, theirs
                   in self.names("final.").items()}}

    def _gradients(self, engine, module):
        """Gradients under their names, turned to our orientation."""
        names = self.gradient_names()
        if not names:
            return {}
        labels = np.full_like(self.input_arrays["tgt"], self.config.pad_id)
        labels[:, :-1] = self.input_arrays["tgt"][:, 1:]
        _, gradients = engine.gradients(module, *self.inputs(), labels)
        return {theirs: gradients[ours] for ours, theirs in names.items()}

    def truths(self):
        """What each answer should be; gradients turned to our orientation."""
        truths = dict(self.answers)
        for prefix in ("grad.", "final."):
            if names := self.names(prefix):
                ours_by_name = self.table.read(
                    {theirs.removeprefix(prefix): self.answers[theirs]
                     for theirs in names.values()}, self.config)
                truths |= {theirs: ours_by_name[ours]
                           for ours, theirs in names.items()}
        return truths

    def limit_and_scale(self, name, truths):
        """The limit of an answer, and what it is zero beside, if it is."""
        if name.startswith("final."):
            return self._limit_of_final(name)
        if not name.startswith("grad."):
            return FLOAT64_LIMIT, None
        limit = gradient_limit("float64", 0.0, of_one=True)
        for ours, theirs in self.gradient_names().items():
            if theirs == name and zero_gradients.is_zero(ours):
                beside = self.gradient_names()[zero_gradients.beside(ours)]
                return limit, float(np.abs(truths[beside]).max())
        return limit, None

    def _limit_of_final(self, name):
        """As limit_and_scale, of a weight after training.

        A key's bias has rounding for a gradient, which Adam divides by its own
        size: it may go anywhere that a step's learning rate lets it.
        """
        ours = {theirs: ours for ours, theirs in self.names("final.").items()}
        if zero_gradients.is_zero(ours[name]):
            return 2 * STEPS * TRAINING.learning_rate, "wanders"
        return FLOAT64_LIMIT, None

    def _loss(self, engine, output):
        """The loss of predicting each target token from those before it."""
        loss = engine.loss(
            np.ascontiguousarray(output[:, :-1]),
            np.ascontiguousarray(self.input_arrays["tgt"][:, 1:]),
            self.config.pad_id, 0.0, "uniform")
        return loss.reshape(1)


def replay(paths, port_names, on_file=lambda text: None):
    """Compare every answer of the files in the reference and in the ports.

    Returns:
        A Report whose rows name the file's layout as preset and the file as
        case.
    """
    start, report = time.perf_counter(), Report()
    files = [StoredOutputs(path) if path.is_dir() else Vector(path)
             for path in find(paths)]
    engines = {"numpy": ports.engine("numpy"), **{
        name: port.bench.engine
        for name, port in report.open(port_names).items()}}
    absent = len(report.not_checked)
    stale = 0
    for vector in files:
        on_file(vector.name)
        report.not_done += [
            f"{vector.name}'s {name} {why}"
            for name, why in vector.left_out.items()]
        replayed = [n for n in vector.answers if n not in vector.stale]
        stale += len(vector.answers) - len(replayed)
        answers = {name: _answers(vector, engine)
                   for name, engine in engines.items()}
        total = len(engines) + absent
        report.expected += total * len(vector.answers)
        report.not_compared += (
            absent * len(replayed)
            + total * (len(vector.answers) - len(replayed)))
        truths = vector.truths()
        for answer in replayed:
            truth = truths[answer]
            limit, scale = vector.limit_and_scale(answer, truths)
            differences = {}
            for name, answered in answers.items():
                if isinstance(answered, str):
                    differences[name] = Difference(
                        None, limit, DIVERGENCE, answered)
                elif answer not in answered:
                    differences[name] = Difference(
                        None, limit, DIVERGENCE,
                        f"the layout {vector.layout} does not say which step "
                        "this is")
                elif scale == "wanders":
                    differences[name] = within(answered[answer], truth, limit)
                else:
                    differences[name] = compare(
                        answered[answer], truth, limit, zero_scale=scale)
            report.rows.append(Row(
                vector.layout, vector.name, answer, "float64", "cpu",
                truth.shape, limit, differences))
    if stale:
        report.not_checked += [NotChecked(
            name, f"{stale} final weights, since in the file they are the "
            "first ones to the bit") for name in engines]
    report.seconds = time.perf_counter() - start
    return report


def _answers(vector, engine):
    """An engine's answers, or in words why it has none."""
    try:
        return vector.replay(engine)
    except InputError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
