"""What stands between modules: how a value is made of those before it.

A residual connection, a functional activation, a scale or sinusoids belong to
no module, so no trace has them. But it has their result, as another module's
input or as the output of the module around them. ``made_of`` finds the
expression of earlier values that gives this result, to the last digits.
"""

import dataclasses
import itertools
import math
import typing

import numpy as np

from parity.causes import fit
from parity.causes.formulas.activation import ROUNDED
from parity.causes.formulas.scores import capped
from parity.causes.formulas.family import exact
from parity.causes.formulas.tables import sinusoid_settings
from parity.matching.rearrangement import probes
from parity.numerics.distance import strict_distance
from parity.numerics.words import listed
from parity.tracing.trace import WHOLE, is_float

#: How many earlier values are looked at.
MOST = 40


@dataclasses.dataclass(eq=False)
class EarlierValue:
    """An array of a run, with every place where it stood.

    Attributes:
        array: in float64.
        places: ("input" or "output", path of the step, name), first to last.
    """

    array: np.ndarray
    places: list


@dataclasses.dataclass(eq=False)
class Made:
    """An expression that gives a value.

    Attributes:
        form: "sum", "function", "factor", "cap", "rows", "dropped", "product"
            or "activated sum" (of the first, activated, and the second),
            "positions".
        sources: Values.
        what: the activation, the factor, the cap, the share that was dropped
            and the rest's factor, or the settings of sinusoids.
        error: how near it comes.
        twins: activations that give the same.
        inside: whether an activation's constant is in float32.
    """

    form: str
    sources: list
    what: typing.Any
    error: float
    twins: list = dataclasses.field(default_factory=list)
    inside: bool = False


def events(trace):
    """[(when, ("input" or "output", path of the step, name), array)] of a run,
    in the order of computation."""
    return sorted((
        (when, (part, step.path, name), array) for step in trace.steps
        for when, part, arrays in ((step.began, "input", step.inputs),
                                   (step.ended, "output", step.outputs))
        for name, array in arrays.items()), key=lambda event: event[0])


def earlier(trace, step, part):
    """The arrays that were there before a step began, or ended.

    Args:
        trace: a Trace.
        step: one of its steps.
        part: "input" for those before it began, "output" for before it ended.

    Returns:
        {hash: (array, places)}.
    """
    arrays = {}
    until = step.began if part == "input" else step.ended
    for when, (what, path, name), array in events(trace):
        if when < until and is_float(array):
            arrays.setdefault(trace.hash_of(array), (array, []))[1].append(
                (what, path, name))
    return arrays


def spreads(array, target):
    """Whether an array has a value's shape, or can be repeated to it."""
    return array.shape == target.shape or (
        target.ndim > 2 and 1 < array.ndim <= target.ndim
        and array.shape[-2:] == target.shape[-2:]
        and all(n in (1, m) for n, m in zip(
            array.shape[::-1], target.shape[::-1])))


def channels_last(array, shape):
    """[batch, channels, places …] as [batch, places, channels], if that is the
    shape, and whatever else as it is; pictures' places in one row."""
    if array.ndim < 3 or array.shape == shape or len(shape) != 3 or (
            array.shape[0] != shape[0] or array.size != math.prod(shape)):
        return array
    if array.ndim > 3 and array.shape[-1] == shape[-1]:
        return array.reshape(shape)
    return (array.reshape(*array.shape[:2], -1).swapaxes(1, 2)
            if array.shape[1] == shape[-1] else array)


def made_of(trace, step, part, name, limit):
    """How an input or output of a step is made of what was there before.

    Returns:
        A Made, or None where none is found, or more than one.
    """
    target = (step.inputs if part == "input" else step.outputs)[name]
    if not is_float(target) or target.size < 2:
        return None
    before = earlier(trace, step, part)
    key = trace.hash_of(target)
    if key in before:
        return Made("sum", [EarlierValue(exact(target), before[key][1])], "",
                    0.0)
    # Of views with other axes, only channels that are put last are looked for.
    views = ((channels_last(array, target.shape), places)
             for array, places in before.values())
    same = [(array, places) for array, places in views
            if spreads(array, target)]
    outer = [pair for pair in same[:-MOST] if any(
        what == "input" and path == WHOLE for what, path, _ in pair[1])]
    values = [EarlierValue(np.broadcast_to(exact(array), target.shape), places)
              for array, places in outer + same[-MOST:]]
    if not values:
        return None
    search = Expressions(exact(target), values, limit)
    for stage in (search.copies, search.sums, search.functions,
                  search.factors, search.caps, search.parts, search.products,
                  search.scaled_sums, search.positions,
                  search.activated_sums, search.multiplied_sums):
        stage()
        if search.results:
            break
    return search.results[0] if len(search.results) == 1 else None


class Expressions:
    """The expressions of values that give one value.

    At first only some places of the arrays are looked at.
    """

    def __init__(self, x, values, limit):
        self.x, self.values, self.limit = x, values, limit
        self.places = probes(x.size)
        self.good = x.reshape(-1)[self.places]
        self.scale = float(np.sqrt(np.square(self.good).mean())) or 1.0
        self.table = np.stack([v.array.reshape(-1)[self.places]
                               for v in values])
        size = x.shape[-1]
        self.factors_tried = size**0.5, size**-0.5
        self.results = []

    def near(self, candidates, rest=0.0):
        """Which rows of candidates, and what is added, give the target."""
        with np.errstate(all="ignore"):
            gap = np.abs(candidates + rest - self.good).max(-1)
        return np.flatnonzero(gap <= 64 * self.limit * self.scale)

    def take(self, form, sources, what, array, inside=False):
        """Keep an expression if it gives the whole."""
        error = strict_distance(array, self.x)
        if error <= self.limit:
            self.results.append(Made(form, sources, what, error,
                                     inside=inside))

    def add(self, *terms, factor=""):
        """Keep a sum of values, the first one times a factor."""
        values = [self.values[i] for i in terms]
        first, *rest = (value.array for value in values)
        self.take("sum", values, factor, sum(rest, (factor or 1) * first))

    def copies(self):
        """The value itself."""
        for i in self.near(self.table):
            self.add(i)

    def sums(self):
        """Two values."""
        for i in range(len(self.values)):
            for j in self.near(self.table[i:], self.table[i]) + i:
                self.add(i, j)

    def functions(self):
        """A function of one value."""
        for value, row in zip(self.values, self.table):
            before = len(self.results)
            for word, function in fit.activations().items():
                along = "softmax" in word  # of which a part says nothing
                if word == "none" or "another axis" in word or (
                        along and self.x.ndim < 2):
                    continue
                with np.errstate(all="ignore"):
                    if along or len(self.near(function(row)[None])):
                        self.take("function", [value], word,
                                  function(value.array))
            self.join_twins(before)
            for word, function in ROUNDED.items():
                if len(self.results) == before and len(
                        self.near(function(row)[None])):
                    self.take("function", [value], word,
                              function(value.array), inside=True)

    def join_twins(self, before):
        """Keep one of the results from ``before`` on, with the others' words.

        relu6 and relu may be one: the commoner is taken.
        """
        for other in self.results[before + 1:]:
            self.results[before].twins.append(other.what)
        del self.results[before + 1:]

    def factors(self):
        """A multiple of one value."""
        for value, row in zip(self.values, self.table):
            with np.errstate(all="ignore"):
                factor = float((row @ self.good) / (row @ row))
            if math.isfinite(factor) and len(self.near(factor * row[None])):
                a, b = value.array.reshape(-1), self.x.reshape(-1)
                factor = float((a @ b) / (a @ a))
                self.take("factor", [value], factor, factor * value.array)

    def caps(self):
        """A value x as c tanh(x / c): the c is what its largest numbers say.
        """
        for value, row in zip(self.values, self.table):
            cap = cap_of(row, self.good)
            if cap and len(self.near(capped(row, cap)[None])):
                self.take("cap", [value], cap, capped(value.array, cap))

    def parts(self):
        """One value of which some rows are zero, or some numbers dropped."""
        x = self.x
        for value in self.values:
            zero = ~x.reshape(-1, x.shape[-1]).any(-1)
            if 0 < zero.sum() < zero.size:
                self.take("rows", [value], f"{zero.sum()} of {zero.size}",
                          value.array * ~zero.reshape(x.shape[:-1])[..., None])
            dropped = share_dropped(value.array, x, self.limit)
            if dropped:
                self.results.append(Made("dropped", [value], dropped, 0.0))

    def activated_sums(self):
        """A function of one value, and another: positions after a layer."""
        for inside in False, True:
            if not self.results:
                self.joined("activated sum", np.add, inside)

    def products(self):
        """A function of one value times another: a gate."""
        for inside in False, True:
            if not self.results:
                self.joined("product", np.multiply, inside)
        # An activation that is a module of its own says no more.
        self.results = [result for result in self.results
                        if result.what != "none"] or self.results

    def joined(self, form, join, inside):
        """Two values joined, of which one goes through a function.

        ``inside`` says that its constant is in float32.
        """
        functions = ROUNDED if inside else {
            word: function for word, function in fit.activations().items()
            if "softmax" not in word
            and (word != "none" or form == "product")}
        for i, row in enumerate(self.table):
            words = {}
            for word, function in functions.items():
                with np.errstate(all="ignore"):
                    near = self.near(join(function(row), self.table))
                for j in near:
                    if j > i or j < i and word != "none":
                        words.setdefault(j, []).append(word)
            for j, each in words.items():
                before = len(self.results)
                one, two = self.values[i], self.values[j]
                for word in each:
                    with np.errstate(all="ignore"):
                        self.take(form, [one, two], word, join(
                            functions[word](one.array), two.array), inside)
                self.join_twins(before)

    def scaled_sums(self):
        """Two or three values, one of them multiplied by √size, or over it."""
        table, count = self.table, len(self.values)
        for i, factor in itertools.product(range(count), self.factors_tried):
            for j in self.near(table, factor * table[i]):
                if i != j:
                    self.add(i, j, factor=factor)
        if count > MOST // 2:
            return
        for i, j in itertools.combinations(range(count), 2):
            for k in self.near(table[j + 1:], table[i] + table[j]) + j + 1:
                self.add(i, j, k)
            for first, factor in itertools.product(
                    range(count), self.factors_tried):
                if first not in (i, j) and len(self.near(
                        table[i:i + 1], table[j] + factor * table[first])):
                    self.add(first, i, j, factor=factor)

    def multiplied_sums(self):
        """Two values, one of them multiplied by any number."""
        for i, row in enumerate(self.table):
            rest = self.good - self.table
            with np.errstate(all="ignore"):
                factors = rest @ row / (row @ row)
                gap = np.abs(factors[:, None] * row - rest).max(-1)
            for j in np.flatnonzero(gap <= 64 * self.limit * self.scale):
                if i == j or not abs(factors[j]) > 1e-6:
                    continue
                one = self.values[i].array.reshape(-1)
                left = (self.x - self.values[j].array).reshape(-1)
                self.add(i, j, factor=float(one @ left / (one @ one)))

    def positions(self):
        """A multiple of one value, and sinusoids."""
        x = self.x
        if x.ndim < 2:
            return
        for value, factor in itertools.product(
                self.values, (1.0, *self.factors_tried)):
            rest = (x - factor * value.array).reshape(-1, *x.shape[-2:])
            if np.abs(rest - rest[0]).max() > self.limit * self.scale:
                continue
            settings = sinusoid_settings(
                rest[0], self.limit * max(self.scale, 1),
                fit.sinusoid_values())
            if settings:
                self.results.append(Made("positions", [value], settings | {
                    "input's factor": factor}, 0.0))
        # A value, and a multiple of it that was there too, are one.
        if len({str(result.what | {"input's factor": 1})
                for result in self.results}) == 1:
            self.results = [min(
                self.results, key=lambda m: m.what["input's factor"] != 1)]


def cap_of(x, y):
    """The c of y = c tanh(x / c), [N]; None if there is none."""
    where = np.abs(x).argmax()
    most, held = np.abs(x[where]), np.abs(y[where])
    if not 0 < held < most * (1 - 1e-9) or not math.isfinite(most) or (
            x * y < 0).any():
        return None
    low, high = held, held / 1e-4  # c tanh(most / c) grows with c
    for _ in range(200):
        middle = (low + high) / 2
        if capped(most, middle) < held:
            low = middle
        else:
            high = middle
    plain = float(f"{high:.6g}")
    return plain if abs(plain - high) < 1e-6 * high else high


def share_dropped(x, y, limit):
    """(share of zeros, factor of the rest) if y is x with numbers dropped."""
    if x.shape != y.shape:
        return None
    nonzero = (y != 0) & (x != 0)
    share = 1 - nonzero.sum() / max((x != 0).sum(), 1)
    if nonzero.sum() < 8 or not 0.005 < share < 0.995:
        return None
    ratio = y[nonzero] / x[nonzero]
    factor = float(np.median(ratio))
    if np.abs(ratio - factor).max() > limit * abs(factor) or factor < 1:
        return None
    # Dropped by chance: as often as the factor says, whatever the sign.
    rate, count = 1 - 1 / factor, (x != 0).sum()
    spread = 5 * math.sqrt(max(rate * (1 - rate), 1e-3) / count) + 1 / count
    signs = [1 - nonzero[x * sign > 0].mean() for sign in (1, -1)
             if (x * sign > 0).sum() > 7]
    even = all(abs(each - rate) < 2.5 * spread for each in signs)
    return (share, factor) if abs(share - rate) <= spread and even else None


def label(value):
    """An EarlierValue in words: whose output or input it is."""
    outputs = [path for what, path, _ in value.places
               if what == "output" and path != WHOLE]
    if outputs:
        return f"{outputs[0]}'s output"
    what, path, name = value.places[0]
    return "the model's input" if path == WHOLE else f"{path}'s input {name}"


def in_words(expression):
    """A Made in words."""
    names = [label(value) for value in expression.sources]
    if expression.form == "sum":
        if expression.what:
            names[0] = f"{expression.what:.6g} times {names[0]}"
        return listed(names)
    if expression.form == "factor":
        return f"{expression.what:.6g} times {names[0]}"
    if expression.form == "cap":
        return f"c tanh(x / c) of {names[0]}, c {expression.what:.6g}"
    if expression.form == "positions":
        factor = expression.what["input's factor"]
        return (f"{names[0]} and sinusoids" if factor == 1 else
                f"{factor:.6g} times {names[0]} and sinusoids")
    if expression.form == "rows":
        return f"{names[0]}, {expression.what} rows zero"
    if expression.form == "dropped":
        share, factor = expression.what
        return (f"{names[0]}, of which {share:.0%} are zero and the rest "
                f"{factor:.6g}-fold")
    if expression.form == "product" and expression.what == "none":
        return f"{names[0]} times {names[1]}"
    words = f"{' or '.join([expression.what, *expression.twins])} of {names[0]}"
    return words + {"product": f" times {names[-1]}",
                    "activated sum": f" and {names[-1]}"}.get(
                        expression.form, "")
