"""Which step of one model corresponds to which of another.

``suggest(a, b)`` pairs by values, names, order, shapes and kinds, and says by
which. Where the two store an array differently, the pair names the layout (see
parity.matching.rearrangement) that brings each to a common one. A suggestion
is written to a file, corrected by hand, and read again: mapping_file.py.
"""

import numpy as np

from parity.matching.channels import by_convention, convention
from parity.matching.learned import learned
from parity.matching.pairs import (
    NAMES, ORDER, VALUES, NameMap, Pair, StepPair)
from parity.matching.parameters import (
    suggest_parameters, swapped_notes, transposed_notes)
from parity.matching.rearrangement import SAME, probes
from parity.matching.values import (
    NEAR, alike, far_apart, pair_values, signature)
from parity.matching.words import codes, family, likeness
from parity.numerics.distance import finite_distances
from parity.tracing.holders import holder_of
from parity.tracing.trace import TAP, WHOLE, is_float

#: What a step's pairing must score.
ENOUGH, ENOUGH_OUT_OF_ORDER = 1.5, 4.0


def _main(step):
    """The main output of a step: the first floating one, else the first.

    Returns None for a step without an array.
    """
    arrays = list(step.outputs.values())
    return next(filter(is_float, arrays), arrays[0] if arrays else None)


def _families(steps):
    return [family(step.kind) if step.source != TAP else "" for step in steps]


def _activation(step):
    """The activation that a linear layer applies itself, or ""."""
    name = step.settings.get("activation", "")
    return "" if name in ("linear", "identity") else str(name)


def _clash(first, second):
    """1 where families are equal, -3 where they differ, 0 if one is unknown.
    """
    mine, other = codes(first, second)
    known = [np.array(side, bool) for side in (first, second)]
    return np.where(known[0][:, None] & known[1], np.where(
        mine[:, None] == other, 1, -3), 0).astype(np.float32)


def _score_steps(a, b, parameters):
    """How well each step of a fits each of b; -inf where sizes differ."""
    mains = [[_main(step) for step in trace.steps] for trace in (a, b)]
    sizes = [np.array([-1 if array is None else array.size for array in side])
             for side in mains]
    fits = (sizes[0][:, None] == sizes[1]) & (sizes[0][:, None] > 0)
    linked, known = _links(a, b, parameters)
    fits |= _convolutions(a, b, linked)
    score = np.where(fits, 0.0, -np.inf).astype(np.float32)
    score += 2 * likeness([s.path for s in a.steps],
                           [s.path for s in b.steps])
    score += _clash(_families(a.steps), _families(b.steps))
    calls = [np.array(["#" in s.path for s in trace.steps])
             for trace in (a, b)]
    score += 0.3 * (calls[0][:, None] == calls[1])
    taps = [np.array([s.source == TAP for s in trace.steps])
            for trace in (a, b)]
    score -= 2.0 * (taps[0][:, None] != taps[1])
    signatures = {}
    looked = {}
    for side in mains:
        for array in side:
            if array is not None and id(array) not in signatures:
                signatures[id(array)] = signature(array)
                some = array.reshape(-1)[probes(array.size)]
                looked[id(array)] = some if some.dtype.kind == "c" else (
                    some.astype(np.float64))
    score += _nearness(mains, fits, signatures, looked, [
        np.array([bool(_activation(step)) for step in trace.steps])
        for trace in (a, b)])
    score += _linked(a, b, fits, linked, known)
    if not linked:
        score += learned(a, b, mains, fits, signatures)
    return score


def _nearness(mains, fits, signatures, looked, own):
    """What values add to each pair of steps; -inf where they forbid it.

    Args:
        mains: of each side, the steps' main outputs.
        fits: bool, which pairs are looked at.
        signatures, looked: id of an array -> its signature, its probed values.
        own: of each side, whether a step applies an activation itself.
    """
    found = np.zeros(fits.shape, np.float32)
    shapes: dict = {}
    for j, array in enumerate(mains[1]):
        if array is not None:
            shapes.setdefault(array.shape, []).append(j)
    others = np.array([np.zeros(4) if array is None else
                       signatures[id(array)] for array in mains[1]])
    for i, mine in enumerate(mains[0]):
        columns = np.flatnonzero(fits[i])
        if not columns.size:
            continue
        near = np.where(alike(signatures[id(mine)], others), 2.0, np.where(
            own[0][i] != own[1], -np.inf, 0.0))
        same = [j for j in shapes.get(mine.shape, ()) if fits[i, j]]
        for j, far in zip(same, finite_distances(
                [looked[id(mains[1][j])] for j in same], looked[id(mine)])):
            forbidden = far > NEAR and own[0][i] != own[1][j]
            near[j] = -np.inf if forbidden else (
                4 if far < 1e-6 else 3 if far < NEAR else 1 if far < 0.3
                else 0)
        found[i, columns] = near[columns]
    return found


def _linked(a, b, fits, linked, known):
    """5 where modules' parameters are pairs, -5 where they are others'."""
    modules = [[None if step.source == TAP else step.module
                for step in trace.steps] for trace in (a, b)]
    taken = [np.array([module in those for module in side], bool)
             for side, those in zip(modules, known)]
    return np.where(fits, np.where(_pairs_of(linked, *modules), 5, np.where(
        taken[0][:, None] & taken[1], -5, 0)), 0).astype(np.float32)


def _pairs_of(linked, first, second):
    """Which words of two lists are linked: bool, a row for each first."""
    found = np.zeros((len(first), len(second)), bool)
    places: tuple[dict, dict] = ({}, {})
    for place, side in zip(places, (first, second)):
        for i, word in enumerate(side):
            place.setdefault(word, []).append(i)
    for one, two in linked:
        if one in places[0] and two in places[1]:
            found[np.ix_(places[0][one], places[1][two])] = True
    return found


def _links(a, b, parameters):
    """Pairs of modules with paired parameters, and all modules in them."""
    owners = [{path: step.module for step in trace.steps
               for path in step.parameters} for trace in (a, b)]
    linked = set()
    for pair in parameters:
        mine = owners[0].get(pair.a)
        other = owners[1].get(pair.b)
        whole = pair.a_layout.startswith("part") or pair.b_layout.startswith(
            "part")
        if mine is not None and other is not None and not whole:
            linked.add((mine, other))
    return linked, ({m for m, _ in linked}, {o for _, o in linked})


def _convolutions(a, b, linked):
    """Which steps are convolutions with the same kernel, whatever its stride
    and padding make of the size."""
    which = [[step.module if "conv" in step.kind.lower() else ""
              for step in trace.steps] for trace in (a, b)]
    return _pairs_of(linked, *which)


def _in_order(score):
    """The best pairing that keeps both orders: [(i, j)]."""
    rows, columns = score.shape
    total = np.zeros((rows + 1, columns + 1))
    gain = np.where(score >= ENOUGH, score, -np.inf)
    for i in range(rows):
        best_so_far = np.maximum(total[i, 1:], total[i, :-1] + gain[i])
        total[i + 1, 1:] = np.maximum.accumulate(best_so_far)
    path, i, j = [], rows, columns
    while i and j:
        if total[i, j] == total[i - 1, j]:
            i -= 1
        elif total[i, j] == total[i, j - 1]:
            j -= 1
        else:
            path.append((i - 1, j - 1))
            i, j = i - 1, j - 1
    return path[::-1]


def _outputs(step):
    """A step's outputs, and those of them that an object holds."""
    inside = {name: array for name, array in step.outputs.items()
              if holder_of(step, name)}
    return ({name: array for name, array in step.outputs.items()
             if name not in inside}, inside)


def step_pair(a, b, first, second, by):
    """Two steps as a pair, with their inputs and outputs paired."""
    mine, other = a.step(first), b.step(second)
    plain, inside = zip(*(_outputs(step) for step in (mine, other)))
    outputs = [*pair_values(*plain), *pair_values(*(
        {name: part[name] for name in part if name in inside[0]
         and name in inside[1]} for part in inside))]
    if not outputs and "conv" in mine.kind.lower() and (
            "conv" in other.kind.lower()):  # of other sizes
        outputs = [Pair(*names, SAME, SAME, ORDER)
                   for names in zip(mine.outputs, other.outputs)][:1]
    return StepPair(first, second, by,
                    pair_values(mine.inputs, other.inputs), outputs)


@np.errstate(all="ignore")  # a NaN is told, not warned of
def suggest(a, b):
    """Pair the steps and the parameters of two traces.

    The models' own calls are always a pair. Any other step or parameter may
    have no partner, and is then listed.

    Args:
        a, b: Traces.

    Returns:
        A NameMap.
    """
    parameters = suggest_parameters(a, b)
    score = _score_steps(a, b, parameters)
    ends = len(a.steps) - 1, len(b.steps) - 1
    score[ends[0], :] = score[:, ends[1]] = -np.inf
    ordered = a.ordered and b.ordered
    pairs = _in_order(score) if ordered else []
    used_a, used_b = {i for i, _ in pairs}, {j for _, j in pairs}
    enough = ENOUGH_OUT_OF_ORDER if ordered else ENOUGH
    for i, j in sorted(zip(*np.nonzero(score >= enough)),
                       key=lambda at: -score[at]):
        if i not in used_a and j not in used_b:
            pairs.append((i, j))
            used_a.add(i)
            used_b.add(j)
    steps = []
    for i, j in sorted(pairs):
        mine, other = _main(a.steps[i]), _main(b.steps[j])
        close = (mine.shape == other.shape
                 and far_apart(other, mine) <= NEAR)
        steps.append(step_pair(a, b, a.steps[i].path, b.steps[j].path,
                               VALUES if close else NAMES))
    steps.append(step_pair(a, b, WHOLE, WHOLE, NAMES))
    if found := convention(steps, a, b):
        for pair in steps:
            mine, other = a.step(pair.a), b.step(pair.b)
            pair.inputs = [*by_convention(
                pair.inputs, mine.inputs, other.inputs, found)]
            pair.outputs = [*by_convention(
                pair.outputs, mine.outputs, other.outputs, found)]
    names = NameMap(steps, parameters)
    names.notes += [
        *swapped_notes(parameters), *transposed_notes(parameters, a)]
    return names.partners(a, b)
