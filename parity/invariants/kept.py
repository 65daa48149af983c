"""What a model keeps of the tokens that it has read, and how it is asked.

A model is given what it kept, and hands on what it keeps, by a parameter such
as ``past_key_values``; or a user's function reads for it. What is kept is a
nest of arrays, or an object such as a cache of Hugging Face's.
"""

import contextlib
import copy
import functools
import inspect
import sys

import numpy as np

from parity_io.errors import InputError
from parity.invariants.arguments import (
    MASKS, SOURCE, TARGET, is_causal, is_mask, shown)
from parity.tracing.holders import attributes, held

#: How Hugging Face's models call what they keep.
PAST = "past_key_values"

#: Parameters by which models take what was kept.
TAKEN = (PAST, "past_key_value", "layer_past", "past_kv", "past", "kv_caches",
         "kv_cache", "caches", "cache", "states", "state",
         "cache_params", "hx", "initial_state")

#: By what else they hand it on.
HANDED = ("present_key_values", "presents", "present", "new_cache")

#: Methods that make what an empty model keeps, of rows and places.
MAKERS = ("init_cache", "make_cache", "new_cache", "empty_cache",
          "initial_cache", "init_state")

#: Methods of a model, or of what it keeps, that reorder rows.
REORDER = ("reorder_cache", "_reorder_cache", "reorder")

#: Parameters that say at which place reading goes on: a number, or one each.
STARTS = ("start_pos", "start", "offset", "cache_index", "cache_update_index",
          "past_length", "index", "first")
PLACES = ("position_ids", "positions", "cache_position", "decoder_position_ids")


class NotAsked(Exception):
    """Why a model cannot be asked in some way, in words."""


class Keeping:
    """Reads tokens with what a model keeps.

    Args:
        call: the Call of all tokens at once.
        step: a user's function of (model, place, state, *inputs, **keywords)
            that returns an output and the new state, or None. One whose second
            parameter is ``places`` is given a slice, and reads several.

    Raises:
        InputError: it is not known how the model keeps what it has read.
    """

    def __init__(self, call, step=None):
        self.call, self.step, self.answered = call, step, None
        self.name = next((name for name in TAKEN if name in call.takes), None)
        if step is None and self.name is None:
            raise InputError(
                f"{type(call.model).__name__} takes no {PAST}, so how it keeps "
                "what it has read is not known; give a function step(model, "
                "place, state, *inputs, **keywords).")
        self.role = TARGET if TARGET in call.sequences else SOURCE
        if self.role not in call.sequences:
            raise InputError(
                "no argument of the model is a sequence of tokens; give one.")
        self.several = step is None or "places" in [
            *inspect.signature(step).parameters][1:2]
        self.required = [] if step else [
            name for name, each in inspect.signature(
                call.framework.function(call.model)).parameters.items()
            if each.default is each.empty and name in (*STARTS, *PLACES)]

    @property
    def length(self):
        """How many places all tokens have."""
        return self.call.sequences[self.role].length

    def whole(self, model, arrays):
        """What a model answers to all tokens at once, with nothing kept."""
        inputs, keywords = self.call.arguments(arrays)
        if self.step is None:
            if "use_cache" in self.call.takes:
                keywords["use_cache"] = False
            keywords |= self.places(arrays, 0, arrays[self.call.sequences[
                self.role].lead].shape[1])
        return self.split_output(model(*inputs, **keywords))[0]

    def empty(self, model, rows, places):
        """What a model keeps that has read nothing: None if it makes it."""
        maker = next((getattr(model, name) for name in MAKERS
                      if callable(getattr(model, name, None))), None)
        if self.step or maker is None:
            return None
        names = inspect.signature(maker).parameters
        given = [size for size, name in zip((rows, places), names)]
        if len(names) == 1 and not {"rows", "batch", "batch_size", "b"} & {
                *names}:
            given = [places]
        return maker(*given)

    def static(self, places):
        """An empty cache of Hugging Face's with room for some places."""
        package = sys.modules.get("transformers")
        config = getattr(self.call.model, "config", None)
        if package is None or not isinstance(
                self.call.model, package.PreTrainedModel) or (
                self.name != PAST or self.role == TARGET):
            raise NotAsked("it is no decoder of Hugging Face's")
        if not getattr(self.call.model, "_can_compile_fullgraph", True):
            raise NotAsked("the model says that it takes none")
        return package.StaticCache(config=config, max_cache_len=places)

    def read(self, model, arrays, start, stop, state):
        """The answer to some places, and what is kept then.

        Args:
            arrays: of all places.
            start, stop: the places that are read.
            state: what was kept of those before, or None.
        """
        if self.step is not None:
            return self._stepped(model, arrays, start, stop, state)
        state, memory = state if isinstance(state, EncodedState) else (
            state, None)
        here = self.cut(arrays, start, stop) | self.places(
            arrays, start, stop)
        read = [] if memory is None else [
            name for name in self.call.of(SOURCE) if not is_mask(name)]
        if memory is not None:
            here["encoder_outputs"] = (memory,)
        inputs, keywords = self.call.arguments(here, without=read)
        if "use_cache" in self.call.takes:
            keywords["use_cache"] = True
        output = model(*inputs, **keywords | {self.name: state})
        answer, state = self.split_output(output, state)
        if state is None:
            raise InputError(
                f"{type(model).__name__} takes {self.name} and hands on none "
                "by that name; give a function step(model, place, state, "
                "*inputs, **keywords).")
        memory = _of(output, "encoder_last_hidden_state")
        return answer, state if memory is None else EncodedState(
            (state, memory))

    def _stepped(self, model, arrays, start, stop, state):
        """What a user's function reads."""
        if not self.several and stop - start > 1:
            raise NotAsked("the function reads one token; name its second "
                           "parameter places, and it is given a slice")
        inputs, keywords = self.call.arguments(arrays)
        takes = inspect.signature(self.step).parameters
        if "use_cache" not in takes:  # the model's own, as it is asked at once
            keywords.pop("use_cache", None)
        given = (model, slice(start, stop) if self.several else start, state,
                 *inputs)
        try:
            inspect.signature(self.step).bind(*given, **keywords)
        except TypeError as error:
            raise InputError(
                "step must take (model, place, state, *inputs, **keywords): "
                f"{error}; give a function that does.") from None
        result = self.step(*given, **keywords)
        if not isinstance(result, tuple) or len(result) != 2:
            raise InputError(
                "step must return an output and the new state; it returned a "
                f"{type(result).__name__}.")
        if self.answered is None:
            if not held(result[0], "output", self.call.framework.is_array,
                        every=True):
                raise InputError(
                    "step must return an output with an array, and the new "
                    f"state; its output is a {type(result[0]).__name__}.")
            self.answered = result[0]
        return result

    def cut(self, arrays, start, stop):
        """The arrays of some places; a mask has those before as well."""
        here = dict(arrays)
        length = arrays[self.call.sequences[self.role].lead].shape[1]
        for name in arrays:
            array = arrays[name]
            if name == MASKS[self.role] or is_mask(name) and (
                    name in self.call.of(self.role) or array.ndim == 2
                    and array.shape == (length, length)):
                if array.ndim > 1 and array.shape[-1] == length:
                    if array.shape[-2] == length and (
                            array.ndim > 2 or is_causal(shown(array))):
                        array = array[..., start:stop, :]
                    here[name] = array[..., :stop]
            elif (name in self.call.of(self.role) or name in PLACES
                  and array.ndim == 2) and array.shape[1] == length:
                here[name] = array[:, start:stop]
            elif name in PLACES and array.ndim == 1 and (
                    len(array) == length):
                here[name] = array[start:stop]
        return here

    def places(self, arrays, start, stop):
        """What the model has to be told of the places that it reads."""
        given = {}
        for name in self.required:
            if name in arrays:
                continue
            given[name] = start if name in STARTS else np.arange(start, stop)
            if name.endswith("position_ids"):
                given[name] = given[name][None]
        return given

    def split_output(self, output, state=None):
        """An output as what it answers, and what it keeps.

        Args:
            state: what was handed in.
        """
        names = (self.name, *HANDED)
        if self.step is not None:
            return self.as_answered(output), None
        for name in names:
            kept = _of(output, name)
            if kept is not None:
                return _without(output, names), kept
        if type(output) in (tuple, list) and len(output) > 1:
            nests = [i for i, each in enumerate(output[1:], 1)
                     if each is not None
                     and not self.call.framework.is_array(each)]
            last = nests[-1] if nests else len(output) - 1
            rest = [each for i, each in enumerate(output) if i != last]
            return rest[0] if len(rest) == 1 else tuple(rest), output[last]
        return _without(output, names), state

    def as_answered(self, output):
        """What a model gives to all tokens at once, as far as a user's
        function answers: without what the model keeps."""
        answer, is_array = self.answered, self.call.framework.is_array
        if answer is None:
            return output
        names = [name for name in (*TAKEN, *HANDED)
                 if _of(output, name) is not None
                 and _of(answer, name) is None]
        if names:
            output = _without(output, names)
        nested = type(output) in (tuple, list)
        if nested and len(output) > 1 and not (
                type(answer) in (tuple, list)
                and len(answer) == len(output)):
            rest = [each for i, each in enumerate(output) if not i
                    or not isinstance(each, (tuple, list, dict))]
            output = rest[0] if len(rest) == 1 else tuple(rest)
        parts = [*output.values()] if isinstance(output, dict) else (
            output if type(output) in (tuple, list) else [])
        if parts and is_array(answer):
            fitting = [each for each in parts if is_array(each)
                       and len(each.shape) == len(answer.shape)
                       and each.shape[-1:] == answer.shape[-1:]]
            return fitting[0] if len(fitting) == 1 else output
        return output

    # What becomes of what is kept.

    def arrays(self, state):
        """{name: array} of what is kept."""
        return {name: self.call.framework.to_numpy(array)
                for name, array in held(
                    state, "kept", self.call.framework.is_array,
                    every=True).items()}

    def reordered(self, model, state, rows):
        """What is kept, with other rows, by the model's own function if it
        has one; and whether it has."""
        if isinstance(state, EncodedState):
            made, own = self.reordered(model, state[0], rows)
            memory = self.call.framework.to_numpy(state[1])
            return EncodedState((made, self.call.framework.to_native(
                memory[list(rows)]))), own
        order = self.call.framework.to_native(np.array(rows))
        for owner, given in ((state, (order,)), (model, (state, order))):
            for name in REORDER:
                function = getattr(owner, name, None)
                if callable(function):
                    made = function(*given)
                    return (state if made is None else made), True
        return self.taken(state, rows), False

    def taken(self, state, rows):
        """What is kept, with the rows of each array taken.

        Raises:
            NotAsked: it is not known which of its axes is of rows.
        """
        select = getattr(state, "batch_select_indices", None)
        if callable(select):
            select(self.call.framework.to_native(np.array(rows)))
            return state
        framework = self.call.framework

        def visit(name, leaf):
            axis = self.row_axes.get(name)
            if axis is None or not framework.is_array(leaf):
                return leaf
            return framework.to_native(np.take(
                framework.to_numpy(leaf), list(rows), axis))
        return rebuilt(state, "kept", visit)

    def look(self):
        """Find the axes of rows, if they can be found."""
        with contextlib.suppress(NotAsked):
            self.row_axes.get("")

    @functools.cached_property
    def row_axes(self):
        """{name of an array that is kept: its axis of rows}.

        It is the one that is longer where a batch has one row more.
        """
        rows, shapes = tuple(range(self.call.rows)), []
        for some in (rows, (*rows, rows[-1])):
            arrays = self.call.of_rows(some)
            with self.call.put_back():
                empty = self.empty(self.call.model, len(some), self.length)
                _, state = self.read(self.call.model, arrays, 0, 1, empty)
                if isinstance(state, EncodedState):
                    state = state[0]
                shapes.append({name: array.shape for name, array
                               in self.arrays(state).items()})
        found = {}
        for name, shape in shapes[0].items():
            axes = [i for i, sizes in enumerate(zip(
                shape, shapes[1].get(name, ()))) if sizes == (
                    len(rows), len(rows) + 1)]
            if axes:
                found[name] = axes[0]
        if not found:
            raise NotAsked("nothing that it keeps has an axis of rows")
        return found

    def copied(self, state):
        """What is kept once more, apart from the first."""
        framework = self.call.framework

        def visit(_, leaf):
            return framework.to_native(framework.to_numpy(
                leaf)) if framework.is_array(leaf) else leaf
        try:
            return copy.deepcopy(state)
        except Exception:  # such as an array that has a gradient's graph
            return rebuilt(state, "kept", visit)


class EncodedState(tuple):
    """What a model of two stacks keeps, and what its encoder made."""


def rebuilt(value, name, visit, known=None):
    """A nest, and objects in it, made anew with every leaf replaced; an object
    in which nothing is replaced stays as it is.

    Args:
        value, name, visit: as of ``mapped``.
        known: {id of an object: what was made of it}.
    """
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]

    def all_of(parts):
        return {key: rebuilt(part, f"{name}.{key}", visit, known)
                for key, part in parts.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(**all_of({each: getattr(value, each)
                                     for each in value._fields}))
    if type(value) in (list, tuple, EncodedState):
        return type(value)(all_of(dict(enumerate(value))).values())
    if type(value) is dict:
        return all_of(value)
    made = visit(name, value)
    parts = attributes(value)
    if made is not value or callable(value) or not parts:
        return made
    known[id(value)] = made  # where it is its own part
    changed = {key: part for key, part in all_of(parts).items()
               if part is not parts[key]}
    if changed:
        made = known[id(value)] = copy.copy(value)
        for key, part in changed.items():
            object.__setattr__(made, key, part)
    return made


def _of(output, name):
    """What an output has by a name, as an attribute or as a key; or None."""
    value = getattr(output, name, None)
    if value is None and isinstance(output, dict):
        return output.get(name)
    return value


def _without(output, names):
    """An output without what is kept."""
    if isinstance(output, dict):
        return {name: value for name, value in output.items()
                if name not in names}
    fields = getattr(output, "__dataclass_fields__", None)
    if fields:
        return {name: getattr(output, name) for name in fields
                if name not in names}
    return output
