"""What a cause is: a name, a sentence, a formula, and a way into a port.

A cause is written down once, among its topic's in ``parity/causes/faults``,
and that is all: ``parity check faults`` puts it into every port, ``parity
check`` recognises it there, ``parity compare`` names it in anybody's model,
``parity.assert_parity`` hints at it, and docs/causes.md lists it. Where a
cause cannot be put into a port, or not be told from two traces, it says why;
and two arrays alone hint at those only that ``hinted`` tells.
"""

import dataclasses
import typing

from parity.comparison.verdicts import PRECISION  # noqa: F401  for others

#: What two arrays show by themselves: one is the other with this done to it.
ARRAYS = "arrays"

#: The setting of a parameter that is told by itself, whatever it is.
ANY = "any array"

#: Any value that has no cause of its own.
OTHER = "another"

#: How values of a run are made of those before them, between modules.
BETWEEN = "values between modules"


@dataclasses.dataclass(frozen=True)
class Cause:
    """A thing that goes wrong.

    Attributes:
        name: what is said of a model that has it; no two have one name.
        topic: what it belongs to, for tables.
        sentence: what it is, a formula where there is one.
        of: the formulas by which it is recognised, by name, as
            formulas.FAMILIES have them, or ARRAYS, or BETWEEN.
        settings: {setting: value} with which they compute it.
        beside: {setting: value} that the sound model has there, where that is
            what tells it from another cause.
        compute: where a value is a function of arrays, that function.
        put: port -> a context manager under which the port has it.
        preset: one in which it shows.
        case, step: where it shows first there.
        changes: fields of the preset's config that it needs otherwise.
        factor: size of an axis -> what the whole result is multiplied by,
            if the cause does no more than that.
        equivalent: why it computes the same numbers, to rounding, so that no
            check can or need find it; "" for a fault that is one.
        not_put: why it is put into no port.
        not_explained: why no comparison of two traces names it.
    """

    name: str
    topic: str
    sentence: str
    of: tuple = ()
    settings: dict = dataclasses.field(default_factory=dict)
    beside: dict = dataclasses.field(default_factory=dict)
    compute: typing.Callable | None = None
    put: typing.Callable | None = None
    preset: str = "complete"
    case: str = ""
    step: str = ""
    changes: dict = dataclasses.field(default_factory=dict)
    factor: typing.Callable | None = None
    equivalent: str = ""
    not_put: str = ""
    not_explained: str = ""

    @property
    def explained(self):
        """Whether a comparison of two traces may name it."""
        return bool(self.settings) and not self.not_explained

    @property
    def hinted(self):
        """Whether two arrays show it without what they were made of.

        So they do where one is a function of the other, or both are tables of
        positions; another ε in a norm they do not show.
        """
        return bool(self.factor or self.compute or ARRAYS in self.of
                    or "position encoding" in self.of) and not self.equivalent
