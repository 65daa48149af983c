"""What the settings of an update rule are called in an answer."""

import math

from parity.numerics.words import apart, listed
from parity.training.updates import FROZEN, MEMBERS

#: Setting of a rule -> the cause.
CAUSES = {
    "kind": "optimiser", "rate": "learning rate", "momentum": "momentum",
    "dampening": "dampening of the momentum", "nesterov": "Nesterov momentum",
    "dampened_first": "first step of the momentum",
    "momentum_of": "what the momentum adds up", "beta1": "β₁",
    "beta2": "β₂", "eps": "ε", "eps_at": "place of ε",
    "corrected": "bias correction", "amsgrad": "AMSGrad",
    "centered": "second moment centred", "initial": "initial sum of squares",
    "decay": "weight decay", "decay_at": "kind of weight decay",
    "clip": "limit of the gradient", "clip_by": "clipping of the gradient",
    "clip_eps": "ε of the clipping", "scale": "scale of the gradient",
    "narrow": "float32 inside the optimiser",
    MEMBERS: "parameters of the optimiser", FROZEN: "parameters trained",
}

def pair_of(name, one, two):
    """What A and B have of a setting, in words."""
    if isinstance(one, bool):
        return tuple("yes" if each else "no" for each in (one, two))
    if isinstance(one, float) and isinstance(two, float):
        if name == "decay" or one in (0, math.inf) or two in (0, math.inf):
            return in_word(one), in_word(two)
        return tuple(map(shorter, apart(one, two)))
    return str(one), str(two)


def in_word(value):
    """A number in words."""
    return "none" if value in (0, math.inf) else f"{value:.6g}"


def shorter(text):
    """A number without zeros at its end."""
    return f"{float(text):.15g}" if len(text) > 8 else text


def paths_in_words(paths, total):
    """Paths of parameters as a place."""
    if len(paths) == total:
        return "every parameter" if total > 1 else paths[0]
    if len(paths) < 4:
        return listed(paths)
    return f"{paths[0]} and {len(paths) - 1} more"
