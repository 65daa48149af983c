"""Activations, known by their numbers: however a framework writes them."""

import numpy as np

from parity.causes.formulas.activation import SOUND
from parity.causes import catalogue
from parity.operations import roles
from parity.operations.trial import COMPUTED, OTHER

#: Kinds of Trial in which both sides do something.
KINDS = COMPUTED, OTHER

#: So many numbers of an array are looked at.
LOOKED = 2048

#: How near an activation's numbers are at most, as a share of the largest: a
#: constant in float32 is off by 1e-8.
NEAR = 1e-7

#: So many products lie between a part of an activation and all of it.
AHEAD = 3


def of_activations(this):
    """("activation", a's, b's) where each side does one to what both have,
    another one; else ()."""
    if this.trial.kind not in KINDS:
        return ()
    found = [*map(_activations, [this] * 2, "ab")]
    for source, word in found[0].items():
        for twin in this.twins("a", source):
            other = found[1].get(this.two.root(twin), word)
            if other != word:
                return "activation", word, other
    return ()


def _activations(this, side):
    """{a root that both have: what a side does to it, and to nothing else}, up
    to the value that differs, or to what is made of that and the root."""
    skeleton = this.skeleton(side)
    value, shared = getattr(this.trial, f"value_{side}"), this.shared(side)
    steps = roles.between(skeleton, value, shared)
    made = {result for each in steps for result in each.results}
    read = {root for each in steps
            for root in skeleton.arrays(each).values()} - made
    if len(read) != 1 or not read <= shared:
        return {}
    (source,) = read
    words = [word for number in _products(skeleton, value, source)
             if (word := _word(skeleton.program, source, number))]
    return {source: words[-1]} if words else {}


def _products(skeleton, number, source):
    """Yield a value, and what is made of it and of its source alone."""
    number = skeleton.root(number)
    for _ in range(AHEAD + 1):
        yield number
        number = next((
            each.results[0] for each in skeleton.readers.get(number, ())
            if each.name == "multiply" and {
                *skeleton.arrays(each).values()} <= {number, source}), None)
        if number is None:
            return


def _word(program, source, number):
    """What of the activations makes a value of its source, or ""."""
    x, y = (program.values[each].array for each in (source, number))
    if x is None or y is None or x.size != y.size or x.dtype.kind != "f" or (
            y.dtype.kind != "f"):
        return ""
    some = slice(None, None, max(x.size // LOOKED, 1))
    x, y = (each.reshape(-1)[some] for each in (x, y))
    functions = SOUND | catalogue.functions("activation", "activation")
    with np.errstate(all="ignore"):
        errors = {word: np.abs(function(x) - y).max()
                  for word, function in functions.items()
                  if word != "none" and "softmax" not in word}
    word = min(errors, key=errors.get)
    return word if errors[word] <= NEAR * np.abs(y).max() else ""
