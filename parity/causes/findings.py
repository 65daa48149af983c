"""What is told of one comparison, and in which order."""

import functools
import math
import re

import numpy as np

from parity.causes.cause import PRECISION
from parity.causes.explanation import UNIDENTIFIED, Explanation
from parity.causes.formulas.narrow import ROUGH
from parity.comparison.result import (
    GRADIENT, INHERITED, INPUT, NEW, OUTPUT)
from parity.numerics.comparator import MATCH, ZERO
from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import model_limits
from parity.numerics.words import number
from parity.tracing.trace import is_float

#: By how many times more than outputs gradients may differ where outputs do by
#: float32's rounding alone. Seen in models of 2 to 12 layers: 3 to 10.
MAGNIFIED = 32


class Findings:
    """The Explanations of one comparison.

    Attributes:
        explanations: those of what is identified.
        lost: (row, Explanation) of what is not.
        now: the order of the row that is looked into.
        facts: (a's path, name, part) -> what is known of an input that is
            not identified, a sentence each.
    """

    def __init__(self, comparison, a):
        self.comparison, self.a = comparison, a
        self.explanations, self.lost = [], []
        self.now, self.order, self.facts = 0, {}, {}

    def told(self):
        """How many differences are told that are not float32's rounding."""
        return len(self.lost) + sum(
            1 + len(each.also) for each in self.explanations
            if each.cause != PRECISION)

    def interval(self, path):
        """When a step of a began and ended."""
        step = self.a.step(path)
        return step.began, step.ended

    def within(self, each, row):
        """Whether an identified cause stands inside a row's step."""
        began, ended = self.interval(row.a)
        return each.identified and any(
            began < first and last < ended for first, last in (
                self.interval(path) for path in (
                    each.a, *(one for one, _ in each.also))))

    def inside(self, row):
        """Whether any identified cause stands inside a row's step."""
        return any(self.within(each, row) for each in self.explanations)

    def encloses(self, each, row):
        """Whether an identified cause is of what holds a row's step."""
        began, ended = self.interval(row.a)
        return each.identified and each.cause != PRECISION and any(
            first <= began and ended <= last for first, last in map(
                self.interval, (each.a, *(one for one, _ in each.also))))

    def lose(self, pair, row, known):
        """Put down that a row's cause is not identified."""
        name = "" if row.a_name == "input" else f" {row.a_name}"
        what = f"the input{name} of " if row.part == INPUT else ""
        self.lost.append((row, Explanation(
            pair.a, pair.b, UNIDENTIFIED, known=known,
            sentence=f"Why {what}{pair.a} differs is not identified.")))

    def add(self, explanations):
        """Put Explanations to others, the same cause told once."""
        for new in explanations:
            for old in self.explanations:
                if told_alike(new, old):
                    if [new.a, new.b] not in [[old.a, old.b], *old.also]:
                        old.also.append([new.a, new.b])
                    break
            else:
                self.order[id(new)] = self.now
                self.explanations.append(new)

    def note(self, sentence):
        """Add a note to the comparison, once."""
        if sentence not in self.comparison.notes:
            self.comparison.notes.append(sentence)

    def finished(self, rows):
        """Every Explanation: faults by their steps, then float32 inside.

        Args:
            rows: those that were looked into, each of them rounding or not.
        """
        rounded = any(each.cause == PRECISION for each in self.explanations)
        for row in rows:
            row.rounding = (row.rounding and rounded
                            and row.error is not None and row.error <= ROUGH)
        self.lose_first(rows)
        for row, each in self.lost:
            if not any(self.encloses(other, row)
                       for other in self.explanations):
                self.order[id(each)] = row.order
                self.explanations.append(each)
        if rounded and all(row.rounding for row in rows):
            self.judge_gradients(rows)
        return sorted(self.explanations, key=lambda each: (
            each.cause == PRECISION, self.order[id(each)]))

    def lose_first(self, rows):
        """Put down the first row that is no rounding, if nothing is told."""
        row = next((row for row in rows if not row.rounding), None)
        if row is not None and not self.told():
            size = "" if row.error is None else (
                f" It is an error of {number(row.error)}.")
            why = "It is not shown to be float32's rounding inside."
            if row.part == INPUT and self.comparison.layers:
                why = ("It may come from before these layers: compare those "
                       "as well.")
            elif self.a.dtype not in ("float64", ""):
                why = (f"{self.a.dtype} may hide what it is: give smaller "
                       "inputs, or both models in float64.")
            facts = self.facts.get((row.a, row.a_name, row.part), [])
            self.lose(row, row, [*facts, why + size])

    def judge_gradients(self, rows):
        """Mark gradients that may be rounding: little more than outputs' is.

        Args:
            rows: those of outputs and inputs, all shown to be rounding.
        """
        most = MAGNIFIED * max((row.error for row in rows), default=0.0)
        gradients = [row for row in self.comparison.rows
                     if row.diverges and row.part == GRADIENT]
        for row in gradients:
            row.rounding = self.share(row) <= most
        if not gradients:
            return
        largest = number(max(map(self.share, gradients)))
        if all(row.rounding for row in gradients):
            self.note(
                f"Gradients differ by at most {largest}, no more than "
                f"{MAGNIFIED} times what outputs do: that may be float32's "
                "rounding, and is not shown to the bit.")
        else:
            self.note(
                "Every output is equal but for float32 inside; gradients "
                f"differ by up to {largest}, which is more than that makes of "
                "them.")

    def share(self, row):
        """A gradient's error, of the largest of its module's parameters: that
        of a key's bias is zero but for rounding."""
        if row.error is None:
            return math.inf
        path = self.a.aliases.get(row.a, row.a)
        mine = self.a.gradients.get(path)
        if row.a_name or mine is None or not mine.size:
            return row.error
        owner = path.rpartition(".")[0]
        scale = max(float(np.abs(array).max())
                    for other, array in self.a.gradients.items()
                    if other.rpartition(".")[0] == owner and array.size)
        return row.error * float(np.abs(mine).max()) / scale if scale else (
            row.error)


def doing_the_same(rows):
    """(a, b) of the steps that give the same where b's has a's inputs."""
    verdicts = {}
    for row in rows:
        if row.part == OUTPUT:
            verdicts.setdefault((row.a, row.b), set()).add(row.local_verdict)
    return [pair for pair, found in verdicts.items()
            if MATCH in found and found <= {MATCH, ZERO}]


def following(rows, a, b):
    """A function of a row: whether it differs by what came in alone.

    Its step, or one around it, does the same where b's has a's inputs; and run
    again, it gives what was traced, so that this tells of the traced run. In
    lower precision a step may hide in its model.
    """
    around = [(two, [(step.began, step.ended)
                     for step in (a.step(one), b.step(two))])
              for one, two in doing_the_same(rows)
              if a.dtype in ("float64", "")]

    @functools.cache
    def reproduced(path):
        return gives_again(b, path)

    def follows(row):
        if row.part == OUTPUT and row.origin == INHERITED:
            return reproduced(row.b)
        if row.origin == NEW and (row.error is None or row.error > ROUGH):
            return False  # such as a key's bias, which softmax hides
        steps = a.step(row.a), b.step(row.b)
        return any(all(
            began < step.began and step.ended < ended
            for step, (began, ended) in zip(steps, both)) and reproduced(path)
            for path, both in around)
    return follows


def gives_again(trace, path):
    """Whether a step, run again on its own inputs, gives what was traced."""
    try:
        again = trace.rerun(path, {})
    except Exception:  # a foreign module may refuse
        return False
    return all(
        name in again and again[name].shape == array.shape and (
            not array.size or strict_distance(again[name], array)
            <= model_limits(array.dtype.name)[1] if is_float(array)
            else np.array_equal(again[name], array))
        for name, array in trace.step(path).outputs.items())


def told_alike(new, old):
    """Whether two Explanations say the same of several layers."""
    texts = [(each.cause, each.in_a, each.in_b) for each in (new, old)]
    if new.cause == "input":
        texts = [[re.sub(r"\d+", "#", text) for text in each]
                 for each in texts]
    return new.identified and texts[0] == texts[1]
