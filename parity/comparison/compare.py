"""Where two models part: every step of one against its partner in the other.

``compare(a, b)`` takes a for the truth. An error is **accumulated**: as it
was captured, with all that was off before it; and **local**: that of b's
sub-module given a's own inputs, so that a new difference is told from an
inherited one. Local errors need a live b.

float64 is what proves a port. In lower precision the truth is itself off, and
limits are wide enough for two sound models of ordinary depth; a small fault,
such as an epsilon of 1e-5 for 1e-6, can hide under them.
"""

import dataclasses
import html
import math

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from contract.errors import InputError, one_of
from parity.commands.shell import write_whole
from parity.matching.rearrangement import SAME, rearranged
from parity.matching.steps import (
    CONVENTION, NEAR, SHAPES, USER, VALUES, family, far_apart, suggest,
    words_of)
from parity.numerics.comparator import (
    DIVERGENCE, MATCH, ROW_SLACK, ZERO, Difference, relative_error)
from parity.numerics.comparator import compare as compare_arrays
from parity.numerics.tolerances import DTYPES, EPS, FLOAT64_LIMIT
from parity.render import terminal
from parity.tracing.trace import MODULE, WHOLE, is_float

SCHEMA = 1

NOTHING, INCOMPLETE = "nothing compared", "incomplete"

PARAMETER, INPUT, OUTPUT, GRADIENT = (
    "parameter", "input", "output", "gradient")

NEW, INHERITED, WITHIN, UNKNOWN = "new", "inherited", "within", "unknown"

#: How many units of rounding a step may be off in a model, alone, and in a
#: gradient; in float64 the limits are those of parity.numerics.tolerances.
#: NumPy's own float32 is off by up to 19 in six layers, and two such are
#: compared.
MANY = {"float32": (64, 16, 128), "float16": (8, 4, 16),
        "bfloat16": (8, 4, 16)}

#: float64's limit of one gradient.
FLOAT64_GRADIENT = 1e-10


@dataclasses.dataclass
class Row:
    """One pair of arrays, compared.

    Attributes:
        part: PARAMETER, INPUT, OUTPUT or GRADIENT.
        a, b: paths of the steps or parameters.
        a_name, b_name: names of the input or output, else "".
        a_layout, b_layout, by: as in aligning.Pair.
        kind: the kind of a's and b's module, "" for a parameter.
        shape, dtype: of a's array, rearranged.
        error, limit, verdict, reason: as in comparator.Difference.
        order: when it was computed in a's run; 0 for parameters.
        local, local_limit, local_verdict: b's module on a's inputs, or None.
        local_reason: why there is no local error, or what it failed by.
        inherited: the largest error of the step's paired floating inputs, or
            None where none was paired.
        origin: of a divergence: NEW, INHERITED, WITHIN where a part of the
            module is off already, or UNKNOWN; else "".
        counted: whether a divergence counts in the verdict; not so where
            inputs may not be each other's counterparts.
        note: what should be known, such as NaN on both sides.
    """

    part: str
    a: str
    b: str
    a_name: str
    b_name: str
    a_layout: str
    b_layout: str
    by: str
    kind: str
    shape: tuple
    dtype: str
    error: float | None
    limit: float
    verdict: str
    reason: str = ""
    order: int = 0
    local: float | None = None
    local_limit: float | None = None
    local_verdict: str = ""
    local_reason: str = ""
    inherited: float | None = None
    origin: str = ""
    counted: bool = True
    note: str = ""

    @property
    def diverges(self):
        """Whether this row makes the verdict a divergence."""
        return self.counted and DIVERGENCE in (
            self.verdict, self.local_verdict)

    @property
    def name(self):
        """The row's name in a, for people."""
        return f"{self.a} · {self.a_name}" if self.a_name else self.a


@dataclasses.dataclass
class Comparison:
    """What compare found.

    Attributes:
        rows: every Row: parameters first, then in the order of computation.
        names: the NameMap that was used.
        notes: what should be known, a sentence each.
        a, b: what the two are: framework, versions, precision, dtype, hashes,
            folder.
        local: whether local errors were found.
        explanations: what explaining.explain found, if it was asked.
    """

    rows: list
    names: object
    notes: list
    a: dict
    b: dict
    local: bool
    explanations: list = dataclasses.field(default_factory=list)

    @property
    def compared(self):
        """How many rows say something: not zeros, nor what may not belong."""
        return sum(row.counted and row.verdict != ZERO for row in self.rows)

    @property
    def divergences(self):
        """The rows that diverge, steps in order of computation, then the rest.
        """
        found = [row for row in self.rows if row.diverges]
        first = {OUTPUT: 0, INPUT: 0, GRADIENT: 2, PARAMETER: 1}
        return sorted(found, key=lambda row: (first[row.part], row.order))

    @property
    def first(self):
        """The first Row of a step that diverges, else of a parameter, else of
        a gradient; None where nothing does."""
        return next(iter(self.divergences), None)

    @property
    def verdict(self):
        """MATCH, DIVERGENCE, NOTHING, or INCOMPLETE.

        INCOMPLETE: all that was compared matches, but the models' outputs were
        not among it, or were zero everywhere.
        """
        if any(row.diverges for row in self.rows):
            return DIVERGENCE
        if not any(row.verdict == MATCH and row.part != INPUT
                   for row in self.rows):
            return NOTHING  # two models that were given the same
        ends = [row for row in self.rows if row.part == OUTPUT
                and row.a == WHOLE and row.b == WHOLE
                and row.verdict == MATCH]
        return MATCH if ends else INCOMPLETE

    @property
    def status(self):
        """The exit status: 0 match, 1 divergence, 4 nothing compared."""
        return {MATCH: 0, DIVERGENCE: 1}.get(self.verdict, 4)

    def as_json(self):
        """Everything as plain data; an error that is none is null."""
        def plain(row):
            found = dataclasses.asdict(row) | {
                "shape": list(row.shape), "diverges": row.diverges}
            return {name: None if isinstance(value, float)
                    and not math.isfinite(value) else value
                    for name, value in found.items()}
        return {
            "schema": SCHEMA, "verdict": self.verdict,
            "compared": self.compared, "local": self.local,
            "first": self.first and plain(self.first),
            "sentence": self.sentence(),
            "explanations": [each.as_json() for each in self.explanations],
            "a": self.a, "b": self.b, "notes": self.notes,
            "only_a": self.names.only_a, "only_b": self.names.only_b,
            "rows": [plain(row) for row in self.rows],
        }

    def sentence(self):
        """What was found, in a sentence or two."""
        verdict, first = self.verdict, self.first
        if verdict == NOTHING:
            return ("Nothing was compared: no pair of arrays has numbers that "
                    "say anything.")
        if verdict == INCOMPLETE:
            return (f"What was compared matches, {self.compared} arrays, but "
                    "the models' outputs were not compared.")
        if verdict == MATCH:
            return (f"All {self.compared} arrays compared match, the models' "
                    "outputs among them.")
        return _sentence(first, self.rows)


def _sentence(first, rows):
    """The first divergence in words."""
    off = first.reason if first.error is None else (
        f"error {terminal.number(first.error)}, limit "
        f"{terminal.number(first.limit)}"
        + (f"; {first.reason}" if first.reason else ""))
    if first.verdict != DIVERGENCE:
        off = (f"local error {terminal.number(first.local)}, limit "
               f"{terminal.number(first.local_limit)}")
    words = {PARAMETER: "the parameter", GRADIENT: "the gradient by",
             INPUT: "the input", OUTPUT: "the output"}[first.part]
    where = first.a if not first.a_name else f"{first.a_name} of {first.a}"
    if first.part == OUTPUT and first.a_name == "output":
        words, where = "the output of", first.a
    text = f"The first divergence is {words} {where}"
    text += (f" ({first.b} in b)" if first.b != first.a else "") + f": {off}."
    if first.part == INPUT and first.a != WHOLE:
        text += (" Every step before it that was compared matches, so what "
                 "differs stands between them.")
    wrong = [row.a for row in rows if row.part == PARAMETER and row.diverges]
    held = [path for path in wrong if first.part == OUTPUT and (
        first.a == WHOLE
        or path.startswith(first.a.partition("#")[0] + "."))]
    if held:
        text += f" Its parameter {held[0]} differs too."
    elif first.origin == NEW:
        text += " On a's own inputs it differs as well: the fault is in it."
    return text


def describe(trace):
    """What a trace is, as plain data."""
    return {"framework": trace.framework, "versions": trace.versions,
            "precision": trace.precision, "dtype": trace.dtype,
            "steps": len(trace.steps), "parameters": len(trace.parameters),
            "inputs_hash": trace.inputs_hash,
            "parameters_hash": trace.parameters_hash,
            "folder": trace.origin, "notes": trace.notes}


def limits(dtype):
    """The limits in a dtype: of a step in a model, of one alone on the same
    inputs, of a gradient, and of a parameter."""
    if dtype not in EPS:
        return math.nan, math.nan, math.nan, 0.0
    eps = EPS[dtype]
    if dtype == "float64":
        return FLOAT64_LIMIT, FLOAT64_LIMIT, FLOAT64_GRADIENT, eps
    return *(many * eps for many in MANY[dtype]), eps


def compare_values(actual, expected, limit, dtype):
    """Compare two arrays, as comparator.compare, with three differences.

    Integers may differ in width; two arrays that are zero everywhere are ZERO,
    for they say nothing and are no fault; equal ones are found quickly.

    Returns:
        A Difference, and a note or "".
    """
    if actual.dtype.kind in "iu" and expected.dtype.kind in "iu":
        dtype = actual.dtype.name
    elif not is_float(expected):
        dtype = None
    floating = is_float(actual) and is_float(expected)
    if (not floating or actual.shape != expected.shape
            or actual.dtype.name != dtype or not expected.size):
        if expected.dtype.kind == "c" or actual.dtype.kind == "c":
            return Difference(None, limit, DIVERGENCE,
                              "complex numbers are not compared"), ""
        return compare_arrays(actual, expected, limit, dtype), ""
    note = ""
    holes = int(np.isnan(expected).sum())
    if holes and np.isnan(actual).any():
        note = f"NaN on both sides, {holes} of {expected.size} in a"
    zeros = not expected.any()
    if zeros:
        if not actual.any():
            return Difference(0.0, limit, ZERO), "zero everywhere in both"
        return Difference(None, limit, DIVERGENCE,
                          "zero everywhere in a and not in b"), note
    if (actual.dtype == expected.dtype and not note
            and np.array_equal(actual, expected)
            and np.isfinite(expected).all()):
        return Difference(0.0, limit, MATCH), note
    if (actual.size > CHUNK and np.isfinite(expected).all()
            and np.isfinite(actual).all()):
        error = _error_in_chunks(actual, expected)
        return Difference(error, limit, MATCH if error <= limit
                          else DIVERGENCE), note
    return compare_arrays(actual, expected, limit, dtype), note


#: Larger arrays are measured piece by piece, which takes less memory.
CHUNK = 1 << 22


def _error_in_chunks(actual, expected):
    """comparator.relative_error of finite arrays, in pieces of whole rows.

    Each piece's own error does not do: a row is measured against an average
    row of the whole.
    """
    length = expected.shape[-1] if expected.ndim else 1
    if length > CHUNK:
        return relative_error(actual, expected)[0]
    rows = max(1, CHUNK // length)
    mine, other = expected.reshape(-1, length), actual.reshape(-1, length)
    scale = max(float(np.abs(mine[i:i + rows]).max())
                for i in range(0, len(mine), rows))
    gaps, squares = np.empty(len(mine)), np.empty(len(mine))
    for i in range(0, len(mine), rows):
        at = slice(i, i + rows)
        truth = mine[at].astype(np.float64) / scale
        gap = other[at].astype(np.float64) / scale - truth
        squares[at] = np.einsum("ij,ij->i", truth, truth)
        gaps[at] = np.einsum("ij,ij->i", gap, gap)
    whole = math.sqrt(gaps.sum() / squares.sum())
    worst = math.sqrt(float(
        (gaps / np.maximum(squares, squares.mean())).max()))
    return max(whole, worst / ROW_SLACK)


def check_comparable(a, b, dtype=None, allow_same=False):
    """Raise InputError where comparing two traces would say nothing.

    They are one run, or were computed in different precision.
    """
    what = ("a comparison of a run with itself says nothing; give two "
            "different ones.")
    if not allow_same:
        if a is b:
            raise InputError(f"a and b are one trace, and {what}")
        if a.origin and a.origin == b.origin:
            raise InputError(
                f"a and b are one folder, {a.origin!r}, and {what}")
        if a.content_hash == b.content_hash:
            raise InputError(
                "a and b are one run, for framework, paths, parameters and "
                f"every value are the same, and {what[:-1]}, or allow it "
                "(allow_same, --allow-same) if they are.")
    if dtype is None and a.dtype != b.dtype:
        raise InputError(
            f"a was computed in {a.dtype or 'integers'} and b in "
            f"{b.dtype or 'integers'}; trace both in one precision, or give "
            "the dtype that b must have, and a is the truth it is held "
            "against.")


def check_inputs(a, b, names):
    """Raise InputError where two models were given different inputs.

    Returns:
        Sentences on inputs that could not be compared.
    """
    pair = next((p for p in names.steps if p.a == p.b == WHOLE), None)
    if pair is None:
        return ["the models' own calls are no pair, so whether both were "
                "given the same inputs was not checked."]
    sure = 0
    for value in pair.inputs:
        mine, other = a.inputs[value.a], b.inputs[value.b]
        if mine.dtype.kind == "b" or other.dtype.kind == "b":
            continue
        mine = rearranged(value.a_layout, mine)
        other = rearranged(value.b_layout, other)
        if is_float(mine):
            coarse = max(EPS.get(x.dtype.name, 0) for x in (mine, other))
            with np.errstate(over="ignore"):
                found = compare_arrays(
                    other.astype(np.float64), mine.astype(np.float64), coarse)
            different = (found.verdict == DIVERGENCE
                         and (mine.any() or other.any()))
        else:
            different = (mine.shape != other.shape
                         or not np.array_equal(mine, other))
        if different:
            raise InputError(
                f"a and b were run on different inputs, for {value.a!r} of a "
                f"and {value.b!r} of b differ; trace both on the same ones.")
        sure += 1
    if not sure:
        return ["no input of a could be paired with one of b, so whether both "
                "were given the same was not checked."]
    return []


def compare(a, b, names=None, limit=None, dtype=None, local=None,
            allow_same=False):
    """Compare two traces, a being the truth.

    Args:
        a, b: Traces.
        names: a NameMap; by default what aligning.suggest says.
        limit: the largest relative error of a step, alone or in the model, and
            of a gradient, instead of the dtype's own.
        dtype: what b must have been computed in; by default what a was. With
            it a may be in higher precision than b.
        local: whether to find local errors too; by default where b is live.
        allow_same: compare a run with itself all the same.

    Returns:
        A Comparison.

    Raises:
        InputError: the two are one run, of different precision, or were given
            different inputs; or a map's layout does not fit.
    """
    if dtype is not None:
        one_of(dtype, DTYPES, "dtype")
    if limit is not None and not 0 <= limit < 1:
        raise InputError(
            f"the limit {limit} is none; give a relative error from 0 to 1.")
    if local and not b.live:
        raise InputError(
            "local errors need a live b, and this one was read from a file; "
            "trace the model anew, or go without them.")
    local = b.live if local is None else local
    check_comparable(a, b, dtype, allow_same)
    suggested = names is None
    names = suggest(a, b) if suggested else names
    notes = [*check_inputs(a, b, names), *names.notes,
             *_notes(a, b, names, dtype)]
    expects = dtype or a.dtype
    made = _Comparing(a, b, limit, dtype, expects)
    notes += made.tie(names.parameters)
    rows = [row for pair in names.parameters
            for row in made.parameter(pair)]
    for pair in names.steps:
        rows += made.step(pair, local)
    rows.sort(key=lambda row: row.order)
    return Comparison(rows, names, notes, describe(a), describe(b), local)


class _Comparing:
    """What the rows of one comparison share."""

    def __init__(self, a, b, limit, dtype, expects):
        self.a, self.b, self.dtype = a, b, dtype
        self.steps_a = {step.path: step for step in a.steps}
        self.steps_b = {step.path: step for step in b.steps}
        self.forward, self.alone, self.gradient, self.weight = (
            limits(expects) if expects else (math.nan,) * 4)
        if limit is not None:
            self.forward = self.alone = self.gradient = limit
        self.off = []  # when the steps that diverged so far began and ended
        self.containers = {
            step.module for step in a.steps if any(
                other.began > step.began and other.ended < step.ended
                for other in a.steps)} if len(a.steps) < 2000 else {WHOLE}

    def tie(self, pairs):
        """Find parameters that are one in a model and several in the other.

        The gradient of the one is the sum of theirs. ``self.tied`` becomes
        {(side, path of the one): [pair, ...]}.

        Yields:
            A sentence on each.
        """
        self.tied = {}
        for side, other in (("a", "b"), ("b", "a")):
            mine, theirs = getattr(self, side), getattr(self, other)
            groups = {}
            for pair in pairs:
                one = mine.aliases.get(getattr(pair, side),
                                       getattr(pair, side))
                groups.setdefault(one, []).append(pair)
            for one, group in groups.items():
                names = {getattr(pair, side) for pair in group}
                several = {theirs.aliases.get(name, name) for name in (
                    getattr(pair, other) for pair in group)}
                if len(names) > 1 and len(several) > 1:
                    self.tied[side, one] = group
                    yield (f"{', '.join(sorted(names))} of {side} are one "
                           f"parameter, and {', '.join(sorted(several))} of "
                           f"{other} are not: training would part them.")

    def gradients_of(self, pair):
        """The gradients of a pair of parameters; None where there is none.

        Of what is tied in one model and not in the other the several are
        added up, and that is told once.
        """
        found = []
        for side in "ab":
            trace, path = getattr(self, side), getattr(pair, side)
            found.append(trace.gradients.get(trace.aliases.get(path, path)))
        for (side, one), group in self.tied.items():
            if pair not in group:
                continue
            if pair is not group[0]:
                return None, None
            at = 1 if side == "a" else 0
            other = "ab"[at]
            total = 0
            for each in group:
                path = getattr(each, other)
                trace = getattr(self, other)
                array = trace.gradients.get(trace.aliases.get(path, path))
                if array is None or (getattr(each, f"{other}_layout")
                                     != getattr(pair, f"{other}_layout")):
                    return None, None
                total = total + array
            found[at] = total
        return found

    def row(self, part, pair, mine, other, limit, a, b, kind="", order=0):
        """Compare two arrays; a Row."""
        mine = rearranged(pair.a_layout, mine)
        other = rearranged(pair.b_layout, other)
        dtype = (self.dtype if self.dtype and is_float(mine)
                 else mine.dtype.name)
        if math.isnan(limit) and is_float(mine):
            limit = limits(mine.dtype.name)[0]
        if math.isnan(limit):
            limit = 0.0
        found, note = compare_values(other, mine, limit, dtype)
        name_a, name_b = ("", "") if part == PARAMETER else (pair.a, pair.b)
        error = None if found.error is None else float(found.error)
        return Row(part, a, b, name_a, name_b, pair.a_layout, pair.b_layout,
                   pair.by, kind, mine.shape, mine.dtype.name, error,
                   found.limit, found.verdict, found.reason, order, note=note)

    def parameter(self, pair):
        """The rows of a parameter and of its gradient."""
        mine = self.a.parameters[self.a.aliases.get(pair.a, pair.a)]
        other = self.b.parameters[self.b.aliases.get(pair.b, pair.b)]
        row = self.row(PARAMETER, pair, mine, other, self.weight, pair.a,
                       pair.b)
        if row.verdict == DIVERGENCE and pair.by in (SHAPES, CONVENTION):
            row.note = "paired by shape alone: the layout may be another"
        yield row
        mine, other = self.gradients_of(pair)
        if mine is not None and other is not None:
            found = self.row(GRADIENT, pair, mine, other, self.gradient,
                             pair.a, pair.b)
            found.a_name = found.b_name = ""
            self.negligible(found, pair, mine, other)
            found.order = self.a.steps[-1].ended + 1
            yield found

    def negligible(self, row, pair, mine, other):
        """Let a gradient be zero that mathematics makes zero.

        A key's bias has none. Its rounding is measured against the gradients
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
        inputs = []
        for value in pair.inputs:
            array = mine.inputs[value.a]
            if "b" in (array.dtype.kind, other.inputs[value.b].dtype.kind):
                continue  # a mask may say keep, or drop
            row = self.row(INPUT, value, array, other.inputs[value.b],
                           self.forward, pair.a, pair.b, kind, mine.began)
            row.counted = _surely(value, pair, mine, other)
            inputs.append(row)
        floating = [row for row in inputs if row.dtype in EPS and row.counted]
        inherited = max((math.inf if row.error is None else row.error
                         for row in floating), default=None)
        outputs = [self.row(
            OUTPUT, value, mine.outputs[value.a], other.outputs[value.b],
            self.forward, pair.a, pair.b, kind, mine.ended)
            for value in pair.outputs]
        if pair.a == WHOLE and mine.outputs and not outputs:
            outputs.append(Row(
                OUTPUT, pair.a, pair.b, next(iter(mine.outputs)),
                next(iter(other.outputs), ""), SAME, SAME, pair.by, kind,
                next(iter(mine.outputs.values())).shape, self.a.dtype, None,
                0.0, DIVERGENCE,
                "no output of the one is of a size of the other's",
                mine.ended))
        if local and other.source == MODULE and outputs:
            self.local(pair, mine, other, outputs)
        for row in outputs:
            row.inherited = inherited
            if row.diverges:
                row.origin = _origin(row, inputs)
            if row.origin == NEW and any(
                    began > mine.began and ended < mine.ended
                    for began, ended in self.off):
                row.origin = WITHIN
        if mine.source == MODULE and any(row.diverges for row in outputs):
            self.off.append((mine.began, mine.ended))
        gradients = []
        for value in pair.outputs:
            first = mine.gradients.get(value.a)
            second = other.gradients.get(value.b)
            if first is not None and second is not None:
                gradients.append(self.row(
                    GRADIENT, value, first, second, self.gradient, pair.a,
                    pair.b, kind, 2 * self.a.steps[-1].ended - mine.ended + 2))
        return [*inputs, *outputs, *gradients]

    def local(self, pair, mine, other, outputs):
        """Find b's outputs on a's inputs."""
        given = {}
        paired = {value.b: value for value in pair.inputs}
        for name, there in other.inputs.items():
            value = paired.get(name)
            if value is None or there.dtype.kind == "b":
                if is_float(there):
                    self.without(outputs, f"its input {name} has no partner")
                    return
                continue
            if not _surely(value, pair, mine, other):
                self.without(outputs, f"its input {name} may be another's")
                return
            array = rearranged(value.a_layout, mine.inputs[value.a])
            array = _back(value.b_layout, array, there)
            if array is None:
                self.without(outputs, f"its input {name} cannot be rearranged")
                return
            given[name] = array
        if not any(is_float(array) or array.dtype.kind in "iu"
                   for array in given.values()):
            self.without(outputs, "it has no input that can be given")
            return
        try:
            found = self.b.rerun(pair.b, given)
        except InputError as error:
            self.without(outputs, str(error).rstrip("."))
            return
        limit = (self.forward if mine.module in self.containers
                 else self.alone)
        for value, row in zip(pair.outputs, outputs):
            if value.b not in found:
                self.without([row], "run again it made no such output")
                continue
            again = self.row(OUTPUT, value, mine.outputs[value.a],
                             found[value.b], limit, pair.a, pair.b)
            row.local, row.local_limit = again.error, again.limit
            row.local_verdict, row.local_reason = again.verdict, again.reason

    @staticmethod
    def without(rows, reason):
        """Say why there is no local error."""
        for row in rows:
            row.local_reason = reason


def _surely(value, pair, mine, other):
    """Whether two inputs are each other's counterparts.

    Modules that are paired by their outputs may begin at different places: a
    dropout behind a block, and the block. So either the values are alike, or
    the modules are of one kind.
    """
    if value.by in (VALUES, USER) or pair.a == pair.b == WHOLE:
        return True
    first = rearranged(value.a_layout, mine.inputs[value.a])
    second = rearranged(value.b_layout, other.inputs[value.b])
    if first.shape == second.shape and far_apart(second, first) <= NEAR:
        return True
    kinds = family(mine.kind), family(other.kind)
    if any(kinds):
        return kinds[0] == kinds[1]
    words = [words_of(step.kind)[0] + words_of(step.module)[0][-1:]
             for step in (mine, other)]
    return bool(set(words[0]) & set(words[1]))


def _back(layout, array, there):
    """The array of which a layout made this one; None if that is unknown."""
    if layout == SAME:
        return array if array.shape == there.shape else None
    forward = rearranged(layout, np.arange(there.size).reshape(there.shape))
    if forward.size != there.size:
        return None
    made = np.empty(there.size, array.dtype)
    made[forward.reshape(-1)] = array.reshape(-1)
    return made.reshape(there.shape)


def _origin(row, inputs):
    """Whether a divergence is new in this step or came with its inputs."""
    if row.local_verdict:
        return NEW if row.local_verdict == DIVERGENCE else INHERITED
    if any(row.counted for row in inputs) and not any(
            each.verdict == DIVERGENCE for each in inputs):
        return NEW
    return UNKNOWN


def _notes(a, b, names, dtype):
    """What should be known about a comparison, a sentence each."""
    for side, trace in (("a", a), ("b", b)):
        for note in trace.notes:
            yield f"{side}: {note}"
        lost = getattr(names, f"only_{side}")
        for what in ("steps", "parameters"):
            if lost.get(what):
                yield (f"{len(lost[what])} {what} of {side} have no partner "
                       "and were not compared.")
    if (dtype or a.dtype) not in ("float64", ""):
        yield (f"{dtype or a.dtype} cannot tell a small fault from rounding; "
               "trace both in float64 to prove that they agree.")
    shared = a.precision.keys() & b.precision.keys()
    for name in sorted(shared):
        if a.precision[name] != b.precision[name]:
            yield (f"a ran with {name} {a.precision[name]} and b with "
                   f"{b.precision[name]}.")
    if a.precision.get("autocast") or b.precision.get("autocast"):
        yield "autocast was on, so that some steps ran in lower precision."


# How it looks

def _layouts(row):
    """The layout of a row in words, "" where both are stored alike."""
    return "; ".join(f"{side}: {layout}" for side, layout in (
        ("a", row.a_layout), ("b", row.b_layout)) if layout != SAME)


def _shown(comparison, everything):
    """The rows worth a line: outputs, and whatever diverges."""
    return [row for row in comparison.rows
            if everything or row.part == OUTPUT or row.verdict == DIVERGENCE
            or row.local_verdict == DIVERGENCE]


def _verdict(row):
    if not row.counted and row.verdict == DIVERGENCE:
        return "differs"
    verdict = DIVERGENCE if row.diverges else row.verdict
    return f"{verdict}, {row.origin}" if row.origin else verdict


COLUMNS = ("step of a", "step of b", "shape", "error", "local", "limit",
           "verdict")


def _cells(row):
    """What stands in a row's columns."""
    part = "" if row.part == OUTPUT else f"{row.part} "
    also = "; ".join(filter(None, (
        row.reason, row.note, _layouts(row),
        row.local_reason if row.local_verdict == DIVERGENCE else "")))
    return (f"{part}{row.name}", "same" if row.b == row.a else row.b,
            "×".join(map(str, row.shape)) or "scalar",
            terminal.number(row.error), terminal.number(row.local),
            terminal.number(row.limit), _verdict(row), also)


def print_comparison(out, comparison, everything=False):
    """Print a table, what was not compared, and the verdict.

    Args:
        out: a rich console.
        comparison: a Comparison.
        everything: show matching inputs, parameters and gradients too.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, title in enumerate(COLUMNS):
        table.add_column(title, overflow="fold",
                         justify="right" if 3 <= i <= 5 else "left")
    for row in _shown(comparison, everything):
        *cells, also = map(Text, _cells(row))
        if row.diverges:
            cells[-1].stylize("bold red")
        table.add_row(*cells)
        if also.plain:
            table.add_row(Text(f"  {also.plain}", style="dim"))
    out.print(table)
    kinds = [(part, [row for row in comparison.rows if row.part == part])
             for part in (PARAMETER, INPUT, OUTPUT, GRADIENT)]
    for part, rows in kinds:
        if rows:
            off = sum(row.diverges for row in rows)
            out.print(f"{part}s: {len(rows)} compared, {off} diverge")
    for side in "ab":
        only = getattr(comparison.names, f"only_{side}")
        for what in ("steps", "parameters"):
            if only.get(what):
                out.print(Text(f"{what} of {side} without a partner: "
                               + ", ".join(only[what])))
    for note in comparison.notes:
        out.print(Text(f"note: {note}"))
    out.print(Text(comparison.sentence()))
    for each in comparison.explanations:
        out.print(Text(f"why: {each.text()}"))
    out.print(Text("verdict: ").append_text(
        terminal.verdict_text(comparison.verdict)))


STYLE = """body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222}
table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:left}
th{border-bottom:1px solid #888}td.n{text-align:right;
font-variant-numeric:tabular-nums}tr.off{background:#fdd;font-weight:600}
small{color:#555}"""


def as_html(comparison):
    """A page that needs no other file."""
    text = html.escape

    def row_of(row):
        cells = _cells(row)
        also = f"<br><small>{text(cells[-1])}</small>" if cells[-1] else ""
        return (f"<tr{' class=off' if row.diverges else ''}>"
                f"<td>{text(cells[0])}{also}</td>" + "".join(
                    f"<td{' class=n' if 2 <= i <= 4 else ''}>{text(cell)}</td>"
                    for i, cell in enumerate(cells[1:-1], start=1)) + "</tr>")

    def side(name, what):
        versions = ", ".join(f"{k} {v}" for k, v in what["versions"].items())
        return (f"<p><b>{name}</b>: {text(versions)}, {text(what['dtype'])}, "
                f"{what['steps']} steps, {what['parameters']} parameters"
                + (f", {text(what['folder'])}" if what["folder"] else "")
                + "</p>")

    def only(name):
        found = getattr(comparison.names, f"only_{name}")
        return "".join(
            f"<p>{what} of {name} without a partner: "
            f"{text(', '.join(found[what]))}</p>"
            for what in ("steps", "parameters") if found.get(what))

    head = "".join(f"<th>{title}</th>" for title in COLUMNS)
    return "\n".join((
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>{text(comparison.verdict)}</title><style>{STYLE}</style>",
        f"<h1>{text(comparison.verdict)}</h1>",
        f"<p>{text(comparison.sentence())}</p>",
        *(f"<p><b>Why:</b> {text(each.text())}</p>"
          for each in comparison.explanations),
        side("a", comparison.a), side("b", comparison.b),
        f"<table><tr>{head}</tr>",
        *(row_of(row) for row in _shown(comparison, True)), "</table>",
        only("a"), only("b"),
        "<ul>", *(f"<li>{text(note)}</li>" for note in comparison.notes),
        "</ul></html>", ""))


def write_html(comparison, path):
    """Write the page; raises InputError where it cannot be written."""
    write_whole(path, as_html(comparison))
