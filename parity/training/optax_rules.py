"""What an Optax transformation is made of, read from its closures."""

import jax
import numpy as np
from flax import nnx

from parity.training.rules import (
    ADAGRAD, ADAM, COUPLED, DECOUPLED, GLOBAL, GRADIENTS, INSIDE, LION,
    OUTSIDE, RMSPROP, SGD, STEPS, VALUE, UpdateRule)

#: Transformations that change nothing, or are seen otherwise.
IDLE = {"identity", "stateless", "scale_by_learning_rate"}


def parts_of(tx):
    """[(name, {variable: value})] of what a transformation does, in order."""
    return [*_opened(getattr(tx, "update", tx))]


def _opened(function):
    """The parts of an update function."""
    owner = getattr(function, "__self__", None)
    if owner is not None and type(owner).__name__ == "MultiSteps":
        yield "MultiSteps", {}
        yield from _opened(owner._opt.update)
        return
    function = getattr(function, "__wrapped__", function)
    if not hasattr(function, "__code__"):
        yield "?", {}
        return
    name = function.__qualname__.partition(".")[0]
    held = {variable: cell.cell_contents for variable, cell in zip(
        function.__code__.co_freevars, function.__closure__ or ())
        if not _is_empty(cell)}
    if name == "chain" and "update_fns" in held:
        for each in held["update_fns"]:
            yield from _opened(each)
    elif name == "with_extra_args_support" or (
            name not in IDLE and set(held) == {"tx"}):
        yield from _opened(held["tx"].update)
    elif name == "masked":
        inner = held.get("inner")
        for part, inside in _opened(getattr(inner, "update", None)):
            yield part, inside | {"mask": held.get("mask")}
    else:
        yield name, held


def _is_empty(cell):
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def accumulates(tx):
    """Whether a transformation collects gradients of several calls."""
    return any(name == "MultiSteps" for name, _ in parts_of(tx))


def of_optax(tx, number, params, paths):
    """({path: UpdateRule or None}, learning rate or None, name).

    Args:
        tx: the transformation.
        number: how many updates came before.
        params: the State of what it trains.
        paths: {path of nnx: path of a parameter}.
    """
    base: dict = {"decay_at": DECOUPLED}
    kind, rate, decay, mask, known = SGD, None, 0.0, None, True
    name, scaled = "sgd", False
    for part, held in parts_of(tx):
        match part:
            case "clip_by_global_norm":
                base |= {"clip": float(held["max_norm"]), "clip_by": GLOBAL}
            case "clip":
                base |= {"clip": float(held["max_delta"]), "clip_by": VALUE}
            case "scale_by_adam" if not held.get("nesterov"):
                kind = ADAM
                base |= _adam(held)
                known = known and base.pop("known")
            case "scale_by_amsgrad":
                kind = ADAM
                base |= _adam(held) | {"amsgrad": True}
                known = known and base.pop("known")
            case "trace":
                base |= {"momentum": float(held["decay"]),
                         "nesterov": bool(held.get("nesterov"))}
                base["momentum_of"] = STEPS if scaled else GRADIENTS
            case "scale_by_rms" if not held.get("bias_correction"):
                kind = RMSPROP
                base |= {"beta2": float(held["decay"]),
                         "initial": float(held.get("initial_scale", 0.0)),
                         "eps": float(held["eps"]),
                         "eps_at": INSIDE if held.get("eps_in_sqrt", True)
                         else OUTSIDE}
            case "scale_by_rss":
                kind = ADAGRAD
                base |= {"initial": float(held.get(
                    "initial_accumulator_value", 0.1)),
                    "eps": float(held["eps"]), "eps_at": INSIDE}
            case "scale_by_lion":
                kind = LION
                base |= {"beta1": float(held["b1"]),
                         "beta2": float(held["b2"])}
            case "add_decayed_weights":
                decay, mask = held["weight_decay"], held.get("mask")
                known = known and not callable(decay)
                base["decay_at"] = (COUPLED if kind == SGD and not scaled
                                    else DECOUPLED)
            case "scale" if not scaled:
                rate, scaled = -float(held["step_size"]), True
            case "scale_by_schedule" if not scaled:
                rate, scaled = -float(
                    held["step_size_fn"](np.int32(number))), True
            case "MultiSteps":
                pass
            case _ if part not in IDLE:
                known = False
        if part.startswith("scale_by_") and part not in (
                "scale_by_schedule", *IDLE):
            name = part.removeprefix("scale_by_")
    if not known or rate is None:
        return {}, rate, name
    decayed = _masked(mask, params, paths)
    return {path: UpdateRule(kind, rate=rate, decay=float(decay) if (
        decayed is None or decayed.get(path)) else 0.0, **base)
        for path in paths.values()}, rate, name


def _adam(held):
    """The settings of scale_by_adam; not known where ε stands twice."""
    eps, root = float(held["eps"]), float(held.get("eps_root", 0.0))
    made = {"beta1": float(held["b1"]), "beta2": float(held["b2"]),
            "eps": eps, "known": not (eps and root)}
    return made | ({"eps": root, "eps_at": INSIDE} if root and not eps else {})


def _masked(mask, params, paths):
    """{path: whether it decays}, or None for all."""
    if mask is None:
        return None
    tree = mask(params) if callable(mask) else mask
    try:
        flat = nnx.to_flat_state(tree)
        return {paths[tuple(path)]: bool(np.asarray(getattr(
            value, "value", value))) for path, value in flat
            if tuple(path) in paths}
    except Exception:  # a mask of another form
        leaves = jax.tree.leaves(tree)
        return dict(zip(paths.values(), map(bool, leaves)))
