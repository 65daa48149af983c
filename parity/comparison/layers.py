"""Some layers of two models: which steps and parameters of a are in them."""

import dataclasses
import re

from parity_io.errors import InputError, plural

#: A part of a path that numbers a layer: 3, or block_3.
NUMBERED = re.compile(r"(.*_)?\d+")


@dataclasses.dataclass(frozen=True)
class Layers:
    """A range of a's layers, counted as they run.

    A layer is what the first number of a path names: h.3, or decoder.layers.0,
    which follows the last of the encoder's. What stands between two layers
    goes with the next of them, and what stands behind the last with that, so
    that ranges side by side leave nothing out.

    Attributes:
        start, stop: the first, and the one behind the last.
        names: every layer of a.
        steps, parameters: the paths of a's that are in the range.
    """

    start: int
    stop: int
    names: list
    steps: set
    parameters: set

    @property
    def whole(self):
        """Whether these are all layers."""
        return self.stop - self.start == len(self.names)

    def __str__(self):
        first, last = self.names[self.start], self.names[self.stop - 1]
        which = (f"layer {self.start}" if first == last
                 else f"layers {self.start} to {self.stop - 1}")
        return f"{which} of {len(self.names)} ({first}" + (
            ")" if first == last else f" to {last})")

    def rest(self):
        """What was left out, in a sentence."""
        verb = "was" if self.stop - self.start == 1 else "were"
        return (f"Only {self} {verb} compared, by pairs that were sought in "
                "the whole models.")


def name_of(path):
    """The layer that a path is in, or ""."""
    parts = path.partition("#")[0].split(".")
    return next((".".join(parts[:i + 1]) for i, part in enumerate(parts)
                 if NUMBERED.fullmatch(part)), "")


def chosen(asked, a):
    """The Layers that a text such as "0:4" asks for.

    Args:
        asked: START:STOP, either of which may be left out.
        a: a Trace.

    Raises:
        InputError: it is no range, a has no numbered layers, or not these.
    """
    bounds = isinstance(asked, str) and re.fullmatch(
        r"(\d{0,9}):(\d{0,9})", asked)
    if not bounds:
        raise InputError(
            f"the layers {asked!r} are no range; write FIRST:LAST+1, such as "
            "0:4 for the first four.")
    ends = {}
    for step in a.steps:
        if name := name_of(step.path):
            ends[name] = step.began, step.ended
    names = [*dict.fromkeys(
        name for step in sorted(a.steps, key=lambda step: step.began)
        if (name := name_of(step.path)))]
    if not names:
        raise InputError(
            "no step of a is in a numbered layer, such as h.0 or layers.0; "
            "compare the whole models.")
    start, stop = int(bounds[1] or 0), int(bounds[2] or len(names))
    if not start < stop <= len(names):
        raise InputError(
            f"a has no layers {asked}: it has {plural(len(names), 'layer')}, "
            f"{names[0]} to {names[-1]}; give a range within 0:{len(names)}.")
    last = [ends[name][1] for name in names]

    def number(step):
        name = name_of(step.path)
        return names.index(name) if name else min(
            sum(ended < step.ended for ended in last), len(names) - 1)
    places: dict[str, int] = {}
    owners: dict[str, int] = {}
    for step in a.steps:
        places[step.path] = number(step)
        for path in step.parameters:
            owners.setdefault(path, places[step.path])
    inside = range(start, stop)
    return Layers(start, stop, names, {
        path for path, place in places.items() if place in inside}, {
        path for path in [*a.parameters, *a.aliases]
        if (names.index(name_of(path)) if name_of(path) in names
            else owners.get(path, 0)) in inside})
