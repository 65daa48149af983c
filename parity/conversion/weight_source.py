"""Of what a parameter of B may be made: one possibility."""

import dataclasses
import functools
import os
import re

from parity.conversion.entry import SUM, Rule
from parity.conversion.layouts import then, words
from parity.matching.words import words_of


@dataclasses.dataclass(frozen=True)
class WeightSource:
    """Of what a parameter of B may be made.

    Attributes:
        entry: the Rule.
        cost: how unlikely it is.
        owners: the modules of A that have the pieces.
        kind: the layout without its sizes.
        cut: takes, out of what A's module gives, what B's should; or None.
        cuts: takes, out of what B's module gives, what each of A's gave.
        gates: an order of GATES, or (): one for all of a module.
        number: which of all experts the name of B's parameter says, or None.
        every: whether it is joined of two parts that are interleaved.
    """

    entry: Rule
    cost: float
    owners: tuple
    kind: tuple
    cut: object = None
    cuts: tuple = ()
    gates: tuple = ()
    number: int | None = None
    every: bool = False

    @functools.cached_property
    def marks(self):
        """(name, part) of each piece, to see that none is used twice."""
        return {(piece.a, part_of(piece.layout))
                for piece in self.entry.pieces}

    @functools.cached_property
    def alike(self):
        """What it has in common with those of other layers, and experts."""
        entry = self.entry
        return (*((numberless(piece.a), own_slice(piece.layout, self.number))
                  for piece in entry.pieces), entry.join, entry.then)

    @functools.cached_property
    def prefix(self):
        """Where B's parameter is."""
        return self.entry.b.rpartition(".")[0]

    @functools.cached_property
    def parts(self):
        """Which part of each piece is taken: "1 of 3", "24 36", "1 of 2,
        every" where parts are interleaved; of gates and of a sum the whole.
        Joined of two that are interleaved it ends in "every"."""
        if self.gates or self.entry.join == SUM:
            return [[]]
        return [cuts_of(piece.layout) for piece in self.entry.pieces] + [
            ["every"]] * self.every


@functools.cache
def numberless(name):
    """A name without its numbers, as in all layers; w1 and w2 are two, and so
    are fc1.weight and fc2.weight."""
    inside, own = name.split(".")[:-2], name.split(".")[-2:]
    return ".".join([
        *(re.sub("[0-9]+", "#", part) for part in inside),
        *(re.sub("(?<![A-Za-z0-9])[0-9]+", "#", part) for part in own)])


@functools.cache
def own_slice(layout, number):
    """A layout without the places of a slice that is the number's, as that of
    an expert is."""
    def placeless(match):
        start, stop = map(int, match.groups())
        return "slice #" if start == number * (stop - start) else match[0]
    return layout if number is None else re.sub(
        r"slice (\d+) (\d+)", placeless, layout, count=1)


@functools.cache
def cuts_of(layout):
    """What a layout takes of an array: each slice and part, and whether parts
    are interleaved, for which one axis is cut into two before; what a slice
    leaves of its own axis is reshaped besides."""
    texts, found = layout.split(", "), []
    for i, text in enumerate(texts):
        if text.startswith("slice"):
            found.append(" ".join(text.split()[1:3]))
        elif text.startswith("part"):
            _, which, _, count, *_ = text.split()
            every = i > 0 and texts[i - 1].startswith("reshape") and (
                i < 2 or not texts[i - 2].startswith("slice"))
            found.append(f"{which} of {count}" + ", every" * every)
    return found


def part_of(layout):
    """The beginning of a layout that leaves something out; "" of a whole."""
    texts = layout.split(", ")
    last = max((i for i, text in enumerate(texts)
                if text.startswith(("part", "slice"))), default=-1)
    return ", ".join(texts[:last + 1])


def common(paths):
    """The module around several, with a dot, or "" without any."""
    if len(paths) < 2:
        return ""
    whole = os.path.commonprefix([f"{path}." for path in paths])
    return whole[:whole.rfind(".") + 1]


def is_bias(name):
    """Whether a parameter is a bias, by its name."""
    return words_of(name)[0][-1:] == ["bias"] or bool(
        re.search(r"\bb[a-z0-9]$", name))


def reordered(source, shape, width, pairs, axis):
    """A WeightSource whose features stand in pairs, as rotary ones do.

    Args:
        source: a WeightSource.
        shape: of B's array.
        width: of a head.
        pairs: "halves", for a model that turns the first half of a head with
            the second where A turns neighbours; or "neighbours", the reverse.
        axis: of B's array, along which the features are.

    Returns:
        A WeightSource, or None where this does not fit.
    """
    if axis >= len(shape) or shape[axis] % width or width % 2:
        return None
    two = (2, width // 2) if pairs == "neighbours" else (width // 2, 2)
    split = (*shape[:axis], shape[axis] // width, *two, *shape[axis + 1:])
    order = [*range(len(split))]
    order[axis + 1], order[axis + 2] = axis + 2, axis + 1
    layout = (f"reshape {words(split)}, transpose {words(order)}, "
              f"reshape {words(shape)}")
    entry = dataclasses.replace(
        source.entry, then=then(source.entry.then, layout))
    return dataclasses.replace(source, entry=entry)
