"""The attention between three projections and the next step, as a StepSide.

Many models compute it in functions: a trace has what went in and what came
out, and around it the modules that hold it, with masks and positions. Where
the projections are in heads already, [B T H K], the heads are put beside each
other.
"""

import dataclasses

import numpy as np

from parity.causes.fit import Seen, StepSide, is_mask
from parity.causes.formulas.family import exact
from parity.causes.formulas.rotary import half_table
from parity.matching.words import words_of
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import MODULE, is_float


def core_side(trace, step, array):
    """A StepSide of the attention between three projections and a step."""
    projections = projections_before(trace, step, array.ndim)
    if len(projections) < 3:
        return None
    heads = {}
    if array.ndim == 4:
        heads = {"num_heads": projections["query"].shape[2]}
        projections = {name: beside(x) for name, x in projections.items()}
        array = beside(array)
    holders = [each for each in trace.steps
               if each.began < step.began and each.ended > step.ended
               and each.source == MODULE]
    settings = {name: value for each in reversed(holders)  # the innermost last
                for name, value in each.settings.items()}
    bare = dataclasses.replace(step, settings=settings | heads, others={
        name: text for each in holders for name, text in each.others.items()})
    seen = Seen(
        {name: projections[name] for name in ("query", "key", "value")},
        masks_given(holders, projections["key"].shape[-2]), exact(array),
        tables(trace, step, holders, projections))
    return StepSide(trace.framework, bare, {}, [seen],
                    model_limits(array.dtype.name)[1], array.dtype.name)


def projections_before(trace, step, rank):
    """{"query" or …: array} of what was projected last before a step."""
    found = {}
    for each in trace.steps:
        if each.ended >= step.began:
            break
        words = set(words_of(each.path)[0]) & {"query", "key", "value"}
        value = next((v for v in each.outputs.values() if is_float(v)), None)
        if len(words) == 1 and value is not None and value.ndim == rank:
            found[words.pop()] = exact(value)
    return found


def masks_given(holders, keys):
    """The masks over so many keys that the steps around were given."""
    others = {}
    for each in reversed(holders):  # the innermost last
        for name, value in each.inputs.items():
            if (value.ndim > 1 and is_mask(name, value)
                    and value.shape[-1] == keys):
                others = {other: held for other, held in others.items()
                          if other != name and not np.array_equal(held, value)}
                others[name] = exact(value)
    return others


def beside(x):
    """Heads [B T H K] beside each other, [B T H·K]."""
    return x.reshape(*x.shape[:2], -1)


def tables(trace, step, holders, projections):
    """{"cosines", "sines", "position bias"}: those that attention was given.

    With them the "weights", where a holder hands them on.

    Args:
        trace: a Trace.
        step: the one after attention.
        holders: the steps around it, the innermost last but one.
        projections: {"query" or …: [B T D]}.
    """
    size = tuple(projections[name].shape[-2] for name in ("query", "key"))
    found, biases = {}, []
    for each in holders:
        given = [exact(value) for name, value in each.inputs.items()
                 if is_float(value) and not is_mask(name, value)]
        found |= turning(given, size[0])
        biases += [value for value in given
                   if value.ndim == 4 and value.shape[-2:] == size]
    inner = min(holders, key=lambda each: each.ended - each.began)
    weights = [exact(value) for value in floats([inner], 4)
               if value.shape[-2:] == size]
    biases += [exact(value).transpose(2, 0, 1)[None] for value in floats([
        each for each in trace.steps if inner.began < each.began
        and each.ended < step.began], 3) if value.shape[:2] == size]
    return found | {name: values[-1] for name, values in (
        ("weights", weights), ("position bias", biases)) if values}


def floats(steps, rank):
    """The floating outputs of steps that have so many axes."""
    return [value for each in steps for value in each.outputs.values()
            if is_float(value) and value.ndim == rank]


def turning(given, length):
    """{"cosines", "sines"} of arrays, where two of them are such tables."""
    rotary = [value for value in given if value.ndim > 1
              and value.shape[-2] == length
              and np.abs(value).max(initial=0) < 1 + 1e-6]
    if len(rotary) != 2 or rotary[0].shape != rotary[1].shape or (
            np.abs(rotary[0]**2 + rotary[1]**2 - 1).max(initial=0) >= 1e-5):
        return {}
    return dict(zip(("cosines", "sines"), map(half_table, rotary)))
