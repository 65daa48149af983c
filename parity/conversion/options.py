"""What the parameters of B's modules may be made of, the likeliest first."""

import dataclasses
import functools
import heapq
import itertools

from parity.conversion.weight_source import numberless
from parity.conversion.layouts import is_turn

#: How many choices are looked at, of parts of a combination too.
MOST = 30_000

#: What a combination costs more of which the layouts differ in kind, of which
#: those of equal shapes do at all, one whose parts are not in order, one with
#: a bias of another module, or part, than its weight's, one with a part of a
#: module beside what is of another, one in which two experts are unlike, and
#: one in which equal parts of an array become arrays of unlike shapes.
MIXED, UNLIKE, TURNED, UNFIT, ABROAD, STRANGE, ODD = (
    0.5, 0.3, 0.1, 3, 0.5, 2, 1)

#: What a beginning of a combination costs less for each choice in it.
WHOLE_FIRST = 0.5


class Options:
    """Tuples of MadeFroms, for one module and for several together.

    Args:
        index: a SourceIndex.
        arrays: B's parameters, by name.
        seated: of each name whether its own module is called.
    """

    def __init__(self, index, arrays, seated):
        self.index, self.arrays, self.seated = index, arrays, seated
        self.kept = {}

    def of(self, names, near, wide):
        """Yield tuples of MadeFroms for these parameters, the likeliest
        first; what was found once is kept."""
        key = (*names, *sorted(near), wide, frozenset(self.index.taken))
        known, more = self.kept.setdefault(
            key, ([], self._found(names, near, wide)))
        for i in itertools.count():
            if i == len(known):
                one = next(more, None)
                if one is None:
                    return
                known.append(one)
            yield known[i]

    def _found(self, names, near, wide):
        """Yield them, the first time."""
        depth: dict = {}
        for name in names:
            prefix = name.rpartition(".")[0]
            depth[prefix] = max(depth.get(prefix, 0), self.arrays[name].ndim)
        mains = [name for name in names if self.arrays[name].ndim
                 == depth[name.rpartition(".")[0]]]
        order = [*mains, *(name for name in names if name not in mains)]
        lists = [self.index.sources(
            name, near if self.seated[name] else (), wide) for name in order]

        def more(chosen, source):
            """Layouts of several kinds, and biases of other weights."""
            if self._twice(chosen, source) or any(
                    source.gates != other.gates for other in chosen):
                return None
            if len(chosen) < len(mains):
                return MIXED * any(
                    sort_of(source.kind) != sort_of(other.kind)
                    for other in chosen if self._alike(source, other))
            return 0 if any(fitting(source, main)
                            for main in chosen[:len(mains)]) else UNFIT
        for chosen in cheapest(lists, more):
            both = dict(zip(order, chosen))
            yield tuple(both[name] for name in names)

    def _alike(self, source, other):
        """Whether two parameters of B have one number of axes."""
        return (self.arrays[source.entry.b].ndim
                == self.arrays[other.entry.b].ndim)

    def _twice(self, chosen, source):
        """Whether something would be used a second time."""
        return any(self.index.twice(*mark, *taken) for mark in source.marks
                   for other in chosen for taken in other.marks)

    def together(self, choices):
        """Yield {path: option} of the choices, without what is used twice."""
        lists = [sorted(map(self._priced, each.options),
                        key=lambda whole: whole.cost) for each in choices]

        def more(chosen, whole):
            if self._twice(chosen, whole):
                return None
            return MIXED * any(
                sort_of(whole.kind) != sort_of(other.kind)
                for other in chosen) + UNLIKE * any(
                whole.shapes == other.shapes and whole.kinds != other.kinds
                for other in chosen) + TURNED * any(
                whole.parts < other.parts for other in chosen
            ) + STRANGE * any(
                whole.family == other.family and whole.alike != other.alike
                for other in chosen) + ABROAD * sum(
                whole.owner != other.owner
                for other in chosen if any(whole.parts) or any(other.parts)
            ) + ODD * any(
                whole.shapes != other.shapes and whole.halved & other.halved
                for other in chosen)
        for chosen in cheapest(lists, more):
            yield {each.path: whole.option
                   for each, whole in zip(choices, chosen)}

    def _priced(self, option):
        """An option with its cost, as cheapest takes it."""
        main = self._main(option)
        ranks = [self.arrays[source.entry.b].ndim for source in option]
        mains = [source for source, rank in zip(option, ranks)
                 if rank == max(ranks)]
        unfit = sum(not any(fitting(source, each) for each in mains)
                    for source in option if source not in mains)
        return Priced(
            option, sum(source.cost for source in option) + UNFIT * unfit,
            main.kind,
            marks(option), [source.kind for source in option],
            [self.arrays[source.entry.b].shape for source in option],
            main.parts, main.owners[0],
            numberless(main.entry.b), main.alike, {
                (name, "slice" in part and part.split(",")[0])
                for name, part in main.marks if "part" in part})

    def _main(self, option):
        """The source of an option's parameter with the most axes."""
        return max(option, key=lambda source: self.arrays[
            source.entry.b].ndim)


@dataclasses.dataclass(frozen=True)
class Priced:
    """An option, what it costs and uses, the kind of its first layout and of
    each, the shapes that it makes, the parts that its first is of, and whose
    these are; what those of all experts have in common; and the arrays, or
    experts, of which it takes an equal part."""

    option: tuple
    cost: float
    kind: tuple
    marks: set
    kinds: list
    shapes: list
    parts: list
    owner: str
    family: str
    alike: tuple
    halved: set


def cheapest(lists, more):
    """Yield tuples with one of each list, cheap ones first.

    One that is nearly whole goes before a slightly cheaper beginning, of which
    there may be too many.

    Args:
        lists: of what has a cost, each sorted by it.
        more: of what is chosen already and the next: what it costs beyond
            its own, or None where it does not go with the others.
    """
    if not all(lists):
        return
    least = [0.0]
    for each in reversed(lists):
        least.insert(0, least[0] + each[0].cost)
    number = itertools.count()
    heap = [(least[0], next(number), (), 0.0, 0)]
    for _ in range(MOST):
        if not heap:
            return
        _, _, chosen, cost, place = heapq.heappop(heap)
        i = len(chosen)
        if i == len(lists):
            yield chosen
            continue
        here = lists[i]
        if place + 1 < len(here):
            heapq.heappush(heap, (
                cost + here[place + 1].cost + least[i + 1]
                - WHOLE_FIRST * i, next(number), chosen, cost, place + 1))
        extra = more(chosen, here[place])
        if extra is not None:
            cost += here[place].cost + extra
            heapq.heappush(heap, (
                cost + least[i + 1] - WHOLE_FIRST * (i + 1), next(number),
                (*chosen, here[place]), cost, 0))


@functools.cache
def sort_of(kind):
    """The transpositions of a kind of layout; of those that take the first
    axes to the end, only that they do."""
    return tuple("turned" if is_turn(numbers) else numbers
                 for word, numbers in kind if word == "transpose")


def marks(option):
    """What an option uses of A."""
    return {mark for source in option for mark in source.marks}


def fitting(source, main):
    """Whether a bias is of the module of its weight, and of the same part."""
    return source.prefix == main.prefix and together(source, main)


def together(source, other):
    """Whether two are of one module of A, and the same part."""
    return source.owners == other.owners and source.parts == other.parts
