"""Which parameter of one model corresponds to which of another."""

import numpy as np

from parity.matching.pairs import CONVENTION, NAMES, SHAPES, VALUES, Pair
from parity.matching.rearrangement import (
    PACKED, SAME, best, candidates, parts, rearranged)
from parity.matching.values import NEAR, alike, is_constant, signature
from parity.matching.words import ROLES, likeness, words_of
from parity.numerics.distance import finite_distance
from parity.tracing.storage import put_away


def all_parameters(trace):
    """Parameters, with those that have a second path under both."""
    return {**trace.parameters, **{
        path: trace.parameters[other]
        for path, other in trace.aliases.items()
        if other in trace.parameters}}


def _is_bias(path):
    return words_of(path)[0][-1:] == ["bias"]


def _by_convention(a, b, mine, other):
    """The layout of a matrix that the frameworks' names imply.

    torch keeps a Linear's ``weight`` as [out, in]; a ``kernel`` is [in, out].
    """
    layouts = list(candidates(other.shape, mine.shape))
    ends = {path.rpartition(".")[2] for path in (a, b)}
    if (mine.ndim == other.ndim == 2 and ends == {"weight", "kernel"}
            and "transpose 1 0" in layouts):
        return "transpose 1 0", CONVENTION
    return layouts[0], NAMES if layouts[0] == SAME else SHAPES


def suggest_parameters(a, b):
    """Pairs of parameters."""
    mine, others = all_parameters(a), all_parameters(b)
    names, other_names = list(mine), list(others)
    if not names or not other_names:
        return []
    signatures = {}
    for array in (*mine.values(), *others.values()):
        if id(array) not in signatures:
            signatures[id(array)] = signature(array)
            put_away(array)
    similar = likeness(names, other_names)
    order = np.abs(np.arange(len(names))[:, None] / len(names)
                   - np.arange(len(other_names)) / len(other_names))
    pairs: dict = {}
    votes: dict = {}
    by_size: dict[int, list[int]] = {}
    for j, name in enumerate(other_names):
        by_size.setdefault(others[name].size, []).append(j)
    stacked = {size: np.stack([signatures[id(others[other_names[j]])]
                               for j in places])
               for size, places in by_size.items()}

    def near(array):
        """The places of those of b that may have an array's values."""
        if array.size not in by_size:
            return []
        return np.array(by_size[array.size])[alike(
            signatures[id(array)], stacked[array.size])]

    def settle(proposals):
        """Accept the best pairs first; every parameter once."""
        used = {pair.b for pair in pairs.values()}
        for _, name, pair in sorted(proposals, key=lambda f: -f[0]):
            if name in pairs or pair.b in used:
                continue
            pairs[name] = pair
            used.add(pair.b)
            ends = name.split(".")[:-1], pair.b.split(".")[:-1]
            while ends[0] and ends[1]:
                vote = ".".join(ends[0]), ".".join(ends[1])
                votes[vote] = votes.get(vote, 0) + 1
                ends = ends[0][:-1], ends[1][:-1]

    def fondness(i, j):
        """The score of a pair by all but its values."""
        first, second = names[i].split(".")[:-1], other_names[j].split(
            ".")[:-1]
        ties, depth = 0.0, 0
        while first and second:
            if votes.get((".".join(first), ".".join(second))):
                ties += 1 / 2**depth
            first, second, depth = first[:-1], second[:-1], depth + 1
        same = _is_bias(names[i]) == _is_bias(other_names[j])
        return (2 * similar[i, j] + ties - order[i, j]
                - (0 if same else 1))

    proposals = []
    for i, name in enumerate(names):  # 1: by values
        array = mine[name]
        if is_constant(signatures[id(array)]):
            continue
        for j in near(array):
            other = others[other_names[j]]
            layout, far = best(other, array,
                               candidates(other.shape, array.shape), NEAR)
            put_away(array)
            put_away(other)
            if layout:
                proposals.append((10 - 100 * far + fondness(i, j), name, Pair(
                    name, other_names[j], SAME, layout, VALUES)))
    settle(proposals)
    part_pairs = _packed(mine, others, pairs, signatures)
    for pair in part_pairs:
        settle_votes = (pair.a.rpartition(".")[0], pair.b.rpartition(".")[0])
        votes[settle_votes] = votes.get(settle_votes, 0) + 1
    taken_a = {pair.a for pair in part_pairs}
    taken_b = {pair.b for pair in part_pairs}
    for constant in (True, False):  # 2: constants, then by name
        proposals = []
        for i, name in enumerate(names):
            if name in pairs or name in taken_a:
                continue
            array = mine[name]
            if constant and not is_constant(signatures[id(array)]):
                continue
            for j in near(array) if constant else by_size.get(array.size, ()):
                other_name = other_names[j]
                other = others[other_name]
                if other_name in taken_b:
                    continue
                if next(candidates(other.shape, array.shape), None) is None:
                    continue
                score = fondness(i, j)
                if not constant and score < 0.5:
                    continue
                layout, by = _by_convention(name, other_name, array, other)
                proposals.append((score, name, Pair(
                    name, other_name, SAME, layout, by)))
        settle(proposals)
    part_pairs += _packed(
        mine, others, {**pairs, **{p.a: p for p in part_pairs}},
        signatures, taken_b, constants=True)
    place = {name: i for i, name in enumerate(names)}
    return sorted([*pairs.values(), *part_pairs],
                  key=lambda pair: place[pair.a])


def _packed(mine, others, pairs, signatures, taken_b=(), constants=False):
    """Pairs of a packed array's parts, on either side, by their values."""
    left_a = [name for name in mine if name not in pairs]
    used = {pair.b for pair in pairs.values()}
    left_b = [name for name in others
              if name not in used and (not constants or name not in taken_b)]
    part_pairs = []
    for first, second, swapped in (
            (left_a, left_b, False), (left_b, left_a, True)):
        whole_of, part_of = (others, mine) if not swapped else (mine, others)
        taken = set()
        for name in first:
            part = part_of[name]
            if is_constant(signatures[id(part)]) != constants:
                continue
            choices = []
            for big in second:
                if whole_of[big].size not in {n * part.size for n in PACKED}:
                    continue
                layouts = (layout for layout in parts(
                    whole_of[big].shape, part.shape)
                    if (big, layout) not in taken)
                layout, far = best(whole_of[big], part, layouts, NEAR)
                if layout and _confirmed(part, whole_of[big], layout):
                    similar = likeness([name], [big])[0, 0]
                    choices.append((far - 0.001 * similar, big, layout))
            if choices:
                _, big, layout = min(choices)
                taken.add((big, layout))
                part_pairs.append(
                    Pair(big, name, layout, SAME, VALUES) if swapped
                    else Pair(name, big, SAME, layout, VALUES))
    return part_pairs


def _confirmed(part, whole, layout):
    """Whether all values of a part are near, not only those probed."""
    return finite_distance(rearranged(layout, whole).reshape(-1),
                           part.reshape(-1)) <= NEAR


def swapped_notes(pairs):
    """Sentences on pairs whose values contradict their names."""
    for pair in pairs:
        roles = [ROLES & set(words_of(path)[0]) for path in (pair.a, pair.b)]
        if pair.by == VALUES and all(len(role) == 1 for role in roles) and (
                roles[0] != roles[1]):
            yield (f"the parameter {pair.a!r} has the values of {pair.b!r}, "
                   f"though one is a {min(roles[0])} and the other a "
                   f"{min(roles[1])}: they may have been swapped.")


def transposed_notes(pairs, a):
    """Sentences on square matrices that should be transposed."""
    for pair in pairs:
        array = all_parameters(a)[pair.a]
        ends = {path.rpartition(".")[2] for path in (pair.a, pair.b)}
        if (ends == {"weight", "kernel"} and array.ndim == 2
                and array.shape[0] == array.shape[1]
                and (pair.a_layout, pair.b_layout) == (SAME, SAME)
                and pair.by == VALUES):
            yield (f"the square matrices {pair.a!r} and {pair.b!r} hold the "
                   "same values in the same places, though a weight is [out, "
                   "in] and a kernel [in, out]: a transposition may be "
                   "missing.")
