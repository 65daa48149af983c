"""Arrays that have one name in two traces, and not one size.

They are no pair, so that their numbers are not compared. Of two dumps one of
them may be cut short, which its numbers show: that is refused.
"""

import numpy as np

from parity_io.errors import InputError, plural
from parity.matching.values import NEAR, far_apart
from parity.tracing.trace import WHOLE

#: Dumps in which a name is given to an array by whoever wrote it.
NAMED = "dump"


def unlike(a, b, names):
    """Sentences on arrays of one name whose sizes differ.

    Args:
        a, b: the Traces.
        names: the NameMap.

    Raises:
        InputError: one of two dumps has an array that is cut short, and is
            none of the model's outputs.
    """
    parted, made = in_parts(a, b)
    for what, one, two in _unpaired(a, b, names):
        if what.partition("/")[0] in parted:
            continue
        words = (f"{what!r} is {[*one.shape]} in a and {[*two.shape]} in b")
        part = cut(one, two)
        if part and a.framework == b.framework == NAMED:
            raise InputError(
                f"{words}, {part}; write the whole array, or leave it out of "
                "both.")
        made.append(f"{words}{part and ', ' + part}, and was not compared.")
    return made


def cut(one, two):
    """Which part of the other array one of two is, in words, or "".

    Args:
        one, two: a's and b's array.
    """
    for mine, whole, side, other in ((two, one, "b", "a"),
                                     (one, two, "a", "b")):
        if mine.ndim != whole.ndim or not mine.size:
            continue
        axes = [i for i, sizes in enumerate(zip(mine.shape, whole.shape))
                if sizes[0] != sizes[1]]
        if len(axes) != 1 or mine.shape[axes[0]] > whole.shape[axes[0]]:
            continue
        axis, count = axes[0], mine.shape[axes[0]]
        for word, places in (("first", slice(count)),
                             ("last", slice(-count, None))):
            part = whole[(slice(None),) * axis + (places,)]
            if np.array_equal(part, mine) or part.dtype.kind == "f" and (
                    part.any() and far_apart(mine, part) <= NEAR):
                return (f"{side}'s being the {word} {count} of {other}'s "
                        f"{whole.shape[axis]} along axis {axis}")
    return ""


def in_parts(a, b):
    """What one side runs in several calls, each on some places of what the
    other runs at once, as with a cache.

    Returns:
        The paths of such steps, and sentences on them.
    """
    found: dict = {}
    for side, whole, other in (("b", a, b), ("a", b, a)):
        calls = _calls(other)
        for path, (step, *more) in _calls(whole).items():
            reads = [] if more or path == WHOLE else calls.get(path, [])
            if split := len(reads) > 1 and _split(step, reads):
                found.setdefault((side, split), []).append(path)
    made = []
    for (side, sizes), paths in found.items():
        places = ", ".join(map(str, sizes[:4])) + ", …" * (len(sizes) > 4)
        more = f"; {plural(len(paths) - 1, 'step')} more likewise" * (
            len(paths) > 1)
        made.append(f"{side} runs {paths[0]!r} in {len(sizes)} calls, of "
                    f"{places} places, and {'ab'[side == 'a']} in one of "
                    f"{sum(sizes)}{more}.")
    if made:
        made.append("Where that is a cache, parity invariance --way cache "
                    "says which read is wrong, and why.")
    return {path for paths in found.values() for path in paths}, made


def _calls(trace):
    """{path: the Steps of its calls, in order}."""
    found: dict = {}
    for step in trace.steps:
        found.setdefault(step.path.partition("#")[0], []).append(step)
    return found


def _split(step, reads):
    """How many places each of several calls has that together have a step's,
    the first beginning as it does; or None."""
    for name, array in step.outputs.items():
        parts = [each.outputs.get(name) for each in reads]
        if any(part is None or part.ndim != array.ndim for part in parts) or (
                "the first" not in cut(array, parts[0])):
            continue
        axis = next(i for i, sizes in enumerate(zip(
            array.shape, parts[0].shape)) if sizes[0] != sizes[1])
        sizes = tuple(part.shape[axis] for part in parts)
        if sum(sizes) == array.shape[axis]:
            return sizes
    return None


def _unpaired(a, b, names):
    """Yield (name, a's array, b's) of what has one name and no partner."""
    taken = {side: {getattr(pair, side) for pair in names.parameters}
             for side in "ab"}
    for path in a.parameters.keys() & b.parameters.keys():
        if path not in taken["a"] and path not in taken["b"]:
            yield f"parameters/{path}", a.parameters[path], b.parameters[path]
    paired = {side: {(getattr(pair, side), getattr(value, side))
                     for pair in names.steps for value in pair.outputs}
              for side in "ab"}
    others = {step.path: step for step in b.steps}
    for step in a.steps:
        if step.path == WHOLE or step.path not in others:
            continue
        for name, array in step.outputs.items():
            there = others[step.path].outputs.get(name)
            key = step.path, name
            if there is not None and there.size != array.size and (
                    key not in paired["a"] and key not in paired["b"]):
                yield (step.path if name == "output"
                       else f"{step.path}/{name}"), array, there
