"""Differences that were proved by running b, as Explanations."""

import dataclasses
import itertools
import re

import numpy as np

from parity.causes.explanation import UNIDENTIFIED, Explanation
from parity.numerics.words import apart, listed, number
from parity.causes import tables
from parity.operations import roles
from parity.operations.align import is_view, moves
from parity.operations.expressions import (
    Names, cut, formula, number_text, tail)
from parity.operations.layouts import distance, relaid
from parity.operations.program import PARAMETER, Place
from parity.operations.skeleton import Skeleton
from parity.operations.trials import (
    ARRAY, COMPUTED, EXTRA, MISSING, ORDER, OTHER, PACKED, SCALAR, number_of)

#: Words of roles.of_step that are activations.
ACTIVATIONS = {"gelu", "gelu by tanh", "silu", "activation"}

#: Scores below this are hidden, however they were.
HIDDEN = -9e3

#: Causes that are a number of which a table is made.
BASES = {"rotary base", "base of the positions"}

#: What a module is called where it is not known.
WHOLE = "(model)"


def explanations(outcome, built=None):
    """An Explanation of each difference that a search found.

    Args:
        outcome: a SearchOutcome of parity.operations.search.
        built: "a" and "b" -> a function of a module's path and a number in
            words, which returns the line that sets it, or at which a module of
            the framework's own is made, or ""; and the setting's name, or "".
    """
    told = []
    for found in outcome.found:
        each = _Told(found).explanation()
        each.proof = _proof(outcome, found)
        if built and (found.trial.kind == SCALAR or each.cause in BASES):
            for side in "ab":
                path, said = getattr(each, side), getattr(each, f"in_{side}")
                line, name = built[side](path, said)
                if line:
                    setattr(each, f"called_{side}",
                            getattr(each, f"place_{side}"))
                    setattr(each, f"place_{side}", line)
                if name and side == "b":
                    each.known.insert(0, f"It is {name} of {path} in b.")
        _add(told, each, found.trial.kind == SCALAR)
    return told


def _add(told, each, is_number):
    """Put an Explanation to others; the same number in other layers once."""
    for other in told if is_number else ():
        if (other.cause, other.in_a, other.in_b) == (
                each.cause, each.in_a, each.in_b):
            other.also += [[each.a, each.b], *each.also]
            return
    told.append(each)


def _proof(outcome, found):
    """What b's outputs were with what was found applied, in a sentence."""
    alone = len(outcome.found) == 1
    if not outcome.corrected:
        return ("With a's in b, values behind it are a's; the outputs still "
                "differ." if alone else
                "With a's in b, values behind it are a's.")
    largest = max((error for error in errors(outcome.last)), default=0.0)
    what = "this" if alone else "this and the other causes"
    return (f"With {what} corrected in b, its outputs are a's to "
            f"{number(largest)}.")


def errors(alignment):
    """Yield the relative error of each pair of outputs."""
    for one, two in alignment.outputs:
        mine = alignment.a.values[alignment.a.outputs[one]].array
        other = alignment.b.values[alignment.b.outputs[two]].array
        for array in relaid(mine, other, 1):
            yield distance(other, array)


class _Told:
    """What is said of one ShownFault."""

    def __init__(self, found):
        self.found, self.trial = found, found.trial
        self.alignment = found.before
        self.a, self.b = self.alignment.a, self.alignment.b
        self.one, self.two = Skeleton(self.a), Skeleton(self.b)
        self.names = Names(self.alignment)
        if self.trial.kind == OTHER:
            self.as_step()

    def as_step(self):
        """Take another operand for a step that one side does, if it is."""
        trial = self.trial
        if self.made_of("a", trial.value_a, self.alignment.in_a.get(
                trial.value_b, ())):
            self.trial = dataclasses.replace(
                trial, kind=MISSING, a=self.one.maker(trial.value_a))
        elif self.made_of("b", trial.value_b, self.alignment.in_b.get(
                trial.value_a, ())):
            self.trial = dataclasses.replace(
                trial, kind=EXTRA, b=self.two.maker(trial.value_b), slot=None)

    def explanation(self):
        """The Explanation."""
        trial = self.trial
        cause, in_a, in_b = {
            SCALAR: self.constant, ARRAY: self.array, ORDER: self.order,
            OTHER: self.operand, MISSING: self.missing, EXTRA: self.extra,
            COMPUTED: self.computed, PACKED: self.packed}[trial.kind]()
        at_a, at_b = (each.module if each is not None and each.module
                      else WHOLE for each in (self.at("a"), self.at("b")))
        if trial.kind == MISSING and trial.a is not None and at_a not in (
                WHOLE, at_b) and not at_a.startswith(at_b + "."):
            parent = at_a.rpartition(".")[0]
            if any(value.module.startswith(parent)
                   for value in self.b.operations):
                at_b = parent or WHOLE  # where a calls what b does not have
        where = at_a if at_a == at_b else f"{at_a} ({at_b} in b)"
        each = Explanation(
            at_a, at_b, cause, in_a, in_b,
            f"In {where}, {cause}: {in_b} in b, {in_a} in a.",
            also=self.also(at_a, at_b))
        for side in "ab":
            place = self.place(side)
            setattr(each, f"place_{side}", str(place))
            setattr(each, f"called_{side}", str(place.caller or ""))
        each.expression_a, each.expression_b = self.expressions()
        if trial.kind == COMPUTED and in_a == in_b:  # no formula shows it
            each.cause, each.in_a, each.in_b = UNIDENTIFIED, "", ""
            each.sentence = (f"Why {where} differs is not identified: both "
                             f"are {each.expression_a}.")
        each.known += [f"{letter} is {text}." for letter, text
                       in self.names.legend.items()]
        return each

    def at(self, side):
        """The operation of a side that stands for the difference."""
        operation = getattr(self.trial, side)
        if operation is not None:
            return operation
        program = getattr(self, side)
        value = getattr(self.trial, f"value_{side}")
        maker = program.maker(value)
        if maker is not None:
            return maker
        return next((program.operations[each] for each in program.users.get(
            value, ())), None)

    def place(self, side):
        """The Place of a side that stands for the difference.

        Where a value is read in another order, that is the line at which it
        is first laid out otherwise.
        """
        operation = self.at(side)
        if self.trial.kind == ARRAY:
            operation = self.first_of_table(side) or operation
        if self.trial.kind == ORDER:
            operation = self.laid_out(side) or operation
        if self.trial.kind == MISSING and side == "b" and (
                self.trial.slot is not None):
            maker = self.b.maker(self.trial.b.operands[self.trial.slot])
            if maker is not None and is_view(maker):
                operation = maker  # where what lacks the step is handed on
        return operation.place if operation is not None else Place()

    def laid_out(self, side):
        """The first of the operations that only move what is read in another
        order, or None."""
        program, first = getattr(self, side), None
        maker = program.maker(getattr(self.trial, f"value_{side}"))
        while maker is not None and moves(maker) and maker.operands:
            first, maker = maker, program.maker(maker.operands[0])
        return first

    def first_of_table(self, side):
        """The operation at which a computed table first differs, or None."""
        program, lost = getattr(self, side), self.alignment.lost[side]
        number = getattr(self.trial, f"value_{side}")
        queue, found = [number], []
        while queue:
            maker = program.maker(queue.pop())
            if maker is None or maker in found:
                continue
            found.append(maker)
            queue += [each for each in maker.operands if each in lost]
        telling = [each for each in found
                   if program.values[each.results[0]].signature.size > 1
                   and program.values[each.results[0]].signature.kind == "f"
                   and each.name not in ("arange", "full", "cast")]
        return min(telling, key=lambda each: each.number, default=None)

    def also(self, at_a, at_b):
        """[module of a, of b] of the further places."""
        places = []
        for trial in self.found.also:
            two = trial.b.module if trial.b is not None else at_b
            one = trial.a.module if trial.a is not None and (
                trial.a is not self.trial.a) else (
                self.partner(trial) or (
                    two if any(each.module == two
                               for each in self.a.operations)
                    else in_layer_of(at_a, two)))
            if [one, two] not in [[at_a, at_b], *places]:
                places.append([one or WHOLE, two or WHOLE])
        return places

    def partner(self, trial):
        """The module of a that does what an operation of b does now."""
        after = self.found.after
        if trial.b is None or not trial.b.results:
            return ""
        makers = (self.a.maker(number) for number in after.in_a.get(
            trial.b.results[0], ()))
        return next((maker.module for maker in makers if maker is not None
                     and maker.name == trial.b.name), "")

    def expressions(self):
        """The formula of each side."""
        trial = self.trial
        if trial.kind == PACKED:
            return "", ""
        ends = {"a": trial.value_a, "b": trial.value_b}
        if trial.kind in (SCALAR, ORDER, OTHER) and trial.a is not None:
            ends = {"a": trial.a.results[0], "b": trial.b.results[0]}
        if trial.kind == ARRAY and trial.b is not None:
            ends = {"a": trial.a.results[0] if trial.a else trial.value_a,
                    "b": trial.b.results[0]}
        made = [formula(self.names, side, value)
                for side, value in ends.items()]
        if made[0] == made[1]:  # it is in which shape something is read
            made = [formula(self.names, side, value, shapes=True)
                    for side, value in ends.items()]
        return [*map(cut, made)]

    # What is said, by kind: the cause, what it is in a, and in b.

    def constant(self):
        """Another number."""
        cause = roles.of_constant(self.two, self.trial.b, self.trial.slot)
        edit = self.trial.ways[0]
        asked = float(np.asarray(next(iter(edit.values()))).reshape(-1)[0])
        had = number_of(self.b.values[self.trial.value_b])
        in_a, in_b = apart(asked, had)
        if self.trial.a is not None and self.trial.a.name != (
                self.trial.b.name):
            return cause, self.words("a"), self.words("b")
        if cause == "attention scale":
            in_a, in_b = (
                f"{text} = {root}" if (root := roles.as_root(value)) else text
                for text, value in ((in_a, asked), (in_b, had)))
        return cause, in_a, in_b

    def words(self, side):
        """The formula of what differs, shortened."""
        return cut(self.expressions()["ab".index(side)], 60)

    def array(self):
        """Another parameter, buffer or table."""
        mine, theirs = (self.b.values[self.trial.value_b],
                        self.a.values[self.trial.value_a])
        edited = np.asarray(next(iter(self.trial.ways[0].values())))
        truth = edited if edited.size == mine.signature.size else theirs.array
        turns = not any(
            each.name == "add" for number in (self.trial.value_b,)
            for each in self.two.readers.get(self.two.root(number), ()))
        if base := tables.bases(truth, mine.array):
            return "rotary base" if turns else "base of the positions", *base
        what = "mask" if "b" in (
            mine.signature.kind, theirs.signature.kind) else (
            "parameter" if mine.kind == PARAMETER else "table")
        relation = tables.turned(truth, mine.array)
        if what != "mask" and roles.biases_scores(
                self.two, self.trial.value_b):
            what = "bias of the scores"
        if relation:
            what = ("rotary" if turns else "position") + " frequencies"
        relation = relation or related(truth, mine.array)
        in_a, in_b = (value.name or cut(formula(self.names, side, number), 60)
                      for side, value, number in (
                          ("a", theirs, self.trial.value_a),
                          ("b", mine, self.trial.value_b)))
        return what, in_a, f"{in_b}{relation and f', {relation}'}"

    def order(self):
        """The same numbers in another order."""
        mine = self.b.values[self.trial.value_b]
        array = next(iter(self.trial.ways[0].values()))
        relation = related(array, mine.array) or "in another order"
        if mine.signature.kind == "b":
            return "mask", self.label("a"), f"{self.label('b')}, {relation}"
        return "order", self.label("a"), f"the same numbers {relation}"

    def packed(self):
        """Packed parts stand in another order."""
        names = [tail(name, 2) for _, name in self.trial.ways[0]]
        order = self.trial.slot
        in_b = ", ".join(str(order.index(i) + 1) for i in range(len(order)))
        return ("order of the parts", "1, 2, 3, 4"[:3 * len(order) - 2],
                f"{in_b} in {listed(names)}")

    def label(self, side):
        """What the value that differs is called."""
        number = getattr(self.trial, f"value_{side}")
        operation = getattr(self.trial, side)
        return self.names.of(side, number) or cut(formula(
            self.names, side, number, reader=operation), 60)

    def operand(self):
        """Another value is read."""
        trial = self.trial
        in_a, in_b = self.formula_of("a"), self.formula_of("b")
        if in_a == in_b:
            in_a, in_b = self.words("a"), self.words("b")
        if part := self.of_one_source():
            return "order of the parts", *part
        fixed = roles.tables_of(self.b)
        is_sum = trial.b.name == "add" and not any(
            root in fixed for root in self.two.arrays(trial.b).values())
        return ("residual connection" if is_sum else "another value is read",
                in_a, in_b)

    def of_one_source(self):
        """Where both values are parts of one that both have: which; or ()."""
        makers = (self.a.maker(self.one.root(self.trial.value_a)),
                  self.b.maker(self.two.root(self.trial.value_b)))
        if None in makers or any(each.name != "slice" for each in makers):
            return ()
        mine, theirs = (each.operands[0] for each in makers)
        if mine not in self.alignment.in_a.get(theirs, ()):
            return ()
        return tuple(cut(formula(self.names, side, getattr(
            self.trial, f"value_{side}")), 60) for side in "ab")

    def formula_of(self, side):
        """How the value that differs is called, or made."""
        number = getattr(self.trial, f"value_{side}")
        return cut(formula(self.names, side, number,
                           top=not self.names.of(side, number),
                           reader=getattr(self.trial, side)), 60)

    def made_of(self, side, number, sources):
        """The operations by which a value is made of some that both have, if
        it is in a few; else []."""
        skeleton = self.one if side == "a" else self.two
        sources = {skeleton.root(each) for each in sources}
        steps = roles.between(skeleton, number, sources)
        reached = sources & {root for each in steps
                             for root in skeleton.arrays(each).values()}
        return steps if reached and len(steps) < 12 else []

    def step(self, side, steps):
        """What some operations are called."""
        skeleton = self.one if side == "a" else self.two
        made = {result for each in steps for result in each.results}
        read = {root for each in steps
                for root in skeleton.arrays(each).values()} - made
        return roles.of_step(skeleton, steps, len(read) - 1) or "a step"

    def missing(self):
        """a does more."""
        steps = self.made_of("a", self.trial.value_a, self.alignment.in_a.get(
            self.trial.value_b, ())) or roles.between(
                self.one, self.trial.value_a, self.shared("a"))
        return self.step("a", steps), cut(formula(
            self.names, "a", self.trial.value_a), 60), "none"

    def extra(self):
        """b does more."""
        steps = self.made_of("b", self.trial.value_b, self.alignment.in_b.get(
            self.trial.value_a, ())) or [self.trial.b]
        return self.step("b", steps), "none", cut(formula(
            self.names, "b", self.trial.b.results[0]), 60)

    def computed(self):
        """It is computed otherwise."""
        trial, cause = self.trial, "computation"
        if trial.a is not None and trial.a.name == (
                trial.b.name) and self.read_alike():
            differ = [name for name in {**trial.a.settings,
                                        **trial.b.settings}
                      if name in ("axis", "strides", "padding", "dilation",
                                  "groups", "k", "diagonal", "shift",
                                  "correction", "start", "stop")
                      and trial.a.settings.get(name) != trial.b.settings.get(
                          name)]
            if differ and differ[0] != "axis" or differ and self.shape(
                    "a") == self.shape("b"):
                name = differ[0]
                return (name, str(trial.a.settings.get(name)),
                        str(trial.b.settings.get(name)))
        if trial.a is not None and trial.a.name == trial.b.name == "slice":
            return "split", self.words("a"), self.words("b")
        steps = [roles.between(skeleton, value, self.shared(side))
                 for skeleton, side, value in (
                     (self.one, "a", trial.value_a),
                     (self.two, "b", trial.value_b))]
        words = [roles.of_step(skeleton, each) for skeleton, each in zip(
            (self.one, self.two), steps)]
        over = [roles.summed(skeleton, each) for skeleton, each in zip(
            (self.one, self.two), steps)]
        if words == ["norm", "norm"] and None not in over and (
                over[0] != over[1]):
            return ("norm", *(f"over {count} numbers" for count in over))
        if {*words} <= ACTIVATIONS and words[0] != words[1]:
            return "activation", *words
        edited = np.asarray(next(iter(trial.ways[0].values())))
        mine = self.b.values[trial.value_b].array
        if edited.shape == mine.shape and mine.dtype.kind == "f":
            if hidden := masked(edited, mine):
                return "mask", self.words("a"), f"{self.words('b')}, {hidden}"
            seen = ~(hides(edited) | hides(mine))
            if factor := related(edited[seen], mine[seen]) if not (
                    seen.all()) else related(edited, mine):
                scores = roles.is_scores(self.two, trial.b)
                large = "times as large" in factor
                cause = ("attention scale" if scores and large
                         else "factor" if large else "order"
                         if "order" in factor or "along" in factor
                         else "computation")
                return (cause, self.words("a"),
                        f"{self.words('b')}, {factor}")
        return cause, self.words("a"), self.words("b")

    def read_alike(self):
        """Whether both operations read the same values."""
        mine, theirs = (skeleton.arrays(operation).values() for
                        skeleton, operation in (
                            (self.one, self.trial.a), (self.two, self.trial.b)))
        return len(mine) == len(theirs) and all(any(
            other in self.alignment.in_a.get(each, ()) for other in mine)
            for each in theirs)

    def shape(self, side):
        """The shape of what the operation of a side reads first."""
        operation = getattr(self.trial, side)
        program = getattr(self, side)
        return program.values[operation.operands[0]].shape if (
            operation.operands) else ()

    def shared(self, side):
        """The roots of a side that the other has as well."""
        skeleton = self.one if side == "a" else self.two
        have = (self.alignment.in_b if side == "a"
                else self.alignment.in_a)
        return {skeleton.root(number) for number in have}


def hides(scores):
    """At which places softmax gives scores no weight."""
    return ~(scores > HIDDEN)


def masked(truth, actual):
    """Which places of scores are hidden in one alone, in words, or ""."""
    one, two = map(hides, (truth, actual))
    if not (one.any() or two.any()) or np.array_equal(one, two):
        return ""
    more, less = int((two & ~one).sum()), int((one & ~two).sum())
    return "which hides " + listed([
        *([f"{more} places that a does not"] if more else []),
        *([f"{less} places fewer"] if less else [])])


def in_layer_of(path, like):
    """A path in the layer that another path is in, where both have one."""
    numbers = re.findall(r"\d+", like)
    if not numbers or not re.search(r"\d+", path):
        return path
    return re.sub(r"\d+", numbers[0], path, count=1)


def related(truth, actual):
    """How one array is made of another, in words, or ""."""
    truth, actual = np.asarray(truth), np.asarray(actual)
    if truth.dtype.kind not in "fiub" or truth.size != actual.size:
        return ""
    if "b" in (truth.dtype.kind, actual.dtype.kind):
        if truth.dtype != actual.dtype:
            return ""
        more = int((actual.reshape(-1) & ~truth.reshape(-1)).sum())
        less = int((~actual.reshape(-1) & truth.reshape(-1)).sum())
        return listed([*([f"true at {more} places more"] if more else []),
                       *([f"at {less} places less"] if less else [])])
    flat, other = (each.reshape(-1).astype(np.float64)
                   for each in (truth, actual))
    finite = np.isfinite(flat) & np.isfinite(other) & (flat != 0)
    if finite.any():
        ratio = other[finite] / flat[finite]
        middle = float(np.median(ratio))
        if np.allclose(ratio, middle, rtol=1e-9, atol=0) and middle != 1 and (
                np.allclose(other[~finite], flat[~finite], equal_nan=True)):
            return ("with the other sign" if middle == -1 else
                    f"{number_text(middle)} times as large")
        apart_by = other[finite] - flat[finite]
        step = float(np.median(apart_by))
        if step and np.allclose(apart_by, step, rtol=1e-9, atol=0):
            return f"{number_text(step)} more at every place"
    if not np.array_equal(np.sort(flat), np.sort(other)):
        rows = ratios(truth, actual)
        return rows
    if truth.ndim == 2 and truth.shape[0] == truth.shape[1] and (
            np.array_equal(truth.T, actual.reshape(truth.shape))):
        return "transposed"
    if truth.ndim == actual.ndim and 2 <= truth.ndim <= 4:
        for axes in [*itertools.permutations(range(truth.ndim))][1:]:
            if np.array_equal(truth.transpose(axes), actual):
                return f"with its axes in the order {plain_list(axes)}"
    if truth.shape == actual.shape:
        for count in range(1, min(truth.ndim, 3) + 1):
            for axes in itertools.combinations(range(truth.ndim), count):
                if np.array_equal(np.flip(truth, axes), actual):
                    return f"turned round along axis {plain_list(axes)}"
        for axis in range(truth.ndim):
            for shift in range(1, min(truth.shape[axis], 64)):
                if np.array_equal(np.roll(truth, shift, axis), actual):
                    return f"moved by {shift} along axis {axis}"
    return "in another order"


def plain_list(axes):
    """Axes in words."""
    return ", ".join(map(str, axes))


def ratios(truth, actual):
    """The factors of columns, where each has one of its own, in words."""
    if truth.shape != actual.shape or truth.ndim < 1 or not truth.size:
        return ""
    columns = truth.shape[-1]
    pairs = zip(truth.reshape(-1, columns).T, actual.reshape(-1, columns).T)
    factors = []
    for one, two in pairs:
        kept = one != 0
        ratio = two[kept] / one[kept]
        if not ratio.size or not np.allclose(
                ratio, ratio[0], rtol=1e-9, atol=0):
            return ""
        factors.append(float(ratio[0]))
    shown = ", ".join(f"{factor:.4g}" for factor in factors[:6])
    more = ", …" if len(factors) > 6 else ""
    return f"its columns times {shown}{more}"


#: Kinds of ShownFault whose cause has a name of its own, and need no other.
NAMED = {SCALAR, ARRAY, MISSING, EXTRA}

