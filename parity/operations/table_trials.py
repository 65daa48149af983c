"""Guesses of another parameter, buffer or table."""

import dataclasses
import itertools

from parity.operations.align import ENDS
from parity.operations.layouts import distance, in_parts, relaid
from parity.operations.program import LEAF, MADE, PARAMETER
from parity.operations.state import TRIED, State
from parity.operations.trial import ARRAY, PACKED, Trial, unlike


class TableTrials(State):
    """Trials with arrays that follow from no input."""

    def leaves(self, kind):
        """Yield those of lost parameters, or of tables, that tell."""
        for number in self.first:
            value = self.b.values[number]
            if value.kind == kind and value.signature.telling:
                yield from self.leaf_alone(number)

    def leaf(self, operation):
        """A parameter or table of a's in the place of b's."""
        for slot, root in self.two.arrays(operation).items():
            value = self.b.values[root]
            if value.kind == MADE or not self.is_lost("b", root):
                continue
            for other, pairs in self.partners(operation):
                used = {there for _, there in pairs}
                for there in self.one.arrays(other).keys() - used:
                    yield from self.table(
                        value, operation, slot, other,
                        self.a.values[other.operands[there]])

    def leaf_alone(self, number):
        """A lost leaf, and lost leaves of a of its size."""
        value = self.b.values[number]
        for other in self.nearest(value, sorted(self.tables["a"])):
            yield from self.table(
                value, None, None, self.a.maker(other), self.a.values[other])

    def table(self, value, operation, slot, other, theirs):
        """Trials with an array of a's as a leaf of b."""
        ways = [{(LEAF, value.name): array} if value.name and (
                    value.kind == PARAMETER) else self.readers(
                    value.number, array)
                for array in relaid(theirs.array, value.array)
                if distance(array, value.array) > ENDS]
        if any(ways):
            yield Trial(ARRAY, operation, other, value.number, theirs.number,
                        [*filter(None, ways)], slot)

    def all_tables(self):
        """Every lost table of a that meets data, in the place of b's."""
        left = {number: self.a.values[number]
                for number in self.meeting("a", self.one)}
        made = []
        for number in self.meeting("b", self.two):
            value = self.b.values[number]
            found = [(unlike(theirs, value), other)
                     for other, theirs in left.items()
                     if theirs.signature.kind == value.signature.kind]
            for _, other in sorted(found)[:TRIED]:
                ways = [self.readers(number, array) for array in relaid(
                    self.a.values[other].array, value.array, 1)]
                if ways and ways[0]:
                    made.append(Trial(
                        ARRAY, self.b.maker(number), self.a.maker(other),
                        number, other, ways[:1]))
                    break
        if made:
            together = {}
            for each in made:
                together |= each.ways[0]
            yield dataclasses.replace(
                made[0], ways=[together], more=tuple(made[1:]))

    def meeting(self, side, skeleton):
        """The lost tables that something computed of the inputs is joined
        with."""
        lost, tables = (self.lost_a if side == "a" else self.lost_b,
                        self.tables[side])
        values = getattr(self, side).values
        return [number for number in lost if number in tables
                and values[number].signature.telling and any(
            not {*operation.results} & tables
            for operation in skeleton.readers.get(number, ()))]

    def packed(self):
        """The parts of a packed projection, or a cell's gates, in another
        order: all parameters of the module that holds what is lost first."""
        operations = sorted(
            (self.b.maker(number) for number in self.first
             if self.b.maker(number) is not None),
            key=lambda each: each.number)
        for path in dict.fromkeys(each.module for each in operations):
            for count, width, owner in self.parts_of(path):
                values = [value for value in self.b.values
                          if value.kind == PARAMETER
                          and value.name.rpartition(".")[0] == owner
                          and width in value.shape]
                reader = next(each for each in operations
                              if each.module == path)
                for order in [*itertools.permutations(range(count))][1:]:
                    theirs = self.made_a[0] if self.made_a else None
                    yield Trial(
                        PACKED, reader, theirs, values[0].number,
                        theirs.results[0] if theirs else 0, [{
                            (LEAF, value.name): in_parts(
                                value.array, value.shape.index(width), order)
                            for value in values}], order)

    def parts_of(self, path):
        """Yield (how many, width, owner) of packed parts that a module, or
        what it is in, takes apart."""
        seen, parts = set(), {}
        for operation in self.b.operations:
            if operation.module == path and operation.name == "slice":
                parts.setdefault(self.two.root(operation.operands[0]), []
                                 ).extend(operation.results)
        for source, results in parts.items():
            whole = self.b.values[source].shape
            for part in {self.b.values[each].shape for each in results}:
                found = [(long, long // short) for long, short in zip(
                    whole, part) if long != short and short
                    and long % short == 0]
                if len(found) != 1 or not 2 <= found[0][1] <= 4 or found[0][
                        1] != sum(self.b.values[each].shape == part
                                  for each in results):
                    continue
                (long, count), = found
                for value in self.b.values:
                    owner = value.name.rpartition(".")[0]
                    if value.kind == PARAMETER and long in value.shape and (
                            path in ("", "(model)") or path.startswith(owner)
                            or owner.startswith(path)) and (
                            count, long, owner) not in seen:
                        seen.add((count, long, owner))
                        yield count, long, owner
