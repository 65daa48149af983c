"""What optimisers say of themselves, as rules.

An optimiser of which nothing is known here gives no rule; its rule is then
sought by its numbers.
"""

from parity.training.rules import (
    ADAGRAD, ADAM, BEFORE, COUPLED, DECOUPLED, EACH, GLOBAL, INSIDE, LION,
    POWERS, RMSPROP, SETTINGS, SGD, STEPS, VALUE, UpdateRule)


def of_torch(optimizer, group):
    """The rule of a group of torch.optim, or None."""
    name = type(optimizer).__name__
    if not type(optimizer).__module__.startswith("torch.optim"):
        return None  # a user's own class, whatever its name
    if group.get("maximize"):
        return None
    decay = float(group.get("weight_decay", 0.0))
    made: dict = {"rate": float(group["lr"]), "decay": decay}
    if name == "SGD":
        return UpdateRule(SGD, **made, **{
            each: group[each] for each in (
                "momentum", "dampening", "nesterov")})
    if name in ("Adam", "AdamW"):
        apart = name == "AdamW" or group.get("decoupled_weight_decay", False)
        beta1, beta2 = map(float, group["betas"])
        return UpdateRule(
            ADAM, **made, beta1=beta1, beta2=beta2, eps=group["eps"],
            amsgrad=group["amsgrad"],
            decay_at=DECOUPLED if apart else COUPLED)
    if name == "RMSprop":
        return UpdateRule(
            RMSPROP, **made, beta2=group["alpha"], eps=group["eps"],
            momentum=group["momentum"], centered=group["centered"])
    if name == "Adagrad" and not group["lr_decay"]:
        return UpdateRule(
            ADAGRAD, **made, eps=group["eps"],
            initial=group["initial_accumulator_value"])
    return None


def of_keras(optimizer, decayed):
    """The rule of a Keras optimiser, or None.

    Args:
        decayed: whether weight decay is applied to the parameter.
    """
    name, config = type(optimizer).__name__, optimizer.get_config()
    if not type(optimizer).__module__.startswith("keras.") or (
            config.get("use_ema") or config.get("loss_scale_factor")):
        return None
    made: dict = {"decay": float(config.get("weight_decay") or 0.0) * decayed,
            "decay_at": DECOUPLED, "narrow": SETTINGS}
    for setting, by in (("clipvalue", VALUE), ("global_clipnorm", GLOBAL),
                        ("clipnorm", EACH)):
        if config.get(setting):
            made |= {"clip": float(config[setting]), "clip_by": by}
    if name == "SGD":
        return UpdateRule(SGD, **made, momentum=config["momentum"],
                          nesterov=config["nesterov"], momentum_of=STEPS)
    if name in ("Adam", "AdamW"):
        return UpdateRule(
            ADAM, **made, beta1=config["beta_1"], beta2=config["beta_2"],
            eps=config["epsilon"], eps_at=BEFORE, amsgrad=config["amsgrad"])
    if name == "RMSprop":
        return UpdateRule(
            RMSPROP, **made, beta2=config["rho"], eps=config["epsilon"],
            eps_at=INSIDE, momentum=config["momentum"], momentum_of=STEPS,
            centered=config["centered"])
    if name == "Adagrad":
        return UpdateRule(
            ADAGRAD, **made, eps=config["epsilon"], eps_at=INSIDE,
            initial=config["initial_accumulator_value"])
    if name == "Lion":
        return UpdateRule(LION, **made, beta1=config["beta_1"],
                          beta2=config["beta_2"])
    return None


def of_mlx(optimizer):
    """The rule of an MLX optimiser, or None."""
    name = type(optimizer).__name__
    if not type(optimizer).__module__.startswith("mlx."):
        return None
    narrow: dict = {"narrow": POWERS}

    def value(setting):
        return float(getattr(optimizer, setting))
    if name == "SGD":
        return UpdateRule(
            SGD, **narrow, momentum=value("momentum"),
            decay=value("weight_decay"), dampening=value("dampening"),
            dampened_first=True, nesterov=bool(optimizer.nesterov))
    if name in ("Adam", "AdamW"):
        beta1, beta2 = map(float, optimizer.betas)
        return UpdateRule(
            ADAM, **narrow, beta1=beta1, beta2=beta2, eps=value("eps"),
            corrected=bool(optimizer.bias_correction), decay_at=DECOUPLED,
            decay=value("weight_decay") if name == "AdamW" else 0.0)
    if name == "RMSprop":
        return UpdateRule(RMSPROP, **narrow, beta2=value("alpha"),
                          eps=value("eps"))
    if name == "Adagrad":
        return UpdateRule(ADAGRAD, **narrow, eps=value("eps"))
    if name == "Lion":
        beta1, beta2 = map(float, optimizer.betas)
        return UpdateRule(LION, **narrow, beta1=beta1, beta2=beta2,
                          decay=value("weight_decay"), decay_at=DECOUPLED)
    return None
