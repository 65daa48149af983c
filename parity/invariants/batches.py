"""Whether a row's answer depends on what else is in the batch, or on padding.

A model of anybody's runs once, and again in each way in which it must give the
same: every row alone, beside other rows, in another order, in a larger batch,
padded on the right and on the left. Every step is compared, so that the first
that parts is named.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from parity_io.errors import InputError, plural
from parity.comparison.result import NOTHING
from parity.invariants.arguments import Call
from parity.invariants.alignment import aligned
from parity.invariants.responses import (
    ROUNDING, WRONG, Response, judged)
from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import WHOLE, Trace, is_float

TWICE, ALONE, BESIDE, PERMUTED, LARGER, RIGHT, LEFT = WAYS = (
    "twice", "alone", "beside", "permuted", "larger", "right", "left")

#: How a way is called in the response.
WORDS = {TWICE: "run twice", ALONE: "row {} alone",
         BESIDE: "row {} beside others",
         PERMUTED: "rows in reverse", LARGER: "in a larger batch",
         RIGHT: "padded right", LEFT: "padded left"}

#: How many places padding adds to the source and to the target: no axis that
#: grows by the one grows by the other.
MORE = {"source": 3, "target": 2}

#: Of so many rows at most each is asked alone.
MOST_ROWS = 8


@dataclasses.dataclass(frozen=True)
class Way:
    """One way to ask.

    Attributes:
        words: what it is called.
        rows: which rows of the first run stand in it.
        pads: role -> (places before, places behind).
        arrays: name -> the array that is given.
        kept: which of these rows must be as they were; all if it is empty.
    """

    words: str
    rows: tuple
    pads: dict
    arrays: dict
    kept: tuple = ()


def responses(call: Call, base: Trace, ways: Sequence[str],
              pad_id: int) -> tuple[
                  list[Response], list[str], dict[str, str]]:
    """Ask a model in other batches, and padded.

    Args:
        call: the Call; base: its Trace.
        ways: of WAYS.
        pad_id: the token that is padding.

    Returns:
        A list of Responses; notes, a sentence each; and {way: why it could
        not be asked}.
    """
    call.second, call.rowless = _axes(call, base)
    found, notes, left = [], [], {}
    for name in ways:
        asked = [*_ways(call, name, pad_id)]
        if not asked:
            left[name] = _not_asked(name)
        elif name == ALONE and len(asked) < call.rows:
            notes.append(f"asked alone were the first "
                         f"{plural(len(asked), 'row')} of "
                         f"{call.rows}.")
        found += [_response(call, base, way) for way in asked]
    return found, notes, left


def _axes(call, base):
    """Where a Trace's arrays have their rows, as two sets of (path, name).

    In another batch the axis of rows is the one that changes. Where a model
    takes no other batch, an array [T B …] is told by its sizes.

    Returns:
        Arrays with rows on their second axis; outputs of the whole that have
        no rows, although their first axis is a multiple of them.
    """
    arrays = {(step.path, name): array for step in base.steps
              for name, array in step.outputs.items() if array.ndim}
    second = {key for key, array in arrays.items()
              if array.shape[1:2] == (call.rows,)}
    first = {key for key, array in arrays.items() if key[0] == WHOLE
             and call.rows > 1 and len(array) % call.rows == 0}
    rows = (0,) * (call.rows + 1)
    try:
        other = call.trace(call.of_rows(rows)) if second | first else None
    except Exception:  # a foreign model may refuse
        lengths = {sequence.length for sequence in call.sequences.values()}
        return {key for key in second
                if len(arrays[key]) in lengths - {call.rows}}, set()
    shapes = {(step.path, name): array.shape
              for step in (other.steps if other else ())
              for name, array in step.outputs.items()}
    return ({key for key in second if shapes.get(key, ())[:2] == (
                len(arrays[key]), len(rows))},
            {key for key in first if shapes.get(key) == arrays[key].shape})


def _not_asked(name):
    """Why a way could not be tried."""
    if name in (RIGHT, LEFT):
        return (f"not asked {WORDS[name]}: no argument is a mask, so that "
                "padding cannot be hidden; name one among them.")
    if name == BESIDE:
        return (f"not asked {WORDS[name].replace('{} ', '')}: no argument has "
                "numbers or several ids, of which others could be drawn.")
    return f"not asked {WORDS[name].replace('{} ', '')}: there is one row."


def _ways(call, name, pad_id):
    """Yield the Ways of a name; none where the call has not what it needs."""
    every = tuple(range(call.rows))
    if name == TWICE:
        yield Way(WORDS[name], every, {}, call.arrays)
    elif name == LARGER:
        rows = every * 2 + every[:1]
        yield Way(WORDS[name], rows, {}, call.of_rows(rows))
    elif name == PERMUTED and call.rows > 1:
        yield Way(WORDS[name], every[::-1], {}, call.of_rows(every[::-1]))
    elif name == ALONE and call.rows > 1:
        for row in every[:MOST_ROWS]:
            yield Way(WORDS[name].format(row), (row,), {},
                      call.of_rows([row]))
    elif name == BESIDE:
        rows = every if call.rows > 1 else (0, 0)
        same = call.of_rows(rows)
        for row in sorted({0, call.rows - 1}):
            arrays = call.beside(row, rows)
            if any((arrays[name] != same[name]).any() for name in same):
                yield Way(WORDS[name].format(row), rows, {}, arrays, (row,))
    elif name in (RIGHT, LEFT):
        pads = {role: (0, MORE[role]) if name == RIGHT else (MORE[role], 0)
                for role, sequence in call.sequences.items() if sequence.mask}
        if pads:
            yield Way(WORDS[name], every, pads, call.padded(pads, pad_id))


def _response(call, base, way):
    """The Response of one Way, given positions if it needs them."""
    response = _asked(call, base, way)
    if response.verdict != WRONG or not way.pads:
        return response
    arrays = way.arrays
    for role in way.pads:
        arrays = call.positions(arrays, role) or arrays
    if arrays is way.arrays:
        return response
    again = _asked(call, base, dataclasses.replace(way, arrays=arrays))
    if again.verdict == NOTHING:
        return response
    again.known.append(
        "Asked with position_ids that count what is no padding; without them "
        f"{response.step} parts first.")
    return again


def _asked(call, base, way):
    """The Response of one Way."""
    try:
        other = call.trace(way.arrays)
    except InputError:
        raise
    except Exception as error:  # a foreign model may refuse
        text = " ".join(str(error).split())[:200]
        return Response(way.words, NOTHING, known=[
            f"It could not be asked: {type(error).__name__}: {text}."])
    steps = {step.path: step for step in other.steps}
    pairs, before, left_out = [], {}, []
    for step in base.steps:
        theirs = steps.get(step.path)
        for name, array in step.outputs.items():
            there = theirs and theirs.outputs.get(name)
            if (step.path, name) in call.second and there is not None and (
                    there.ndim > 1):
                array, there = array.swapaxes(0, 1), there.swapaxes(0, 1)
            if (step.path, name) in call.rowless and there is not None:
                array, there = array[None], there[None]
            both = there is not None and _pair(
                call, way, array, there, step.path == WHOLE)
            if both:
                pairs.append((step.path, name, *both))
                before[step.path, name] = array, there
            elif step.path == WHOLE:
                left_out.append(name)
    response, first = judged(way.words, pairs)
    response.left_out = left_out
    if response.verdict == WRONG and way.pads and first:
        response.known += _stays(*before[first[:2]], first[0])
    if response.verdict == WRONG:
        response.known += _nan(base, steps)
    if response.verdict == ROUNDING and way.kept and call.rows > 1:
        response.known.append(
            f"Nothing but other rows changed, and {response.step} gives other "
            "bits.")
    if response.verdict == WRONG and first and base.step(
            first[0]).settings.get("batch_first") is False:
        response.known.append(
            f"{first[0]} has batch_first False: its rows are the second axis "
            "of what it is given.")
    return response


def _pair(call, way, mine, other, whole):
    """Two arrays of one step to compare, or None.

    A table, of no row of the batch, is the same in every way. An output of the
    whole model that has no rows and is not the same, such as the loss of the
    batch, is compared where the rows are.
    """
    both = aligned(call, way, mine, other)
    if np.array_equal(mine, other) and (not whole or both and not both[2]):
        return mine, other
    every = tuple(range(call.rows))
    if not both or not both[2] and way.kept:
        return None
    if whole and not both[2] and way.rows != every and (
            mine.ndim or tuple(sorted(way.rows)) != every):
        return None
    return both[:2]


def _nan(base, steps):
    """Yield where NaN arises that was not there; padding counts as well."""
    for step in base.steps:
        other = steps.get(step.path)
        for name, array in (other.outputs if other else {}).items():
            if is_float(array) and np.isnan(array).any() and not np.isnan(
                    step.outputs.get(name, 0.0)).any():
                places = np.unique(np.argwhere(np.isnan(array))[:, 0])
                yield (f"NaN arises in {step.path}, in row "
                       f"{', '.join(map(str, places[:4]))}.")
                return


def _stays(mine, other, path):
    """Yield that a step's numbers belong to places, and not to tokens."""
    if mine.ndim != other.ndim:
        return
    cut = other[tuple(slice(size) for size in mine.shape)]
    if mine.shape != other.shape and is_float(mine) and (
            strict_distance(cut, mine) <= model_limits(mine.dtype.name)[0]):
        yield (f"What {path} makes stays at its place when padding comes "
               "before it: places are counted from the left end.")
