"""LayerNorm, RMSNorm and the norms of lessons, over the last axis."""

import numpy as np

from parity.causes.formulas import narrow, norm_float32
from parity.causes.formulas.family import Family, by_role
from parity.causes.formulas.narrow import (
    NARROW, NORMALISED, ROOT, TABLE, TINY, UNIT, UNITS, neighbour, single)
from parity.causes.formulas.norm_float32 import STEPS
from parity.numerics.dtypes import EPS

SCALES = {"scale": ("weight", "scale", "gamma", "a_2", "alpha", "g", "w",
                    "weight_g"),
          "bias": ("bias", "beta", "b_2", "b")}

AXES = {"last": -1, "last two": (-2, -1), "second": 1}

#: A LayerNorm as it should be, an RMSNorm, and a norm by the unbiased
#: deviation.
LAYER = {"mean": "subtracted", "epsilon's place": "inside the root",
         "variance": "over D", "axes": "last", "scale": "used",
         "bias": "used"}
RMS = LAYER | {"mean": "ignored", "bias": "ignored"}
DEVIATION = LAYER | {"epsilon's place": "outside the root",
                     "variance": "over D - 1"}


def steps(x, scale, bias, settings):
    """scale (x - mean) / √(variance + ε) + bias, step by step.

    Returns:
        {step: array}; "std" is the root of "variance".
    """
    axes = AXES[settings["axes"]]
    mean = x.mean(axes, keepdims=True)
    size = x.size / mean.size
    c = x - mean if settings["mean"] == "subtracted" else x
    if settings["variance"] == "mean(x²) - mean(x)²":
        variance = np.maximum(
            (x * x).mean(axes, keepdims=True) - mean**2, 0)
    else:
        less = settings["variance"] == "over D - 1"
        variance = (c * c).sum(axes, keepdims=True) / max(size - less, 1)
    std, eps = np.sqrt(variance), settings["epsilon"]
    with np.errstate(all="ignore"):
        y = c / (np.sqrt(variance + eps)
                 if settings["epsilon's place"] == "inside the root"
                 else std + eps)
    return {"mean": mean, "centered": c, "variance": variance, "std": std,
            "normalized": y, "output": affine(y, scale, bias, settings)}


def affine(y, scale, bias, settings):
    """scale · y + bias, of what the settings have of them."""
    if settings.get("scale", "ignored") != "ignored":
        y = y * (scale + (settings["scale"] != "used"))
    return y + bias if settings.get("bias") == "used" else y


class Norm(Family):
    """LayerNorm and RMSNorm."""

    name = "norm"
    narrow = NORMALISED, ROOT, TABLE

    def readings(self, side):
        """A scale and a bias, both of the length of a row or of one number."""
        arrays, seen = by_role(side.parameters, SCALES), side.seen[0]
        if arrays is None or not seen.floats:
            return
        x = seen.x
        if x.shape != seen.output.shape or (
                x.ndim < 2) or any(a.shape not in ((x.shape[-1],), (1,), ())
                                   for a in arrays.values()):
            return
        yield {"scale": arrays.get("scale"), "bias": arrays.get("bias")}

    def fields(self, side, parameters):
        """What norms differ in."""
        eps = side.setting("eps", "epsilon", "variance_epsilon",
                           "layer_norm_eps", "layer_norm_epsilon")
        eps = float(eps) if isinstance(eps, (int, float)) else 1e-5
        fields = {name: [value] for name, value in LAYER.items()
                  if parameters.get(name, True) is not None}
        if "rms" in side.step.kind.lower():
            fields["mean"] = ["ignored", "subtracted"]
        return fields | {"epsilon": [eps, *self.estimated(side, parameters)]}

    def estimated(self, side, parameters):
        """Epsilons of few digits that the numbers themselves suggest."""
        guesses = []
        scale, bias = (parameters[n] for n in ("scale", "bias"))
        for seen in side.seen:
            x, y = seen.x, seen.output
            y = y if bias is None else y - bias
            for mean in (x.mean(-1, keepdims=True), 0.0):
                c = x - mean
                row = c if scale is None else c * scale
                v = (c * c).mean(-1)
                with np.errstate(all="ignore"):
                    root = np.sqrt((row * row).sum(-1) / (y * y).sum(-1))
                    for guess in (root * root - v, root - np.sqrt(v)):
                        guess = guess[np.isfinite(guess)]
                        if guess.size and np.median(guess) > 0:
                            guesses.append(float(f"{np.median(guess):.1e}"))
        return dict.fromkeys(guesses)

    def compute(self, seen, parameters, settings):
        """The last of the steps."""
        return steps(seen.x, parameters["scale"], parameters["bias"],
                     settings)["output"]

    def narrowed(self, seen, parameters, settings, exact):
        """Mean, root and product in float32, or some of them.

        The mean and the root of each row are float32 numbers within UNITS of
        the exact ones; with them every number is settled.

        Args:
            seen: a Seen of [… D].
            parameters, settings: of the norm.
            exact: [… D], as computed in float64.

        Returns:
            [… D]
        """
        if settings["axes"] != "last" or settings["variance"].startswith(
                "mean(x²)"):
            return exact
        scale, bias = parameters["scale"], parameters["bias"]
        values = steps(single(seen.x), scale, bias, settings)
        if settings[NARROW] == TABLE:
            return in_float32(seen, scale, bias, values, settings, exact)
        y, doubt = unscaled(seen.output, scale, bias, settings)
        result, off = narrow.nearest((
            (affine(y, scale, bias, settings), off) for y, off in products(
                seen.x, y, doubt, values, settings)), seen.output, -1)
        leaning = any(narrow.leans(each, seen.x) for each in (
            off[..., :1], off[..., 1:]))
        return exact if leaning or np.abs(off[..., 1:]).max(
            initial=0) > UNITS else result


def in_float32(seen, scale, bias, values, settings, exact):
    """The output if all of a norm is shown to be in float32, else exact."""
    y = seen.output
    if not np.array_equal(single(y), y):
        return exact
    rows = seen.x.reshape(-1, y.shape[-1])
    factor, zero = affine_parts(
        None if scale is None else single(scale), bias, settings)
    result, off = norm_float32.computed(
        rows, y.reshape(rows.shape), factor, zero,
        values["mean"].reshape(-1, 1)
        if settings["mean"] == "subtracted" else None,
        root_of(values, settings).reshape(-1, 1))
    leaning = any(narrow.leans(each, seen.x) for each in (
        off[:, :1], off[:, 1:]))
    return exact if leaning or np.isnan(result).any() or np.abs(
        off[:, 1]).max(initial=0) > UNITS else result.reshape(y.shape)


def affine_parts(scale, bias, settings):
    """By what affine multiplies, and what it adds."""
    return (1.0 if settings.get("scale", "ignored") == "ignored" else
            scale + (settings["scale"] != "used"),
            bias if settings.get("bias") == "used" else 0.0)


def root_of(values, settings):
    """By what a row is divided, with its ε, of what ``steps`` gives."""
    eps = settings["epsilon"]
    return (np.sqrt(values["variance"] + eps)
            if settings["epsilon's place"] == "inside the root"
            else values["std"] + eps)


def unscaled(output, scale, bias, settings):
    """What affine made an output of, [… D], and how far that may be off."""
    factor, zero = affine_parts(scale, bias, settings)
    with np.errstate(all="ignore"):
        return (output - zero) / factor, 4 * EPS["float64"] * (
            np.abs(output) + np.abs(zero)) / np.abs(factor)


def differences_of(y, times, over):
    """The least and largest float32 number that gives y, [… D], float32 too.

    A row's differences from its mean were multiplied, or divided; NaN where
    no number gives what was observed.
    """
    near = [neighbour(y * over / times, step) for step in (-2, -1, 0, 1, 2)]
    giving = np.stack([np.where(single(c * times / over) == y, c, np.nan)
                       for c in near])
    return np.fmin.reduce(giving), np.fmax.reduce(giving)


def halfway(x, towards):
    """Numbers halfway from float32 numbers to their next ones."""
    return (x + np.nextafter(x.astype(np.float32), np.float32(towards))) / 2


def means_of(x, least, most):
    """Yield float32 means [… 1] of rows x that leave least to most, [… D].

    Each number says between which two its row's mean is; where they are the
    two ends of one step, either may be it.
    """
    known = np.isfinite(least) & np.isfinite(most)
    low = np.where(known, x - most, -np.inf).max(-1, keepdims=True)
    high = np.where(known, x - least, np.inf).min(-1, keepdims=True)
    for step in (0, -1, 1):
        yield neighbour((low + high) / 2, step)


def products(x, seen, doubt, values, settings):
    """Yield rows [… D] over a root in float32, and what is off, [… 2].

    That is the root in units, and the mean in units of its row's size.
    Libraries multiply by a reciprocal, or divide.

    Args:
        x: the input, [… D].
        seen, doubt: the rows as they were observed, and how far they may be
            off, [… D].
        values: what ``steps`` gives of x in float32.
        settings: of the norm.
    """
    root = root_of(values, settings)
    whole = settings[NARROW] == NORMALISED
    subtracted = settings["mean"] == "subtracted"
    if whole:
        x, seen = single(x), single(seen)
    size = np.sqrt((x * x).mean(-1, keepdims=True)) + TINY
    for step in STEPS:
        inverse, divisor = neighbour(1 / root, step), neighbour(root, step)
        for times, over, off in ((inverse, 1.0, inverse * root),
                                 (1.0, divisor, root / divisor)):
            means = [0.0]
            if subtracted and whole:
                least, most = differences_of(seen, times, over)
                means = means_of(x, halfway(least, -np.inf),
                                 halfway(most, np.inf))
            elif subtracted:
                c, doubts = seen * over / times, doubt * over / times
                means = means_of(x, c - doubts, c + doubts)
            for mean in means:
                c = single(x - mean) if whole else x - mean
                y = c * times / over
                away = (mean - values["mean"]) / size * subtracted
                yield single(y) if whole else y, np.concatenate(
                    np.broadcast_arrays((off - 1) / UNIT, away / UNIT), -1)
