"""Whether a cache gives what the whole sequence gives at once.

A model of anybody's reads all tokens at once, and then as people use a cache:
one token at a time, in chunks, behind another request, padded, with beams that
change places. Every answer must be the whole's at its place. Where one is not,
the first read that parts is looked into, and its cause is proved by running.
"""

import dataclasses
import itertools
import re

import numpy as np

from parity_io.errors import InputError
from parity.comparison.result import NOTHING
from parity.invariants import cached_cause, made_ready
from parity.invariants.kept import NotAsked
from parity.invariants.places import at_places, elsewhere, only_seen
from parity.invariants.responses import WRONG, Response, judged
from parity.invariants.uses import (
    CACHED, LEFT, REUSED, cropped, uses, visible)
from parity.tracing.recorder import mapped
from parity.tracing.trace import WHOLE, is_float, trace_run


def responses(keeping, ways=CACHED):
    """Ask a model with its cache in several ways.

    Args:
        keeping: a Keeping.
        ways: of CACHED.

    Returns:
        A list of Responses; and {way: why it could not be asked, or not in
        whole}.
    """
    found, left, asker = [], {}, Asker(keeping)
    for name in ways:
        asked = []
        try:
            every = uses(keeping, name)
        except NotAsked as reason:
            left[name] = f"not asked {name}: {reason}."
            continue
        for use in every:
            try:
                asked.append(asker.response(use, name))
            except NotAsked as reason:
                left[name] = f"not asked {use.words}: {reason}."
        found += _together(asked)
    return found, left


class Asker:
    """Asks one model in one Use after another."""

    def __init__(self, keeping):
        self.keeping, self.model = keeping, keeping.call.model
        self.known, self.told, self.lines = {}, {}, []

    def whole(self, arrays):
        """The Trace of all tokens at once."""
        key = tuple((name, array.tobytes()) for name, array in arrays.items()
                    if isinstance(array, np.ndarray))
        if key not in self.known:
            with self.keeping.call.put_back():
                self.known[key] = trace_run(
                    self.model, lambda recorder: self.keeping.whole(
                        self.model, arrays))
        return self.known[key]

    def response(self, use, name):
        """The Response of one Use.

        Raises:
            NotAsked: the model cannot be asked so.
        """
        whole = self.whole(use.arrays)
        if name == LEFT and all(
                np.isnan(array).all() for array in whole.step(
                    WHOLE).outputs.values() if is_float(array)):
            raise NotAsked("so padded, all tokens at once give NaN alone; ask "
                           "for the way left")
        if any(read.order is not None for read in use.reads):
            self.keeping.look()  # before the run is traced
        bounds: list = []
        try:
            single = self.run(use, bounds)
        except (InputError, NotAsked, MemoryError):
            raise
        except Exception as error:  # a foreign model may refuse
            return self.failed(use, max(len(bounds) - 1, 0), error)
        seen, worst, left_out = visible(self.keeping, use.arrays), None, set()
        reads = zip(use.reads, by_read(single, bounds, len(use.reads)))
        for number, (read, values) in enumerate(reads):
            if not read.counts:
                continue
            made = self.judged(whole, values, use, read, seen)
            left_out |= {*made[0].left_out}
            worst = _worse(worst, (number, read, *made))
            if made[0].verdict == WRONG:
                break
        number, read, response, first, of = worst
        response.left_out = sorted(left_out)
        if response.verdict == WRONG:
            response.place = _span(read)
            self.tell(response, use, name, number, whole, first, of)
        return response

    def failed(self, use, number, error):
        """The Response of a Use of which a Read raises an error."""
        text = " ".join(str(error).split())[:200].rstrip(".")
        known = [f"Read {number + 1} of {len(use.reads)}, "
                 f"{_span(use.reads[number])}, failed with "
                 f"{type(error).__name__}: {text}."]
        causes = made_ready.wrong(self, use, number)
        if causes:
            return Response(use.words, WRONG, cause=causes[0],
                            place=_span(use.reads[number]),
                            known=known + causes)
        return Response(use.words, NOTHING, known=known)

    def run(self, use, bounds):
        """The Trace of all Reads of a Use; when each began is put into
        ``bounds``."""
        outputs = []

        def run(recorder):
            for read, output in zip(use.reads, self.answers(
                    use, lambda: bounds.append(recorder.clock))):
                self.check_some(use, read, output)
                outputs.append(output)
            bounds.append(recorder.clock)
            return outputs
        with self.keeping.call.put_back():
            return trace_run(self.model, run)

    def answers(self, use, begin=lambda: None, ordered=True, until=None):
        """Yield what a model answers to each Read of a Use.

        Args:
            begin: is called before each.
            ordered: whether rows of what is kept change places as they should,
                and whether it is cut back.
            until: the number of a Read before which this ends; then what it
                would be given is yielded last: (arrays, state).
        """
        states = {}
        for number, read in enumerate(use.reads):
            begin()
            arrays = self.arrays(use, read)
            if read.request not in states:
                states[read.request] = self.keeping.static(
                    use.room) if use.room else self.keeping.empty(
                    self.model, len(next(iter(arrays.values()))),
                    self.length(use))
            state = states[read.request]
            if read.before is not None:
                state = read.before(self.keeping, self.model, state)
            if read.cut is not None and ordered:
                state = cropped(state, read.cut, self.length(use))
            if read.order is not None and ordered:
                state, _ = self.keeping.reordered(
                    self.model, state, read.order)
            if number == until:
                yield arrays, state
                return
            output, states[read.request] = self.keeping.read(
                self.model, arrays, read.start, read.stop, state)
            yield output

    def check_some(self, use, read, output):
        """Raise InputError where a function's output is not of a Read's
        places, but of all: what it keeps then is not what was asked for."""
        keeping, length = self.keeping, self.length(use)
        if keeping.step is None:
            return
        whole = self.whole(use.arrays).step(WHOLE).outputs
        for name, array in _alone(whole, arrays_of(
                keeping.call.framework, output), read, length).items():
            mine = whole.get(name)
            if mine is None or mine.ndim < 2 or (
                    mine.shape[1:] != array.shape[1:]) or not (
                    mine.shape[1] == length > read.stop):
                continue
            lead = keeping.call.sequences[keeping.role].lead
            here = ("place:place + 1", "places")[keeping.several]
            raise InputError(
                f"step gave the output of all {length} places for "
                f"{_span(read)}; hand the model {lead}[:, {here}] alone.")

    def length(self, use):
        """How many places the tokens of a Use have."""
        lead = self.keeping.call.sequences[self.keeping.role].lead
        return use.arrays[lead].shape[1]

    def arrays(self, use, read):
        """The arrays of a Read, of its rows."""
        arrays = use.arrays if read.arrays is None else read.arrays
        if read.rows is None:
            return arrays
        batch = self.keeping.call
        return {name: array[list(read.rows)] if batch.has_rows(name)
                or len(array) > max(read.rows) and array.ndim > 1
                and len(array) != batch.rows else array
                for name, array in arrays.items()}

    def judged(self, whole, values, use, read, seen):
        """Of one Read the Response, the pair that parts, and its arrays."""
        length, pairs, of = self.length(use), [], {}
        left_out = {*whole.step(WHOLE).outputs}
        rows = slice(None) if read.rows is None else list(read.rows)
        for step in whole.steps:
            here = values.get(step.path, {})
            if step.path == WHOLE:
                here = _alone(step.outputs, here, read, length)
            for name, array in here.items():
                mine = step.outputs.get(name)
                if mine is None:
                    continue
                both = at_places(mine, array, read.start, read.stop, length)
                both = both and _of_rows(*both, rows)
                if both is None:
                    continue
                if step.path == WHOLE:
                    left_out.discard(name)
                if mine.shape != array.shape or read.stop == length or (
                        np.array_equal(*both)):
                    pairs.append((step.path, name, *only_seen(
                        *both, seen[rows, read.start:read.stop])))
                    of[step.path, name] = mine, array
        response, first = judged(use.words, pairs)
        response.left_out = sorted(left_out)
        return response, first, of

    def tell(self, response, use, name, number, whole, first, of):
        """Say what is known of a wrong Response."""
        read, length = use.reads[number], self.length(use)
        words = f"Read {number + 1} of {len(use.reads)}, {_span(read)}, is the "
        response.known.insert(0, f"{words}first that is wrong.")
        if name in self.told:
            response.cause, response.source, causes = self.told[name]
            response.known += causes
            return
        causes = []
        if not self.causal(use):
            causes = ["It reads no cache wrongly: all at once, a token changes "
                      "the answers before it, so that the model is not causal."]
        elif read.order is not None or any(
                each.order is not None for each in use.reads[:number]):
            causes = made_ready.not_reordered(self, use, number)
        elif name == REUSED:
            causes = next((found for i in range(number + 1) if (
                found := made_ready.wrong(self, use, i))), []) or (
                self.of_another_request(use, number, whole))
        if not causes:
            found = cached_cause.cause(self, use, number, whole)
            if found:
                response.cause, response.source = found.cause, found.place
                causes = found.sentences
        else:
            response.cause = causes[0]
        if not response.cause and first and first[0] != WHOLE:
            causes += elsewhere(first[0], *of[first[:2]], read.start,
                                read.stop, length)
        response.known += causes
        self.told[name] = response.cause, response.source, causes

    def causal(self, use):
        """Whether, all at once, later tokens change no answer of a token
        before them."""
        keeping = self.keeping
        sequence = keeping.call.sequences[keeping.role]
        arrays, length = dict(use.arrays), self.length(use)
        if length < 2:
            return True
        lead = arrays[sequence.lead] = arrays[sequence.lead].copy()
        lead[:, -1] = lead[:, 0] if not np.array_equal(
            lead[:, -1], lead[:, 0]) else np.roll(lead, 1, 1)[:, 0]
        one, two = (self.whole(each).step(WHOLE).outputs
                    for each in (use.arrays, arrays))
        pairs, seen = [], visible(keeping, use.arrays)[:, :length - 1]
        for name, array in one.items():
            axes = [i for i, size in enumerate(array.shape) if size == length]
            if axes and is_float(array) and name in two:
                at = (slice(None),) * axes[0] + (slice(length - 1),)
                pairs.append((WHOLE, name, *only_seen(
                    array[at], two[name][at], seen)))
        return judged("", pairs)[0].verdict != WRONG

    def of_another_request(self, use, number, whole):
        """What is proved of a cache that two requests have: a sentence."""
        mine = [read for read in use.reads[:number + 1] if read.request == 0]
        alone = dataclasses.replace(use, reads=tuple(mine))
        if len(mine) == number + 1 or not use.reads[number].counts:
            return []
        bounds: list = []
        single = self.run(alone, bounds)
        *_, values = by_read(single, bounds, len(mine))
        made, *_ = self.judged(whole, values, alone, mine[-1], visible(
            self.keeping, use.arrays))
        return [] if made.verdict == WRONG else [
            "what is kept of one request is read by another: without the "
            "other, the answer is the whole's."]

    def plain(self, use, ordered=True):
        """Yield the answers to each Read as arrays, not traced."""
        with self.keeping.call.put_back():
            for output in self.answers(use, ordered=ordered):
                yield arrays_of(self.keeping.call.framework, output)


def arrays_of(framework, output):
    """{name: array} of an output."""
    found = {}

    def visit(name, leaf):
        if framework.is_array(leaf):
            found[name] = framework.to_numpy(leaf)
        return leaf
    mapped(output, "output", visit)
    return found


def by_read(trace, bounds, count):
    """Of each read {path: {name: array}}, as the whole's steps are called.

    A module's second call in one read is #2, whatever came before.
    """
    ends: dict = {i: {} for i in range(count)}
    for name, array in trace.step(WHOLE).outputs.items():
        _, number, *rest = name.split(".")
        ends[int(number)][".".join(["output", *rest])] = array
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        values = {}
        calls: dict = {}
        here = [step for step in trace.steps if start < step.began <= end
                and step.module != WHOLE]
        for step in sorted(here, key=lambda step: step.began):
            path = step.path.partition("#")[0]
            calls[path] = calls.get(path, 0) + 1
            again = f"#{calls[path]}" if calls[path] > 1 else ""
            values[path + again] = step.outputs
        yield values | {WHOLE: ends[number]}


def _worse(worst, made):
    """The worse of two judgements; the first of equal ones."""
    from parity.invariants.responses import VERDICTS
    if worst is None:
        return made
    ranks = [VERDICTS.index(each[2].verdict) for each in (worst, made)]
    if ranks[1] > ranks[0] or ranks[0] == ranks[1] and (
            made[2].error or 0) > (worst[2].error or 0):
        return made
    return worst


def _span(read):
    """The places of a Read in words."""
    if read.stop - read.start == 1:
        return f"place {read.start}"
    return f"places {read.start} to {read.stop - 1}"


def _of_rows(mine, other, rows):
    """Two arrays of the same rows, or None."""
    if mine.shape == other.shape and isinstance(rows, slice):
        return mine, other
    if isinstance(rows, slice) or len(mine) <= max(rows):
        return None
    mine = mine[rows]
    return (mine, other) if mine.shape == other.shape else None


def _alone(outputs, here, read, length):
    """A model's outputs at some places, by the names that the whole's have.

    Many models return an array, and where they keep something a tuple or a
    dict: of that, the first floating array that has the whole's axes.
    """
    if [*outputs] != ["output"] or "output" in here:
        return here
    first = next((array for array in here.values() if is_float(array)
                  and array.ndim == outputs["output"].ndim), None)
    return {} if first is None else {"output": first}


def _together(asked):
    """Responses; of equal ones in a row, and of those that are wrong for one
    cause, a single one is left."""
    def key(each):
        known = each.known[1:] if each.verdict == WRONG else each.known
        return each.verdict, *known, *each.left_out
    for _, group in itertools.groupby(asked, key):
        first, *more = group
        if first.verdict == WRONG and more:
            first.known.append(
                f"So it is {_joined([each.way for each in more])}.")
            yield first
        elif more:
            worst = max((first, *more), key=lambda each: each.error or 0)
            yield dataclasses.replace(worst, way=_joined(
                [each.way for each in (first, *more)]))
        else:
            yield first


def _joined(words):
    """Several ways in words: of those that differ by a number, from and to."""
    numbers = [re.findall(r"\d+", each) for each in words]
    patterns = {re.sub(r"\d+", "#", each) for each in words}
    if len(patterns) == 1 and len(words) > 1 and len(numbers[0]) == 1:
        return patterns.pop().replace(
            "#", f"{numbers[0][0]} to {numbers[-1][0]}")
    return "; ".join(words)
