"""What two arrays look like beside each other, in the catalogue's words.

How they were computed is not known here, so nothing is proved:
``parity.assert_parity`` says it of a divergence, and an explanation of a step
whose cause is not identified.
"""

import itertools
import math

import numpy as np

from parity.causes import catalogue
from parity.causes.cause import ANY, ARRAYS
from parity.causes.expressions import share_dropped
from parity.causes.faults.arrays import MULTIPLE, ORDER
from parity.causes.formulas.activation import SOUND
from parity.causes.formulas.family import LOWER, rounded
from parity.causes.formulas.tables import SINUSOIDS, sinusoid_settings
from parity.causes.patterns import factor_of
from parity.numerics.distance import strict_distance

#: An array that fits this much better after a change was changed so.
BETTER = 1e-3

#: Larger arrays are not searched for a hint.
MOST_SEARCHED = 2**22

#: How many numbers of an array are tried before all of them, and how many
#: positions are.
SOME, FEW = 4096, 32


def called(of, settings, sound=None):
    """The names that causes have, “…” each, to be put behind; "" for none."""
    return _names(cause for cause, _ in catalogue.named(
        of, settings, sound or {}))


def _names(causes):
    names = " or ".join(f"“{cause.name}”" for cause in causes)
    return f" ({names})" if names else ""


class Hint:
    """What two arrays look like.

    Args:
        actual, expected: of float64, without NaN, not empty; expected not
            zero everywhere.
        error: how far actual is off.
        limit: how far it might be.
        names: what the two are called.
        guessed: whether causes that multiply by the same factor are named.
    """

    def __init__(self, actual, expected, error, limit,
                 names=("actual", "expected"), guessed=True):
        self.a, self.e, self.limit = actual, expected, limit
        self.guessed = guessed
        # an error above 1 allows no more: it would let anything fit
        self.goal = max(limit, min(1, 1 if error is None else error) * BETTER)
        self.actual, self.expected = names

    def text(self):
        """The first thing that fits, in a few words; "" if none does."""
        looks = [self.transposed]
        if self.a.shape != self.e.shape:
            looks += [self.reshaped]
        else:
            looks += [self.multiplied, self.offset, self.rows, self.columns,
                      self.functions, self.dropped, self.sinusoids]
        return next(filter(None, (look() for look in looks)), "")

    def fits(self, changed, truth=None):
        """Whether an array is what is expected, or another, once changed."""
        return strict_distance(
            changed, self.e if truth is None else truth) <= self.goal

    def named(self, word, detail):
        """A pattern of arrays by its cause's name."""
        (cause, _), = catalogue.named(ARRAYS, {ANY: word}, {})
        return f"{cause.name}: {detail}"

    def transposed(self):
        """The axes in another order."""
        axes = range(self.a.ndim)
        if not 2 <= len(axes) <= 5:
            return ""
        return next((self.named("transposed", f"{self.actual}.transpose{order}"
                                f" is {self.expected}")
                     for order in itertools.permutations(axes)
                     if order != tuple(axes)
                     and self.fits(self.a.transpose(order))), "")

    def reshaped(self):
        """Another shape."""
        if self.a.size == self.e.size and self.fits(
                self.a.reshape(self.e.shape)):
            return "the same numbers in another shape"
        try:
            np.broadcast_shapes(self.a.shape, self.e.shape)
        except ValueError:
            return ""
        return "the shapes would broadcast, which is never done"

    def multiplied(self):
        """One factor."""
        factor = factor_of(self.e, self.a)
        if not math.isfinite(factor) or factor in (0, 1) or not self.fits(
                self.a / factor):
            return ""
        words = self.named(MULTIPLE, f"{self.actual} is {factor:.10g} times "
                           f"{self.expected}")

        def close(value):
            return math.isclose(abs(factor), value, rel_tol=1e-6)
        for axis, size in enumerate(self.e.shape):
            for text, value in ((f"{size}", size), (f"√{size}", size**0.5)):
                if size > 1 and close(value):
                    words += f", {text} being axis {axis}"
                elif size > 1 and close(1 / value):
                    words += f", 1/{text} for axis {axis}"
                else:
                    continue
                return words + self.multiples(factor)
        return words + self.multiples(factor)

    def multiples(self, factor):
        """The causes that multiply so."""
        if not self.guessed:
            return ""
        sizes = {self.e.shape[-1]} - {1} if self.e.ndim else set()
        return _names(
            cause for cause in catalogue.causes() if cause.factor and any(
                math.isclose(factor, cause.factor(size), rel_tol=1e-6)
                for size in sizes or {2, 3} if sizes or (
                    cause.factor(2) == cause.factor(3))))

    def offset(self):
        """One number added."""
        gap = self.a - self.e
        number = float(np.median(gap))
        if gap.size < 2 or not number or not self.fits(self.a - number):
            return ""
        return (f"a constant summand: {self.actual} is {self.expected} plus "
                f"{number:.10g}")

    def rows(self):
        """The same rows in other places."""
        if self.a.ndim < 2:
            return ""
        a, e = (x.reshape(-1, x.shape[-1]) for x in (self.a, self.e))
        order, back = _order(a, e), np.empty_like(a)
        back[order] = a
        places = np.flatnonzero(order != np.arange(len(order)))
        if not places.size or not self.fits(back, e):
            return ""
        first, there = (list(map(int, np.unravel_index(
            i, self.a.shape[:-1]))) for i in (places[0], order[places[0]]))
        return self.named(ORDER, f"row {first} is {self.expected}'s row "
                          f"{there}; {len(places)} of {len(order)} rows moved")

    def columns(self):
        """The last axis in another order."""
        if not self.a.ndim:
            return ""
        order = _order(*(x.reshape(-1, x.shape[-1]).T
                         for x in (self.a, self.e)))
        back = np.empty_like(self.a)
        back[..., order] = self.a
        places = np.flatnonzero(order != np.arange(len(order)))
        if not places.size or not self.fits(back):
            return ""
        return self.named(ORDER, f"column {places[0]} is {self.expected}'s "
                          f"column {order[places[0]]}; {len(places)} of "
                          f"{len(order)} columns moved")

    def functions(self):
        """One array is a function of the other."""
        if self.a.ndim < 1:
            return ""
        count = max(1, SOME // max(1, self.a.shape[-1]))
        some = [x.reshape(-1, x.shape[-1])[:count] for x in (self.a, self.e)]
        for word, function in (SOUND | catalogue.functions(
                ARRAYS, "activation")).items():
            if word == "none":
                continue
            for turn, mine in ((1, self.actual), (-1, self.expected)):
                result, argument = (self.a, self.e)[::turn]
                part = some[::turn]
                with np.errstate(all="ignore"):
                    if (("another axis" in word or self.fits(
                            function(part[1]), part[0]))
                            and argument.size <= SOME**2
                            and self.fits(function(argument), result)):
                        words = [{"activation": word}, {"activation": "none"}]
                        other = (self.actual, self.expected)[turn > 0]
                        return f"{mine} is {word} of {other}" + called(
                            ARRAYS, *words[::turn])
        return ""

    def dropped(self):
        """Numbers of one are zero in the other, by chance."""
        dropout = share_dropped(self.e, self.a, self.goal)
        if not dropout:
            return ""
        share, factor = dropout
        return (f"{share:.0%} of {self.actual} are zero, and the rest is "
                f"{factor:.6g} times {self.expected}") + called(
                    ARRAYS, {"dropout": "on"})

    def sinusoids(self):
        """Both are tables of sines and cosines."""
        values = {name: [value, *catalogue.values("position encoding", name)]
                  for name, value in SINUSOIDS.items()}
        settings = []
        for x in (self.a, self.e):
            x = x.reshape(-1, *x.shape[-2:])[0] if x.ndim > 2 else x
            if x.ndim < 2 or np.abs(x).max() > 1.001:
                return ""
            settings.append(sinusoid_settings(
                x[:FEW], max(self.limit, 1e-12), values))
        if None in settings:
            return ""
        mine, other = settings
        off = [name for name in mine if mine[name] != other[name]]
        return "; ".join(
            f"{name}: {mine[name]} in {self.actual}, {other[name]} in "
            f"{self.expected}" for name in off) + called(
                "position encoding", {name: mine[name] for name in off},
                other)


def of_masks(actual, expected):
    """What a mask looks like beside the one that is expected."""
    if actual.shape != expected.shape or actual.ndim < 2:
        return ""
    words = [word for word, function in catalogue.functions(
        "mask", "mask").items()
        if np.array_equal(function(expected), actual)]
    return f"as a mask, {words[0]}" + _names(
        cause for cause in catalogue.causes()
        if cause.settings.get("mask") == words[0]) if words else ""


def held(array):
    """The lowest dtype that holds an array's every number; "" for none."""
    with np.errstate(over="ignore"):
        return next((name for name in ("bfloat16", "float16", "float32")
                     if name in LOWER
                     and np.array_equal(rounded(array, name), array)), "")


def _order(a, e):
    """How rows of e stand in a, if they are matched by one projection."""
    along = np.random.default_rng(0).standard_normal(e.shape[1])
    scale = np.abs(e).max()
    ours = (a / scale @ along).argsort(kind="stable")
    theirs = (e / scale @ along).argsort(kind="stable")
    order = np.empty(len(e), int)
    order[ours] = theirs
    return order
