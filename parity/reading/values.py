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

from transformer_contract import weights as files
from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.schema import schema
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.check import golden
from parity.check.run import LONGEST
from parity.numerics.tolerances import (
    FLOAT64_GRADIENT, FLOAT64_LIMIT, LOCKSTEP_LIMIT)
from parity.ports import NotChecked
from parity.reading import variables as local_steps
from parity.reading.model_run import ModelRun, OneHead, join, of_all

#: Which pair of the shipped ones is read, and which are drawn as maps.
EXAMPLE, MAPS = "vendredi 19 avril 2047", (
    "vendredi 19 avril 2047", "Thursday, January 26, 1989",
    "2039年11月6日日曜日")

#: The models that are seen beside the shipped one, and what they are.
OTHERS = (
    ({"norm": "std", "residual": "pre", "final_norm": True, "tied": "none"},
     "a pre-norm model with unbiased deviations, final norms and a projection "
     "of its own"),
    ({"norm": "rms", "residual": "pre", "final_norm": True, "gated": True,
      "activation": "silu", "position_padding": True},
     "a pre-norm model with RMS norms, gated feed-forward networks and "
     "positions that do not count padding"),
    ({"tied": "output", "output_bias": True, "token_types": 2,
      "positions": "learned", "output_transform": True},
     "a model with types of tokens, learned positions, and a head before a "
     "tied projection with a bias"),
    ({"stacks": "decoder", "tied": "none", "output_bias": False,
      "positions": "rotary_halves"},
     "a decoder alone, with rotary positions in halves"),
    ({"stacks": "decoder", "tied": "none", "residual": "pre",
      "final_norm": True, "positions": "rotary_interleaved"},
     "a pre-norm decoder alone, with rotary positions in pairs side by side"),
    ({"positions": "relative", "activation": "gelu"},
     "a model with relative positions and GELU"),
    ({"positions": "halves"}, "a model with sines first, then cosines"),
    ({"positions": "learned", "position_padding": True},
     "a model with learned positions that do not count padding"),
)

#: One layer shows them; the first, whose norms stand elsewhere, needs both.
ONE_LAYER = {"n_encoder_layers": 1, "n_decoder_layers": 1}

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

#: Owner of steps -> the limit of what it computes, where it is none of the
#: forward pass: gradients, and what one step of training makes of them.
LIMITS = {"loss_and_gradients": FLOAT64_GRADIENT, "Trainer": LOCKSTEP_LIMIT}

#: A kernel [D D].
SQUARE = "encoder.layers.0.self_attention.output.kernel"


class Shipped:
    """The shipped model, and the reference.

    Attributes:
        engines: column -> engine, the reference's first.
        config, weights, tokenizer: the model's; the weights in float64.
        pairs: source -> target of the shipped strings.
    """

    def __init__(self):
        self.engines = {"numpy": ports.engine("numpy")}
        self.config, weights, self.tokenizer, pairs = golden.trained()
        self.pairs = dict(pairs)
        self.weights = {name: array.astype(np.float64)
                        for name, array in weights.items()}

    def versions(self):
        """Column -> what computes there, in words."""
        return {column: ", ".join(f"{name} {version}" for name, version
                                  in engine.versions().items())
                for column, engine in self.engines.items()}

    def built(self, engine):
        """The shipped model, as an engine builds it, in float64."""
        return engine.build(
            "transformer", self.config, self.weights, "float64")

    def pairs_batch(self, sources):
        """The batch that a decoder reads, and what it is to predict."""
        for source in sources:
            if source not in self.pairs:
                raise InputError(
                    f"the shipped file {golden.TRAINED}.tsv lacks "
                    f"{source!r}, which the pages read; name another string "
                    "in parity/reading/values.py.")
        targets = [self.pairs[source] for source in sources]
        whole = Batch.of_text(sources, targets, self.tokenizer)
        batch = Batch.of_ids(
            whole.source, whole.target[:, :-1], self.config.pad_id)
        return batch, whole.target[:, 1:]


class Values(Shipped):
    """Everything that the pages show of a run, also in another process.

    Args:
        port_names: which ports to run.

    Attributes:
        not_checked: column -> why a port was not run.
        ports: the columns that were, without the reference's.
        dates, maps: ModelRuns of the shipped model.
        others: ModelRuns of OTHERS.
        stores: column -> what it stores of each weight, and whether all come
            back as they were.
    """

    def __init__(self, port_names):
        super().__init__()
        self.not_checked = {}
        for column in ports.usual_ports():
            if column not in port_names:
                self.not_checked[column] = "it was not asked for"
                continue
            engine = ports.engine(column)
            if isinstance(engine, NotChecked):
                self.not_checked[column] = engine.reason
            else:
                engine.set_precision()
                self.engines[column] = engine
        self.ports = tuple(self.engines)[1:]
        self.computed_by = super().versions()
        config = self.config
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.dates = self._run(config, self.weights, EXAMPLE)
            self.others = [
                self._run(other, reread(self.weights, other), EXAMPLE)
                for other in (
                    config.replace(**words, **(ONE_LAYER if number else {}))
                    for number, (words, _) in enumerate(OTHERS))]
            self.maps = ModelRun(self.engines, config, self.weights,
                                 self.pairs_batch(MAPS)[0])
            self.single = self._single()
            self.variables, self.answers = self._variables()
            self.functions = self._functions()
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
        super().__init__()
        vars(self).update(state)

    def versions(self):
        """Column -> what computed there, in words."""
        return self.computed_by

    @functools.cached_property
    def models(self):
        """Column -> the shipped model, built."""
        return {column: self.built(engine)
                for column, engine in self.engines.items()}

    def loaded(self, column):
        """A column's engine and model; None where it was not run."""
        if column in self.engines:
            return self.engines[column], self.models[column]
        return None

    def _run(self, config, weights, source):
        return ModelRun(self.engines, config, weights,
                        *self.pairs_batch([source]))

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

    def _functions(self):
        """(file, function) -> [SeenArray], of what is no step of a model."""
        batch, labels = self.dates.batch, self.dates.labels
        pad, smoothing = self.config.pad_id, (
            self.config.label_smoothing, self.config.smoothing)
        masks, losses, answers = {}, {}, self.answers
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
            ("search", "Greedy"): [
                of_all("tokens", answers, "tokens"),
                of_all("scores", answers, "scores", "log p of the answer")],
        }

    def _variables(self):
        """{(owner, step): SeenArray} of steps that no module records.

        And column -> the tokens and scores of greedy search.
        """
        arrays, answers = {}, {}
        for column, engine in self.engines.items():
            arrays[column], answers[column] = local_steps.steps(
                engine, self.models[column], self.config, self.weights,
                self.dates.batch, self.dates.labels, self.tokenizer, LONGEST)
        return {key: of_all(".".join(key), arrays, key, limit=LIMITS.get(
                    key[0], FLOAT64_LIMIT))
                for key in arrays["numpy"]
                if all(key in steps for steps in arrays.values())}, answers

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


def reread(weights, config):
    """The shipped weights as those of another variant of the model.

    Norms that it has besides begin as the identity; the tied table serves
    three times, its first rows as a learned one of positions or types, the
    inner kernel as a gate's too, and an attention's output kernel as a head's.
    """
    table = weights["source_embedding.table"]
    arrays = {}
    for name, shape in schema(config).items():
        if name in weights:
            arrays[name] = weights[name]
        elif name.endswith(("table", "types")):
            arrays[name] = np.resize(table, shape)
        elif (other := name.replace(".gate.", ".inner.")) in weights:
            arrays[name] = weights[other]
        elif name == "head.inner.kernel":
            arrays[name] = weights[SQUARE]
        elif name == "projection.kernel":
            arrays[name] = np.ascontiguousarray(table.T)
        elif name.endswith("scale"):
            arrays[name] = np.ones(shape)
        else:
            arrays[name] = np.zeros(shape)
    files.check(arrays, schema(config))
    return arrays
