"""Why the pixels of two models differ: found on the arrays alone.

Without the image it was made of, one array is tried as the other with its
channels in another order, turned, scaled and shifted by channel, or rounded.
With it, each side is made anew in every likely way; a cause is told where both
come out, and only what every such pair of ways has in common.
"""

import itertools

import numpy as np

from parity.inputs.resizing import NEVER, every

#: By how much of a level, of 255, arrays may be apart that are the same, and
#: how many pixels may be a whole level apart, where a library rounds ties.
LEVEL, TIES = 0.03, 0.01

#: So many rows and columns are looked at first.
SOME = 8

#: Of the range of an array, what may be rounding in float32.
NEAR = 2e-5

#: Means and standard deviations that processors have.
KNOWN = {
    "none": ((0.0,), (1.0,)),
    "0.5": ((0.5,), (0.5,)),
    "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "CLIP's": ((0.48145466, 0.4578275, 0.40821073),
               (0.26862954, 0.26130258, 0.27577711)),
}

#: What levels of 0 to 255 are multiplied by.
SCALES = {"1/255": 1 / 255, "1": 1.0, "1/127.5": 1 / 127.5}


def is_image(array):
    """Whether an array may be pixels: with three or four channels."""
    return array.ndim in (3, 4) and (
        array.shape[-1] in (3, 4) or array.shape[-3] in (3, 4)) and (
        min(sorted(array.shape[-3:])[1:]) > 4)


def channels_last(array):
    """Images [N H W C] of an array."""
    array = np.asarray(array, np.float64)
    array = array if array.ndim == 4 else array[None]
    return array if array.shape[-1] in (3, 4) and (
        array.shape[1] > 4) else np.moveaxis(array, 1, -1)


def affine(x, y):
    """(slopes, shifts, error) by channel, with which x [… C] is nearest to y;
    the error is the largest, in units of y's range."""
    flat, other = (each.reshape(-1, each.shape[-1]) for each in (x, y))
    mean, wanted = flat.mean(0), other.mean(0)
    spread = ((flat - mean) ** 2).sum(0)
    slope = np.divide(((flat - mean) * (other - wanted)).sum(0), spread,
                      out=np.zeros_like(spread), where=spread > 0)
    shift = wanted - slope * mean
    gap = np.abs(flat * slope + shift - other).max()
    return slope, shift, gap / max(np.ptp(other), 1e-300)


def pixels_parting(mine, other, image=None):
    """Why two arrays of pixels differ, in words; "" where it is not shown.

    Args:
        mine, other: a's and b's.
        image: the image that both were made of, levels [H W C], or None.
    """
    one, two = channels_last(mine), channels_last(other)
    if one.shape == two.shape:
        if why := _turned(one, two):
            return why
        slope, shift, error = affine(one, two)
        if error <= NEAR:
            alike = max(np.abs(slope - 1).max(), np.abs(shift).max()) <= NEAR
            return "" if alike else _normalised(slope, shift)
    if image is not None and len(one) == len(two) == 1:
        if why := _made_of(np.asarray(image), one[0], two[0]):
            return why
    elif one.shape == two.shape and (why := _rounded(one, two)):
        return why
    return _one_level(one, two) if one.shape == two.shape else ""


def _turned(one, two):
    """That one is the other with channels or axes in another order."""
    def near(x):
        return x.shape == two.shape and np.abs(x - two).max() <= (
            NEAR * np.ptp(two))
    turns = {"its rows upside down": one[:, ::-1],
             "its columns mirrored": one[:, :, ::-1],
             "height and width exchanged": one.swapaxes(1, 2)}
    if one.shape[-1] == 3:
        turns["its channels reversed, as BGR for RGB"] = one[..., ::-1]
        for name, (mean, std) in KNOWN.items():
            mean, std = (np.array(each) for each in (mean, std))
            bare = one * std + mean
            turns[f"its channels reversed, as BGR for RGB, before {name} mean "
                  "and standard deviation"] = (bare[..., ::-1] - mean) / std
    return next((f"b is a with {words}" for words, made in turns.items()
                 if near(made)), "")


def _normalised(slope, shift, near=1e-4):
    """Which scale, mean and standard deviation relate two arrays, in words.

    Args:
        slope, shift: of b by a, by channel.
        near: how far a slope may be off, as a share.
    """
    found = []
    for (one, (m1, s1)), (two, (m2, s2)) in itertools.product(
            KNOWN.items(), repeat=2):
        for (first, r1), (second, r2) in itertools.product(
                SCALES.items(), repeat=2):
            if (one, first) == (two, second):
                continue
            m, s, n, t = map(np.array, (m1, s1, m2, s2))
            times = r2 / r1 * s / t
            plus = (r2 / r1 * m - n) / t
            if np.allclose(slope, times, rtol=near) and np.allclose(
                    shift, plus, atol=10 * near * max(
                        1, np.abs(plus).max())):
                found.append((first, one, second, two))
    fewest = min((a != c) + (b != d) for a, b, c, d in found) if found else 0
    found = [each for each in found
             if (each[0] != each[2]) + (each[1] != each[3]) == fewest]
    scales = {(a, c) for a, _, c, _ in found if a != c}
    stats = {(b, d) for _, b, _, d in found if b != d}
    if fewest and len(scales) <= 1 and len(stats) <= 1 and len(
            found) and bool(scales) + bool(stats) == fewest:
        return ", and ".join(
            [f"levels are multiplied by {a} in a, {c} in b"
             for a, c in scales]
            + [f"mean and standard deviation are {_stats(b)} in a, {_stats(d)}"
               " in b" for b, d in stats])
    if np.ptp(slope) <= 1e-6 * np.abs(slope).max() and np.abs(
            shift).max() <= 1e-6:
        return f"b is a times {slope[0]:.7g}"
    words = ", ".join(f"{k:.5g}·a {d:+.5g}" for k, d in zip(slope, shift))
    return f"b is a scaled and shifted by channel: {words}"


def _stats(name):
    return {"none": "left out"}.get(name, name)


def _rounded(one, two):
    """That one has whole levels where the other has not."""
    for side, coarse, fine in (("a", one, two), ("b", two, one)):
        steps = []
        for channel in range(coarse.shape[-1]):
            levels = np.unique(coarse[..., channel].round(6))
            gaps = np.diff(levels)
            if not 8 <= len(levels) <= 256 or gaps.min() <= 0:
                break
            step = gaps.min()
            if np.abs(gaps / step - np.rint(gaps / step)).max() > 0.02:
                break
            steps.append(step)
        else:
            inner = (coarse > coarse.min((0, 1, 2))) & (
                coarse < coarse.max((0, 1, 2)))  # others may be clipped
            gap = np.abs(coarse - fine) / np.array(steps) * inner
            if gap.max() <= 0.51 and len(np.unique(
                    fine[..., 0].round(6))) > 256:
                other = "b" if side == "a" else "a"
                return (f"levels are whole numbers in {side} before they are "
                        f"normalised, and not in {other}")
    return ""


def _one_level(one, two):
    """That both have whole levels, of which some are one apart."""
    count = 0
    for channel in range(one.shape[-1]):
        both = [each[..., channel].round(6) for each in (one, two)]
        levels = np.unique(both)
        if not 8 <= len(levels) <= 256:
            return ""
        gaps = np.diff(levels)
        step = gaps[gaps > 1e-5].min(initial=np.inf)
        apart = (both[1] - both[0]) / step
        if np.abs(apart - np.rint(apart)).max() > 0.02 or np.abs(
                apart).max() > 1.5:
            return ""
        count += int(np.rint(np.abs(apart)).sum())
    return (f"{count} of {one.size} numbers are one whole level apart, as two "
            "libraries round one way of resizing")


def _made_of(image, one, two):
    """Which ways of resizing give both arrays, and where these differ."""
    if image.ndim != 3:
        return ""
    ways = []
    for array in (one, two):
        step = max(1, min(array.shape[:2]) // SOME)
        found = [(way, *fitted) for way in every(
            image.shape[:2], array.shape[:2])
            if _fit(way, image, array, step) and (
                fitted := _fit(way, image, array, 1))]
        if not found:
            return ""
        ways.append(found)
    return _told(*ways)


def _fit(way, image, array, step):
    """(slopes, shifts) with which a way of resizing gives an array; None if it
    does not. Of rows and columns every step-th is looked at."""
    made, array = way(image.astype(np.float64), step), array[::step, ::step]
    slope, shift, _ = affine(made, array)
    if not (slope > 0).all():
        return None
    gap = np.abs((array - shift) / slope - made)
    ties = way.rounding != NEVER and gap.max() <= 1.6 and (
        (gap > 2 * LEVEL).mean() <= TIES if step == 1
        else np.median(gap) <= 10 * LEVEL)
    return (slope, shift) if gap.max() <= LEVEL or ties else None


def _told(ours, theirs):
    """What differs between the nearest of two lists of ways."""
    def apart(pair):
        (one, *_), (two, *_) = pair
        return [name for name in one.__dataclass_fields__
                if getattr(one, name) != getattr(two, name)]
    pairs = sorted(itertools.product(ours, theirs),
                   key=lambda pair: len(apart(pair)))
    least = len(apart(pairs[0]))
    near = [pair for pair in pairs if len(apart(pair)) == least]
    names = {tuple(apart(pair)) for pair in near}
    if len(names) != 1:
        return ""
    words = []
    for name in names.pop():
        values = {tuple(_value(getattr(way, name)) for way, *_ in pair)
                  for pair in near}
        if len(values) != 1:
            return ""
        a, b = values.pop()
        words.append(f"{name} {a} in a, {b} in b")
    (_, slope, shift), (_, times, plus) = near[0]
    ratio = times / slope
    moved = plus - ratio * shift
    if np.abs(ratio - 1).max() > 1e-3 or np.abs(moved).max() > 1e-2 * max(
            1, np.abs(plus).max()):
        words.append(_normalised(ratio, moved, 1e-3))
    return ", and ".join(words)


def _value(value):
    """A setting as it is told."""
    return "×".join(map(str, value)) if isinstance(value, tuple) else value
