"""Find the mapping from one model's weights to another's."""

import dataclasses
import math

from parity_io.errors import InputError
from parity.comparison.belonging import check_inputs
from parity.comparison.compare import compare
from parity.comparison.result import OUTPUT
from parity.conversion.entry import GUESS, Mapping
from parity.conversion.weight_source import is_bias
from parity.conversion.search import WeightSearch
from parity.conversion.activations import Computed, distance
from parity.conversion.sources import SourceIndex
from parity.conversion.showing import advice
from parity.conversion.weights import Live, drawn, is_sinusoids
from parity.matching.rearrangement import rearranged
from parity.matching.steps import suggest
from parity.tracing.trace import WHOLE, is_float


#: Outputs that differ by less may do so by float32's rounding inside.
FLOOR = 1e-5

#: What is said of a parameter that other inputs would not show either.
UNSHOWN = ("in no way that is tried does B compute what A does; say in the "
           "mapping how it is made")


@dataclasses.dataclass
class Pairing:
    """A mapping, and how far it holds.

    Attributes:
        mapping: a Mapping.
        comparison: of both models' runs with drawn weights.
        error: the largest relative error of an output.
        over_a, over_b: name -> why it has no partner.
        doubts: name of B's parameter -> why it might be made of another, and
            what to do.
        kept: names that have no partner and stay as they are, because they
            are no weights and both models computed the same with their own.
        notes: a sentence each.
    """

    mapping: Mapping
    comparison: object
    error: float
    over_a: dict
    over_b: dict
    doubts: dict
    kept: list
    notes: list

    @property
    def agrees(self):
        """Whether the outputs are equal, but for float32 inside."""
        return self.error <= FLOOR

    @property
    def draft(self):
        """Whether a parameter has no place, or one that nothing shows."""
        return bool(self.over_a or self.over_b or self.doubts)

    @property
    def complete(self):
        """Whether every parameter has its place, and the outputs agree."""
        return self.agrees and not self.draft

    @property
    def remarks(self):
        """What is to be corrected, a sentence each."""
        return [f"{name!r} of {side} has no place: {why}."
                for side, over in (("A", self.over_a), ("B", self.over_b))
                for name, why in over.items()] + [
            f"{name!r} of B is not sure: {why}."
            for name, why in self.doubts.items()]


def find(a, b, left=()):
    """Which parameter of A is which of B.

    A's weights are drawn anew for the time of the search, so that each is told
    from every other, also norms that are all ones; both models are afterwards
    as they were.

    Args:
        a, b: (model, inputs, keywords) each, run on the same inputs.
        left: parameters of either that need no partner.

    Returns:
        A Pairing.
    """
    a, b = Live(*a), Live(*b)
    left_a, left_b = _left_of(a, b, left)
    notes = check_inputs(a.trace, b.trace, suggest(a.trace, b.trace))
    lasting = _lasting(a, b)
    frozen = {name for live in (a, b) for name, array in live.names.items()
              if name not in live.trace.trainable or is_sinusoids(array)}
    moved = _drawn(a, b, lasting, left_a)
    with a.restored(), b.restored():
        a.put(moved)
        told = Live(a.model, a.inputs, a.keywords)
        search = WeightSearch(b, Computed(told.trace, told.names), SourceIndex(
            told, b, {*left_a, *(told.names.keys() - moved.keys())}),
            [name for name in lasting if name not in left_b])
        sources = search.run()
        guessed = [name for name in sources if name not in search.fixed]
        mapping = Mapping(
            [sources[name].entry for name in b.names if name in sources],
            a.shapes(), b.shapes(), dict(a.trace.aliases),
            dict(b.trace.aliases), list(left_a), list(left_b))
        b.put(mapping.forward(told.names))
        mine, other = told.trace, b.run()
        comparison = compare(mine, other, suggest(mine, other))
        error = outputs_apart(comparison, mine, other)
        if error <= FLOOR:
            search.check_guesses(error)
        doubts = {name: f"{each.why}; {advice(b, each)}"
                  for name, each in search.doubts.items()}
    if error > FLOOR:
        doubts = dict.fromkeys(guessed, UNSHOWN) | doubts
    mapping.entries = [
        dataclasses.replace(entry, by=GUESS) if entry.b in doubts else entry
        for entry in mapping.entries]
    over_a, over_b = _without_place(a, b, mapping, moved, [
        name for name in lasting if name not in left_b], left)
    kept = [name for name in (*a.names, *b.names) if name in frozen
            and name not in sources and name not in moved]
    mapping.left_a += [name for name in a.names if name not in moved
                       and name not in left_a]
    mapping.left_b += [name for name in b.names if name not in sources
                       and name not in left_b and name not in over_b]
    return Pairing(mapping, comparison, error, over_a, over_b, doubts, kept,
                   notes)


def _left_of(a, b, left):
    """The names of A and those of B that need no partner.

    Raises:
        InputError: neither has such a name, or one has no parameters at all.
    """
    for name in left:
        if name not in a.trace.parameters and (
                name not in b.trace.parameters):
            raise InputError(
                f"neither model has a parameter {name!r} that could be left "
                "out; take a name from the list of what has no place.")
    for side, live in (("A", a), ("B", b)):
        if not live.names:
            raise InputError(
                f"{side} has no parameters in floating point, so there is "
                "nothing to convert; give a model that has.")
    return ([name for name in left if name in live.names] for live in (a, b))


def _lasting(a, b):
    """B's parameters that are looked for: trained ones, and buffers like A's.
    """
    return [name for name in b.names if name in b.trace.trainable
            or any(array.shape == b.names[name].shape
                   for other, array in a.names.items()
                   if array.ndim > 1 or other not in a.trace.trainable)]


def _drawn(a, b, lasting, left):
    """{name: array drawn anew} of A's parameters that B's may be made of."""
    sizes = {b.names[name].size for name in lasting
             if b.names[name].ndim > 1 or name not in b.trace.trainable}
    biases = {b.names[name].size for name in lasting if is_bias(name)}
    return {name: drawn(name, array) for name, array in a.names.items()
            if name not in left and array.size and (
                name in a.trace.trainable and not is_sinusoids(array)
                or array.size in sizes
                or is_bias(name) and array.size in biases)}


def _without_place(a, b, mapping, moved, lasting, left):
    """({name of A: why it has no place in B}, the same of B in A)."""
    made = {entry.b for entry in mapping.entries}
    over_a = {name: why for name, why in mapping.uncovered().items()
              if name in moved}
    over_b = {name: "nothing in A is its like" for name in lasting
              if name not in made}
    for live, over in ((a, over_a), (b, over_b)):
        over |= {name: "it is complex, and only real numbers are converted"
                 for name, array in live.trace.parameters.items()
                 if array.dtype.kind == "c" and name in live.trace.trainable
                 and name not in left}
    return over_a, over_b


def outputs_apart(comparison, a, b):
    """The largest error of the models' own outputs; infinity without any.

    Args:
        comparison: of both.
        a, b: their Traces.
    """
    one, two = a.step(WHOLE).outputs, b.step(WHOLE).outputs
    errors = []
    for row in comparison.rows:
        if row.part != OUTPUT or not row.a == row.b == WHOLE:
            continue
        errors.append(math.inf if row.error is None else row.error)
        mine, other = one.get(row.a_name), two.get(row.b_name)
        if row.error and mine is not None and other is not None and (
                is_float(mine)):
            errors.append(distance(rearranged(row.b_layout, other),
                                   rearranged(row.a_layout, mine)))
    return max(errors, default=math.inf)
