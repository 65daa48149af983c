"""Where two models diverge: every step of one against its partner.

``compare(a, b)`` takes a as the truth. The **accumulated** error is that of
the values as they were traced, with every error before them. The **local** one
is that of b's sub-module run on a's inputs, which tells a new difference from
an inherited one. Local errors need a live b.

float64 is what proves a port. In lower precision the truth has errors itself,
and limits are wide enough for two sound models of ordinary depth; a small
fault, such as an epsilon of 1e-5 for 1e-6, can hide under them.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from parity_io.errors import InputError, plural, one_of
from parity.comparison import sizes
from parity.comparison.arrays import EMPTY, NOT_FINITE, compare_values
from parity.comparison.belonging import (
    check_comparable, check_inputs, rearranged_back, surely)
from parity.comparison.gradients import ParameterGradients
from parity.comparison.layers import chosen
from parity.comparison.outputs import (
    caches, differing, not_compared, unlike)
from parity.comparison.result import (
    GRADIENT, INHERITED, INPUT, NEW, OUTPUT, PARAMETER, UNKNOWN, WITHIN,
    Comparison, PairRow, describe)
from parity.dumps.printed import alike, partly
from parity.matching.rearrangement import SAME, rearranged
from parity.matching.pairs import CONVENTION, SHAPES, NameMap
from parity.matching.steps import suggest
from parity.numerics.comparator import DIVERGENCE, ZERO
from parity.numerics.dtypes import DTYPES, EPS
from parity.numerics.tolerances import model_limits
from parity.tracing.storage import put_away
from parity.tracing.trace import MODULE, WHOLE, Trace, is_float

#: The note on a comparison of models as they are, in less than float64.
BLUNT = ("{} cannot tell a small fault from rounding; trace both in float64 to "
         "prove that they agree.")


@np.errstate(all="ignore")  # a NaN is told, not warned of
def compare(a: Trace, b: Trace, names: NameMap | None = None,
            limit: float | None = None, dtype: str | None = None,
            local: bool | None = None,
            layers: str | None = None, **others: Any) -> Comparison:
    """Compare two traces, with a as the truth.

    Args:
        a, b: Traces.
        names: a NameMap; by default that of matching.steps.suggest.
        limit: the largest relative error of a step, alone or in the model, and
            of a gradient, instead of the dtype's own.
        dtype: what b must have been computed in; by default a's. If given, a
            may be in higher precision than b.
        local: whether to compute local errors too; by default if b is live.
        layers: "START:STOP", of a's layers those that are compared, counted
            from 0 as they run; pairs are sought in the whole models.

    Returns:
        A Comparison.

    Raises:
        TypeError: another keyword, such as NumPy's rtol.
        InputError: the two are of different precision, or had different
            inputs; an array of a dump is cut short; a map's layout does not
            fit; or there are no such layers.
    """
    for word in others:
        raise TypeError(
            f"compare takes no {word}; limit= is the largest relative error "
            "of a step.")
    for side, each in (("a", a), ("b", b)):
        if not isinstance(each, Trace):
            raise InputError(
                f"{side} is a {type(each).__name__}, not a trace; give what "
                "parity.trace returned of it.")
    if not isinstance(names, (NameMap, type(None))):
        raise InputError(
            f"names is a {type(names).__name__}, not a NameMap; give the one "
            "that a comparison has, or leave it out.")
    if limit is not None and not (
            isinstance(limit, (int, float)) and 0 <= limit < 1):
        raise InputError(
            f"the limit {limit!r} is not valid; give a relative error from 0 "
            "to 1.")
    if dtype is not None:
        one_of(dtype, DTYPES, "dtype")
    if local and not b.live:
        raise InputError(
            "local errors need a live b, and this one was read from a file; "
            "trace the model again, or leave them out.")
    a, b = alike(a, b)
    local = b.live if local is None else local
    check_comparable(a, b, dtype)
    part = None if layers is None else chosen(layers, a)
    pairs = suggest(a, b) if names is None else names
    notes = [*check_inputs(a, b, pairs), *pairs.notes,
             *sizes.unlike(a, b, pairs), *_notes(a, b, pairs, dtype)]
    expects = dtype or a.dtype
    comparing = _Comparing(a, b, pairs.parameters, limit, dtype, expects)
    notes += comparing.gradients.notes()
    rows = [row for pair in pairs.parameters
            if part is None or pair.a in part.parameters
            for row in comparing.parameter(pair)]
    for pair in pairs.steps:
        if part is None or pair.a in part.steps:
            rows += comparing.step(pair, local)
    if part and not rows:
        raise InputError(
            f"no step or parameter of {part} of a has a partner in b; give "
            "other layers, or a map.")
    rows.sort(key=lambda row: row.order)
    notes += comparing.notes
    return Comparison(rows, pairs, notes, describe(a), describe(b), local,
                      (a.content_hash, b.content_hash), comparing.left_out,
                      layers=part, partly=partly(a, b))


class _Comparing:
    """The state that the rows of one comparison share."""

    def __init__(self, a, b, parameters, limit, dtype, expects):
        self.a, self.b, self.dtype = a, b, dtype
        self.gradients = ParameterGradients(a, b, parameters)
        self.steps_a = {step.path: step for step in a.steps}
        self.steps_b = {step.path: step for step in b.steps}
        limits: tuple[float, float, float, float] = (
            model_limits(expects) if expects else (math.nan,) * 4)
        self.forward, self.alone, self.slope, self.weight = limits
        if limit is not None:
            self.forward = self.alone = self.slope = limit
        self.diverged = []  # (began, ended) of the steps that diverged so far
        #: Path of a parameter -> when it was first used.
        self.owners: dict[str, int] = {}
        for step in sorted(a.steps, key=lambda step: -step.began):
            self.owners |= dict.fromkeys(step.parameters, step.began)
        self.notes = []
        self.left_out = []  # what of the models' outputs is not compared
        self.containers = {
            step.module for step in a.steps if any(
                other.began > step.began and other.ended < step.ended
                for other in a.steps)} if len(a.steps) < 2000 else {WHOLE}

    def row(self, part, pair, mine, other, limit, a, b, kind="", order=0):
        """Compare two arrays; a PairRow."""
        mine = rearranged(pair.a_layout, mine)
        other = rearranged(pair.b_layout, other)
        dtype = (self.dtype if self.dtype and is_float(mine)
                 else mine.dtype.name)
        if math.isnan(limit) and (is_float(mine) or mine.dtype.kind == "c"):
            limit = model_limits(mine.real.dtype.name)[0]
        if math.isnan(limit):
            limit = 0.0
        if is_float(mine) and part != PARAMETER:
            limit = max(limit, self.a.known_to(mine), self.b.known_to(mine))
        difference, note = compare_values(other, mine, limit, dtype)
        if part == GRADIENT and difference.verdict == DIVERGENCE:
            for side, array in (("a", mine), ("b", other)):
                if not array.any():
                    difference = dataclasses.replace(
                        difference, reason=f"it has no gradient in {side}")
        name_a, name_b = ("", "") if part == PARAMETER else (pair.a, pair.b)
        error = None if difference.error is None else float(difference.error)
        return PairRow(
            part, a, b, name_a, name_b, pair.a_layout, pair.b_layout, pair.by,
            kind, mine.shape, mine.dtype.name, error, difference.limit,
            difference.verdict, difference.reason, order, note=note)

    def parameter(self, pair):
        """The rows of a parameter and of its gradient."""
        mine = self.a.parameters[self.a.aliases.get(pair.a, pair.a)]
        other = self.b.parameters[self.b.aliases.get(pair.b, pair.b)]
        row = self.row(PARAMETER, pair, mine, other, self.weight, pair.a,
                       pair.b)
        put_away(mine)
        put_away(other)
        if row.verdict == DIVERGENCE and pair.by in (SHAPES, CONVENTION):
            row.note = "paired by shape alone: the layout may be wrong"
        yield row
        mine, other = self.gradients.of(pair)
        if mine is not None and other is not None:
            gradient = self.row(GRADIENT, pair, mine, other, self.slope,
                             pair.a, pair.b)
            gradient.a_name = gradient.b_name = ""
            self.negligible(gradient, pair, mine, other)
            gradient.order = self.backward(self.owners.get(pair.a, 0))
            yield gradient

    def backward(self, moment):
        """When the backward pass comes to a moment of a's forward one."""
        return 2 * self.a.steps[-1].ended - moment + 2

    def negligible(self, row, pair, mine, other):
        """Accept as ZERO a gradient that is zero but for rounding.

        That of a key's bias is. Its rounding is measured against the gradients
        of the same module's other parameters.
        """
        if row.verdict != DIVERGENCE or row.error is None:
            return
        owner = pair.a.rpartition(".")[0]
        scale = max((float(np.abs(array).max())
                     for path, array in self.a.gradients.items()
                     if path.rpartition(".")[0] == owner and array.size
                     and path != pair.a), default=0.0)
        largest = max(float(np.abs(rearranged(layout, array)).max())
                      for layout, array in ((pair.a_layout, mine),
                                            (pair.b_layout, other)))
        if scale and largest <= self.forward * scale:
            row.error, row.limit = largest / scale, self.forward
            row.verdict, row.reason = ZERO, ""
            row.note = "zero but for rounding, in both"

    def step(self, pair, local):
        """The rows of a step: inputs, outputs, gradients by the outputs."""
        mine, other = self.steps_a[pair.a], self.steps_b[pair.b]
        kind = (mine.kind if mine.kind == other.kind
                else f"{mine.kind} · {other.kind}")
        inputs = list(self.inputs(pair, mine, other, kind))
        outputs = [self.row(
            OUTPUT, value, mine.outputs[value.a], other.outputs[value.b],
            self.forward, pair.a, pair.b, kind, mine.ended)
            for value in pair.outputs]
        if pair.a == WHOLE:
            self.whole(pair, mine, other, kind, outputs)
        if local and other.source == MODULE and outputs:
            self.local(pair, mine, other, outputs)
        self.origins(mine, inputs, outputs)
        return [*inputs, *outputs, *self.slopes(pair, mine, other, kind)]

    def inputs(self, pair, mine, other, kind):
        """The rows of a step's inputs, but for those of true and false."""
        for value in pair.inputs:
            array = mine.inputs[value.a]
            if "b" in (array.dtype.kind, other.inputs[value.b].dtype.kind):
                continue  # true may mean keep, or drop
            row = self.row(INPUT, value, array, other.inputs[value.b],
                           self.forward, pair.a, pair.b, kind, mine.began)
            row.counted = surely(value, pair, mine, other)
            yield row

    def whole(self, pair, mine, other, kind, outputs):
        """Add to a model's outputs what has no pair; note what is left out."""
        if mine.outputs and not self.b.gives:
            self.left_out = ["none of b's is in its dump"]
        elif mine.outputs and not outputs:
            outputs.append(PairRow(
                OUTPUT, pair.a, pair.b, next(iter(mine.outputs)),
                next(iter(other.outputs), ""), SAME, SAME, pair.by, kind,
                next(iter(mine.outputs.values())).shape, self.a.dtype, None,
                0.0, DIVERGENCE, unlike(mine, other), mine.ended))
        elif pair.b == WHOLE:
            outputs += differing(pair, mine, other, self.forward, kind)
            self.notes += caches(pair, mine, other)
            self.left_out = [
                *(f"{row.a_name}, which is {row.note}" for row in outputs
                  if row.note in (EMPTY, NOT_FINITE)),
                *not_compared(pair, mine, other)]

    def origins(self, mine, inputs, outputs):
        """Say of each output's error whether it is new in this step."""
        inherited = max(
            (math.inf if row.error is None else row.error for row in inputs
             if row.dtype in EPS and row.counted), default=None)
        for row in outputs:
            row.inherited = inherited
            if row.diverges:
                row.origin = _origin(row, inputs)
            if row.origin == NEW and any(
                    began > mine.began and ended < mine.ended
                    for began, ended in self.diverged):
                row.origin = WITHIN
        if mine.source == MODULE and any(row.diverges for row in outputs):
            self.diverged.append((mine.began, mine.ended))

    def slopes(self, pair, mine, other, kind):
        """The rows of the gradients by a step's outputs."""
        for value in pair.outputs:
            first = mine.gradients.get(value.a)
            second = other.gradients.get(value.b)
            if first is not None and second is not None:
                yield self.row(
                    GRADIENT, value, first, second, self.slope, pair.a,
                    pair.b, kind, self.backward(mine.ended))

    def local(self, pair, mine, other, outputs):
        """Compute b's outputs on a's inputs."""
        inputs = {}
        pairs = {value.b: value for value in pair.inputs}
        for name, input_b in other.inputs.items():
            value = pairs.get(name)
            if value is None or input_b.dtype.kind == "b":
                if is_float(input_b):
                    self.without(outputs, f"its input {name} has no partner")
                    return
                continue
            if not surely(value, pair, mine, other):
                self.without(
                    outputs, f"its input {name} may not be that of its partner")
                return
            array = rearranged(value.a_layout, mine.inputs[value.a])
            array = rearranged_back(value.b_layout, array, input_b)
            if array is None:
                self.without(outputs, f"its input {name} cannot be rearranged")
                return
            inputs[name] = array
        if not any(is_float(array) or array.dtype.kind in "iu"
                   for array in inputs.values()):
            self.without(outputs, "it has no input that can be replaced")
            return
        try:
            answer = (other.outputs if all(
                np.array_equal(array, other.inputs[name])
                for name, array in inputs.items())
                else self.b.rerun(pair.b, inputs))
        except InputError as error:
            self.without(outputs, str(error).rstrip("."))
            return
        limit = (self.forward if mine.module in self.containers
                 else self.alone)
        for value, row in zip(pair.outputs, outputs):
            if value.b not in answer:
                self.without([row], "run again, it has no such output")
                continue
            again = self.row(OUTPUT, value, mine.outputs[value.a],
                             answer[value.b], limit, pair.a, pair.b)
            row.local, row.local_limit = again.error, again.limit
            row.local_verdict, row.local_reason = again.verdict, again.reason

    @staticmethod
    def without(rows, reason):
        """Say why there is no local error."""
        for row in rows:
            row.local_reason = reason


def _origin(row, inputs):
    """Whether a divergence is new in this step or came with its inputs."""
    if row.local_verdict:
        return NEW if row.local_verdict == DIVERGENCE else INHERITED
    if any(row.counted for row in inputs) and not any(
            each.verdict == DIVERGENCE for each in inputs):
        return NEW
    return UNKNOWN


def _notes(a, b, names, dtype):
    """Remarks on a comparison, a sentence each."""
    both = [note for note in a.notes if note in b.notes]
    for note in both:
        yield f"a and b: {note}"
    for side, trace in (("a", a), ("b", b)):
        for note in trace.notes:
            if note not in both:
                yield f"{side}: {note}"
        only = getattr(names, f"only_{side}")
        alone = [f"{plural(len(only[what]), what[:-1])} ("
                 + ", ".join(only[what][:3]) + ", …" * (len(only[what]) > 3)
                 + ")" for what in ("steps", "parameters") if only.get(what)]
        if alone:
            yield (f"Only in {side}, and not compared: "
                   f"{' and '.join(alone)}.")
    if (dtype or a.dtype) not in ("float64", ""):
        yield BLUNT.format(dtype or a.dtype)
    shared = a.precision.keys() & b.precision.keys()
    for name in sorted(shared):
        if a.precision[name] != b.precision[name]:
            yield (f"a ran with {name} {a.precision[name]} and b with "
                   f"{b.precision[name]}.")
    if a.precision.get("autocast") or b.precision.get("autocast"):
        yield "autocast was on, so that some steps ran in lower precision."
