"""What the settings of an update rule are called in an answer."""

import math

from parity.numerics.words import apart, listed
from parity.training.rules import (
    BEFORE, COUPLED, INSIDE, OUTSIDE, STEPS)
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

#: How torch.optim, optax, Keras and MLX write a setting.
ARGUMENTS = {
    "eps": {"torch": "eps={}", "jax": "eps={}", "keras": "epsilon={}",
            "mlx": "eps={}"},
    "beta1": {"torch": "betas=({}, …)", "jax": "b1={}", "keras": "beta_1={}",
              "mlx": "betas=[{}, …]"},
    "beta2": {"torch": "betas=(…, {})", "jax": "b2={}", "keras": "beta_2={}",
              "mlx": "betas=[…, {}]"},
    "momentum": dict.fromkeys(("torch", "jax", "keras", "mlx"),
                              "momentum={}"),
    "dampening": {"torch": "dampening={}", "mlx": "dampening={}"},
    "nesterov": dict.fromkeys(("torch", "jax", "keras", "mlx"),
                              "nesterov={}"),
    "amsgrad": {"torch": "amsgrad={}", "keras": "amsgrad={}"},
    "decay": dict.fromkeys(("torch", "jax", "keras", "mlx"),
                           "weight_decay={}"),
    "corrected": {"mlx": "bias_correction={}"},
    "rate": {"torch": "lr={}", "jax": "learning_rate={}",
             "keras": "learning_rate={}", "mlx": "learning_rate={}"},
    "clip": {"torch": "torch.nn.utils.clip_grad_norm_(parameters, {})",
             "jax": "optax.clip_by_global_norm({})",
             "keras": "global_clipnorm={}"},
}

#: What a kind of decay or clipping is called in a framework.
WORDS = {
    ("decay_at", COUPLED): {
        "torch": "torch.optim.Adam(…, weight_decay=…)",
        "jax": "optax.chain(optax.add_decayed_weights(…), optax.adam(…))"},
    ("decay_at", "on the weight"): {
        "torch": "torch.optim.AdamW(…)", "jax": "optax.adamw(…)",
        "keras": "keras.optimizers.AdamW(…)",
        "mlx": "mlx.optimizers.AdamW(…)"},
    ("clip_by", "global norm"): {
        "torch": "torch.nn.utils.clip_grad_norm_(model.parameters(), …)",
        "jax": "optax.clip_by_global_norm(…)",
        "keras": "global_clipnorm=…"},
    ("clip_by", "each parameter's norm"): {"keras": "clipnorm=…"},
    ("clip_by", "value"): {
        "torch": "torch.nn.utils.clip_grad_value_(model.parameters(), …)",
        "jax": "optax.clip(…)", "keras": "clipvalue=…"},
    ("eps_at", OUTSIDE): {
        "torch": "m / c1 / ((v / c2).sqrt() + eps)",
        "jax": "m / c1 / (jnp.sqrt(v / c2) + eps)"},
    ("eps_at", BEFORE): {
        "torch": "m * c2**0.5 / c1 / (v.sqrt() + eps)",
        "jax": "m * c2**0.5 / c1 / (jnp.sqrt(v) + eps)"},
    ("eps_at", INSIDE): {
        "torch": "m / c1 / (v / c2 + eps).sqrt()",
        "jax": "optax.adam(…, eps=0, eps_root=eps)"},
    ("momentum_of", STEPS): {
        "torch": "v = momentum * v - lr * g; w += v"},
    ("momentum_of", "gradients"): {
        "torch": "v = momentum * v + g; w -= lr * v"},
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


def writing(framework, name, value):
    """What to write in a framework to have a setting, or ""."""
    made = WORDS.get((name, value), {}).get(framework, "")
    if not made and name in ARGUMENTS:
        shown = value if isinstance(value, bool) else (
            f"{value:.6g}" if isinstance(value, float) else value)
        made = ARGUMENTS[name].get(framework, "").format(shown)
    return made


def paths_in_words(paths, total):
    """Paths of parameters as a place."""
    if len(paths) == total:
        return "every parameter" if total > 1 else paths[0]
    if len(paths) < 4:
        return listed(paths)
    return f"{paths[0]} and {len(paths) - 1} more"


