"""The weights of a live model: which there are, drawn, put in, put back."""

import contextlib
import dataclasses
import zlib

import numpy as np

from parity.tracing.trace import WHOLE, is_float, trace, tracing_of

#: How far a sine in float32 may be off.
NEAR_SINE = 1e-5


@dataclasses.dataclass
class Live:
    """A model with its inputs, traced once.

    Attributes:
        model, inputs, keywords: as given to parity.trace.
        trace: of that run.
        names: the floating parameters, each once: path -> array.
        owners: name -> path of the called module that uses it first.
    """

    model: object
    inputs: tuple
    keywords: dict

    def __post_init__(self):
        self.tracing = tracing_of(self.model)
        self.trace = self.run()
        self.names = {name: array for name, array
                      in self.trace.parameters.items() if is_float(array)}
        self.put_one = self.tracing.setters(self.model)
        self.owners = owners(self.trace, self.names)

    def run(self):
        """The Trace of a run with the present weights."""
        return trace(self.model, *self.inputs, **self.keywords)

    def put(self, arrays):
        """Put arrays into the model, by name, in its own dtype."""
        for name, array in arrays.items():
            self.put_one[name](array.astype(self.names[name].dtype))

    @contextlib.contextmanager
    def restored(self):
        """Put weights, counters and random states back, to the bit."""
        try:
            with self.tracing.put_back(self.model):
                yield
        finally:
            self.put(self.names)

    def shapes(self):
        """Name -> shape of every floating parameter."""
        return {name: tuple(array.shape)
                for name, array in self.names.items()}


def owners(run, names):
    """The path of the called module that uses each parameter.

    One whose own module is never called, as the projection inside torch's
    attention, belongs to the nearest around it that is.
    """
    called = {step.module for step in run.steps if step.source == "module"}
    order = {step.module: i for i, step in reversed(
        list(enumerate(sorted(run.steps, key=lambda step: step.began))))}
    twins: dict = {}
    for second, first in run.aliases.items():
        twins.setdefault(first, []).append(second)

    def around(path):
        while path and path not in called:
            path = path.rpartition(".")[0]
        return path or WHOLE
    found = {}
    for name in names:
        paths = [each.rpartition(".")[0] or WHOLE
                 for each in (name, *twins.get(name, ()))]
        exact = [path for path in paths if path in called]
        found[name] = min(exact or map(around, paths),
                          key=lambda path: order.get(path, 0))
    return found


def is_sinusoids(table):
    """Whether every column of a table [T D] is a sine, as of positions.

    Such a table is computed, not learned: each column x has x[t+1] + x[t-1] =
    2 cos(ω) x[t] with an ω of its own.
    """
    if table.ndim != 2 or len(table) < 4 or np.ptp(table, 0).max() < 0.5:
        return False
    x = table.astype(np.float64)
    around, here = x[2:] + x[:-2], x[1:-1]
    factor = (around * here).sum(0) / np.maximum((here ** 2).sum(0), 1e-30)
    return bool(np.abs(factor).max() <= 2 + NEAR_SINE and np.abs(
        around - factor * here).max() <= NEAR_SINE)


def drawn(name, array):
    """Numbers by which a parameter is told from every other.

    Of the size at which a layer gives numbers of the size of its inputs, so
    that nothing is hidden; what is positive stays so.
    """
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    if array.ndim > 1:
        width = array.size / max(array.shape)
        numbers = draw.normal(0, 1.2 / np.sqrt(width), array.shape)
    elif array.size and float(array.min()) > 0:
        numbers = np.abs(array.astype(np.float64)) * draw.uniform(
            0.5, 1.5, array.shape)
    else:
        numbers = draw.normal(0, 0.3, array.shape)
    return numbers.astype(array.dtype)
