"""How modules of one sort are read, and what they may be told apart by."""

import typing

import numpy as np

from parity.causes.formulas.narrow import NARROW, ROUGH
from parity.numerics.distance import strict_distance
from parity.numerics.dtypes import NUMPY
from parity.tracing.trace import is_float

LOWER = ("float32", "bfloat16", "float16")


def exact(array):
    """An array in float64, if it is floating; itself if it is so already."""
    return (np.asarray(array).astype(np.float64, copy=False)
            if is_float(array) else array)


def rounded(array, dtype):
    """An array that passed through a lower dtype; "" for none."""
    if dtype == "TF32":  # 10 bits behind the point, ties to even
        bits = array.astype(np.float32).view(np.uint32)
        bits = bits + 0xFFF + ((bits >> 13) & 1) & ~np.uint32(0x1FFF)
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return array if dtype == "" else array.astype(NUMPY[dtype]).astype(
        np.float64)


class Change(typing.NamedTuple):
    """What one module has otherwise than another.

    Attributes:
        setting: a setting's name, or a parameter's.
        in_a, in_b: what it is in each.
        word: how the catalogue calls what b has; "" where a has it.
        settings, parameters: b's without it.
    """

    setting: str
    in_a: object
    in_b: object
    word: object
    settings: dict
    parameters: dict


class Family:
    """How modules of one sort are read and computed.

    Attributes:
        name: what the sort is called; causes refer to it.
        own: settings in which two sound modules may differ, for each was given
            its own arrays: how a mask is meant, which axis is the batch.
        whole: settings whose values follow from sizes, so that the family
            gives them all.
        narrow: what libraries compute in float32 inside a float64 model.
    """

    name = ""
    own = ()
    narrow = ()
    whole = "factor", "input's factor", "heads", "padding"

    def readings(self, side):
        """Yield the parameters by role, each way that they can be read."""
        raise NotImplementedError

    def fields(self, side, parameters):
        """Setting -> its sound values; first what the module says, or usual.

        The catalogue adds those that are a cause.
        """
        raise NotImplementedError

    def compute(self, seen, parameters, settings):
        """What a module with these settings gives."""
        raise NotImplementedError

    def replay(self, seen, parameters, settings):
        """What a module gives, in float32 inside where the settings say so."""
        exact = self.compute(seen, parameters, settings)
        if NARROW not in settings or strict_distance(
                exact, seen.output) > ROUGH:
            return exact
        return self.narrowed(seen, parameters, settings, exact)

    def narrowed(self, seen, parameters, settings, exact):
        """The same with float32 inside, its last bits as the output has them.

        Args:
            exact: the same in float64; it is returned where the output is not
                explained by rounding.
        """
        raise NotImplementedError

    def observed(self, side, parameters, fields):
        """The number by which a whole output is multiplied, in a list.

        It is empty where there is none, or the number is among the fields.
        """
        seen = side.seen[0]
        try:
            y = self.compute(seen, parameters, {
                name: values[0] for name, values in fields.items()})
        except IndexError:  # a row that the table has not
            return []
        y, output = y.reshape(-1), seen.output.reshape(-1)
        with np.errstate(all="ignore"):
            factor = float(y @ output / (y @ y))
        near = np.isfinite(factor) and strict_distance(
            factor * y, output) <= side.limit
        return [factor] if near and all(
            abs(factor - known) > 1e-12 * abs(factor)
            for known in fields["factor"]) else []

    def is_own(self, name):
        """Whether a setting tells how this module's own arrays are meant."""
        return name in self.own or name == NARROW

    def word(self, name, value):
        """How the catalogue calls a value of a setting, or of a parameter."""
        if name.endswith("bias") and value in ("zero", "missing") or (
                name == "scale" and value == "one everywhere"):
            return "ignored"
        return getattr(value, "word", value)

    def relation(self, name, mine, other):
        """How b's parameter is made of a's, where that has words of its own.

        Returns:
            The catalogue's word, and the whole in words; ("", "") if nothing
            is to be told, None if it is as with any two arrays.
        """
        return None

    def also(self, first, second, sides):
        """Yield further Changes from one Fit to another."""
        return ()


def role(path, roles):
    """Which of {role: words} a parameter has, by its last words."""
    word = path.rpartition(".")[2].lower()
    return next((name for name, words in roles.items() if word in words), None)


def by_role(parameters, roles):
    """{role: array}; None where a parameter has none, or two have the same."""
    arrays = {}
    for path, array in parameters.items():
        which = role(path, roles)
        if which is None or which in arrays:
            return None
        arrays[which] = array
    return arrays


class Sized(float):
    """A factor that follows from the size of an axis, under its name."""

    word: str

    WORDS = {"1": lambda d: 1.0, "√d": lambda d: d**0.5,
             "1/√d": lambda d: d**-0.5, "d": float, "1/d": lambda d: 1 / d}

    def __new__(cls, word, size):
        """The factor of this name for an axis of this size."""
        number = super().__new__(cls, cls.WORDS[word](size))
        number.word = word
        return number

    @classmethod
    def word_of(cls, number, size):
        """The name of a number, or ""."""
        return next((word for word, factor in cls.WORDS.items()
                     if abs(factor(size) - number) <= 1e-9 * abs(number)), "")
