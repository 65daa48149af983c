"""Which step and parameter of one model corresponds to which of another.

``suggest(a, b)`` pairs by values, names, order, shapes and kinds, and says by
which. Where the two store an array differently, the pair names the layout (see
parity.matching.rearrangement) that brings each to a common one. A suggestion
is written to a file, corrected by hand, and read again.
"""

import dataclasses
import json
import math
import pathlib
import re
import tomllib

import numpy as np

from contract.errors import InputError
from contract.files import check_ordinary, write_whole
from parity.matching.rearrangement import (
    PACKED, SAME, best, candidates, parsed, parts, probes, rearranged)
from parity.numerics.distance import finite_distance
from parity.tracing.trace import TAP, WHOLE, is_float

VALUES, SHAPES, NAMES, ORDER, USER, CONVENTION = (
    "values", "shapes", "names", "order", "user", "convention")

#: Values as near as this, relatively, are taken for the same ones.
NEAR = 1e-2

#: What a step's pairing must score.
ENOUGH, ENOUGH_OUT_OF_ORDER = 1.5, 4.0

#: Words of paths that mean the same.
SYNONYMS = {word: words.split()[0] for words in (
    "attention attn att mha selfattn sa",
    "norm layernorm ln rmsnorm layernormalization normalization",
    "feedforward ffn ff mlp", "inner fc1 lin1 wi dense1 intermediate",
    "outer fc2 lin2 wo2 dense2", "bias beta b", "query q wq",
    "key k wk", "value v wv", "encoder enc", "decoder dec",
    "embedding embed embeddings emb wte table tok token",
    "layer layers h block blocks", "weight kernel w",
    "scale gamma alpha", "linear dense fc lin proj projection",
    "output out o wo", "dropout drop", "position positions pos wpe")
    for word in words.split()}

FAMILIES = (
    ("norm", "norm"), ("dropout", "dropout"), ("embed", "embedding"),
    ("attention", "attention"), ("linear", "linear"), ("dense", "linear"),
    ("conv", "linear"), ("relu", "activation"), ("gelu", "activation"),
    ("activation", "activation"), ("softmax", "activation"))

ROLES = {"query", "key", "value"}


@dataclasses.dataclass
class Pair:
    """Two arrays that should be equal.

    Attributes:
        a, b: their names.
        a_layout, b_layout: what is done to each before they are compared.
        by: the reason of the pairing: VALUES, SHAPES, NAMES, ORDER,
            CONVENTION (of frameworks, for a square matrix) or USER.
    """

    a: str
    b: str
    a_layout: str = SAME
    b_layout: str = SAME
    by: str = USER


@dataclasses.dataclass
class StepPair:
    """Two steps that should compute the same.

    Attributes:
        a, b: the steps' paths.
        by: the reason of the pairing.
        inputs, outputs: a Pair for each array of both.
    """

    a: str
    b: str
    by: str
    inputs: list
    outputs: list


@dataclasses.dataclass
class NameMap:
    """Which steps and parameters of two traces correspond.

    Attributes:
        steps: a StepPair each, in a's order.
        parameters: a Pair each, in a's order.
        only_a, only_b: {"steps": [...], "parameters": [...]} without a
            partner.
        notes: what looks wrong, a sentence each.
    """

    steps: list
    parameters: list
    only_a: dict = dataclasses.field(default_factory=dict)
    only_b: dict = dataclasses.field(default_factory=dict)
    notes: list = dataclasses.field(default_factory=list)

    def partners(self, a, b):
        """Set ``only_a`` and ``only_b`` for these traces."""
        for side, trace in (("a", a), ("b", b)):
            steps = {getattr(pair, side) for pair in self.steps}
            paths = {getattr(pair, side) for pair in self.parameters}
            twins = {trace.aliases.get(path, path) for path in paths}
            setattr(self, f"only_{side}", {
                "steps": [step.path for step in trace.steps
                          if step.path not in steps],
                "parameters": [path for path in trace.parameters
                               if path not in twins]})
        return self


def words_of(path):
    """The words of a path, one word for all synonyms, and its numbers."""
    if path == WHOLE:
        return [], []
    path = re.sub(r"([a-z])([A-Z])", r"\1_\2", path).lower()
    words, numbers = [], []
    for text in re.split(r"[^a-z0-9]+", path):
        if text in SYNONYMS:
            words.append(SYNONYMS[text])
            continue
        for word in re.findall(r"[a-z]+|\d+", text):
            if word.isdigit():
                numbers.append(int(word))
            else:
                words.append(SYNONYMS.get(word, word))
    return words, numbers


def _likeness(names, others):
    """How similar paths are: a matrix of numbers from 0 to 1."""
    split = [words_of(name) for name in names], [
        words_of(name) for name in others]
    columns = {word: i for i, word in enumerate(dict.fromkeys(
        word for side in split for words, _ in side for word in words))}
    tables = []
    for side in split:
        table = np.zeros((len(side), len(columns) + 1), np.float32)
        for row, (words, _) in zip(table, side):
            for word in words:
                row[columns[word]] = 1
            if words:  # the last word says most
                row[columns[words[-1]]] = 2
        tables.append(table)
    inner = tables[0] @ tables[1].T
    lengths = [np.square(t).sum(1) for t in tables]
    whole = lengths[0][:, None] + lengths[1] - inner
    alike = inner / np.maximum(whole, 1)
    for i, (_, mine) in enumerate(split[0]):
        for j, (_, other) in enumerate(split[1]):
            if mine == other:
                alike[i, j] = alike[i, j] * 0.7 + 0.3
            elif mine and other and mine[0] == other[0]:
                alike[i, j] = alike[i, j] * 0.7 + 0.2
            else:
                alike[i, j] *= 0.7
    return alike


def _signature(array):
    """Numbers that no rearrangement changes: rms, mean, min and max."""
    if not array.size:
        return np.zeros(4)
    if array.dtype.kind not in "fiub":
        array = array.astype(np.float32)
    if array.dtype.kind == "b":
        array = array.astype(np.int8)
    flat = array.reshape(-1)
    square = np.dot(flat.astype(np.float64), flat) if flat.size < 1 << 22 \
        else float(np.square(flat, dtype=np.float64).sum())
    return np.array([math.sqrt(abs(float(square)) / flat.size),
                     float(flat.mean(dtype=np.float64)),
                     float(flat.min()), float(flat.max())])


def _alike(first, second):
    """Whether two signatures may be those of the same values."""
    scale = np.maximum(np.abs(first).max(), np.abs(second).max())
    return bool(np.all(np.abs(first - second) <= NEAR * scale))


def _constant(signature):
    return signature[2] == signature[3]


# Parameters

def _all_parameters(trace):
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


def _suggest_parameters(a, b):
    """Pairs of parameters."""
    mine, others = _all_parameters(a), _all_parameters(b)
    names, other_names = list(mine), list(others)
    if not names or not other_names:
        return []
    signatures = {id(array): _signature(array)
                  for array in (*mine.values(), *others.values())}
    alike = _likeness(names, other_names)
    order = np.abs(np.arange(len(names))[:, None] / len(names)
                   - np.arange(len(other_names)) / len(other_names))
    pairs, votes = {}, {}
    by_size = {}
    for j, name in enumerate(other_names):
        by_size.setdefault(others[name].size, []).append(j)

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
        return (2 * alike[i, j] + ties - order[i, j]
                - (0 if same else 1))

    proposals = []
    for i, name in enumerate(names):  # 1: by values
        array = mine[name]
        if _constant(signatures[id(array)]):
            continue
        for j in by_size.get(array.size, ()):
            other = others[other_names[j]]
            if not _alike(signatures[id(array)], signatures[id(other)]):
                continue
            layout, far = best(other, array,
                               candidates(other.shape, array.shape), NEAR)
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
            for j in by_size.get(array.size, ()):
                other_name = other_names[j]
                other = others[other_name]
                if other_name in taken_b:
                    continue
                equal = _constant(signatures[id(array)]) and _alike(
                    signatures[id(array)], signatures[id(other)])
                if constant and not equal:
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
            if _constant(signatures[id(part)]) != constants:
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
                    likeness = _likeness([name], [big])[0, 0]
                    choices.append((far - 0.001 * likeness, big, layout))
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


def _swapped(pairs):
    """Sentences on pairs whose values contradict their names."""
    for pair in pairs:
        roles = [ROLES & set(words_of(path)[0]) for path in (pair.a, pair.b)]
        if pair.by == VALUES and all(len(role) == 1 for role in roles) and (
                roles[0] != roles[1]):
            yield (f"the parameter {pair.a!r} has the values of {pair.b!r}, "
                   f"though one is a {min(roles[0])} and the other a "
                   f"{min(roles[1])}: they may have been swapped.")


def _suspect(pairs, a):
    """Sentences on square matrices that should be transposed."""
    for pair in pairs:
        array = _all_parameters(a)[pair.a]
        ends = {path.rpartition(".")[2] for path in (pair.a, pair.b)}
        if (ends == {"weight", "kernel"} and array.ndim == 2
                and array.shape[0] == array.shape[1]
                and (pair.a_layout, pair.b_layout) == (SAME, SAME)
                and pair.by == VALUES):
            yield (f"the square matrices {pair.a!r} and {pair.b!r} hold the "
                   "same values in the same places, though a weight is [out, "
                   "in] and a kernel [in, out]: a transposition may be "
                   "missing.")


# Steps

def _main(step):
    """The main output of a step: the first floating one, else the first.

    Returns None for a step without an array.
    """
    arrays = list(step.outputs.values())
    return next(filter(is_float, arrays), arrays[0] if arrays else None)


def family(kind):
    """The family of a class of modules, by its name; "" if unknown."""
    kind = kind.lower()
    return next((name for word, name in FAMILIES if word in kind), "")


def _families(steps):
    return [family(step.kind) if step.source != TAP else "" for step in steps]


def _activation(step):
    """The activation that a linear layer applies itself, or ""."""
    name = step.settings.get("activation", "")
    return "" if name in ("linear", "identity") else str(name)


def _clash(first, second):
    """1 where families are equal, -3 where they differ, 0 if one is unknown.
    """
    score = np.zeros((len(first), len(second)), np.float32)
    for i, first_family in enumerate(first):
        for j, second_family in enumerate(second):
            if first_family and second_family:
                score[i, j] = 1 if first_family == second_family else -3
    return score


def _score_steps(a, b, parameters):
    """How well each step of a fits each of b; -inf where sizes differ."""
    mains = [[_main(step) for step in trace.steps] for trace in (a, b)]
    sizes = [np.array([-1 if array is None else array.size for array in side])
             for side in mains]
    fits = (sizes[0][:, None] == sizes[1]) & (sizes[0][:, None] > 0)
    score = np.where(fits, 0.0, -np.inf).astype(np.float32)
    score += 2 * _likeness([s.path for s in a.steps],
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
                signatures[id(array)] = _signature(array)
                looked[id(array)] = array.reshape(-1)[
                    probes(array.size)].astype(np.float64)
    own = [[_activation(step) for step in trace.steps] for trace in (a, b)]
    for i, j in zip(*np.nonzero(fits)):
        mine, other = mains[0][i], mains[1][j]
        if mine.shape == other.shape:
            far = finite_distance(looked[id(other)], looked[id(mine)])
            if far > NEAR and bool(own[0][i]) != bool(own[1][j]):
                score[i, j] = -np.inf
            score[i, j] += (4 if far < 1e-6 else 3 if far < NEAR
                            else 1 if far < 0.3 else 0)
        elif _alike(signatures[id(mine)], signatures[id(other)]):
            score[i, j] += 2
        elif bool(own[0][i]) != bool(own[1][j]):
            score[i, j] = -np.inf
    linked, known = _links(a, b, parameters)
    for i, step in enumerate(a.steps):
        for j, other in enumerate(b.steps):
            if not fits[i, j] or step.source == TAP or other.source == TAP:
                continue
            if (step.module, other.module) in linked:
                score[i, j] += 5
            elif step.module in known[0] and other.module in known[1]:
                score[i, j] -= 5
    return score


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


def pair_values(mine, others):
    """Pair the arrays of two steps' inputs, or outputs.

    By name, then by values, then by order; only where one shape can be made
    of the other. Arrays of equal shape are never rearranged.

    Args:
        mine, others: name -> array, a's and b's.

    Returns:
        A Pair each.
    """
    pairs, left, free = [], list(mine), list(others)

    def kind(array):
        return "f" if is_float(array) else array.dtype.kind.replace("u", "i")

    def layout_of(name, other, need):
        array, there = mine[name], others[other]
        if kind(array) != kind(there):
            return None, math.inf
        if array.shape == there.shape:
            far = far_apart(there, array)
            return (None, far) if need and far > NEAR else (SAME, far)
        if array.size != there.size or not array.size:
            return None, math.inf
        layout, far = best(there, array, candidates(there.shape, array.shape),
                          0.3)
        if layout is None and not need:
            layout = next(candidates(there.shape, array.shape), None)
        return (None, far) if need and far > NEAR else (layout, far)

    def take(name, other, layout, by):
        pairs.append(Pair(name, other, SAME, layout, by))
        left.remove(name)
        free.remove(other)

    for name in list(left):
        if name in free:
            layout, _ = layout_of(name, name, False)
            if layout:
                take(name, name, layout, NAMES)
    for name in list(left):
        choices = [(far, i, other, layout) for i, other in enumerate(free)
                   for layout, far in [layout_of(name, other, True)] if layout]
        if choices:
            _, _, other, layout = min(choices)
            take(name, other, layout, VALUES)
    for name in list(left):
        for other in list(free):
            layout, _ = layout_of(name, other, False)
            if layout:
                take(name, other, layout, ORDER)
                break
    place = {name: i for i, name in enumerate(mine)}
    return sorted(pairs, key=lambda pair: place[pair.a])


def far_apart(actual, expected):
    """The relative distance of some elements of two arrays of one shape."""
    places = probes(expected.size)
    return finite_distance(
        actual.reshape(-1)[places], expected.reshape(-1)[places])


def step_pair(a, b, first, second, by):
    """Two steps as a pair, with their inputs and outputs paired."""
    mine, other = a.step(first), b.step(second)
    return StepPair(first, second, by,
                    pair_values(mine.inputs, other.inputs),
                    pair_values(mine.outputs, other.outputs))


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
    parameters = _suggest_parameters(a, b)
    score = _score_steps(a, b, parameters)
    ends = len(a.steps) - 1, len(b.steps) - 1
    score[ends[0], :] = score[:, ends[1]] = -np.inf
    pairs = _in_order(score)
    used_a, used_b = {i for i, _ in pairs}, {j for _, j in pairs}
    for i, j in sorted(zip(*np.nonzero(score >= ENOUGH_OUT_OF_ORDER)),
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
    names = NameMap(steps, parameters)
    names.notes += [*_swapped(parameters), *_suspect(parameters, a)]
    return names.partners(a, b)


# The file

def write(names, path):
    """Write a NameMap as TOML, for reading and correcting."""
    text = json.dumps
    lines = ["# What corresponds in a and b. A layout says what is done to an",
             "# array before it is compared: same, transpose 1 0, reshape 48 6",
             "# 8, part 1 of 3 along 0, or several of these with commas.", ""]
    for side, only in (("a", names.only_a), ("b", names.only_b)):
        for what in ("steps", "parameters"):
            for path_ in only.get(what, ()):
                lines.append(f"# without a partner, {what} of {side}: "
                             f"{text(path_, ensure_ascii=False)}")
    lines += [f"# {note}" for note in names.notes]

    def layouts(pair):
        return "".join(
            f", {side}_layout = {text(getattr(pair, f'{side}_layout'))}"
            for side in "ab" if getattr(pair, f"{side}_layout") != SAME)
    for pair in names.steps:
        lines += ["", "[[step]]", f"a = {text(pair.a)}", f"b = {text(pair.b)}",
                  f"by = {text(pair.by)}"]
        for what in ("inputs", "outputs"):
            lines.append(f"{what} = [")
            lines += [f"  {{a = {text(v.a)}, b = {text(v.b)}{layouts(v)}"
                      f", by = {text(v.by)}}},"
                      for v in getattr(pair, what)]
            lines.append("]")
    for pair in names.parameters:
        lines += ["", "[[parameter]]", f"a = {text(pair.a)}",
                  f"b = {text(pair.b)}"]
        lines += [f"{side}_layout = {text(getattr(pair, f'{side}_layout'))}"
                  for side in "ab" if getattr(pair, f"{side}_layout") != SAME]
        lines.append(f"by = {text(pair.by)}")
    write_whole(path, "\n".join(lines) + "\n")


def read(path, a, b):
    """Read a NameMap and check it against its two traces.

    If a step has no ``inputs`` or ``outputs``, they are paired as in suggest.

    Raises:
        InputError: it is missing or no TOML, or a name is in neither trace,
            or in the other one.
    """
    check_ordinary(path)
    try:
        data = tomllib.loads(pathlib.Path(path).read_text("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(
            f"there is no map {str(path)!r}; check the path.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"the map {str(path)!r} cannot be read ({error}); correct it or "
            "write it again with --write-map.") from None
    surplus = data.keys() - {"step", "parameter"}
    if surplus:
        raise InputError(
            f"the map {str(path)!r} has an entry {min(surplus)!r}; it may "
            "hold only [[step]] and [[parameter]].")

    for what in ("step", "parameter"):
        if not isinstance(data.get(what, []), list) or not all(
                isinstance(each, dict) for each in data.get(what, [])):
            raise InputError(
                f"the map {str(path)!r} has a {what} that is no table; write "
                f"[[{what}]].")

    def pair_of(entry, mine, others, what):
        known = {"a", "b", "a_layout", "b_layout", "by"}
        if (not isinstance(entry, dict) or {"a", "b"} - entry.keys()
                or entry.keys() - known
                or not all(isinstance(v, str) for v in entry.values())):
            raise InputError(
                f"the map {str(path)!r} has {what} that is not a = NAME and b "
                "= NAME, with a_layout and b_layout where needed; correct "
                "it.")
        pair = Pair(**{"by": USER, **entry})
        _known(path, pair.a, pair.b, mine, others, what)
        parsed(pair.a_layout), parsed(pair.b_layout)
        return pair

    steps = []
    for entry in data.get("step", ()):
        try:
            first, second = entry["a"], entry["b"]
        except (KeyError, TypeError):
            raise InputError(
                f"the map {str(path)!r} has a step without a or b; name "
                "both.") from None
        by = entry.get("by", USER)
        if not all(isinstance(word, str) for word in (first, second, by)):
            raise InputError(
                f"the map {str(path)!r} has a step whose a, b or by is no "
                "text; correct it.")
        _known(path, first, second, {s.path for s in a.steps},
               {s.path for s in b.steps}, "a step")
        pair = step_pair(a, b, first, second, by)
        for what in ("inputs", "outputs"):
            if what in entry:
                if not isinstance(entry[what], list):
                    raise InputError(
                        f"the map {str(path)!r} has {what} of {first!r} that "
                        "are no list; correct it.")
                setattr(pair, what, [pair_of(
                    each, getattr(a.step(first), what),
                    getattr(b.step(second), what),
                    f"{what} of {first!r}") for each in entry[what]])
        steps.append(pair)
    parameters = [pair_of(entry, _all_parameters(a), _all_parameters(b),
                          "a parameter")
                  for entry in data.get("parameter", ())]
    return NameMap(steps, parameters).partners(a, b)


def _known(path, first, second, mine, others, what):
    if first in mine and second in others:
        return
    if first in others and second in mine:
        raise InputError(
            f"the map {str(path)!r} pairs {first!r} of b with {second!r} of "
            "a; swap the two.")
    missing, side = (first, "a") if first not in mine else (second, "b")
    raise InputError(
        f"the map {str(path)!r} names {what} {missing!r} that {side} does not "
        "have; correct it, or write the map again with --write-map.")
