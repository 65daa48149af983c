"""Which buckets the distances of relative positions were put into."""

import functools
import itertools

import numpy as np

#: The greatest distances that are tried, T5's own first.
GREATEST = 128, 64, 32, 256, 20, 16

#: What buckets are of, where nothing is wrong with the distances.
SOUND = "bidirectional", "causal"


@functools.cache
def boundaries(count, greatest):
    """The first distance of each of ``count`` buckets, in whole numbers.

    Bucket k of the second half begins at the least distance d with
    d / half >= (greatest / half)^(k / (count - half)) (Raffel et al. 2020).
    """
    half = count // 2
    far = count - half
    return (*range(half), *(
        next(d for d in range(half, greatest + 1)
             if d**far * half**k >= greatest**k * half**far)
        for k in range(far)))


def split(distance, count, causal):
    """Distances without sign, how many buckets they share, and the first."""
    if causal:
        return np.maximum(distance, 0), count, 0
    count //= 2
    return np.abs(distance), count, count * (distance < 0)


def bucket(distance, count, greatest, causal, side="right"):
    """The bucket of each distance; a first distance is its own on the right.
    """
    distance, count, first = split(distance, count, causal)
    return np.maximum(np.searchsorted(
        boundaries(count, greatest), distance, side) - 1, 0) + first


def by_logarithm(distance, count, greatest, causal):
    """The same by a logarithm in float32, as T5's code has it."""
    distance, count, first = split(distance, count, causal)
    half = count // 2
    with np.errstate(all="ignore"):
        far = np.log(distance.astype(np.float32) / np.float32(half))
        far = half + (far / np.float32(np.log(greatest / half))
                      * (count - half)).astype(np.int64)
    return np.where(distance < half, distance,
                    np.minimum(far, count - 1)) + first


def evenly(distance, count, greatest, causal):
    """All buckets of one width, as if there were no logarithm."""
    distance, count, first = split(distance, count, causal)
    return np.minimum(distance * count // greatest, count - 1) + first


#: What is wrong -> (distance, …) to buckets; "" is nothing.
MISTAKES = {
    "": bucket,
    " ": by_logarithm,
    "of the other sign": lambda distance, *sizes: bucket(-distance, *sizes),
    "of distances one more": lambda distance, *sizes: bucket(
        distance + 1, *sizes),
    "of distances one less": lambda distance, *sizes: bucket(
        distance - 1, *sizes),
    "a distance later": lambda distance, *sizes: bucket(
        distance, *sizes, side="left"),
    "of equal width": evenly,
}


def settings_of(buckets, count, greatest):
    """Every {setting: value} that gives these buckets.

    Args:
        buckets: int [T S].
        count: how many there are.
        greatest: what the model says of the greatest distance, or None.
    """
    queries, keys = buckets.shape
    distance = np.arange(queries)[:, None] - np.arange(keys)
    tried = dict.fromkeys([*([greatest] if greatest else []), *GREATEST])
    matches = []
    for causal, (words, function), most in itertools.product(
            (False, True), MISTAKES.items(), tried):
        if most > count // (1 if causal else 2) and np.array_equal(
                function(distance, count, most, causal), buckets):
            matches.append({"buckets": words.strip() or SOUND[causal],
                            "kind": SOUND[causal], "greatest distance": most})
    return matches


def difference(mine, other, count, greatest):
    """What two models' buckets differ in: (setting, in a, in b), or None.

    Args:
        mine, other: int [T S], a's and b's.
        count: how many buckets there are.
        greatest: what each model says of its greatest distance, or None.
    """
    pairs = list(itertools.product(*(
        settings_of(buckets, count, most) for buckets, most in zip(
            (mine, other), greatest))))
    if not pairs:
        return None

    def apart(pair):
        one, two = pair
        return sum(one[name] != two[name] for name in one)
    one, two = min(pairs, key=apart)
    least = [pair for pair in pairs if apart(pair) == apart((one, two))]
    name = next(name for name in one if one[name] != two[name])
    if any(pair[0][name] == pair[1][name] for pair in least):
        return None  # it could be something else
    return name, one[name], two[name]
