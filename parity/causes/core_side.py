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
    projections = {}
    for each in trace.steps:
        if each.ended >= step.began:
            break
        words = set(words_of(each.path)[0]) & {"query", "key", "value"}
        value = next((v for v in each.outputs.values() if is_float(v)), None)
        if len(words) == 1 and value is not None and value.ndim == array.ndim:
            projections[words.pop()] = exact(value)
    if len(projections) < 3:
        return None
    heads = {"num_heads": projections["query"].shape[2]} if (
        array.ndim == 4) else {}
    if heads:
        projections = {name: beside(x) for name, x in projections.items()}
        array = beside(array)
    holders = [each for each in trace.steps
               if each.began < step.began and each.ended > step.ended
               and each.source == MODULE]
    others, settings = {}, {}
    keys = projections["key"].shape[-2]
    for each in reversed(holders):  # the innermost last
        settings |= each.settings
        for name, value in each.inputs.items():
            if (value.ndim > 1 and is_mask(name, value)
                    and value.shape[-1] == keys):
                others = {other: held for other, held in others.items()
                          if other != name and not np.array_equal(held, value)}
                others[name] = exact(value)
    settings |= heads
    bare = dataclasses.replace(step, settings=settings, others={
        name: text for each in holders for name, text in each.others.items()})
    seen = Seen(
        {name: projections[name] for name in ("query", "key", "value")},
        others, exact(array), tables(trace, step, holders, projections))
    return StepSide(trace.framework, bare, {}, [seen],
                model_limits(array.dtype.name)[1], array.dtype.name)


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
    length, keys = (projections[name].shape[-2] for name in ("query", "key"))
    found = {}
    for each in holders:
        given = {name: exact(value) for name, value in each.inputs.items()
                 if is_float(value) and not is_mask(name, value)}
        rotary = [value for value in given.values() if value.ndim > 1
                  and value.shape[-2] == length
                  and np.abs(value).max(initial=0) < 1 + 1e-6]
        if len(rotary) == 2 and rotary[0].shape == rotary[1].shape and (
                np.abs(rotary[0]**2 + rotary[1]**2 - 1).max(initial=0) < 1e-5):
            found["cosines"], found["sines"] = map(half_table, rotary)
        for value in given.values():
            if value.ndim == 4 and value.shape[-2:] == (length, keys):
                found["position bias"] = value
    inner = min(holders, key=lambda each: each.ended - each.began)
    for value in inner.outputs.values():
        if (is_float(value) and value.ndim == 4
                and value.shape[-2:] == (length, keys)):
            found["weights"] = exact(value)
    for each in trace.steps:
        for value in each.outputs.values():
            if (inner.began < each.began and each.ended < step.began
                    and is_float(value) and value.ndim == 3
                    and value.shape[:2] == (length, keys)):
                found["position bias"] = exact(value).transpose(2, 0, 1)[None]
    return found
