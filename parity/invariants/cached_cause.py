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
from parity.causes.deciding import Side
from parity.invariants import shown_masks
from parity.invariants.kept import NotAsked
from parity.numerics.tolerances import model_limits
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


def reading(model, run):
    """A model of the same framework that calls ``run(model)``."""
    from parity.tracing.trace import framework_of
    framework = framework_of(model)
    if framework == "torch":
        import torch

        class TorchReading(torch.nn.Module):
            """One read."""

            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self):
                return run(self.model)
        made = TorchReading()
        made.training = model.training
        return made
    if framework == "jax":
        from flax import nnx

        class FlaxReading(nnx.Module):
            """One read."""

            def __init__(self):
                self.model = model

            def __call__(self):
                return run(self.model)
        return FlaxReading()
    raise InputError(f"of {framework} modules alone are seen.")


class ReadCause:
    """Looks for the cause of one wrong read.

    Args:
        asker: the Asker of the model.
        use, number: the Use, and which of its Reads is wrong.
    """

    def __init__(self, asker, use, number):
        self.asker, self.use, self.number = asker, use, number
        self.read, self.keeping = use.reads[number], asker.keeping
        self.length = asker.length(use)
        self.until = time.process_time() + SECONDS

    @functools.cached_property
    def whole(self):
        """The Program of all tokens at once."""
        return self.program_of(self.use.arrays)

    def program_of(self, arrays):
        """The Program of some arrays, all at once."""
        model = self.asker.model
        return Side(reading(model, lambda model: self.keeping.whole(
            model, arrays)), (), {}).runner().run()

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

    def prepare(self):
        """Read what comes before, and the read as operations."""
        keeping = self.keeping
        with keeping.call.put_back():
            *_, (arrays, state) = self.asker.answers(
                self.use, until=self.number)
        start, stop = self.read.start, self.read.stop
        self.runner = Side(reading(
            self.asker.model, lambda model: keeping.read(
                model, arrays, start, stop, keeping.copied(state))[0]),
            (), {}).runner()
        self.part = self.runner.run()

    def right(self, program):
        """Whether a run of the read answers what the whole does."""
        from parity.invariants.places import only_seen
        from parity.invariants.uses import visible
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

    def pairs(self):
        """Yield each operation of the read, and the whole's of the same line,
        module and name; None where there is none."""
        def keyed(program):
            counts: dict = {}
            for operation in program.operations:
                key = (operation.module, str(operation.place),
                       operation.native)
                counts[key] = counts.get(key, 0) + 1
                yield (*key, counts[key]), operation
        others = dict(keyed(self.whole))
        for key, operation in keyed(self.part):
            yield operation, others.get(key)

    def ways(self, mine, other):
        """Yield what of the whole's array may stand in the read's place."""
        if mine is None or other is None or mine.ndim != other.ndim:
            return
        read, made = self.read, [mine]
        count = read.stop - read.start
        if read.rows is not None and mine.ndim and other.shape[0] == len(
                read.rows) and mine.shape[0] == self.rows:
            made = [mine[list(read.rows)]]
        for axis in range(mine.ndim):
            size = other.shape[axis]
            if made[0].shape[axis] == size:
                continue
            if made[0].shape[axis] != self.length:
                return
            spans = []
            if size == count:
                spans.append((read.start, read.stop))
            if size == read.stop or size < read.stop and size != count:
                spans.append((read.stop - size, read.stop))
            if size > read.stop:
                spans.append((0, read.stop))
            made = [each[(slice(None),) * axis + (slice(*span),)]
                    for each in made for span in spans]
        for each in made:
            if each.shape != other.shape:  # a static cache has room behind
                filled = np.array(other)
                filled[tuple(map(slice, each.shape))] = each
                each = filled
            yield each

    @property
    def rows(self):
        """How many rows the whole has."""
        return len(self.use.arrays[self.keeping.call.sequences[
            self.keeping.role].lead])

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
                return ProvedCause(words, place, [
                    f"Cause: {words}. {sentence}".strip(), proof])
        last = operation.number >= len(self.part.operations) - 1
        return None if last else ProvedCause("", place, [proof])

    def mask(self, mine, array, number):
        """Whether a query sees other keys than in the whole."""
        return shown_masks.difference(
            mine, array, self.read.start, self.read.stop)

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
        if isinstance(shift, tuple):
            shift, start = shift
        if shift == -start:
            return ("positions are not shifted by what the cache holds",
                    f"They begin anew at 0 with each read, and not at {start}.")
        size = "small" if shift < 0 else "large"
        return (f"positions are {abs(shift)} too {size}",
                f"The read begins at place {start}, and its positions at "
                f"{start + shift}.")

    @functools.cached_property
    def pads(self):
        """How many places before the read are padding, by row."""
        from parity.invariants.uses import visible
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


def same(one, other):
    """Whether two arrays are the same within rounding."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc" or other.dtype.kind not in "fc":
        return np.array_equal(one, other)
    limit = model_limits(other.dtype.name)[0]
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    distance = np.abs(one[finite] - other[finite])
    size = np.abs(one[finite]).max(initial=0)
    return bool((distance <= limit * max(size, 1e-300)).all())
