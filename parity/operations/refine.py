"""From a value that differs back to where it begins to differ.

Two values that take each other's place are made by two operations. Where these
are the same and read others that differ, those differ first; so on, until the
operations are no longer the same or read nothing that differs.
"""

from parity.operations.vocabulary import COMMUTATIVE

#: So many pairs of values are looked back from at most.
MOST = 200

#: Settings that are told otherwise by each framework, and say nothing here.
LOOSE = {"shape", "contract", "batch", "dtype", "axes"}


def first_pairs(alignment, one, two, pair, deep=MOST):
    """Where two values begin to differ.

    Args:
        alignment: an Alignment.
        one, two: the Skeletons of a and b.
        pair: (number in a, number in b).
        deep: how many operations are looked back at most.

    Returns:
        Such pairs of numbers, in order, the pair itself if it begins there;
        and how many operations were looked back.
    """
    queue, found, seen, reached = [(0, *pair)], [], set(), 0
    while queue and len(seen) < MOST:
        depth, a, b = queue.pop(0)
        a, b = one.root(a), two.root(b)
        if (a, b) in seen:
            continue
        seen.add((a, b))
        reached = max(reached, depth)
        before = back(alignment, one, two, a, b) if depth < deep else []
        if before:
            queue += [(depth + 1, *each) for each in before]
        elif (a, b) not in found:
            found.append((a, b))
    return found, reached


def back(alignment, one, two, a, b):
    """The pairs that two operations read and that differ; [] where they are
    not the same operation, or all that they read is the same."""
    theirs = two.program.maker(b)
    mine = next((each for each in one.program.makers(a)
                 if theirs is not None and each.name == theirs.name), None)
    if mine is None:
        return []
    if {key: value for key, value in mine.settings.items()
            if key not in LOOSE} != {
            key: value for key, value in theirs.settings.items()
            if key not in LOOSE} and mine.name in ("slice", "cumsum"):
        return []
    if axes_of(one.program, mine) != axes_of(two.program, theirs):
        return []
    if constants(one, mine) != constants(two, theirs):
        return []
    left = [[root for root in skeleton.arrays(operation).values()
             if root in alignment.lost[side]]
            for side, skeleton, operation in (
                ("a", one, mine), ("b", two, theirs))]
    if len(left[0]) != len(left[1]):
        return []
    pairs = [*zip(*left)]
    sizes = [(one.program.values[x].signature.size,
              two.program.values[y].signature.size) for x, y in pairs]
    if any(x != y for x, y in sizes) and mine.name in COMMUTATIVE:
        pairs = [*zip(left[0], reversed(left[1]))]
    return pairs


def axes_of(program, operation):
    """Over how many numbers an operation goes, and along which axes of which
    shape; () where it has no axis."""
    axes = operation.settings.get("axis")
    if axes in (None, ()) or not operation.operands:
        return ()
    shape = program.values[operation.operands[0]].shape
    axes = sorted(axis % len(shape) for axis in (
        axes if isinstance(axes, (tuple, list)) else (axes,))) if shape else ()
    sizes = [shape[axis] for axis in axes]
    alike = len(set(shape)) < len(shape)  # then sizes say too little
    return sizes, (axes, shape) if alike else ()


def constants(skeleton, operation):
    """The numbers that an operation has, in order of size."""
    return sorted(
        float(skeleton.program.values[value].array.reshape(-1)[0].real)
        for value in skeleton.constants(operation).values()
        if skeleton.program.values[value].array is not None)
