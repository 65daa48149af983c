"""Every fault of a model, one behind the other: b is run on with a's numbers.

Where two models part, a's tensor takes the place of b's, and b is run on.
What parts then is a second fault, or nothing does; so on until the ends agree.
A model with three faults has all three told, each with its place.
"""

import dataclasses

from contract.errors import InputError
from parity.causes.explain import explain
from parity.causes.findings import told_alike
from parity.comparison.belonging import rearranged_back
from parity.comparison.compare import compare
from parity.comparison.result import INPUT, OUTPUT
from parity.matching.rearrangement import rearranged
from parity.tracing.trace import WHOLE

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
    comparison.replaced = []

    def compared():  # where inputs match, a step that parts is at fault
        return compare(a, now, comparison.names, local=False, allow_same=True)
    current = compared()
    while (row := _first(current, instead)) and len(instead) < MOST:
        for each in _causes(current, told, row.order, a, now):
            _add(explanations, each)
        told = row.order
        array = _as_in_b(a, b, row)
        if array is None:
            comparison.notes.append(
                f"{row.b} of b cannot be given a's numbers, so that what "
                "differs behind it is not told apart.")
            break
        instead[row.b, row.b_name] = array
        comparison.replaced.append([row.a, row.b, row.b_name])
        now = b.run_on(instead)
        current = compared()
    comparison.notes.append(_ended(current, instead, row))
    comparison.explanations = explanations
    return explanations


def _first(comparison, instead):
    """The first row of an output that parts; None where none does.

    Nothing is put in place twice.
    """
    rows = (row for row in comparison.rows if row.part == OUTPUT
            and row.diverges and (row.b, row.b_name) not in instead)
    return min(rows, key=lambda row: row.order, default=None)


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
    if row.b_name not in b.step(row.b).outputs:
        return None
    mine = rearranged(row.a_layout, a.step(row.a).outputs[row.a_name])
    return rearranged_back(row.b_layout, mine,
                           b.step(row.b).outputs[row.b_name])


def _ended(comparison, instead, row):
    """How it ended, in a sentence."""
    if not instead:
        return ("b was not run on." if row else
                "No output differs, so that b was not run on.")
    ends = any(each.diverges for each in comparison.rows
               if each.part == OUTPUT and each.a == WHOLE)
    more = ", as many as are tried," if len(instead) == MOST else ""
    return (f"b was run on with a's numbers at {len(instead)} "
            f"step{'s' * (len(instead) > 1)}{more}; then the models' outputs "
            + ("still differ." if ends or row else "agree."))
