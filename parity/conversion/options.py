"""What the parameters of B's modules may be made of, the likeliest first."""

import itertools

from parity.conversion.sources import cheapest, reordered

#: How many combinations are looked at, of which most use something twice.
MOST = 2000


class Options:
    """Tuples of MadeFroms, for one module and for several together.

    Args:
        book: of sources.
        arrays: B's parameters, by name.
        seated: of each name whether its own module is called.
    """

    def __init__(self, book, arrays, seated):
        self.book, self.arrays, self.seated = book, arrays, seated

    def of(self, names, near, wide):
        """Tuples of MadeFroms for these parameters, the likeliest first."""
        depth = {}
        for name in names:
            prefix = name.rpartition(".")[0]
            depth[prefix] = max(depth.get(prefix, 0), self.arrays[name].ndim)
        mains = [name for name in names if self.arrays[name].ndim
                 == depth[name.rpartition(".")[0]]]
        lists = {name: self.book.sources(
            name, near if self.seated[name] else (), wide) for name in names}
        for chosen in itertools.islice(cheapest(
                [lists[name] for name in mains]), MOST):
            others = [[source for source in lists[name] if any(
                fitting(source, main) for main in chosen)][:2]
                or lists[name][:4] for name in names if name not in mains]
            for rest in itertools.product(*others):
                both = {source.entry.b: source for source in (*chosen, *rest)}
                marks = [mark for source in both.values()
                         for mark in source.marks
                         if mark[0] not in self.book.tied]
                if len(marks) == len(set(marks)):
                    yield tuple(both[name] for name in names)

    def together(self, choices):
        """Yield {path: option} of the choices, without what is used twice."""
        lists = [[Priced(option) for option in each.options]
                 for each in choices]
        for each in lists:
            each.sort(key=lambda whole: whole.cost)
        kinds = dict.fromkeys(whole.kind for each in lists for whole in each)
        alike = [[[whole for whole in each if whole.kind == kind]
                  for each in lists] for kind in kinds]
        for chosen in itertools.chain(*(
                itertools.islice(cheapest(each), MOST)
                for each in (*alike, lists))):
            used = [mark for whole in chosen for mark in marks(whole.option)
                    if mark[0] not in self.book.tied]
            if len(used) == len(set(used)):
                yield {each.path: whole.option
                       for each, whole in zip(choices, chosen)}

    def in_pairs(self, choices):
        """Yield combinations in which two modules' features are reordered."""
        if len(choices) < 2:
            return
        for combination in itertools.islice(self.together(choices), 6):
            for two in itertools.combinations(combination, 2):
                shapes = [self.arrays[source.entry.b].shape
                          for path in two for source in combination[path]]
                widths = [width for width in range(2, 257, 2) if all(
                    any(length % width == 0 for length in shape)
                    for shape in shapes)]
                for end, width, pairs in itertools.product(
                        (0, 1), widths, ("neighbours", "halves")):
                    changed = {}
                    for path in two:
                        option = tuple(reordered(
                            source, self.arrays[source.entry.b].shape, width,
                            pairs, features(source.entry.b, self.arrays[
                                source.entry.b].ndim, end))
                            for source in combination[path])
                        if None not in option:
                            changed[path] = option
                    if len(changed) == 2:
                        yield {**combination, **changed}


def features(name, ndim, end):
    """The axis along which a parameter has a layer's features.

    Args:
        name: torch's ``weight`` has them first, others last.
        ndim: how many axes it has.
        end: 0 for that, 1 for the other end.
    """
    first = name.rpartition(".")[2] == "weight"
    return 0 if first != bool(end) else ndim - 1


class Priced:
    """An option with its cost, as cheapest takes it."""

    def __init__(self, option):
        self.option, self.kind = option, option[0].kind
        self.cost = sum(source.cost for source in option)


def marks(option):
    """What an option uses of A."""
    return {mark for source in option for mark in source.marks}


def fitting(source, main):
    """Whether a bias is of the module of its weight, and of the same part."""
    return (source.entry.b.rpartition(".")[0]
            == main.entry.b.rpartition(".")[0]
            and (source.owners, parts(source)) == (main.owners, parts(main)))


def parts(source):
    """Which part of each piece is taken: "1 of 3", "24 36"."""
    return [[" ".join(text.split()[1:4 if text.startswith("part") else 3])
             for text in piece.layout.split(", ")
             if text.startswith(("part", "slice"))]
            for piece in source.entry.pieces]
