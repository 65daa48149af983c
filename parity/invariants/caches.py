"""Whether a cache gives what the whole sequence gives at once.

``cache(model, *inputs)`` runs a model of anybody's on all tokens, and then
token by token, each with what was kept of those before. Every step of every
place is compared with the whole's: the first place that parts is named, and in
it the first step.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from contract.errors import InputError
from parity.comparison.result import describe
from parity.invariants.arguments import SOURCE, TARGET, Call
from parity.invariants.responses import WRONG, Responses, judged
from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import WHOLE, is_float, trace_run

#: Where a model of Hugging Face's hands on, and takes, what it keeps.
PAST = "past_key_values"


def cache(model: Any, *inputs: Any, step: Callable | None = None,
          **keywords: Any) -> Responses:
    """Hold a model's responses token by token against those all at once.

    Args:
        model: a torch.nn.Module, a Keras layer or model, an nnx.Module or an
            mlx.nn.Module.
        inputs, keywords: its arguments, for all tokens at once.
        step: a function of (model, place, state, *inputs, **keywords), which
            has the model read the one token at this place, with the state of
            the place before, None at first, and returns its output and the
            new state. A model that takes ``past_key_values`` needs none.

    Returns:
        Responses, one a place.

    Raises:
        InputError: the model has no cache that is known, no argument is of a
            batch, or ``step`` returns something else.
    """
    call = Call(model, inputs, keywords)
    if step is None and PAST not in call.takes:
        raise InputError(
            f"{type(model).__name__} takes no {PAST}, so how it keeps what it "
            "has read is not known; give a function step(model, place, state, "
            "*inputs, **keywords).")
    role = TARGET if TARGET in call.sequences else SOURCE
    if role not in call.sequences:
        raise InputError(
            "no argument of the model is a sequence of tokens; give one.")
    if "use_cache" in call.takes:
        call.keywords["use_cache"] = False
    whole = call.first()
    sequence = call.sequences[role]
    bounds, outputs = [], []
    step = step or functools.partial(_with_past, call, sequence, role)

    def run(recorder):
        state = None
        for place in range(sequence.length):
            bounds.append(recorder.clock)
            result = step(model, place, state, *inputs, **keywords)
            if not isinstance(result, tuple) or len(result) != 2:
                raise InputError(
                    "step must return an output and the new state; it "
                    f"returned a {type(result).__name__}.")
            output, state = result
            outputs.append(output)
        bounds.append(recorder.clock)
        return outputs
    single = trace_run(model, run)
    places = [_response(whole, values, place, sequence) for place, values
              in enumerate(_by_place(single, bounds))]
    _tell_places(places)
    responses = [response for response, *_ in places]
    return Responses([*_together(responses)], describe(whole), whole.notes)


def _with_past(call, sequence, role, model, place, state, *inputs,
               **keywords):
    """One token of a model that takes ``past_key_values``."""
    past, memory = state or (None, None)
    arrays = dict(call.arrays)
    for name in call.of(role):
        array = arrays[name]
        if name == sequence.mask:
            arrays[name] = array[..., :place + 1]
        elif array.shape[1] == sequence.length:
            arrays[name] = array[:, place:place + 1]
    given = {name: call.framework.to_native(array)
             for name, array in arrays.items()}
    plain = {name: value for name, value in (
        call.inputs | call.keywords).items() if name not in given}
    if memory is not None:
        given = {name: value for name, value in given.items()
                 if name not in call.of(SOURCE) or name.endswith("mask")}
        plain |= {"encoder_outputs": (memory,)}
    if "use_cache" in call.takes:
        plain["use_cache"] = True
    output = model(**plain | given | {PAST: past})
    past, memory = (_of(output, name) for name in (
        PAST, "encoder_last_hidden_state"))
    if past is None:
        raise InputError(
            f"{type(model).__name__} takes {PAST} and hands on none by that "
            "name; give a function step(model, place, state, *inputs, "
            "**keywords).")
    return output, (past, memory)


def _of(output, name):
    """What an output has by a name, as an attribute or as a key; or None."""
    value = getattr(output, name, None)
    if value is None and isinstance(output, dict):
        return output.get(name)
    return value


def _by_place(trace, bounds):
    """Of each place {path: {name: array}}, as the whole's steps are called.

    A module's second call at one place is #2, whatever came before.
    """
    ends = {int(name.split(".")[1]): {} for name in
            trace.step(WHOLE).outputs}
    for name, array in trace.step(WHOLE).outputs.items():
        _, place, *rest = name.split(".")
        ends[int(place)][".".join(["output", *rest])] = array
    for place, (start, end) in enumerate(itertools.pairwise(bounds)):
        calls, values = {}, {}
        here = [step for step in trace.steps if start < step.began <= end
                and step.module != WHOLE]
        for step in sorted(here, key=lambda step: step.began):
            path = step.path.partition("#")[0]
            calls[path] = calls.get(path, 0) + 1
            number = f"#{calls[path]}" if calls[path] > 1 else ""
            values[path + number] = step.outputs
        yield values | {WHOLE: ends.get(place, {})}


def _response(whole, values, place, sequence):
    """Of one place the Response, the step that parts, and of which places of
    the whole it makes what it makes here."""
    pairs, of, left_out = [], {}, {*whole.step(WHOLE).outputs}
    for step in whole.steps:
        here = values.get(step.path, {})
        if step.path == WHOLE:
            here = _alone(step.outputs, here, place, sequence.length)
        for name, array in here.items():
            mine = step.outputs.get(name)
            if step.path == WHOLE and mine is not None:
                _check_one(mine, array, sequence.length)
            both = mine is not None and at_place(
                mine, array, place, sequence.length)
            if step.path == WHOLE and both:
                left_out.discard(name)
            if both and (_has_places(mine, array, place, sequence.length)
                         or np.array_equal(*both)):
                pairs.append((step.path, name, *_seen(*both, sequence, place)))
                of[step.path, name] = mine, array
    response, first = judged(f"place {place}", pairs)
    response.left_out = sorted(left_out)
    if response.verdict != WRONG:
        return response, "", []
    return response, first[0], _elsewhere(
        *of[first[:2]], place, sequence.length)


def _alone(outputs, here, place, length):
    """A model's outputs at one place, by the names that the whole's have.

    Many models return an array, and where they keep something a tuple or a
    dict: of that, the first floating array that has the whole's axes.
    """
    if [*outputs] != ["output"] or "output" in here:
        return here
    first = next((array for array in here.values() if is_float(array)
                  and at_place(outputs["output"], array, place, length)), None)
    return {} if first is None else {"output": first}


def _has_places(mine, other, place, length):
    """Whether an array of a whole sequence says something of a place.

    One without an axis of places, such as the last state or the logits of the
    last token, is what is there at the last place.
    """
    return mine.shape != other.shape or place == length - 1


def _check_one(mine, other, length):
    """Raise InputError where an output is not of one place, but of all."""
    if mine.ndim > 1 and mine.shape == other.shape and (
            mine.shape[1] == length > 1):
        raise InputError(
            f"step gave the output of all {length} places; let it read the "
            "one token at its place.")


def at_place(mine, other, place, length):
    """What of a whole sequence's array belongs to one place.

    Args:
        mine: an array of all places.
        other: the same step's where it reads the place alone.
        place, length: the place, and how many there are.

    Returns:
        Both arrays, of one shape; None if that is not known.
    """
    if mine.ndim != other.ndim:
        return None
    for axis in range(mine.ndim):
        sizes = mine.shape[axis], other.shape[axis]
        if sizes[0] == sizes[1]:
            continue
        if sizes == (length, 1):
            at = slice(place, place + 1)
        elif sizes == (length, place + 1):
            at = slice(place + 1)
        else:
            return None
        mine = mine[(slice(None),) * axis + (at,)]
    return mine, other


def _seen(mine, other, sequence, place):
    """Two arrays without the rows of which this place is padding."""
    visible = sequence.visible[:, place]
    if visible.all() or not visible.any() or len(mine) != len(visible):
        return mine, other
    return mine[visible], other[visible]


def _elsewhere(mine, other, place, length):
    """The places of the whole that have what a step makes at another."""
    if not is_float(mine) or mine.ndim != other.ndim:
        return []
    limit = model_limits(mine.dtype.name)[0]
    pairs = ((there, at_place(mine, other, there, length))
             for there in range(length) if there != place)
    return [there for there, both in pairs
            if both and both[0].shape == other.shape
            and strict_distance(other, both[0]) <= limit]


def _tell_places(places):
    """Say of wrong Responses of which places a step's values are.

    Positions are named where several places in a row agree about them: at one
    place alone, attention too may give what it gives at another.
    """
    for place, (response, path, found) in enumerate(places):
        if not found:
            continue
        response.known.append(
            f"What {path} makes at place {place} is what it makes at place "
            f"{found[0]} of the whole")
        others = [(at, there) for at, (_, step, there) in enumerate(places)
                  if step == path and at != place]
        shift = found[0] - place
        if others and all(0 in there for _, there in others) and 0 in found:
            response.known[-1] += ": positions begin anew with each token."
        elif others and all(at + shift in there for at, there in others):
            response.known[-1] += (
                f": positions are {abs(shift)} too "
                f"{'small' if shift < 0 else 'large'}.")
        else:
            response.known[-1] += "."


def _together(responses):
    """Responses of places; of equal ones in a row a single one is left."""
    for _, group in itertools.groupby(
            responses, key=lambda each: (
                each.verdict, *each.known, *each.left_out)):
        first, *more = group
        if not more or first.verdict == WRONG:
            yield from (first, *more)
            continue
        last = more[-1]
        worst = max((first, *more), key=lambda each: each.error or 0)
        yield dataclasses.replace(worst, way=(
            f"places {first.way.split()[1]} to {last.way.split()[1]}"))
