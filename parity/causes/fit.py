"""A module's own numbers computed once more, and with which settings.

A StepSide is a module of one of two models and what it was seen to do; a Fit is
parameters and settings with which a formula gives just that.
"""

import dataclasses
import itertools
import math

import numpy as np

from parity.causes import catalogue
from parity.causes.formulas.activation import SOUND, Activation
from parity.causes.formulas.attention import Attention
from parity.causes.formulas.convolution import Convolution
from parity.causes.formulas.core import Core
from parity.causes.formulas.experts import (
    Experts, Router, routing_seen)
from parity.causes.formulas.family import Change, exact
from parity.causes.formulas.linear import LinearMap
from parity.causes.formulas.narrow import NARROW
from parity.causes.formulas.norm import Norm
from parity.causes.formulas.rotary import RotaryTable
from parity.causes.formulas.tables import SINUSOIDS, Embedding, Positions
from parity.causes.patterns import OTHER, permuted, relation
from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import MODULE, Step, is_float

#: Of larger outputs only one setting at a time is changed.
LARGE = 1 << 15

#: Scales of the further inputs; in lower precision large ones only blur.
SCALES, NEAR_SCALES = (0.02, 12.0), (0.05, 2.0)

#: By how much a replay must be nearer than the difference it accounts for.
CLEARLY = 20.0


def activations():
    """{name: function}, of sound ones and of causes."""
    return SOUND | catalogue.functions("activation", "activation")


def mistaken_masks():
    """{words: function of a mask}."""
    return catalogue.functions("mask", "mask")


def sinusoid_values():
    """{setting: values} of tables of sines and cosines."""
    return {name: with_causes("position encoding", name, [value])
            for name, value in SINUSOIDS.items()}


LINEAR, ATTENTION = LinearMap(activations), Attention(mistaken_masks)
CORE, CONVOLUTION = Core(mistaken_masks), Convolution(activations)

#: Every family, in the order in which they are tried.
FAMILIES = [Norm(), LINEAR, Embedding(), CONVOLUTION, ATTENTION,
            Experts(activations), Router(activations), Activation(activations),
            Positions(), RotaryTable()]


#: How many products of an input are kept.
PRODUCTS = 8


@dataclasses.dataclass
class Seen:
    """One application of a module, all in float64.

    Attributes:
        floats: name -> floating input that is no mask.
        others: name -> integers, booleans and masks.
        output: what came out.
        tables: what attention was given besides: "cosines", "sines" and
            "position bias"; or "routing", the weights that experts had.
    """

    floats: dict
    others: dict
    output: np.ndarray
    tables: dict = dataclasses.field(default_factory=dict)
    _products: dict = dataclasses.field(default_factory=dict, repr=False)

    @property
    def x(self):
        """The first floating input."""
        return next(iter(self.floats.values()))

    def product(self, x, kernel):
        """x @ kernel, computed once: many settings have the same parameters.

        Args:
            x: one of ``floats``, or a view of one, [... in]; no new array,
                for it is known by where it lies.
            kernel: [in out].

        Returns:
            [... out], which nobody may write to.
        """
        place, _ = x.__array_interface__["data"]
        key = place, x.shape, x.strides, id(kernel)
        if key not in self._products:
            if len(self._products) >= PRODUCTS:
                self._products.clear()
            self._products[key] = kernel, x @ kernel  # the id stays its own
        return self._products[key][1]


@dataclasses.dataclass
class StepSide:
    """A module of one of the two models.

    Attributes:
        framework: its framework.
        step: the trace's Step.
        parameters: path below the module -> array in float64.
        seen: a Seen each, the traced one first.
        limit: how near a replay must come.
        dtype: the output's.
    """

    framework: str
    step: Step
    parameters: dict
    seen: list
    limit: float
    dtype: str

    def setting(self, *words):
        """The first of these settings that the module has, else None."""
        for word in words:
            if word in self.step.settings:
                return self.step.settings[word]
        return None


def is_mask(name, array):
    """Whether an input says what may be seen, and is no feature."""
    if not is_float(array) or "mask" in name:
        return True
    return bool(np.isneginf(array).any() or (
        array.size and np.isin(array, (0, 1)).all()))


def _seen(inputs, output):
    floats, others = {}, {}
    for name, array in inputs.items():
        (others if is_mask(name, array) else floats)[name] = exact(array)
    return Seen(floats, others, exact(output))


def side_of(trace, path, output):
    """A StepSide, its module run on further inputs where the trace is live."""
    step = trace.step(path)
    below = "" if step.module == "(model)" else f"{step.module}."
    parameters = {
        name[len(below):]: exact(trace.parameters[
            trace.aliases.get(name, name)])
        for name in (*trace.parameters, *trace.aliases)
        if name.startswith(below)
        and trace.aliases.get(name, name) in trace.parameters}
    target = step.outputs[output]
    samples = [_seen(step.inputs, target)]
    routed = (routing_seen(trace, step, samples[0].x) if any(
        array.ndim == 3 for array in parameters.values())
        and samples[0].floats else None)
    if routed is not None:  # which is not seen of another run
        samples[0].tables["routing"] = routed
    for probe in probes(step, samples[0]) if trace.live and (
            routed is None) else ():
        try:
            again = trace.rerun(path, probe)
        except Exception:  # a foreign module may refuse
            continue
        if output in again and again[output].shape == target.shape:
            inputs = {name: probe.get(name, array)
                      for name, array in step.inputs.items()}
            samples.append(_seen(inputs, again[output]))
    dtype = target.dtype.name
    return StepSide(trace.framework, step, parameters, samples,
                model_limits(dtype)[0 if dtype == "float32" else 1], dtype)


def probes(step, seen):
    """Yield further inputs: scaled, and drawn anew."""
    names = list(seen.floats)
    if step.source != MODULE:
        return
    draw = np.random.default_rng(0)
    if not names:
        yield {name: draw.integers(
            0, array.max(), array.shape, endpoint=True).astype(array.dtype)
            for name, array in step.inputs.items()
            if array.dtype.kind in "iu" and array.size
            and array.min() >= 0}
        return
    wide = all(step.inputs[name].dtype == np.float64 for name in names)
    for scale in SCALES if wide else NEAR_SCALES:
        yield {name: (step.inputs[name].astype(np.float64) * scale).astype(
            step.inputs[name].dtype) for name in names}
    inputs = {}  # what was one array stays one
    for name in names:
        array = step.inputs[name]
        inputs[name] = next(
            (inputs[other] for other in inputs
             if np.array_equal(step.inputs[other], array)),
            (draw.normal(size=array.shape) + 0.3).astype(array.dtype))
    yield inputs


# The search

@dataclasses.dataclass
class Fit:
    """Parameters and settings with which a family gives a side's numbers."""

    family: object
    parameters: dict
    settings: dict
    error: float
    changed: tuple = ()


def misfit(family, side, parameters, settings, enough=math.inf):
    """The largest error of a replay, in units of the side's limit."""
    worst = 0.0
    for seen in side.seen:
        try:
            result = family.replay(seen, parameters, settings)
        except (ValueError, IndexError, TypeError):
            return math.inf
        worst = max(worst, strict_distance(result, seen.output) / side.limit)
        if worst > enough:
            return worst
    return worst


def with_causes(of, name, sound):
    """A setting's sound values, and those that are a cause."""
    return list(dict.fromkeys([*sound, *catalogue.values(of, name)]))


def fields_of(family, side, parameters):
    """Setting -> its values, the usual one first."""
    return {name: list(dict.fromkeys(sound)) if name in family.whole
            else with_causes(family.name, name, sound)
            for name, sound in family.fields(side, parameters).items()}


def variants(base, fields, count):
    """Yield settings that differ from others in so many fields."""
    for names in itertools.combinations(fields, count):
        for values in itertools.product(*(
                [v for v in fields[name] if v != base.get(name)]
                for name in names)):
            yield names, base | dict(zip(names, values))


def fits(family, side, base=None, narrow=None):
    """Every Fit with as few changed fields as possible.

    Args:
        family: a Family.
        side: a StepSide.
        base: settings to begin with, instead of what is usual.
        narrow: what is computed in float32 inside, if anything is.

    Returns:
        The Fits, and the nearest of what was tried: settings that others
        change are nearer only if they are clearly so. None without any.
    """
    matches, nearest = [], None
    most = 1 if side.seen[0].output.size > LARGE else 2
    for parameters in family.readings(side):
        start, fields = begun(family, side, parameters, base, narrow)
        for count in range(most + 1):
            if matches and count > len(matches[0].changed):
                break
            here = []
            for names, settings in variants(start, fields, count):
                error = misfit(family, side, parameters, settings, 1.0)
                each = Fit(family, parameters, settings, error * side.limit,
                           names)
                nearest = nearer(nearest, each)
                if error <= 1:
                    here.append(each)
            if here:
                if matches and count < len(matches[0].changed):
                    matches = []
                matches += here
                break
    return matches, nearest


def begun(family, side, parameters, base, narrow):
    """The settings to begin with, and {setting: values}, those first."""
    fields = fields_of(family, side, parameters)
    start = {name: values[0] for name, values in fields.items()}
    start |= {name: value for name, value in (base or {}).items()
              if name in fields and not family.is_own(name)}
    start |= {NARROW: narrow} if narrow else {}
    return start, fields | {
        name: [value, *(v for v in fields.get(name, ()) if v != value)]
        for name, value in start.items()}


def nearer(best, each):
    """The one of two Fits that is nearer, by far where it changes more."""
    if best is None:
        return each
    far = CLEARLY if len(each.changed) > len(best.changed) else 1
    return each if each.error * far < best.error else best


# How two Fits differ

def changes(first, second, sides):
    """The Changes from one Fit to another.

    None where they are of different sizes, and so no counterparts.
    """
    family, differences = second.family, []
    for name, value in first.settings.items():
        other = second.settings.get(name, value)
        if not family.is_own(name) and other != value:
            differences.append(Change(
                name, value, other, family.word(name, other),
                second.settings | {name: value}, second.parameters))
    differences += family.also(first, second, sides)
    roles = [name for name, array in second.parameters.items()
             if not isinstance(array, int)
             and not isinstance(first.parameters.get(name), int)]
    moved, exchanged = exchanges(first, second, roles)
    differences += exchanged
    for name in roles:
        arrays = first.parameters[name], second.parameters[name]
        word, text = family.relation(name, *arrays) or relation(
            *arrays, sides[1].dtype, first.settings.get("heads"))
        if word == OTHER:
            return None
        if word and name not in moved:
            settings = second.settings
            if second.parameters[name] is None and name in first.settings:
                settings = settings | {name: first.settings[name]}
            differences.append(Change(
                name, "", text, family.word(name, word), settings,
                second.parameters | {name: first.parameters[name]}))
    return differences


def exchanges(first, second, roles):
    """Parameters that stand in one another's place.

    Returns:
        The names, and a Change for each exchange.
    """
    moved, swaps = set(), []
    one, two = ({name: fit.parameters[name] for name in roles}
                for fit in (first, second))
    for ring in permuted(one, two):
        if set(ring) & moved:
            continue
        biases = {f"{name} bias": f"{source} bias"
                  for name, source in ring.items()}
        # Biases that are not exchanged are told by themselves.
        if not all(name in two and source in one and np.array_equal(
                two[name], one[source]) for name, source in biases.items()):
            biases = {}
        moved |= {*ring, *biases}
        *names, last = [name for name in roles if name in ring]
        words = "swapped" if len(ring) == 2 else "in another order"
        swaps.append(Change(
            f"{', '.join(names)} and {last}", "as they are", words, words,
            second.settings, second.parameters | {
                name: one[name] for name in (*ring, *biases)}))
    return moved, swaps
