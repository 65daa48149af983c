"""Sources whose features stand in another order: in pairs, or by heads."""

import dataclasses
import functools
import itertools

from parity.conversion.heads import (
    BLOCKS, GROUPS, head_layouts, packed_length, regrouped)
from parity.conversion.weight_source import numberless, reordered
from parity.conversion.options import Options


#: So many ways to make modules of one name are tried.
FAMILIES = 72


class OrderedOptions(Options):
    """Options, and those whose features stand in another order."""

    def ways(self, first, single, most, hidden, reached):
        """Yield ({path: option}, whether it ends where a module is given what
        A never computed) of undecided modules, the likeliest first.

        Args:
            first: the Choices of undecided modules.
            single: those of decided ones, whose heads may stand otherwise.
            most: how many of one kind are tried.
            hidden: whether nothing showed what any of them is.
            reached: whether, before, some module was given such.
        """
        some = [each for each in first if each.alive and len(
            each.options) > 1]
        for each in itertools.islice(self.in_families(first), FAMILIES):
            yield each, False
        for strict in (False,) if hidden else (True, False):
            choices = some if strict else first
            if choices and (reached or not strict):
                for each in itertools.islice(
                        self.together(choices), most * (1 + 3 * hidden)):
                    yield each, strict
        sure = [each for each in first if each.shown]
        for each in itertools.islice(self.in_pairs(sure), most):
            yield each, True
        known = {each.path: each.options[0] for each in single}
        for each in itertools.islice(
                self.in_heads([*sure, *single]), most):
            yield {path: option for path, option in each.items()
                   if known.get(path) is not option}, True

    def in_families(self, choices):
        """Yield combinations in which all modules of one name but for its
        numbers, such as experts, are made alike."""
        families: dict = {}
        for each in choices:
            families.setdefault(numberless(each.path), []).append(each)
        if len(families) == len(choices):
            return
        members: dict = {}
        firsts = []
        for first, *others in families.values():
            ways = [{alike(option): option for option in reversed(
                each.options)} for each in others]
            options = [option for option in first.options
                       if all(alike(option) in way for way in ways)]
            firsts.append(dataclasses.replace(first, options=options))
            members[first.path] = [*zip(others, ways)]
        for combination in self.together(firsts):
            seconds = [way[alike(option)] for path, option
                       in combination.items() for _, way in members[path][:1]]
            options = [*combination.values(), *seconds]
            if any(self._twice(options[i], source)
                   for j in range(len(combination), len(options))
                   for source in options[j] for i in range(j)):
                continue
            yield combination | {
                other.path: way[alike(option)]
                for path, option in combination.items()
                for other, way in members[path]}

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


    def in_heads(self, choices):
        """Yield combinations in which packed queries, keys and values stand
        in groups of heads, or no more."""
        for combination in itertools.islice(self.together(choices), 2):
            for paths, layout, order in self._packings(combination):
                made = {path: tuple(self._regrouped(
                    source, layout, order, which)
                    for source in combination[path])
                    for which, path in enumerate(paths)}
                if all(map(all, made.values())):
                    yield {**combination, **made}

    def _regrouped(self, source, layout, order, which):
        """A source whose heads stand otherwise, or None."""
        return regrouped(
            source, self._shapes, self.arrays[source.entry.b].shape,
            self._axis(source), layout, order, which)

    @functools.cached_property
    def _shapes(self):
        """name -> shape of A's parameters."""
        return {name: array.shape
                for name, array in self.index.a.names.items()}

    def may_stand_in_heads(self, choices):
        """Whether anything of some choices may be so packed."""
        return next(self.in_heads(choices), None) is not None

    def _axis(self, source):
        """The axis of a source's parameter of B that may be packed."""
        shape = self.arrays[source.entry.b].shape
        if len(shape) == 2 and shape[0] != shape[1]:
            return int(shape[1] > shape[0])
        return features(source.entry.b, len(shape), 0)

    def _packings(self, combination):
        """Yield (paths, HeadLayout, order) of what may be packed: the parts of
        one array of A, or a module that has all."""
        lengths: dict = {}
        for path, option in combination.items():
            main = self._main(option)
            found = packed_length(main, self._shapes, self.arrays[
                main.entry.b].shape, self._axis(main))
            if found:
                lengths.setdefault(found, []).append(path)
        for (of, length, width), paths in lengths.items():
            whole = of == self._main(combination[paths[0]]).entry.b and len(
                self._main(combination[paths[0]]).entry.pieces) == 1
            orders = (GROUPS, BLOCKS) if whole else [
                *itertools.permutations(range(3))]
            if whole or len(paths) in (1, 3):
                for layout, order in itertools.product(head_layouts(
                        length, width, self._settings), orders):
                    yield paths, layout, order

    @functools.cached_property
    def _settings(self):
        """Whole numbers that modules of either model, or their configs, have.
        """
        found = set()
        for live in (self.index.a, self.index.b):
            for _, module in live.tracing.modules(live.model):
                config = getattr(module, "config", None)
                for each in (module, config):
                    found |= {value for value in getattr(
                        each, "__dict__", {}).values()
                        if type(value) is int}
        return found


def alike(option):
    """What an option has in common with those of other layers, and experts."""
    return tuple(source.alike for source in option)


def features(name, ndim, end):
    """The axis along which a parameter has a layer's features.

    Args:
        name: torch's ``weight`` has them first, others last.
        ndim: how many axes it has.
        end: 0 for that, 1 for the other end.
    """
    first = name.rpartition(".")[2] == "weight"
    return 0 if first != bool(end) else ndim - 1
