"""What to write in b to have a setting of a's, in the optimiser that b has.

An optimiser of a library is written as that library does; a step by hand, and
an optimiser that is not known, as the formula.
"""

from parity.training.rules import (
    ADAGRAD, ADAM, BEFORE, COUPLED, DECOUPLED, GRADIENTS, INSIDE, LION,
    OUTSIDE, RMSPROP, SGD, STEPS, UNSCALED)

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
    "centered": {"torch": "centered={}", "jax": "centered={}",
                 "keras": "centered={}"},
    "decay": dict.fromkeys(("torch", "jax", "keras", "mlx"),
                           "weight_decay={}"),
    "corrected": {"mlx": "bias_correction={}"},
    "rate": {"torch": "lr={}", "jax": "learning_rate={}",
             "keras": "learning_rate={}", "mlx": "learning_rate={}"},
    "clip": {"jax": "optax.clip_by_global_norm({})",
             "keras": "global_clipnorm={}"},
    ("beta2", RMSPROP): {"torch": "alpha={}", "jax": "decay={}",
                         "keras": "rho={}", "mlx": "alpha={}"},
}

#: Which class has a kind of weight decay; "" where none has.
CLASSES = {
    (ADAM, COUPLED): {
        "torch": "torch.optim.Adam(…, weight_decay=…)",
        "jax": "optax.chain(optax.add_decayed_weights(…), optax.adam(…))"},
    (ADAM, DECOUPLED): {
        "torch": "torch.optim.AdamW(…)", "jax": "optax.adamw(…)",
        "keras": "keras.optimizers.AdamW(…)",
        "mlx": "mlx.optimizers.AdamW(…)"},
    (SGD, COUPLED): {
        "torch": "torch.optim.SGD(…, weight_decay=…)",
        "jax": "optax.chain(optax.add_decayed_weights(…), optax.sgd(…))",
        "mlx": "mlx.optimizers.SGD(…, weight_decay=…)"},
    (SGD, DECOUPLED): {"keras": "keras.optimizers.SGD(…, weight_decay=…)"},
    (RMSPROP, COUPLED): {
        "torch": "torch.optim.RMSprop(…, weight_decay=…)",
        "jax": "optax.chain(optax.add_decayed_weights(…), "
               "optax.rmsprop(…))"},
    (RMSPROP, DECOUPLED): {
        "keras": "keras.optimizers.RMSprop(…, weight_decay=…)"},
    (ADAGRAD, COUPLED): {
        "torch": "torch.optim.Adagrad(…, weight_decay=…)",
        "jax": "optax.chain(optax.add_decayed_weights(…), "
               "optax.adagrad(…))"},
    (ADAGRAD, DECOUPLED): {
        "keras": "keras.optimizers.Adagrad(…, weight_decay=…)"},
    (LION, DECOUPLED): {
        "jax": "optax.lion(…, weight_decay=…)",
        "keras": "keras.optimizers.Lion(…, weight_decay=…)",
        "mlx": "mlx.optimizers.Lion(…, weight_decay=…)"},
}

#: How a library clips; torch's functions go with any step.
CLIPPING = {
    "global norm": {
        "torch": "torch.nn.utils.clip_grad_norm_(model.parameters(), …)",
        "jax": "optax.clip_by_global_norm(…)", "keras": "global_clipnorm=…"},
    "each parameter's norm": {"keras": "clipnorm=…"},
    "value": {
        "torch": "torch.nn.utils.clip_grad_value_(model.parameters(), …)",
        "jax": "optax.clip(…)", "keras": "clipvalue=…"},
}

#: A setting with a word, or yes, as a formula: g is the gradient, w the
#: weight, m and v the moments, c1 and c2 their corrections.
FORMULAS = {
    ("decay_at", COUPLED): "g = g + weight_decay * w",
    ("decay_at", DECOUPLED): "w -= lr * weight_decay * w",
    ("decay_at", UNSCALED): "w -= weight_decay * w",
    ("eps_at", OUTSIDE): "m / c1 / (sqrt(v / c2) + eps)",
    ("eps_at", BEFORE): "m * sqrt(c2) / c1 / (sqrt(v) + eps)",
    ("eps_at", INSIDE): "m / c1 / sqrt(v / c2 + eps)",
    ("momentum_of", STEPS): "u = momentum * u - lr * g; w += u",
    ("momentum_of", GRADIENTS): "u = momentum * u + g; w -= lr * u",
    ("nesterov", True): "w -= lr * (g + momentum * u)",
    ("nesterov", False): "w -= lr * u",
    ("corrected", True): "c1 = 1 - beta1**t; c2 = 1 - beta2**t",
    ("corrected", False): "c1 = c2 = 1",
    ("amsgrad", True): "v_max = maximum(v_max, v), in the place of v",
    ("amsgrad", False): "v, in the place of v_max",
}

#: The root in a framework's formulas.
ROOTS = {"torch": "torch.sqrt(", "jax": "jnp.sqrt(", "mlx": "mx.sqrt(",
         "keras": "keras.ops.sqrt("}

#: What a setting with a number is called in a formula.
NAMES = {"rate": "lr", "decay": "weight_decay", "clip": "max_norm"}

#: The settings with a number.
NUMBERS = ("rate", "decay", "eps", "beta1", "beta2", "momentum", "dampening")


def writing(framework, name, value, kind="", known=True):
    """What to write in a framework to have a setting, or "".

    Args:
        name, value: of a field of rules.UpdateRule.
        kind: of the rule that b has.
        known: whether b has an optimiser of its library, and no step by hand.
    """
    if name == "clip_by":
        made = CLIPPING.get(value, {})
        return made.get(framework, "") if known or framework == "torch" else ""
    if name == "clip" and framework == "torch":
        return (f"torch.nn.utils.clip_grad_norm_(model.parameters(), "
                f"{_shown(value)})")
    if known and name == "decay_at":
        made = CLASSES.get((kind, value), {}).get(framework, "")
        if made:
            return made
    if known and (name, value) == ("eps_at", INSIDE) and framework == "jax":
        return "optax.adam(…, eps=0, eps_root=eps)"
    if known:
        forms = ARGUMENTS.get((name, kind)) or ARGUMENTS.get(name, {})
        if framework in forms:
            return forms[framework].format(_shown(value))
    elif name in NUMBERS:
        return f"{NAMES.get(name, name)} = {_shown(value)}"
    made = FORMULAS.get((name, value), "")
    return made.replace("sqrt(", ROOTS.get(framework, "sqrt("))


def _shown(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)
