"""The verdict on two models by their operations, and what differs.

What the user compares are the models' outputs. Where they differ as the models
are, both are run with nothing shorter than float64 inside: if they then agree,
the models are *equal but for float32 inside*. If not, b is run with one thing
of a's after another until its outputs are a's, and that is the cause.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import time
from collections.abc import Callable

import numpy as np

from parity_io.errors import InputError
from parity.causes import by_arrays
from parity.causes.explain import explain
from parity.causes.explanation import Explanation
from parity.causes.proved import errors, explanations
from parity.causes.write import write_of
from parity.comparison.compare import BLUNT
from parity.comparison.verdicts import FLOAT32, INPUT, OUTPUT
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import listed, number
from parity.operations.align import NEAR, Alignment
from parity.operations.built import OWN, construction_lines
from parity.operations.equivalents import with_equivalents
from parity.operations.rounded import (
    rounded_kernels, rounded_leaves, rounded_numbers, rounded_tables)
from parity.operations.program import PARAMETER, Place
from parity.operations.search import find_faults
from parity.operations.settings import setting_of
from parity.operations.signature import signature
from parity.operations.trial import ARRAY
from parity.tracing.trace import WHOLE, framework_of, tracing_of

#: Where a model cannot be widened everywhere, numbers are the same up to this.
ROUGH = 1e-7

#: Models of so many numbers at most are run with every value kept at once.
SMALL = 20_000_000

#: Frameworks whose models are seen as operations.
SEEN = ("torch", "jax", "keras", "numpy")


@dataclasses.dataclass
class Side:
    """A model, its inputs, and what makes both anew if that is known.

    Attributes:
        model, inputs, keywords: as for parity.tracing.trace.trace.
        make: () -> (model, inputs, keywords), or None.
        raw: what the inputs were made of; see parity.inputs.raw.
    """

    model: object
    inputs: tuple
    keywords: dict
    make: Callable | None = None
    raw: dict = dataclasses.field(default_factory=dict)

    def runner(self):
        """The Runner of its framework.

        Raises:
            InputError: it cannot be seen as operations.
        """
        try:
            name = framework_of(self.model)
        except InputError:
            if not callable(self.model):
                raise
            name = "numpy"  # a function of NumPy's arrays
        if name not in SEEN:
            raise InputError(
                f"of {name} modules alone are seen, not operations.")
        return importlib.import_module(f"parity.operations.{name}").Runner(
            self.model, self.inputs, self.keywords, self.make)


def decide(comparison, a, b, one, two, exact=False):
    """Set a comparison's verdict and explanations by operations.

    Args:
        comparison: what ``compare`` returned of the two traces.
        a, b: the Traces.
        one, two: the Side of each, or None where there is a trace alone.
        exact: ask for an exact comparison also where all outputs agree.

    Returns:
        The comparison.
    """
    began = time.perf_counter()
    if comparison.outputs_agree and not exact:
        if comparison.verdict == DIVERGENCE:  # of a gradient
            explain(comparison, a, b)
        _count_unlike(comparison, [] if None not in (one, two) else [
            *by_arrays.sentences(comparison, a, b)])
    elif a.printed:
        comparison.notes.append(
            "no cause is sought in arrays that are known in part alone.")
    elif comparison.layers is not None or None in (one, two):
        explain(comparison, a, b)
        if None in (one, two) and not any(
                each.identified for each in comparison.explanations):
            comparison.explanations = by_arrays.explanations(
                comparison, a, b) or comparison.explanations
    else:
        try:
            _by_operations(comparison, a, b, one.runner(), two.runner())
        except InputError as error:
            comparison.notes.append(
                f"the models were compared module by module: {error}")
            explain(comparison, a, b)
    for each in comparison.explanations:
        if not each.write:
            kind = next((step.kind for step in b.steps
                         if step.path == each.b), "")
            each.write = write_of(b.framework, each.cause, each.in_a,
                                  kind=kind, of=a.framework)
    comparison.seconds = (comparison.seconds or 0.0) + (
        time.perf_counter() - began)
    return comparison


def _count_unlike(comparison, named=()):
    """Note how many inner pairs differ although all outputs agree.

    Args:
        named: sentences on those of them that have one name in both.
    """
    if comparison.verdict == MATCH:
        comparison.notes[:0] = named
    unlike = sum(row.diverges and not (named and row.a == row.b)
                 for row in comparison.rows)
    if unlike and comparison.verdict == MATCH:
        one = unlike == 1
        comparison.notes.append(
            f"{unlike} inner {'pair differs' if one else 'pairs differ'} "
            "although every output agrees: these are no counterparts.")


def _part(comparison, a, b, alignment):
    """Count no pair of which each model has the other's numbers elsewhere:
    the two are no counterparts."""
    for row in comparison.rows:
        if not row.diverges or row.a == WHOLE or row.part not in (
                INPUT, OUTPUT):
            continue
        what = "inputs" if row.part == INPUT else "outputs"
        mine, other = (signature(getattr(trace.step(path), what)[name])
                       for trace, path, name in (
                           (a, row.a, row.a_name), (b, row.b, row.b_name)))
        if alignment.holds("b", mine) and alignment.holds("a", other):
            row.counted, row.note = False, "no counterparts"


def _by_operations(comparison, a, b, one, two):
    """Decide by running both exactly, and b with a's things in it."""
    small = sum(array.size for trace in (a, b)
                for array in trace.parameters.values()) <= SMALL
    programs = [_run(runner, small) for runner in (one, two)]
    comparison.notes = [note for note in comparison.notes  # these run exactly
                        if note != BLUNT.format(a.dtype)]
    near = max(_near(program) for program in programs)
    alignment = Alignment(*programs, near)
    comparison.roundings = {
        side: _lines(program) for side, program in zip("ab", programs)}
    _part(comparison, a, b, alignment)
    comparison.notes += [f"{side}: {note}" for side, program in zip(
        "ab", programs) for note in program.notes]
    if not alignment.outputs:
        explain(comparison, a, b)
        return
    if alignment.different and small:  # a table may be the sum of two
        alignment = Alignment(with_equivalents(programs[0]), programs[1], near)
    alignment, edits = _with_same_tables(
        comparison, alignment, one, two, near) if small else (alignment, {
            "a": {}, "b": {}})
    if unlike := [*_unlike(*programs)]:
        comparison.decided = DIVERGENCE
        comparison.notes = [*unlike, *comparison.notes]
    elif alignment.different:
        first = one.run(exact=True, edits=edits["a"]) if (
            edits["a"] or not small) else programs[0]
        _find_faults(comparison, a, b, one, two, find_faults(
            first, lambda edits: two.run(exact=True, edits=edits), near,
            edits["b"]))
    elif not comparison.left_out:  # else what both give agrees, and is not all
        _agree(comparison, alignment, programs)


def _with_same_tables(comparison, alignment, one, two, near):
    """The Alignment, and the edits with which both have the same tables where
    these are the same but for float32: {"a": …, "b": …}."""
    edits = {"a": {}, "b": {}}
    while alignment.different:
        own = rounded_leaves(alignment)
        if own.keys() - edits["a"].keys():
            comparison.roundings["a"] += [
                (name, "float32", None) for _, name in own]
            edits["a"] |= own
            alignment = Alignment(with_equivalents(one.run(
                exact=True, edits=edits["a"])), alignment.b, near)
            continue
        more = _same_tables(comparison, alignment)
        if more.keys() <= edits["b"].keys():
            break
        edits["b"] |= more
        alignment = Alignment(alignment.a, two.run(
            exact=True, edits=edits["b"]), near)
    return alignment, edits


def _agree(comparison, alignment, programs):
    """Say of two models that agree with nothing shorter than float64 inside
    what they are to each other as they are."""
    comparison.corrected = (
        "With nothing shorter than float64 inside, the outputs agree to "
        f"{number(max(errors(alignment), default=0.0))}.")
    comparison.explanations = _shorter(comparison, *programs)
    comparison.decided = (
        MATCH if comparison.outputs_agree else
        DIVERGENCE if comparison.explanations else FLOAT32)


def _find_faults(comparison, a, b, one, two, outcome):
    """Tell what a search found, and by modules what it did not."""
    comparison.decided = DIVERGENCE

    def of_both(function):
        return {"a": functools.partial(function, one),
                "b": functools.partial(function, two)}
    told = explanations(outcome, of_both(_built), functools.partial(
        _begins, two), of_both(_made_at))
    if not outcome.corrected:
        told += _others(comparison, a, b, told)
    comparison.explanations = told
    _of_all_weights(comparison, outcome)
    if outcome.corrected:
        comparison.corrected = (
            f"With {'it' if len(told) == 1 else 'all of them'} corrected in b,"
            f" its outputs are a's to "
            f"{number(max(errors(outcome.last), default=0.0))}.")


def _of_all_weights(comparison, outcome):
    """Note that all weights differ and nothing else does, as after training:
    how a rule of updates differs, weights do not show."""
    trials = [trial for found in outcome.found for trial in found.trials]
    weights = {value.name for value in outcome.first.b.values
               if value.kind == PARAMETER and value.signature.kind == "f"
               and value.signature.size > 1}
    names = {outcome.first.b.values[trial.value_b].name for trial in trials}
    if outcome.corrected and len(names) > 1 and weights <= names and all(
            trial.kind == ARRAY for trial in trials):
        comparison.notes.insert(0, (
            f"All {len(weights)} weights differ, and nothing that is done with "
            "them: if both were trained, parity compare --train says at which "
            "step they diverge, and why."))


def _unlike(a, b):
    """Yield of each output that both name, and which is of another size in b,
    a sentence."""
    for name in filter(b.outputs.__contains__, a.outputs):
        one, two = (program.values[program.outputs[name]]
                    for program in (a, b))
        if one.signature.size != two.signature.size:
            yield (f"{name} has shape {list(one.shape)} in a and "
                   f"{list(two.shape)} in b.")


def _built(runner, path, value):
    """The line that sets a number of a module, or "", and its name, or "".

    Of a layer of the framework's own that is the line at which it is made.
    """
    if runner.model is None:  # nodes of a file, or a dump
        return "", ""
    modules = dict(tracing_of(runner.model).modules(runner.model))
    own = path in modules and type(modules[path]).__module__.partition(".")[
        0] in OWN
    _, name, place = setting_of(modules, path, value) or ("", "", "")
    if own and runner.make is not None:
        place = _made_lines(runner).get(path, "")
    return str(place or ""), name


def _begins(runner, path):
    """The line at which a module's call begins, or at which one of the
    framework's own is made; "" if there is no such module."""
    module = None if runner.model is None else dict(tracing_of(
        runner.model).modules(runner.model)).get(path)
    if module is None:
        return ""
    if type(module).__module__.partition(".")[0] in OWN:
        return str(_made_lines(runner).get(path, ""))
    call = next((getattr(type(module), name) for name in (
        "forward", "call", "__call__") if hasattr(type(module), name)), None)
    code = getattr(inspect.unwrap(call), "__code__", None)
    return str(Place(code.co_filename, code.co_firstlineno, code.co_name)
               ) if code else ""


def _made_at(runner, path):
    """The line at which a module, or the nearest that it is in, is made."""
    lines = _made_lines(runner)
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return str(lines.get(path, ""))


def _made_lines(runner):
    """{path: Place} of the lines at which a model's modules are made."""
    if runner.make is None:
        return {}
    if getattr(runner, "lines", None) is None:
        runner.lines = construction_lines(
            runner.make, tracing_of(runner.model).modules, OWN)
    return runner.lines


def _same_tables(comparison, alignment):
    """Edits that give b a's tables where these are the same but for float32;
    where they are is put down."""
    edits = {}
    for *numbers, edit in (*rounded_tables(alignment),
                           *rounded_numbers(alignment),
                           *rounded_kernels(alignment)):
        edits |= edit
        for side, place in zip("ab", numbers):
            program = getattr(alignment, side)
            array = program.values[place].array
            if np.array_equal(array, array.astype(np.float32)):
                comparison.roundings[side].append(
                    (_at(program, place), "float32", None))
    return edits


def _shorter(comparison, a, b):
    """Explanations of what one of two models alone computes in 16 bits."""
    if comparison.outputs_agree:
        return []
    places = [[each for each in program.roundings
               if each.dtype in ("bfloat16", "float16")] for program in (a, b)]
    if bool(places[0]) == bool(places[1]):
        return []
    side = "a" if places[0] else "b"
    lines = [*dict.fromkeys(str(each.place) for each in places[side == "b"])]
    dtype = places[side == "b"][0].dtype
    other = getattr(comparison, "b" if side == "a" else "a")["dtype"]
    in_a, in_b = (dtype, other) if side == "a" else (other, dtype)
    each = Explanation(
        "(model)", "(model)", "dtype", in_a, in_b,
        f"What is computed at {listed(lines[:4])} of {side} is in {dtype}, "
        f"and in the other model in {other}.",
        proof="With nothing shorter than float64 inside, the outputs agree.")
    setattr(each, f"place_{side}", lines[0])
    return [each]


def _at(program, number):
    """Where a table or number is: its name, or the line that makes it, or
    reads it."""
    maker = program.maker(number) or next((
        program.operations[each] for each in program.users.get(number, ())),
        None)
    return program.values[number].name or (str(maker.place) if maker else "")


def _run(runner, small):
    """An exact run, with its outputs' arrays and, if small, every other.

    Raises:
        InputError: the model, which runs as it is, does not run so.
    """
    try:
        program = runner.run(exact=True, keep=small)
    except InputError:
        raise
    except Exception as error:  # of any library, in an operation of its own
        words = (str(error).splitlines() or [""])[0]
        raise InputError("a model does not run in float64: "
                         f"{type(error).__name__}: {words:.200}") from error
    if not small:
        ends = {*program.outputs.values()}
        program = runner.run(exact=True, keep=lambda value: (
            value.number in ends or value.signature.size < 4096))
    return program


def _near(program):
    """How far apart the same numbers of an exact run may be, as a share."""
    narrow = any("float32" in note for note in program.notes)
    return max(ROUGH, program.blur) if narrow else NEAR


def _lines(program):
    """[(place, dtype, None)] of where a program rounds, each once."""
    return [*dict.fromkeys(
        (str(each.place), each.dtype, None) for each in program.roundings)]


def _others(comparison, a, b, told):
    """What modules tell where operations do not tell all."""
    before = comparison.explanations
    with contextlib.suppress(InputError):
        explain(comparison, a, b)
    more = [each for each in comparison.explanations
            if not told or not each.identified]
    comparison.explanations = before
    return more
