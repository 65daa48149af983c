"""Every fault of a model, one behind the other: b is run on with a's numbers.

Where two models part, a's tensor takes the place of b's, and b is run on.
What parts then is a second fault, or nothing does; so on until the ends agree.
A model with three faults has all three told, each with its place.
"""

import dataclasses

import numpy as np

from parity_io.errors import InputError, plural
from parity.causes.explain import explain
from parity.causes.findings import told_alike
from parity.comparison.belonging import rearranged_back
from parity.comparison.compare import compare
from parity.comparison.result import INPUT, OUTPUT
from parity.matching.rearrangement import rearranged
from parity.numerics.distance import strict_distance
from parity.numerics.dtypes import EPS
from parity.tracing.trace import MODULE, WHOLE

#: Two differences as near as this are one, but for the rounding of a sum.
NEAR = 1e-9

#: So many steps of b at most are given a's numbers.
MOST = 200


def replace(comparison, a, b):
    """Explain two models by running b on with a's numbers.

    Args:
        comparison: what ``compare`` returned of the two. Its ``explanations``
            and ``replaced`` are set.
        a: a's Trace.
        b: b's, which is live.

    Returns:
        The explanations of every fault, in order of computation.

    Raises:
        InputError: b was read from a file.
    """
    if not b.live:
        raise InputError(
            "b was read from a file and cannot be run on; give its model.")
    instead, explanations, now, told = {}, [], b, 0
    comparison.replaced, gaps = [], []

    def compared():  # where inputs match, a step that parts is at fault
        return compare(a, now, comparison.names, local=False)
    current = comparison  # the first has local errors, which are the finer ones
    while (row := _first(current, instead, now)) and len(instead) < MOST:
        array = _as_in_b(a, b, row)
        gap = None if array is None else getattr(
            now.step(row.b), f"{row.part}s")[row.b_name].astype(
                np.float64) - array
        if not any(_same(gap, each) for each in gaps):
            for each in _causes(current, told, row.order, a, now):
                _add(explanations, each)
        told = row.order
        if array is None:
            comparison.notes.append(
                f"{row.b} of b cannot be given a's numbers, so that what "
                "differs behind it is not told apart.")
            break
        if row.part == INPUT:
            gaps.append(gap)
        instead[_key(row)] = array
        comparison.replaced.append([row.a, row.b, " ".join(
            ["input"] * (row.part == INPUT) + [row.b_name])])
        now = b.run_on(instead)
        current = compared()
    comparison.notes.append(_ended(current, instead, row))
    comparison.explanations = explanations
    return explanations


def _key(row):
    """What ``run_on`` calls the array of b that a row compares."""
    return (row.b, row.b_name, *([INPUT] if row.part == INPUT else []))


def _first(comparison, instead, b):
    """The first row that parts of an output, or of an input that no step made;
    None where none does.

    Nothing is put in place twice, and nothing where all outputs agree.
    """
    if comparison.outputs_agree:
        return None
    made = {}
    for step in b.steps:
        for array in step.outputs.values():
            made.setdefault(b.hash_of(array), step.ended)

    def is_made(row):
        step = b.step(row.b)
        return made.get(b.hash_of(step.inputs[row.b_name]),
                        step.began) < step.began
    rows = (row for row in comparison.rows
            if row.diverges and _key(row) not in instead and (
                row.part == OUTPUT or row.part == INPUT and row.b != WHOLE
                and row.dtype in EPS and b.step(row.b).source == MODULE
                and not is_made(row)))
    return min(rows, key=lambda row: row.order, default=None)


def _same(gap, other):
    """Whether two differences are one, handed on by a residual connection."""
    return gap is not None and gap.shape == other.shape and strict_distance(
        gap, other) <= NEAR


def _causes(comparison, told, order, a, b):
    """The Explanations of the rows behind those told, up to this order."""
    part = dataclasses.replace(comparison, explanations=[], rows=[
        each for each in comparison.rows
        if each.part not in (INPUT, OUTPUT) or not each.diverges
        or told < each.order <= order])
    return explain(part, a, b)


def _add(explanations, new):
    """Put an Explanation to others; the same cause is told once."""
    for old in explanations:
        if told_alike(new, old):
            there = [[old.a, old.b], *old.also]
            old.also += [at for at in ([new.a, new.b], *new.also)
                         if at not in there]
            return
    explanations.append(new)


def _as_in_b(a, b, row):
    """a's tensor as b has it at this step.

    None if b has none there, or its layout has no way back.
    """
    mine, other = (getattr(trace.step(path), f"{row.part}s").get(name)
                   for trace, path, name in ((a, row.a, row.a_name),
                                             (b, row.b, row.b_name)))
    if mine is None or other is None:
        return None
    return rearranged_back(row.b_layout, rearranged(row.a_layout, mine), other)


def _ended(comparison, instead, row):
    """How it ended, in a sentence."""
    if not instead:
        return ("b was not run on." if row else
                "No output differs, so that b was not run on.")
    ends = any(each.diverges for each in comparison.rows
               if each.part == OUTPUT and each.a == WHOLE)
    more = ", as many as are tried," if len(instead) == MOST else ""
    return (f"b was run on with a's numbers at "
            f"{plural(len(instead), 'step')}{more}; then the models' outputs "
            + ("still differ." if ends or row else "agree."))
