"""What is done to some rows of an array, done to all of them.

One mixture of experts gives each expert the tokens that chose it, another
gives each all tokens and weighs most of them with nothing. Of the first the
run is told here as the second has it, expert by expert.
"""

import dataclasses

import numpy as np

from parity.operations.align import is_scalar
from parity.operations.layouts import distance
from parity.operations.replay import NEAR, PLAIN, ways_of
from parity.operations.roles import tables_of

#: Operations that are done to each row by itself.
BY_ROW = {*PLAIN, "matmul", "slice", "transpose"} - {"reshape"}


@dataclasses.dataclass(frozen=True)
class SomeRows:
    """Some rows of an array.

    Attributes:
        whole: number of the value that has all rows.
        places: which of them, in order.
        weighed: whether all other rows of it are 0.
    """

    whole: int
    places: tuple
    weighed: bool = False


class TakenRows:
    """What is done to rows, done to all; its arguments: as of JoinedParts."""

    def __init__(self, others, own):
        self.others, self.taken = others, {}
        self.loops = {}  # (rows of what, where) -> [what is made of each]
        self.made = {}  # of the rows that were taken last
        self.spread = []  # what is made of all rows for them to be weighed
        self.tables = tables_of(others.program)
        for operation in own:
            if others.full:
                return
            if operation.operands and operation.results:
                self.visit(operation)
        for rounds in self.loops.values():
            self.side_by_side(rounds)

    def visit(self, operation):
        """Put down what an operation makes of rows, if it does."""
        operands, settings = operation.operands, operation.settings
        of = [self.taken[each] for each in operands if each in self.taken]
        by_rows = settings.get("axis", 0) in (0, (0,))
        made = self.others.array(operation.results[0])
        if operation.name == "take" and len(operands) == 2 and not (
                of) and by_rows:
            return self.begin(operation)
        if operation.name == "scatter_add" and operands[-1] in self.taken:
            return self.end(operation)
        if operation.name == "sum" or not of:
            return self.add_up(operation)
        count = sum(len(each.places) for each in of[0])
        if operation.name == "concatenate" and by_rows:
            if len(of) == len(operands):
                self.taken[operation.results[0]] = [
                    part for parts in of for part in parts]
        elif operation.name == "slice" and by_rows and len(
                operation.results) == 1 and made.shape[:1] != (count,):
            self.some(operation, of[0])
        elif operation.name == "take" and by_rows:
            self.taken.setdefault(("in order", operation.results[0]), of[0])
        elif operation.name in BY_ROW or operation.name == "reshape":
            if made.ndim and len(made) == count and all(
                    [part.places for part in parts] == [
                        part.places for part in of[0]] for parts in of):
                self.by_row(operation, of[0])
            elif operation.name == "reshape":
                self.taken["in order", operation.results[0]] = of[0]

    def begin(self, operation):
        """Rows of what depends on an input, taken by their places."""
        source, places = operation.operands
        array, at = self.others.array(source), self.others.array(places)
        made = self.others.array(operation.results[0])
        if source in self.tables or at.dtype.kind not in "iu" or (
                at.ndim != 1 or array.ndim < 2
                or made.shape != (at.size, *array.shape[1:])):
            return
        if at.size and at.max() < len(array) and np.array_equal(
                array[at], made):
            self.taken[operation.results[0]] = [
                SomeRows(source, tuple(at.tolist()))]
            self.made = {}
            self.loops.setdefault(
                (source, operation.place), []).append(self.made)

    def keep(self, operation, whole, place=0):
        """Put down what one round of a loop makes of all rows."""
        line = operation.place, operation.name, place
        self.made[*line, sum(each[:3] == line for each in self.made)] = (
            operation, whole)

    def side_by_side(self, rounds):
        """What each round of a loop makes at one place, in one array."""
        for at, (operation, first) in rounds[0].items():
            wholes = [made[at][1] for made in rounds if at in made]
            if len(wholes) == len(rounds) and first not in wholes[1:]:
                self.stack(operation, wholes)

    def stack(self, operation, wholes):
        """Several values of one shape as one."""
        arrays = [self.others.array(each) for each in wholes]
        if len(wholes) > 1 and len({each.shape for each in arrays}) == 1 and (
                not self.others.full):
            self.others.add(operation, wholes, np.stack(arrays),
                            name="concatenate", settings={"axis": 0})

    def some(self, operation, parts):
        """A slice of rows, which are all of one part."""
        made = self.others.array(operation.results[0])
        source = self.others.array(operation.operands[0])
        start, step = (
            each[0] if isinstance(each, tuple) else each for each in map(
                operation.settings.get, ("start", "step")))
        if not isinstance(start, int) or step not in (None, 1) or (
                made.shape[1:] != source.shape[1:]):
            return
        first = 0
        for part in parts:
            last = first + len(part.places)
            if first <= start and start + len(made) <= last:
                self.taken[operation.results[0]] = [dataclasses.replace(
                    part, places=part.places[start - first:][:len(made)])]
            first = last

    def by_row(self, operation, parts):
        """An operation on all rows of each part."""
        for place, result in enumerate(operation.results):
            first, made, self.spread = 0, [], []
            for i, part in enumerate(parts):
                last = first + len(part.places)
                done = self.of_part(operation, place, i, part, first, last)
                if done is None:
                    break
                made.append(done)
                first = last
            else:
                self.taken[result] = made
                wholes = [part.whole for part in made]
                self.others.same(operation, result, wholes, name="take",
                                 settings={})
                self.stack(operation, wholes)
                if len(made) == 1:
                    self.keep(operation, wholes[0], place)
                self.stack(operation, self.spread)
                for number in self.spread if len(made) == 1 else ():
                    self.keep(self.others.program.maker(number), number)

    def of_part(self, operation, place, i, part, first, last):
        """All rows of one part as SomeRows, or None."""
        result = self.others.array(operation.results[place])
        operands, weighed = [], part.weighed
        for number in operation.operands:
            array = self.others.array(number)
            if number in self.taken:
                number = self.taken[number][i].whole
            elif not is_scalar(self.others.value(number)) and (
                    array.ndim == result.ndim and array.ndim > 1
                    and len(array) == len(result) > 1):
                rows = array[first:last]
                if (rows == rows[:1]).all():
                    number = self.others.add(
                        operation, (number,), rows[:1], name="slice",
                        native="slice", settings={
                            "axis": 0, "start": first, "stop": first + 1})
                elif operation.name == "multiply" and len(
                        {*part.places}) == len(part.places):
                    size = len(self.others.array(part.whole))
                    spread = np.zeros((size, *array.shape[1:]))
                    spread[[*part.places]] = rows
                    number, weighed = self.others.add(
                        operation, (number,), spread, name="put",
                        native="put", settings={"axis": 0}), True
                    self.spread.append(number)
                else:
                    return None
            operands.append(number)
        array = self.done(operation, place, operands, result[first:last], part)
        if array is None or weighed and operation.name not in (
                "multiply", "divide", "reshape"):
            return None
        return SomeRows(self.others.add(operation, operands, array),
                     part.places, weighed)

    def done(self, operation, place, operands, rows, part):
        """What an operation makes of whole arrays, if its rows at some places
        are what the run made there; else None."""
        arrays = [self.others.array(each) for each in operands]
        size = len(self.others.array(part.whole))
        results = [self.others.value(each) for each in operation.results]
        stop = operation.settings.get("stop")
        if operation.name == "slice" and isinstance(stop, tuple):
            operation = dataclasses.replace(operation, settings={
                **operation.settings, "stop": (size, *stop[1:])})
        ways = [lambda arrays: [arrays[0].reshape(
            size, *rows.shape[1:])]] if operation.name == "reshape" else (
            ways_of(operation, results))
        for way in ways:
            try:
                with np.errstate(all="ignore"):
                    made = way(arrays)[place]
            except (ValueError, IndexError, TypeError, KeyError):
                continue
            if made.shape == (size, *rows.shape[1:]) and distance(
                    made[[*part.places]], rows) <= NEAR:
                return made
        return None

    def end(self, operation):
        """Rows that are added to others at their places."""
        before, _, rows = operation.operands
        parts, made = self.taken[rows], self.others.array(operation.results[0])
        if len(parts) != 1 or not parts[0].weighed:
            return
        array = self.others.array(before) + self.others.array(parts[0].whole)
        if array.shape == made.shape and distance(array, made) <= NEAR:
            self.others.same(operation, operation.results[0],
                             (before, parts[0].whole), name="add",
                             native="add", settings={})

    def add_up(self, operation):
        """The sum of what all experts make of each row, one by one."""
        for each in operation.operands:
            parts = self.taken.get(("in order", each))
            if parts is None:
                continue
            result = operation.results[0]
            if operation.name != "sum":
                if operation.name == "reshape":
                    self.taken["in order", result] = parts
                continue
            whole, arrays = self.others.array(result), [
                self.others.array(part.whole) for part in parts]
            if not all(part.weighed for part in parts) or any(
                    array.shape != whole.shape for array in arrays) or (
                    distance(sum(arrays), whole) > NEAR):
                return
            last = parts[0].whole
            for i, part in enumerate(parts[1:], 2):
                operands = last, part.whole
                if i == len(parts):
                    self.others.same(operation, result, operands, name="add",
                                     native="add", settings={})
                else:
                    last = self.others.add(
                        operation, operands, sum(arrays[:i]), name="add",
                        native="add", settings={})
