"""How parts are told that two models take otherwise of one value."""

import itertools
import typing

from parity.numerics.words import listed
from parity.operations.align import is_view


class Taken(typing.NamedTuple):
    """What some operations take of a value by slices, and what they do else.

    Attributes:
        rest: the names of those that are no slices.
        roots: the values that are cut.
        axes: along which.
        forms: whether by sizes, and by which step.
        parts: the places of each part.
    """

    rest: list
    roots: set
    axes: set
    forms: set
    parts: list


def _taken(this, side, steps):
    """What a side's operations take."""
    program, skeleton = getattr(this, side), this.skeleton(side)
    slices = [each for each in steps if each.name == "slice"]
    settings = [cut(program, each) for each in slices]
    return Taken(
        sorted(each.name for each in steps
               if each.name != "slice" and not is_view(each)),
        {root for each in slices
         for root in skeleton.arrays(each).values()},
        {each.get("axis") for each in settings},
        {("sizes" in each, each.get("step") or 1) for each in settings},
        sorted({part for each in slices for part in _parts(program, each)}))


def of_slices(this, steps):
    """The parts that each takes of one value along one axis, where these are
    other places, and the rest of the steps is the same; or ().

    Slices of one stretch each are left to their settings.
    """
    one, two = (_taken(this, *each) for each in zip("ab", steps))
    if one.rest != two.rest or len(one.roots) != 1 or len(two.roots) != 1 or (
            not one.roots & {*this.twins("b", *two.roots)}):
        return ()
    known = len(one.axes | two.axes) == 1 and () not in one.parts + two.parts
    if not known or one.forms == two.forms or one.parts == two.parts:
        return ()
    return "order of the parts", *(
        listed([_words(part) for part in each.parts]) for each in (one, two))


def counted(program, operation):
    """The settings of an operation, its axis counted from the front."""
    settings, axis = operation.settings, operation.settings.get("axis")
    if not isinstance(axis, int) or axis >= 0 or not operation.operands:
        return settings
    rank = len(program.values[operation.operands[0]].shape)
    return {**settings, "axis": axis + rank}


def cut(program, operation):
    """The settings of a slice that cuts one axis, that axis counted from the
    end; of one that cuts more, no axis."""
    settings = counted(program, operation)
    shape = program.values[operation.operands[0]].shape if (
        operation.operands) else ()
    if not isinstance(settings.get("start"), tuple):
        axis = settings.get("axis")
        return {**settings, "axis": axis - len(shape)} if isinstance(
            axis, int) else settings
    steps = settings.get("step") or (1,) * len(shape)
    cuts = [(axis - len(shape), *each) for axis, each in enumerate(zip(
        settings["start"], settings["stop"], steps))
        if each != (0, shape[axis], 1)]
    return dict(zip(("axis", "start", "stop", "step"), cuts[0])) if (
        len(cuts) == 1) else {}


def _parts(program, operation):
    """The places of each part that a slice takes; () where not known."""
    settings = cut(program, operation)
    axis, sizes = settings.get("axis"), settings.get("sizes")
    if not isinstance(axis, int) or not operation.operands:
        return [()]
    length = program.values[operation.operands[0]].shape[axis]
    if sizes is None:
        asked = [settings.get(name) for name in ("start", "stop", "step")]
        if not all(each is None or isinstance(each, int) for each in asked):
            return [()]
        return [tuple(range(length)[slice(*asked)])]
    if isinstance(sizes, int):
        sizes = [sizes] * len(operation.results)
    ends = [*itertools.accumulate(sizes)]
    return [tuple(range(length)[end - size:end])
            for size, end in zip(sizes, ends)]


def _words(part):
    """The places of a part in words."""
    if len(part) > 1 and (step := part[1] - part[0]) != 1:
        return f"every {step}. number from {part[0]}"
    return f"{part[0]} to {part[-1]}"


def places(operation):
    """Which places a slice takes, in words."""
    first, last, step = (operation.settings.get(name) for name in (
        "start", "stop", "step"))
    if isinstance(step, int) and step > 1:
        return f"every {step}. number from {first}"
    until = "the end" if last is None or isinstance(last, int) and (
        last > 1 << 40) else last
    return f"{first} to {until}"
