"""An array in another layout: with its axes exchanged, joined or divided."""

import itertools
import math

import numpy as np

#: From here on how far two arrays are apart says nothing.
UNLIKE = 0.7

#: How far two arrays of the same numbers are apart at most.
SAME = 1e-10

#: Of so many axes at most every order is tried.
AXES = 5


def relaid(array, like, most=2):
    """An array's numbers in the shape of another: where they are alike the
    most alike first, else with the fewest axes exchanged.

    Args:
        array: of any shape.
        like: an array of as many numbers; its own are compared.
        most: how many of the ways to lay it out are returned.

    Returns:
        A list of arrays of ``like``'s shape; empty if no order and division of
        axes leads there.
    """
    array, like = np.asarray(array), np.asarray(like)
    if not array.size or not like.size:
        return [array.reshape(like.shape)] if array.size == like.size else []
    if array.size > like.size:
        array = once(array, like.size)
    if array.size != like.size:
        wide = spread(array, like.shape)
        return [] if wide is None else [wide]
    found = {}
    for made in _every(array, like.shape):
        key = made.tobytes()
        if key not in found:
            found[key] = made
    return sorted(found.values(), key=lambda made: min(
        distance(made, like), UNLIKE))[:most]


def relaid_as(array, one, two):
    """An array in the layout that makes another array of its shape a third.

    Args:
        array, one: of one shape.
        two: ``one`` in another layout.

    Returns:
        The array in that layout; None if ``one`` is not ``two`` in any.
    """
    array, one, two = map(np.asarray, (array, one, two))
    if one.shape != array.shape or one.size != two.size:
        return None
    places = np.arange(one.size).reshape(one.shape)
    return next((array.reshape(-1)[made] for made in _every(places, two.shape)
                 if distance(one.reshape(-1)[made], two) <= SAME), None)


def reordered_as(array, one, two):
    """An array with the rows of one of its axes in the order that makes
    another array of its shape a third: where axes were joined, such as those
    of batch and time, no exchange of axes tells it.

    Args:
        array, one, two: of one shape.

    Returns:
        The array in that order; None if there is no such axis, or two of its
        rows are alike.
    """
    array, one, two = map(np.asarray, (array, one, two))
    if not array.shape == one.shape == two.shape or one.dtype.kind != "f":
        return None
    for axis, length in enumerate(one.shape):
        rows = [np.moveaxis(each, axis, 0).reshape(length, -1)
                for each in (one, two)]
        weights = np.random.default_rng(0).normal(size=rows[0].shape[1])
        sums = [each @ weights for each in rows]
        orders = [np.argsort(each) for each in sums]
        if (np.diff(sums[0][orders[0]]) > SAME * np.abs(sums[0]).max()).all(
                ) and distance(rows[0][orders[0]], rows[1][orders[1]]) <= SAME:
            found = orders[0][np.argsort(orders[1])]
            return np.take(array, found, axis)
    return None


def once(array, size):
    """An array without its repetitions along one axis, if that leaves so many
    numbers; else as it is."""
    times = array.size // size if size else 0
    if times < 2 or times * size != array.size:
        return array
    for axis, length in enumerate(array.shape):
        if length % times:
            continue
        for shape, at in (((times, length // times), axis),
                          ((length // times, times), axis + 1)):
            parts = np.moveaxis(array.reshape(
                *array.shape[:axis], *shape, *array.shape[axis + 1:]), at, 0)
            if all(np.array_equal(parts[0], part) for part in parts[1:]):
                return parts[0]
    return array


def spread(array, shape):
    """An array broadcast to a shape, its lone axes aside; None if it cannot
    be."""
    lean = array.reshape([size for size in array.shape if size != 1])
    for each in (array, lean):
        try:
            return np.array(np.broadcast_to(each, shape))
        except ValueError:
            continue
    return None


def in_parts(array, axis, order):
    """An array with the equal parts of an axis in another order."""
    parts = np.split(array, len(order), axis)
    return np.concatenate([parts[i] for i in order], axis)


def distance(one, two):
    """How far two arrays of one shape are apart, as a share of the second."""
    one, two = (np.asarray(each, np.complex128 if np.iscomplexobj(each)
                           else np.float64) for each in (one, two))
    both = np.isfinite(one) & np.isfinite(two)
    odd = float((np.isfinite(one) != np.isfinite(two)).mean()) if (
        one.size) else 0.0
    one, two = np.where(both, one, 0), np.where(both, two, 0)
    largest = max(np.abs(two).max(initial=0), np.abs(one).max(initial=0))
    if largest > 1e150:  # whose squares would overflow
        one, two = one / largest, two / largest
    size = float(np.linalg.norm(two))
    apart = float(np.linalg.norm(one - two))
    return odd + (apart / size if size else apart)


def _every(array, shape):
    """Yield the array in a shape, in each order of axes that leads there."""
    lean = [size for size in array.shape if size != 1]
    goal = [size for size in shape if size != 1]
    if math.prod(lean) == math.prod(goal):
        yield array.reshape(shape)
    if max(len(lean), len(goal)) > AXES:
        return
    array, made = array.reshape(lean), False
    for order in itertools.permutations(range(len(goal))):
        finer = [goal[i] for i in order]
        if _divides(lean, finer):
            made, back = True, np.argsort(order)
            yield array.reshape(finer).transpose(back).reshape(shape)
    for order in itertools.permutations(range(len(lean))):
        if _divides(goal, [lean[i] for i in order]):
            made = True
            yield array.transpose(order).reshape(shape)
    for one, two in () if made else itertools.product(
            _parted(lean, goal), _parted(goal, lean)):
        if sorted(one) == sorted(two) and len(one) <= AXES:
            for order in itertools.permutations(range(len(one))):
                if [one[i] for i in order] == two:
                    yield array.reshape(one).transpose(order).reshape(shape)


def _parted(shape, other):
    """Yield a shape with one axis in two: what it shares with another's, and
    the rest, such as heads that were joined with the batch."""
    for i, size in enumerate(shape):
        for part in sorted({math.gcd(size, each) for each in other}):
            if 1 < part < size:
                for two in ((part, size // part), (size // part, part)):
                    yield [*shape[:i], *two, *shape[i + 1:]]


def _divides(coarse, fine):
    """Whether joining neighbours of a finer shape gives a coarser one."""
    fine = iter(fine)
    for size in coarse:
        product = 1
        while product < size:
            product *= next(fine, size + 1)
        if product != size:
            return False
    return True
