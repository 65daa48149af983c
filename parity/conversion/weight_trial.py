"""Weights put into B on trial: how near it comes to A, and what shows that."""

import contextlib
import dataclasses
import math

import ml_dtypes
import numpy as np

from parity.conversion.options import together
from parity.conversion.activations import least_distance, distance
from parity.conversion.weights import drawn
from parity.tracing.recorder import mapped
from parity.tracing.trace import is_float

#: How many times nearer a choice is that is taken before one found earlier,
#: and how many times as much as the error that is left a parameter has to
#: change what is computed. Rounding is so many units in the last place.
BETTER, TELLING, ROUNDING = 30, 10, 1000


@dataclasses.dataclass(frozen=True, order=True)
class Score:
    """How well what a module gives is known from A.

    Attributes:
        unseen: how many of its arrays A never computed.
        error: how far the others are from A's, at most.
        rounding: what of that may be rounding.
    """

    unseen: int
    error: float
    rounding: float = dataclasses.field(compare=False, default=0.0)

    @property
    def exact(self):
        """Whether nothing better can be found."""
        return not self.unseen and self.error <= self.rounding

    def much_better(self, other):
        """Whether it is no matter of rounding that this is the better one."""
        if self.unseen != other.unseen:
            return self.unseen < other.unseen
        return other.error > max(BETTER * self.error, self.rounding)


def rounding(array):
    """What of a relative error may be rounding, in an array's dtype."""
    return ROUNDING * float(ml_dtypes.finfo(array.dtype).eps)


@dataclasses.dataclass(frozen=True)
class Doubt:
    """Why a parameter might be made of another.

    Attributes:
        why: in words.
        found, instead: name -> array of B, as it was found, and what it might
            be as well.
        least: how much the outputs must change to show it, relatively.
    """

    why: str
    found: dict
    instead: dict
    least: float


class WeightTrial:
    """B, into which weights are put, beside what A saw.

    Args:
        b: the Live B.
        activations: what A computed.
        index: a SourceIndex.
        names: of B's parameters that are looked for.

    Attributes:
        began: what they are at first: zeros would hide what is behind them.
        sources: name -> WeightSource, of what B has now.
        doubts: name -> Doubt, of what might be made of another.
        quiet: whether calls of B's modules are only calls.
    """

    def __init__(self, b, activations, index, names):
        self.b, self.activations, self.index = b, activations, index
        self.framework = b.tracing.framework_for(b.model)
        self.began = {name: drawn(f"{name} at first", b.names[name])
                      for name in names if name in b.trace.trainable}
        self.sources, self.doubts, self.mattering = {}, {}, set()
        self.quiet = False

    def _arrays(self, value):
        """The arrays in a nest of arguments or outputs, as NumPy's."""
        found = []

        def visit(name, leaf):
            if self.framework.is_array(leaf) and self.framework.is_seen(leaf):
                found.append(self.framework.to_numpy(leaf))
            return leaf
        mapped(value, "", visit)
        return found

    def _alive(self, given):
        """Whether all floating inputs are what A computed."""
        return all(self.activations.has(array) for array in given
                   if is_float(array) and array.ndim > 1
                   and np.ptp(array) > 0)

    def score(self, out):
        """The Score of what a module gives, or None if A never computed the
        first array of it."""
        arrays = [array for array in self._arrays(out)
                  if is_float(array) and array.size > 1]
        errors = [self.activations.error(array) for array in arrays[:1]]
        if not errors or errors[0] == math.inf:
            return None
        errors += [self.activations.error(array) for array in arrays[1:]]
        return Score(errors.count(math.inf), max(
            error for error in errors if error < math.inf),
            rounding(arrays[0]))

    def _agrees(self, out, chosen):
        """The Score of what a module gives, or of the part that it is of."""
        arrays = [array for array in self._arrays(out) if is_float(array)]
        if not arrays:
            return None
        main, source, errors = arrays[0], chosen[0], []
        with contextlib.suppress(ValueError):  # a cut that does not fit
            if source.cuts:
                errors = [self.activations.error(cut(main))
                          for cut in source.cuts]
            elif source.cut is not None:
                errors = [min((
                    least_distance(main, source.cut(each))
                    for each in self.activations.outputs.get(
                        source.owners[0], ())
                    if each.ndim and each.size > main.size),
                    default=math.inf)]
        if source.cuts or source.cut is not None:
            worst = max(errors, default=math.inf)
            if worst < math.inf:
                return Score(0, worst, rounding(main))
        return self.score(out)

    def _matters(self, name, again):
        """Whether a module's output depends on one of its parameters."""
        if name not in self.mattering:
            before = self._arrays(self._quietly(again))
            if all(x.shape == y.shape and np.array_equal(
                    x, y, equal_nan=x.dtype.kind in "fc") for x, y in zip(
                        before, self._otherwise(name, again))):
                return False
            self.mattering.add(name)
        return True

    def _otherwise(self, name, again):
        """A module's arrays where one of B's parameters has other numbers."""
        array = self._present(name)
        self.b.put({name: array + drawn(f"{name} otherwise", array)})
        after = self._arrays(self._quietly(again))
        self.b.put({name: array})
        return after

    def _present(self, name):
        """The array that a parameter of B has now."""
        source = self.sources.get(name)
        return (self.began.get(name, self.b.names[name]) if source is None
                else source.entry.made(self.index.a.names))

    def _doubt_hidden(self, names, again, score, whole=True):
        """Note what changes hardly more than what differs anyway.

        Of a layer one parameter may change nothing, as a key's bias does: it
        is the one that the others leave.

        Args:
            names: of B's parameters.
            again: calls the module whose Score it is.
            whole: whether only arrays that A computed as a whole count.
        """
        before = self._arrays(self._quietly(again))
        counted = [i for i, array in enumerate(before) if is_float(array)
                   and (not whole or self.activations.has(array))]

        def effect(name):
            after = self._otherwise(name, again)
            return max((distance(after[i], before[i]) for i in counted),
                       default=0.0)
        least = max(TELLING * score.error, score.rounding / 10)
        silent = [name for name in names if effect(name) <= least]
        if len(silent) == 1 and len(names) > 1 and any(
                together(self.sources[silent[0]], self.sources[name])
                for name in names if name not in silent):
            return
        for name in silent:
            array = self._present(name)
            self.doubts[name] = Doubt(
                "the run does not depend on it" if score.exact else
                f"it changes no more than the {score.error:.1g} by which the "
                "models differ there", {name: array},
                {name: array + drawn(f"{name} otherwise", array)}, least)

    def _quietly(self, again):
        """Call a module without deciding anything."""
        self.quiet = True
        try:
            return again()
        finally:
            self.quiet = False

    def _put(self, sources):
        self.b.put(self._made(sources))

    def _made(self, sources):
        """{name: array} of B, as sources make it."""
        return {source.entry.b: source.entry.made(self.index.a.names)
                for source in sources}
