"""Why a read with a cache parts from the whole, proved by running it.

The read and the whole are both run as operations. The same line of source
makes the same thing in both, of some places or of all. What it makes of all
is put where it makes another thing of some; the first line with which the
read then answers as the whole does is the cause's.
"""

import dataclasses
import functools
import time

import numpy as np

from parity_io.errors import InputError
from parity.invariants import read_origins, shown_masks
from parity.invariants.kept import NotAsked
from parity.invariants.places import only_seen
from parity.invariants.read_programs import ReadPrograms, same
from parity.invariants.uses import visible
from parity.operations.align import moves
from parity.operations.program import RESULT

#: So many lines are tried at most, and for so many seconds of the processor.
LINES, SECONDS = 80, 20.0


@dataclasses.dataclass
class ProvedCause:
    """What is proved of a wrong read.

    Attributes:
        cause: in a few words; "" where only the place is known.
        place: the line of source.
        sentences: what is told.
    """

    cause: str
    place: str
    sentences: list


def cause(asker, use, number, whole):
    """The ProvedCause of a Read that is wrong; None where none is found."""
    try:
        return ReadCause(asker, use, number).found()
    except (InputError, NotAsked):  # of this framework modules alone are seen
        return None


class ReadCause(ReadPrograms):
    """Looks for the cause of one wrong read.

    Args:
        asker, use, number: as of ReadPrograms.
    """

    def __init__(self, asker, use, number):
        super().__init__(asker, use, number)
        self.until = time.process_time() + SECONDS

    def found(self):
        """The ProvedCause, or None."""
        with self.keeping.call.put_back():
            self.prepare()
            if self.right(self.part):
                return None
            for line, group in self.groups():
                edits = {(RESULT, operation.number, slot): array
                         for operation, slot, _, array in group}
                if self.right(self.runner.run(edits=edits)):
                    self.asker.lines.append(line)
                    return self.as_mask(self.told(group))
                if time.process_time() > self.until:
                    break
        return None

    def as_mask(self, told):
        """What is told of positions, as of the mask if they make that alone.
        """
        if told is None or not told.cause.startswith("positions"):
            return told
        for _, group in self.groups():
            edits = {(RESULT, operation.number, slot): array
                     for operation, slot, _, array in group}
            if all(array.dtype == bool for array in edits.values()) and (
                    self.right(self.runner.run(edits=edits))):
                mask = self.told(group)
                if mask is not None and mask.cause:
                    return dataclasses.replace(mask, place=told.place)
        return told

    def origin(self, cause, value):
        """The WrongOperation behind a value that the whole has not, or None.

        Args:
            cause: in words.
            value: its number.
        """
        if "too few places" in cause:
            return read_origins.cut_from(self.before())
        return read_origins.wrong_from(
            read_origins.WholesNumbers(self.whole, self.length, same),
            self.part, self.read, self.before(), value)

    def lacking(self, origin):
        """The line that made what the whole has at a WrongOperation, if the
        read runs no such line; else ""."""
        other = dict(self.pairs()).get(origin.operation)
        run = {str(each.place) for each in self.part.operations}
        makers = [] if other is None else map(
            self.whole.maker, other.operands)
        return next((str(each.place) for each in makers
                     if each and str(each.place) not in run), "")

    def named(self, origin):
        """What a WrongOperation does, in words and a sentence; "" each where it
        has no name."""
        operation, program = origin.operation, origin.program
        if program is not self.part or operation.name in (
                "concatenate", "put"):
            return "what is kept is not what was computed", ""
        other = dict(self.pairs()).get(operation)
        arrays = [program.values[each].array for each in operation.operands]
        if other is None and operation.name in ("multiply", "divide"):
            numbers = [array for array in arrays
                       if array is not None and array.size == 1]
            if len(numbers) == 1:
                return (f"a scale that the whole has not: {operation.name} by "
                        f"{float(numbers[0].reshape(())):g}"), ""
        if other is None or operation.name != "take" or arrays[1] is None:
            return "", ""
        whole = self.whole.values[other.operands[1]]
        part = whole.array[..., self.read.start:self.read.stop]
        if part.ndim < arrays[1].ndim or whole.shape[-1] != self.length or (
                part.shape[-1] != arrays[1].shape[-1]):
            return "", ""
        return self.positions(np.broadcast_to(arrays[1], part.shape), part,
                              whole.number)

    def right(self, program):
        """Whether a run of the read answers what the whole does."""
        seen = visible(self.keeping, self.use.arrays)
        rows = slice(None) if self.read.rows is None else list(self.read.rows)
        seen = seen[rows, self.read.start:self.read.stop]
        compared = False
        for name, mine in self.whole.outputs.items():
            other = program.outputs.get(name)
            if other is None:
                continue
            mine, other = (self.whole.values[mine].array,
                           program.values[other].array)
            ways = [*self.ways(mine, other)]
            if not ways:
                continue
            compared = True
            if not any(same(*only_seen(way, other, seen)) for way in ways):
                return False
        return compared

    def groups(self):
        """Yield each line that makes another thing than the whole, and what:
        (operation, slot, the whole's value, what the whole has there) each.

        Lines that were the cause of an earlier read come first.
        """
        pairs = self.pairs()
        groups: dict = {}
        for mine, other in pairs:
            if other is None:
                continue
            for slot, (one, two) in enumerate(zip(
                    mine.results, other.results)):
                array = self.part.values[one].array
                ways = [*self.ways(self.whole.values[two].array, array)]
                if ways and not any(same(way, array) for way in ways):
                    groups.setdefault(
                        (str(mine.place), mine.native), []).append(
                        (mine, slot, two, ways[0]))
        before = [line for line in self.asker.lines if line in groups]
        for line in [*dict.fromkeys([*before, *groups])][:LINES]:
            yield line, groups[line]

    @functools.cached_property
    def fixed(self):
        """The numbers of the whole's values that no token changes."""
        call = self.keeping.call
        arrays = dict(self.use.arrays)
        lead = call.sequences[self.keeping.role].lead
        arrays[lead] = np.roll(arrays[lead][:, ::-1], 1, 0) if (
            arrays[lead].dtype.kind in "iu") else -arrays[lead]
        other = self.program_of(arrays)
        return {value.number for value, again in zip(
            self.whole.values, other.values) if value.array is not None
            and again.array is not None
            and np.array_equal(value.array, again.array)}

    def told(self, group):
        """The ProvedCause that a line shows."""
        operation, _, number, array = group[0]
        place = str(operation.place)
        mine = self.part.values[operation.results[group[0][1]]].array
        where = f"{place} in {operation.module.removeprefix('model.')}" if (
            operation.module.removeprefix("model")) else place
        proof = f"With the whole's at {where} the read answers as the whole."
        self.line = operation.number, group[0][1]
        for name in (self.mask, self.positions, self.dropped, self.kept):
            words, sentence = name(mine, array, number)
            if words:
                break
        origin = None if words.startswith("positions") else self.origin(
            words, operation.results[group[0][1]])
        if origin and not words:
            words, sentence = self.named(origin)
        if lacking := origin and self.lacking(origin):
            place = lacking
            sentence += f" The read does not run {place}."
        elif origin and str(origin) != place:
            place = str(origin)
            sentence += f" It is made so at {place}."
        if words:
            return ProvedCause(words, place, [
                f"Cause: {words}. {sentence.strip()}".strip(), proof])
        if not sentence and operation.number >= len(
                self.part.operations) - 1:
            return None
        return ProvedCause(
            "", place, [*([sentence.strip()] if sentence else []), proof])

    def mask(self, mine, array, number):
        """Whether a query sees other keys than in the whole."""
        padding = ~visible(self.keeping, self.use.arrays)
        if self.read.rows is not None:
            padding = padding[list(self.read.rows)]
        return shown_masks.difference(
            mine, array, self.read.start, self.read.stop, padding)

    def positions(self, mine, array, number):
        """Whether these are numbers of other places."""
        if number not in self.fixed:
            return "", ""
        if mine.dtype.kind in "iu" and mine.size:
            shift = mine.astype(np.int64) - array.astype(np.int64)
            if mine.ndim == 2 and len(mine) == self.rows and (
                    shift == shift[:, :1]).all() and (
                    shift[:, 0] == self.pads).all() and self.pads.any():
                return ("padding is counted as positions", "Row 0 has "
                        f"{self.pads[0]} places of padding, and its positions "
                        f"are {self.pads[0]} too large.")
        if (shift := self.shift(mine, array, number)) is not None:
            return self.shifted(self.later(number)
                                if self.read.start == 1 else shift)
        if mine.dtype.kind in "iu":
            return ("positions", f"They are {listed(mine)}, and the whole's "
                    f"{listed(array)}.")
        return "", ""

    def shift(self, mine, array, number):
        """By how much these are numbers of places too large, or None."""
        start, stop = self.read.start, self.read.stop
        if mine.dtype.kind in "iu" and mine.size:
            shift = mine.astype(np.int64) - array.astype(np.int64)
            return int(shift.flat[0]) if (
                shift == shift.flat[0]).all() else None
        whole = self.whole.values[number].array
        for axis in range(whole.ndim):
            if whole.shape[axis] != self.length or (
                    mine.shape[axis] != stop - start):
                continue
            for there in range(self.length - (stop - start) + 1):
                if there != start and same(np.take(whole, range(
                        there, there + stop - start), axis), mine):
                    return there - start
        return None

    def later(self, number):
        """The shift that the last read has at the same line: at place 1, one
        too small and none that is kept are the same."""
        last = ReadCause(self.asker, self.use, len(self.use.reads) - 1)
        last.whole = self.whole
        last.prepare()
        operation, slot = self.line
        if operation >= len(last.part.operations):
            return None
        mine = last.part.values[
            last.part.operations[operation].results[slot]].array
        ways = [*last.ways(self.whole.values[number].array, mine)]
        shift = last.shift(mine, ways[0], number) if ways else None
        return None if shift is None else (shift, last.read.start)

    def shifted(self, shift):
        """The words for positions that are some too large."""
        start = self.read.start
        if shift is None:
            return "positions", "They are other places'."
        last = start
        if isinstance(shift, tuple):
            shift, last = shift
        if shift == -last:
            return ("positions are not shifted by what the cache holds",
                    f"They begin anew at 0 with each read, and not at {start}.")
        size, start = "small" if shift < 0 else "large", last
        return (f"positions are {abs(shift)} too {size}",
                f"The read begins at place {start}, and its positions at "
                f"{start + shift}.")

    @functools.cached_property
    def pads(self):
        """How many places before the read are padding, by row."""
        return (~visible(self.keeping, self.use.arrays))[
            :, :self.read.start].sum(1)

    def dropped(self, mine, array, number):
        """Whether the whole reads keys that the cache has no more."""
        start, stop = self.read.start, self.read.stop
        for one, two in self.pairs():
            if two is None or len(one.results) != 1:
                continue
            part = self.part.values[one.results[0]]
            full = self.whole.values[two.results[0]]
            weights = full.array
            if weights is None or weights.ndim < 2 or (
                    weights.dtype.kind != "f") or weights.shape[-2:] != (
                    self.length, self.length) or len(part.shape) < 2 or (
                    part.shape[-2] != stop - start) or (
                    part.shape[-1] >= stop) or weights.min() < 0 or not (
                    np.allclose(weights.sum(-1), 1)):
                continue
            first = stop - part.shape[-1]
            lost = weights[..., start:stop, :first].reshape(
                -1, stop - start, first).max(0)
            rows, keys = np.nonzero(lost > 0)
            if len(keys):
                return ("what is kept has too few places",
                        f"It has places {first} to {stop - 1} when place "
                        f"{start + rows[0]} is read, and the whole reads place "
                        f"{keys[0]} there as well.")
        return "", ""

    def kept(self, mine, array, number):
        """Whether what was kept of earlier places is not the whole's.

        What is computed, such as scores, is nothing that was kept.
        """
        start, stop = self.read.start, self.read.stop
        maker = self.part.operations[self.line[0]]
        if number in self.fixed or not (moves(maker) or maker.name == "put"):
            return "", ""
        for axis in range(mine.ndim):
            whole = self.whole.values[number].array
            if whole.shape[axis] != self.length or (
                    mine.shape[axis] < stop) or not start:
                continue
            wrong = [place for place in range(stop) if not same(
                np.take(array, place, axis), np.take(mine, place, axis))]
            if wrong and max(wrong) < start:
                return ("what is kept is not what was computed",
                        f"Of places {_range(wrong)} it has other numbers than "
                        "the whole has there.")
            if wrong:
                return ("what is kept is not what was computed",
                        f"Places {_range(wrong)} have other numbers than the "
                        "whole has there.")
        return "", ""


def _range(places):
    """Places in words: 0 to 2, or 0, 2."""
    first, last = places[0], places[-1]
    if len(places) == last - first + 1 and len(places) > 1:
        return f"{first} to {last}"
    return ", ".join(map(str, places[:6]))


def listed(array):
    """The first numbers of an array of integers."""
    return ", ".join(map(str, array.reshape(-1)[:6].tolist()))
