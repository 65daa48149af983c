"""The rules by which optimisers change weights, in NumPy and float64.

A rule is replayed on the gradients of a run, so that one setting after another
can be exchanged between two runs. Adam is algorithm 1 of Kingma and Ba
(arXiv:1412.6980), AdamW algorithm 2 of Loshchilov and Hutter
(arXiv:1711.05101), Lion of Chen et al. (arXiv:2302.06675).
"""

import dataclasses
import math

import numpy as np

SGD, ADAM, RMSPROP, ADAGRAD, LION = "SGD", "Adam", "RMSprop", "Adagrad", "Lion"

#: Where ε stands beside the root of the second moment v: √(v/c) + ε,
#: (√v + ε)/√c, or √(v/c + ε), with c = 1 - β₂ᵗ.
OUTSIDE, BEFORE, INSIDE = (
    "outside the root", "before the bias correction", "inside the root")

#: What weight decay is added to: the gradient, or the weight itself, times the
#: learning rate or not.
COUPLED, DECOUPLED, UNSCALED = (
    "in the gradient", "on the weight", "on the weight, without the rate")

#: By what the gradient is clipped.
UNCLIPPED, GLOBAL, EACH, VALUE = (
    "no", "global norm", "each parameter's norm", "value")

#: What is float32 inside a float64 step: β and momentum, or the arithmetic of
#: 1 - βᵗ as well.
NOTHING, SETTINGS, POWERS = NARROW = ("", "β and momentum", "1 - βᵗ")

#: What a momentum adds up: gradients, or steps, which are times the rate.
GRADIENTS, STEPS = "gradients", "steps"


@dataclasses.dataclass(frozen=True)
class UpdateRule:
    """How one parameter is changed.

    Attributes:
        kind: SGD, ADAM, RMSPROP, ADAGRAD or LION.
        rate: the learning rate where no run's own is given.
        momentum, dampening, nesterov: of SGD, and momentum of RMSPROP.
        dampened_first: whether the first gradient is dampened as well.
        momentum_of: GRADIENTS or STEPS.
        beta1, beta2: decay of the moments; beta2 is RMSPROP's α as well.
        eps, eps_at: ε and where it stands.
        corrected: whether moments are divided by 1 - βᵗ.
        amsgrad: whether the largest second moment so far is taken.
        centered: whether RMSPROP subtracts the square of the mean.
        initial: what the sum of squares begins with.
        decay, decay_at: weight decay, and what it is added to.
        clip, clip_by, clip_eps: the limit of the gradient, and what is added
            to the norm before the limit is divided by it.
        scale: what the gradient is multiplied with first.
        narrow: what of it is in float32: NOTHING, SETTINGS or POWERS.
    """

    kind: str
    rate: float = math.nan
    momentum: float = 0.0
    dampening: float = 0.0
    dampened_first: bool = False
    nesterov: bool = False
    momentum_of: str = GRADIENTS
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    eps_at: str = OUTSIDE
    corrected: bool = True
    amsgrad: bool = False
    centered: bool = False
    initial: float = 0.0
    decay: float = 0.0
    decay_at: str = COUPLED
    clip: float = math.inf
    clip_by: str = UNCLIPPED
    clip_eps: float = 0.0
    scale: float = 1.0
    narrow: str = ""


#: The settings that matter to a kind.
_ALL = ("rate", "decay", "decay_at", "clip", "clip_by", "clip_eps", "scale",
        "narrow")
USED = {
    SGD: ("momentum", "dampening", "dampened_first", "nesterov",
          "momentum_of"),
    ADAM: ("beta1", "beta2", "eps", "eps_at", "corrected", "amsgrad"),
    RMSPROP: ("beta2", "eps", "eps_at", "momentum", "momentum_of",
              "centered", "initial"),
    ADAGRAD: ("eps", "eps_at", "initial"),
    LION: ("beta1", "beta2"),
}


def used(kind):
    """The names of the settings that matter to a kind, kind itself first."""
    return ("kind", *USED[kind], *_ALL)


def clipped(rules, gradients):
    """{path: gradient} after each rule's own clipping."""
    made = {path: rules[path].scale * array if path in rules
            and rules[path].scale != 1 else array
            for path, array in gradients.items()}
    whole = math.sqrt(sum(float(np.square(array).sum())
                          for path, array in made.items() if path in rules))
    for path, rule in rules.items():
        if path not in made or rule.clip_by == UNCLIPPED:
            continue
        if rule.clip_by == VALUE:
            made[path] = np.clip(made[path], -rule.clip, rule.clip)
            continue
        size = whole if rule.clip_by == GLOBAL else math.sqrt(
            float(np.square(made[path]).sum()))
        if size + rule.clip_eps > rule.clip:
            made[path] = made[path] * (rule.clip / (size + rule.clip_eps))
    return made


def replayed(rules, befores, gradients, rates=None):
    """The weights after each step.

    Args:
        rules: {path: UpdateRule}.
        befores: for each step {path: weight before it}.
        gradients: for each step {path: gradient}, not yet clipped by the rule.
        rates: for each step {path: learning rate}, where the rule's own are
            not those of the run.

    Returns:
        For each step {path: weight after it}, float64.
    """
    moved = []
    states: dict = {path: {} for path in rules}
    for i, (before, found) in enumerate(zip(befores, gradients)):
        found = clipped(rules, {
            path: np.asarray(array, np.float64)
            for path, array in found.items() if path in rules})
        after = {}
        for path, rule in rules.items():
            weight = np.asarray(before[path], np.float64)
            rate = rule.rate if rates is None else rates[i].get(
                path, rule.rate)
            after[path] = weight if path not in found else weight + _moves(
                rule, states[path], weight, found[path], rate)
        moved.append(after)
    return moved


def _moves(rule, state, weight, gradient, rate):
    """The change of one parameter; its state is brought forward."""
    state["step"] = step = state.get("step", 0) + 1
    if rule.narrow:
        rule = dataclasses.replace(rule, momentum=float(np.float32(
            rule.momentum)), dampening=float(np.float32(rule.dampening)),
            decay=float(np.float32(rule.decay)))
    if rule.decay and rule.decay_at == COUPLED:
        gradient = gradient + rule.decay * weight
    move = _KINDS[rule.kind](rule, state, gradient, rate, step)
    if rule.decay and rule.decay_at == DECOUPLED:
        move = move - rate * rule.decay * weight
    if rule.decay and rule.decay_at == UNSCALED:
        move = move - rule.decay * weight
    return move


def _with_momentum(rule, state, gradient, rate, step):
    """SGD's step, from the gradient or from what RMSprop made of it."""
    if not rule.momentum:
        return -rate * gradient
    if rule.momentum_of == STEPS:
        held = rule.momentum * state.get("momentum", 0.0) - rate * gradient
        state["momentum"] = held
        return rule.momentum * held - rate * gradient if (
            rule.nesterov) else held
    fresh = gradient if step == 1 and not rule.dampened_first else (
        1 - rule.dampening) * gradient
    held = rule.momentum * state.get("momentum", 0.0) + fresh
    state["momentum"] = held
    return -rate * (gradient + rule.momentum * held
                    if rule.nesterov else held)


def _rooted(rule, second, correction):
    """The root of the second moment, with ε in its place."""
    if rule.eps_at == OUTSIDE:
        return np.sqrt(second / correction) + rule.eps
    if rule.eps_at == BEFORE:
        return (np.sqrt(second) + rule.eps) / math.sqrt(correction)
    return np.sqrt(second / correction + rule.eps)


def _correction(beta, step, narrow):
    """1 - βᵗ."""
    if narrow == POWERS:
        return float(np.float32(1) - np.float32(beta)**np.float32(step))
    if narrow == SETTINGS:
        beta = float(np.float32(beta))
    return 1 - beta**step


def _adam(rule, state, gradient, rate, step):
    first = state["first"] = (rule.beta1 * state.get("first", 0.0)
                              + (1 - rule.beta1) * gradient)
    second = state["second"] = (rule.beta2 * state.get("second", 0.0)
                                + (1 - rule.beta2) * gradient**2)
    if rule.amsgrad:
        second = state["largest"] = np.maximum(
            state.get("largest", 0.0), second)
    c1, c2 = 1, 1
    if rule.corrected:
        c1, c2 = (_correction(beta, step, rule.narrow)
                  for beta in (rule.beta1, rule.beta2))
    return -rate * (first / c1) / _rooted(rule, second, c2)


def _rmsprop(rule, state, gradient, rate, step):
    second = state["second"] = (
        rule.beta2 * state.get("second", rule.initial)
        + (1 - rule.beta2) * gradient**2)
    if rule.centered:
        mean = state["first"] = (rule.beta2 * state.get("first", 0.0)
                                 + (1 - rule.beta2) * gradient)
        second = second - mean**2
    return _with_momentum(rule, state, gradient / _rooted(rule, second, 1),
                          rate, step)


def _adagrad(rule, state, gradient, rate, step):
    second = state["second"] = (
        state.get("second", rule.initial) + gradient**2)
    return -rate * gradient / _rooted(rule, second, 1)


def _lion(rule, state, gradient, rate, step):
    first = state.get("first", 0.0)
    state["first"] = rule.beta2 * first + (1 - rule.beta2) * gradient
    return -rate * np.sign(rule.beta1 * first + (1 - rule.beta1) * gradient)


_KINDS = {SGD: _with_momentum, ADAM: _adam, RMSPROP: _rmsprop,
          ADAGRAD: _adagrad, LION: _lion}
