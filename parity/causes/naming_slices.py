"""How parts are told that two models take otherwise of one value."""

import itertools

from parity.numerics.words import listed
from parity.operations.align import is_view


def of_slices(this, steps):
    """The parts that each takes of one value along one axis, where these are
    other places, and the rest of the steps is the same; or ().

    Slices of one stretch each are left to their settings.
    """
    taken, rest, roots, forms, axes = [], [], [], [], set()
    for side, some in zip("ab", steps):
        program, skeleton = getattr(this, side), this.skeleton(side)
        slices = [each for each in some if each.name == "slice"]
        rest.append(sorted(each.name for each in some if not (
            each.name == "slice" or is_view(each))))
        roots.append({root for each in slices
                      for root in skeleton.arrays(each).values()})
        settings = [counted(program, each) for each in slices]
        axes |= {each.get("axis") for each in settings}
        forms.append({("sizes" in each, each.get("step"))
                      for each in settings})
        taken.append(sorted({part for each in slices
                             for part in _parts(program, each)}))
    if rest[0] != rest[1] or [*map(len, roots)] != [1, 1] or not (
            roots[0] & {*this.twins("b", *roots[1])}):
        return ()
    if len(axes) != 1 or forms[0] == forms[1] or taken[0] == taken[1] or (
            () in taken[0] + taken[1]):
        return ()
    return "order of the parts", *(listed([_words(part) for part in parts])
                                   for parts in taken)


def counted(program, operation):
    """The settings of an operation, its axis counted from the front."""
    settings, axis = operation.settings, operation.settings.get("axis")
    if not isinstance(axis, int) or axis >= 0 or not operation.operands:
        return settings
    rank = len(program.values[operation.operands[0]].shape)
    return {**settings, "axis": axis + rank}


def _parts(program, operation):
    """The places of each part that a slice takes; () where not known."""
    settings = counted(program, operation)
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
