"""Whether two traces, and two inputs of their steps, belong together."""

import numpy as np

from contract.errors import InputError
from parity.matching.rearrangement import SAME, rearranged
from parity.matching.steps import (
    NEAR, USER, VALUES, family, far_apart, words_of)
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.dtypes import EPS
from parity.tracing.trace import WHOLE, is_float


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
                found = compare(
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


def surely(value, pair, mine, other):
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


def rearranged_back(layout, array, there):
    """The array of which a layout made this one; None if that is unknown."""
    if layout == SAME:
        return array if array.shape == there.shape else None
    forward = rearranged(layout, np.arange(there.size).reshape(there.shape))
    if forward.size != there.size:
        return None
    made = np.empty(there.size, array.dtype)
    made[forward.reshape(-1)] = array.reshape(-1)
    return made.reshape(there.shape)
