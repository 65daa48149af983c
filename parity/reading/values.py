"""What the pages show: one run of the shipped model in all four.

The model reads a real date and answers it. Every step of every port is
compared with the reference's, and so is the gradient of each, all in float64.
What the model has no use for (another norm, another residual, a gate) is seen
in the same weights, read as such a model.
"""

import functools
import importlib
import warnings

import numpy as np

from transformer_contract.training import TrainingConfig
from parity.reading import variables as local_steps
from parity.reading.model_run import ModelRun, OneHead, join, of_all
from parity.reading.shipped_model import (
    MAPS, OTHERS, Running, run_other, run_searches)

#: Names in the backward markers -> the canonical names of their weights.
WEIGHTS = {
    "W_Q": "query.kernel", "b_Q": "query.bias", "W_K": "key.kernel",
    "b_K": "key.bias", "W_V": "value.kernel", "b_V": "value.bias",
    "W_O": "output.kernel", "b_O": "output.bias", "W₁": "inner.kernel",
    "b₁": "inner.bias", "W₂": "outer.kernel", "b₂": "outer.bias",
    "W_g": "gate.kernel", "b_g": "gate.bias",
    "W": "kernel", "b": "bias",
}

#: The weight that the optimiser's page moves.
MOVED = "encoder.layers.0.self_attention.query.bias"


class Values(Running):
    """Everything that the pages show of a run, also in another process.

    What takes longest is made when it is asked for, or by ``complete``.

    Attributes:
        dates, maps: ModelRuns of the shipped model.
        others: ModelRuns of OTHERS.
        stores: column -> what it stores of each weight, and whether all come
            back as they were.
    """

    def __init__(self, port_names):
        super().__init__(port_names)
        self.computed_by = super().versions()
        config = self.config
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.dates = self.run(config, self.weights)
            self.maps = ModelRun(self.engines, config, self.weights,
                                 self.pairs_batch(MAPS)[0])
            self.single = self._single()
            self.of_files = self._of_files()
            self.optimizer = self._optimizer()
            self.stores = {column: self._stored(column)
                           for column in self.ports}

    def __getstate__(self):
        """All but engines, models and the tokenizer, which are made again."""
        made = {"engines", "models", "tokenizer"}
        return {name: one for name, one in vars(self).items()
                if name not in made}

    def __setstate__(self, state):
        """Where it is read, the reference alone is there."""
        super().__init__(())
        vars(self).update(state)

    def versions(self):
        """Column -> what computed there, in words."""
        return self.computed_by

    def complete(self, call):
        """Take what takes longest from elsewhere; see ``prebuild.call``."""
        self.others = [call(run_other, number, self.ports)
                       for number in range(len(OTHERS))]
        self.local_variables = call(run_searches, self.ports)

    @functools.cached_property
    def others(self):
        """The ModelRuns of OTHERS."""
        return [self.run_other(number) for number in range(len(OTHERS))]

    @functools.cached_property
    def local_variables(self):
        """What ``run_searches`` makes."""
        return self.run_searches()

    @property
    def variables(self):
        """{(owner, step): SeenArray} of steps that no module records."""
        return self.local_variables[0]

    @property
    def answers(self):
        """Column -> the tokens and scores of greedy search."""
        return self.local_variables[1]

    def loaded(self, column):
        """A column's engine and model; None where it was not run."""
        if column in self.engines:
            return self.engines[column], self.models[column]
        return None

    def _stored(self, column):
        """({name: array as a port stores it}, whether all are exported)."""
        engine, model = self.engines[column], self.models[column]
        parameters = importlib.import_module(
            f"{engine.__package__}.parameters")
        back = engine.export(model)
        return {weight.name: np.asarray(engine.to_numpy(weight.get()))
                for weight in parameters.leaves(model)}, all(
            np.array_equal(back[name], array)
            for name, array in self.weights.items())

    # What stands where

    @functools.cached_property
    def runs(self):
        """Every run, the shipped model first."""
        return self.dates, *self.others

    def place(self, owner):
        """(ModelRun, path) where an owner is looked at; None if nowhere."""
        if owner == "SingleHeadAttention":
            return self.single, ""
        for run in self.runs:
            if run.paths.get(owner):
                return run, run.paths[owner][0]
        return None

    def step(self, step):
        """A marked step as SeenArray, or None where nothing is recorded."""
        if step.owner in ("Adam", "AdamW"):
            return self.optimizer.get((step.owner, step.name))
        if step.owner in local_steps.OWNERS:
            return self.variables.get((step.owner, step.name))
        if place := self.place(step.owner):
            run, path = place
            return run.seen(join(path, step.name))
        return None

    def everywhere(self, step):
        """The step at every place of its run, as SeenArray."""
        place = self.place(step.owner)
        if not place or step.owner == "SingleHeadAttention":
            return []
        run, _ = place
        seen = (run.seen(join(path, step.name))
                for path in run.paths[step.owner])
        return [one for one in seen if one is not None]

    def backward(self, step):
        """[(name in the marker, SeenArray or None)] of a backward step."""
        owner = step.owner.removesuffix("_backward")
        place = self.place(owner)
        if not place:
            return []
        run, path = place
        pairs = []
        for name in (part.strip() for part in step.name.split(",")):
            full = join(path, WEIGHTS.get(name, name))
            if name == "E":
                full = "source_embedding.table"
            if name == "logits":
                full = "projection.logits"
            pairs.append((name, run.gradient(full)))
        return pairs

    # What is run beside the models

    def _single(self):
        """One head on the sentence's first vectors."""
        x = self.dates.steps["numpy"]["source_positions.positioned"][0]
        path = "encoder.layers.0.self_attention"
        kernels = {f"{name}.kernel": self.weights[f"{path}.{name}.kernel"]
                   for name in ("query", "key", "value")}
        return OneHead(self.engines, self.config, kernels, x)

    @functools.cached_property
    def functions(self):
        """(file, function) -> [SeenArray], of what is no step of a model."""
        return {**self.of_files, ("search", "Greedy"): [
            of_all("tokens", self.answers, "tokens"),
            of_all("scores", self.answers, "scores", "log p of the answer")]}

    def _of_files(self):
        """Those of ``functions`` that search for no answer."""
        batch, labels = self.dates.batch, self.dates.labels
        pad, smoothing = self.config.pad_id, (
            self.config.label_smoothing, self.config.smoothing)
        masks, losses = {}, {}
        logits = self.dates.steps["numpy"]["output"]
        for column, engine in self.engines.items():
            masks[column] = engine.masks(batch.source, batch.target, pad) | {
                "causal_mask": causal_mask(engine, batch.target.shape[1])}
            losses[column] = engine.loss(logits, labels, pad, *smoothing)
        return {
            ("masks", "padding_mask"): [
                of_all("source_mask", masks, "source_mask")],
            ("masks", "causal_mask"): [
                of_all("causal_mask", masks, "causal_mask")],
            ("masks", "decoder_mask"): [
                of_all("target_mask", masks, "target_mask")],
            ("loss", "cross_entropy"): [of_all(
                "loss", {c: {"loss": v} for c, v in losses.items()}, "loss")],
            ("loss", "cross_entropy_backward"): [
                self.dates.gradient("output")],
            ("train", "loss_and_gradients"): [of_all(
                "loss", {c: {"loss": v}
                         for c, v in self.dates.losses.items()}, "loss")],
        }

    def _optimizer(self):
        """Adam's steps, on one weight's gradients of two sentences."""
        first = self.dates.gradients["numpy"][MOVED]
        engine = self.engines["numpy"]
        model = engine.build(
            "transformer", self.config, self.weights, "float64")
        batch, labels = self.pairs_batch([MAPS[1]])
        second = engine.gradients(model, *batch, labels)[1][MOVED]
        weight, zero = self.weights[MOVED], np.zeros_like(first)
        arrays = {}
        for column, engine in self.engines.items():
            arrays[column] = updated(engine, weight, zero, first, second)
        names = {
            ("Adam", "m"): "m", ("Adam", "v"): "v",
            ("Adam", "direction"): "direction", ("Adam", "weight"): "weight",
            ("AdamW", "decayed"): "decayed"}
        return {key: of_all(MOVED, arrays, name) for key, name
                in names.items()}


def causal_mask(engine, length):
    """A port's causal mask, bool [1 1 T T]; no result of its own engine."""
    mask = importlib.import_module(f"{engine.__package__}.masks").causal_mask(
        length)
    return mask if engine.NAME == "numpy" else engine.to_numpy(mask)


def updated(engine, weight, zero, first, second):
    """What a port's optimiser makes of two gradients: arrays by name.

    The direction and the decayed weight are no results of ``update``. At
    weight 0 and learning rate -1 it answers the direction, and at gradient 0
    the weight that is decayed and not moved.
    """
    parts = importlib.import_module(f"{engine.__package__}.parts")

    def native(array):
        if engine.NAME == "numpy":
            return array
        return engine.to_native(array, "cpu")

    def back(array):
        return array if engine.NAME == "numpy" else engine.to_numpy(array)

    training = TrainingConfig()
    adam = parts.optimizer(training, len(weight))
    settings = adam.settings(1)
    new_weight, m, v = adam.update(
        native(weight), native(first), native(zero), native(zero), *settings)
    settings = adam.settings(2)
    direction, _, _ = adam.update(
        native(zero), native(second), m, v, -1.0, *settings[1:])
    new_weight, m, v = adam.update(new_weight, native(second), m, v, *settings)
    decay = parts.optimizer(
        TrainingConfig(optimizer="adamw", weight_decay=0.01), len(weight))
    decayed, _, _ = decay.update(
        native(weight), native(zero), native(zero), native(zero),
        *decay.settings(1))
    return {"m": back(m), "v": back(v), "direction": back(direction),
            "weight": back(new_weight), "decayed": back(decayed)}
