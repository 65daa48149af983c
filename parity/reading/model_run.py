"""One model on one batch, in the reference and in every port, as pages show it.
"""

import dataclasses
import importlib

import numpy as np

from parity_io.errors import InputError
from parity.check.runners import Oracle, compare_steps
from parity.numerics.comparator import compare
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity.reading.sources import folder


@dataclasses.dataclass(frozen=True)
class SeenArray:
    """One array, as the reference and the ports computed it.

    Attributes:
        name: its full name.
        array: the reference's.
        theirs: column -> the port's, for ports that were run; None where
            the run comes from another process.
        differences: column -> Difference, for ports that were compared.
        label: a few words on what it is.
    """

    name: str
    array: np.ndarray
    theirs: dict
    differences: dict
    label: str = ""


class ModelRun:
    """One model on one batch, in the reference and in every port.

    Args:
        engines: column -> engine, to build and run; others are added.

    Attributes:
        config, weights, batch, labels: what was run.
        steps, gradients: column -> arrays by name.
        differences: column -> name -> Difference; gradients are called
            "grad NAME".
        losses: column -> the loss.
        paths: owner -> the paths at which it stands in the model.
    """

    def __init__(self, engines, config, weights, batch, labels=None):
        self.config, self.batch, self.labels = config, batch, labels
        self.weights = weights
        self.steps, self.gradients, self.losses = {}, {}, {}
        self.differences = {}
        for column, engine in engines.items():
            self.add(column, engine, engine.build(
                "transformer", config, weights, "float64"))

    def __getstate__(self):
        """What is kept: of a port the errors, and the weights that are drawn.

        Its other arrays are None, for only that it has them is told.
        """
        def light(arrays):
            return {column: {
                name: value if column == "numpy" or name.endswith("weights")
                else None for name, value in entries.items()}
                for column, entries in arrays.items()}
        return vars(self) | {"steps": light(self.steps),
                             "gradients": light(self.gradients)}

    def add(self, column, engine, model):
        """Run one more model; the reference's is the first."""
        self.steps[column] = engine.forward(model, *self.batch)
        if self.labels is not None:
            self.losses[column], self.gradients[column] = engine.gradients(
                model, *self.batch, self.labels)
        if column == "numpy":
            self.paths = paths_of(engine, model)
        else:
            self._compare(column)

    def _compare(self, column):
        arrays = self._named(column)
        truth = self._named("numpy")
        absent = sorted(truth.keys() ^ arrays.keys())
        if absent:
            name = absent[0]
            pair = [folder("numpy"), folder(column)]
            if name in arrays:
                pair.reverse()
            raise InputError(
                f"{pair[0]} records the step {name!r} and {pair[1]} does not; "
                "tap it in both or in neither.")
        self.differences[column] = compare_steps(
            arrays, Oracle(truth, {}, self.config.positions), "float64")

    def _named(self, column):
        gradients = self.gradients.get(column, {})
        return {**self.steps[column],
                **{f"grad {name}": value for name, value in gradients.items()}}

    def seen(self, name, label=""):
        """A step as SeenArray, or None if there is none of that name."""
        return self._seen(name, self.steps, name, label)

    def gradient(self, name, label=""):
        """The gradient of a step or weight as SeenArray, or None."""
        return self._seen(name, self.gradients, f"grad {name}", label)

    def _seen(self, name, arrays, key, label):
        if name not in arrays.get("numpy", {}):
            return None
        return SeenArray(
            name, arrays["numpy"][name],
            {column: entries[name] for column, entries in arrays.items()
             if column != "numpy"},
            {column: entries[key]
             for column, entries in self.differences.items()
             if key in entries}, label)


class OneHead(ModelRun):
    """The attention of one head alone, which stands in no model.

    The reference's gradients are those of half the sum of all squares of its
    context; the ports' are found for whole models only.
    """

    def __init__(self, engines, config, kernels, x):
        self.config, self.weights = config, kernels
        self.steps, self.gradients, self.losses = {}, {}, {}
        self.differences = {}
        self.paths = {"SingleHeadAttention": [""]}
        for column, engine in engines.items():
            module = engine.build(
                "single_head_attention", config, kernels, "float64")
            self.steps[column] = engine.run(module, x)
            if column != "numpy":
                self.differences[column] = compare_steps(
                    self.steps[column], Oracle(self.steps["numpy"], {}),
                    "float64")
                continue
            context, cache = module.forward(x)
            parameters = importlib.import_module(
                f"{engine.__package__}.parameters")
            self.gradients[column] = parameters.flatten(
                module.backward(context, cache)[1])


def paths_of(engine, model):
    """Owner -> the paths of its modules in a model of the reference.

    An object of a class that only changes another's table stands for that
    class as well.
    """
    parameters = importlib.import_module(f"{engine.__package__}.parameters")
    paths: dict = {}
    for path, module in parameters.modules(model):
        for kind in type(module).__mro__[:-1]:
            paths.setdefault(kind.__name__, []).append(path)
    return paths


def join(path, name):
    """A name below a path, which may be empty."""
    return f"{path}.{name}" if path else name


def of_all(name, arrays, key, label="", limit=FLOAT64_LIMIT):
    """``key`` in each column's arrays, compared at a limit of float64."""
    truth = np.asarray(arrays["numpy"][key])
    theirs = {c: np.asarray(values[key]) for c, values in arrays.items()
              if c != "numpy"}
    exact = truth.dtype.kind in "biu"
    return SeenArray(name, truth, theirs, {
        column: compare(value, truth, 0.0 if exact else limit)
        for column, value in theirs.items()}, label)
