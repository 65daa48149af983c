"""The arguments of a model's call, as arrays to be changed and given again.

Which argument is what follows from its name: of the target what is called
decoder, target or tgt, of the source all else; a mask is called one. It hides
where it is zero or false, or, inverted, where it is true; one of floats that
has nothing above zero is added to scores, and hides where it is far below zero.
"""

import contextlib
import dataclasses
import inspect
import re

import ml_dtypes
import numpy as np

from parity_io.errors import InputError
from parity.invariants.remembered import forgotten
from parity.tracing.recorder import argument_names, mapped
from parity.tracing.trace import is_float, trace, tracing_of

SOURCE, TARGET = "source", "target"

#: The parameter by which a model takes a mask.
MASKS = {SOURCE: "attention_mask", TARGET: "decoder_attention_mask"}

#: The parameter by which a model takes the positions of tokens.
POSITIONS = {SOURCE: "position_ids", TARGET: "decoder_position_ids"}


@dataclasses.dataclass(frozen=True)
class Sequence:
    """What of the arguments has one place for each token.

    Attributes:
        lead: the name of its tokens, or vectors.
        length: how many places it has.
        mask: the name of its mask, or "".
        visible: bool [B T]; whether a token is none of padding.
    """

    lead: str
    length: int
    mask: str
    visible: np.ndarray


class Call:
    """A model, and the arguments of one call as NumPy's arrays.

    Attributes:
        arrays: name -> array; a part of a dict is NAME.key.
        rows: how many rows the batch has.
        inverted: the names of masks that say what is hidden.
        made: the roles whose mask was not given, and is made here.
        sequences: SOURCE or TARGET -> its Sequence.
        second: (path, name) of arrays of steps whose rows are the second axis.
        rowless: those of outputs that have no rows, whatever their sizes.
    """

    def __init__(self, model, inputs, keywords):
        """Take a call apart.

        Args:
            model: a torch.nn.Module, a Keras layer or model, an nnx.Module or
                an mlx.nn.Module.
            inputs, keywords: its arguments.

        Raises:
            InputError: no argument is an array of a batch.
        """
        self.model, tracing = model, tracing_of(model)
        self.framework = tracing.framework_for(model)
        function = self.framework.function(model)
        self.takes = set(inspect.signature(function).parameters)
        names, _ = argument_names(function, inputs, keywords)
        self.inputs, self.keywords = dict(zip(names, inputs)), dict(keywords)
        self.made = []
        self.arrays: dict = {}
        self.second, self.rowless = set(), set()

        def visit(name, leaf):
            if self.framework.is_array(leaf):
                self.arrays[name] = self.framework.to_numpy(leaf)
            return leaf
        for name, value in (self.inputs | self.keywords).items():
            mapped(value, name, visit)
        batched = [array for array in self.arrays.values() if array.ndim > 1]
        if not batched:
            raise InputError(
                "no argument of the model is an array of a batch, [B T] or "
                "[B T D]; give one.")
        self.rows = len(batched[0])
        self.inverted = {name for name, array in self.arrays.items()
                         if is_mask(name) and is_inverted(name, array)}
        if not self.rows:
            raise InputError("the batch has no rows; give one at least.")
        self.sequences = {}
        for role in (SOURCE, TARGET):
            if sequence := self._sequence(role):
                self.sequences[role] = sequence

    def of(self, role):
        """The names of arrays that a role has, one row of each for a row."""
        return [name for name, array in self.arrays.items()
                if role_of(name) == role and array.ndim > 1
                and self.has_rows(name)]

    def has_rows(self, name):
        """Whether an array has a row for each of the batch's.

        One of as many places as rows has none if it is a causal mask [T T], or
        positions [T].
        """
        array = self.arrays[name]
        if not array.ndim or len(array) != self.rows:
            return False
        if array.ndim == 1:
            return "position" not in name
        return not is_mask(name) or bool(
            re.search("attention_mask|padding", name)) or not is_causal(
                shown(array))

    def _sequence(self, role):
        """The Sequence of a role; None where nothing has a place a token."""
        names = self.of(role)
        lead = next((name for name in names if not is_mask(name)), None)
        if lead is None:
            return None
        length = self.arrays[lead].shape[1]
        if not is_float(self.arrays[lead]) and MASKS[role] in self.takes and (
                MASKS[role] not in self.arrays):
            self.arrays[MASKS[role]] = np.ones((self.rows, length), np.int64)
            names.append(MASKS[role])
            self.made.append(role)
        mask = next((name for name in names if is_mask(name)
                     and self.arrays[name].shape[-1] == length), "")
        visible = np.ones((self.rows, length), bool)
        if mask:
            visible = shown(self.arrays[mask], mask in self.inverted).reshape(
                self.rows, -1, length).any(1)
        return Sequence(lead, length, mask, visible)

    def first(self):
        """The Trace of the call, with the masks that were made for it.

        They are of numbers, or of booleans, or left out, as the model takes
        them.
        """
        for dtype in (np.int64, bool) if self.made else ():
            for role in self.made:
                name = MASKS[role]
                self.arrays[name] = self.arrays[name].astype(dtype)
            try:
                return self.trace(self.arrays)
            except InputError:
                raise
            except Exception:  # a foreign model may refuse
                continue
        for role in self.made:
            del self.arrays[MASKS[role]]
            self.sequences[role] = dataclasses.replace(
                self.sequences[role], mask="")
        return self.trace(self.arrays)

    def trace(self, arrays):
        """The Trace of the model on other arrays, by name."""
        inputs, keywords = self.arguments(arrays)
        with forgotten(self.model, self.framework):
            return trace(self.model, *inputs, **keywords)

    def arguments(self, arrays, without=()):
        """What the model is called with, with other arrays, by name.

        Args:
            arrays: name -> array, or anything that is given as it is.
            without: names that are left out.

        Returns:
            A list of inputs and a dict of keywords.
        """
        def native(value):
            return self.framework.to_native(value) if isinstance(
                value, np.ndarray) else value

        def put(name, leaf):
            if name in arrays and self.framework.is_array(leaf):
                return (arrays[name] if isinstance(leaf, np.ndarray)
                        else native(arrays[name]))
            return leaf
        given, named = ({name: mapped(value, name, put)
                         for name, value in values.items()
                         if name not in without}
                        for values in (self.inputs, self.keywords))
        more = {name: native(value) for name, value in arrays.items()
                if name in self.takes and name not in given | named
                and name not in without}
        if [*given] != [*self.inputs][:len(given)]:
            given, more = {}, given | more  # one before others is left out
        return [*given.values()], named | more

    @contextlib.contextmanager
    def put_back(self):
        """A ``with`` block after which the model is as it was."""
        with forgotten(self.model, self.framework), tracing_of(
                self.model).put_back(self.model):
            yield

    def of_rows(self, rows):
        """The arrays of some rows."""
        return {name: array[list(rows)] if self.has_rows(name) else array
                for name, array in self.arrays.items()}

    def beside(self, row, rows):
        """The arrays of some rows, of which all but one have other values.

        Others are drawn: ids of those up to the highest that is given, which
        a model knows, and floats as large as what is given. Masks and
        positions stay.

        Args:
            row: the place in ``rows`` of the one that stays as it is.
            rows: which rows are taken.
        """
        arrays = self.of_rows(rows)
        others = [place for place in range(len(rows)) if place != row]
        for name, array in arrays.items():
            if self.has_rows(name) and array.ndim > 1 and not (
                    is_mask(name) or "position" in name
                    or array.dtype == bool):
                arrays[name] = array = array.copy()
                array[others] = _others(array[others], array.max(initial=0))
        return arrays

    def padded(self, pads, pad_id=0):
        """The arrays with more places: {role: (left, right)} of them."""
        arrays = dict(self.arrays)
        for role, pad in pads.items():
            sequence = self.sequences[role]
            for name in self.arrays:
                if role_of(name) == role:
                    arrays[name] = self._padded(name, sequence, pad, pad_id)
        return arrays

    def _padded(self, name, sequence, pad, pad_id):
        """An array with more places, hidden if it is a mask."""
        array = self.arrays[name]
        if name == sequence.lead and is_float(array):
            return _with_noise(array, pad)
        mask = is_mask(name)
        axes = [axis for axis in self._axes(name)
                if array.shape[axis] == sequence.length]
        for axis in axes:
            width = [pad if i == axis else (0, 0) for i in range(array.ndim)]
            if name == sequence.lead:
                fill = {"constant_values": pad_id}
            elif mask and axis == array.ndim - 1:
                fill = {"constant_values": hidden(
                    array, name in self.inverted)}
            else:
                fill = {"mode": "edge"}
            array = np.pad(array, width, **fill)
        return array

    def _axes(self, name):
        """The axes of an array that may be of places.

        Those of a mask are its last two: one before them is of heads.
        """
        ndim, rows = self.arrays[name].ndim, self.has_rows(name)
        if is_mask(name):
            return range(max(ndim - 2, rows), ndim)
        if rows:
            return range(1, min(2, ndim))
        return range(ndim - 1, ndim) if "position" in name else ()

    def positions(self, arrays, role):
        """The same arrays with positions that count what is no padding.

        None where the model is asked for no positions, or was given them.
        """
        name, mask = POSITIONS[role], self.sequences[role].mask
        if name not in self.takes or name in arrays or not mask:
            return None
        seen = shown(arrays[mask], mask in self.inverted)
        if seen.ndim > 2:
            return None
        return arrays | {name: np.maximum(seen.cumsum(1) - 1, 0)}


def _with_noise(vectors, pad):
    """Vectors [B T …] with random ones before and behind, and no zeros.

    Zeros would leave a sum as it is, whether they are hidden or not.
    """
    random = np.random.default_rng(0)
    parts = [random.normal(size=(len(vectors), n, *vectors.shape[2:]))
             for n in pad]
    return np.concatenate([
        parts[0].astype(vectors.dtype), vectors,
        parts[1].astype(vectors.dtype)], 1)


def _others(array, highest):
    """Other values for an array of floats or of ids, each at its place."""
    random = np.random.default_rng(1)
    if is_float(array):
        size = np.abs(array.astype(np.float64)).max(initial=1)
        return (size * random.normal(size=array.shape)).astype(array.dtype)
    drawn = random.integers(0, highest, array.shape, endpoint=True)
    return np.where(drawn == array, (array + 1) % (highest + 1), drawn)


def role_of(name):
    """Of what an argument is, by its name."""
    words = re.split("[^a-z]+", name.lower())
    return TARGET if {"decoder", "target", "tgt"} & {*words} else SOURCE


def is_mask(name):
    """Whether an argument says what is hidden."""
    return "mask" in name.rpartition(".")[2].lower()


def is_inverted(name, mask):
    """Whether a mask says what is hidden, and not what is seen.

    torch.nn's key padding masks do. So does one of booleans that, read as what
    is seen, leaves some row nothing to see, and read as what is hidden, none.
    """
    if "key_padding_mask" in name:
        return True
    if mask.dtype != bool or "attention_mask" in name:
        return False
    return bool((~mask).any(-1).all() and not mask.any(-1).all())


def is_additive(mask):
    """Whether a mask is added to scores: zero where a token is seen."""
    return is_float(mask) and (
        mask.min(initial=0) < 0 or not (mask > 0.5).any())


def is_causal(seen):
    """Whether a mask [T T], or its inverse, lets a place see those before."""
    if seen.ndim != 2 or len(seen) != seen.shape[1] or len(seen) < 2:
        return False
    before = np.tri(len(seen), dtype=bool)
    return np.array_equal(seen, before) or np.array_equal(~seen, before)


def shown(mask, inverted=False):
    """A mask as booleans, true where a token is seen."""
    if is_additive(mask):
        return mask > -1
    return (mask > 0.5) != inverted


def hidden(mask, inverted=False):
    """What stands in a mask where a token is hidden."""
    if is_additive(mask):
        return ml_dtypes.finfo(mask.dtype).min
    return np.ones((), mask.dtype)[()] if inverted else 0
