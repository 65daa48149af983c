"""Scores of attention in heads, their softmax, and heads beside each other."""

import numpy as np

from parity.causes.formulas import narrow, rotary
from parity.causes.formulas.narrow import NARROW
from parity.numerics.softmax import softmax

#: By how much scores are multiplied, from d_k and d_model.
SCALES = {
    "1/√d_k": lambda size, model: size**-0.5,
    "1": lambda size, model: 1.0,
    "1/√d_model": lambda size, model: model**-0.5,
    "1/d_k": lambda size, model: 1 / size,
    "√d_k": lambda size, model: size**0.5,
    "1/d_model": lambda size, model: 1 / model,
    "1/√heads": lambda size, model: (model / size)**-0.5,
}

#: That scores have no cap; and that theirs is behind the mask.
UNCAPPED, BEHIND = "none", "after the mask"

#: A softmax as this project has it.
OURS = {"softmax over": "keys", "hidden scores": "never count",
        "a query that sees nothing": "gives 0"}

AXES = {"keys": -1, "queries": -2, "heads": 1}

#: Which of G heads of keys head h of H has.
SHARED = {
    "in order": lambda h, heads, groups: h * groups // heads,
    "in turn": lambda h, heads, groups: h % groups,
    "in reverse": lambda h, heads, groups: (heads - 1 - h) * groups // heads,
    "the first": lambda h, heads, groups: 0 * h,
}


def weighed(scores, keep, settings):
    """The weights of scores [B H T S], hidden where not kept."""
    hidden = np.where(keep, scores, {
        "never count": -np.inf, "are 1e-9": 1e-9, "are 0": 0.0,
        "less 10": scores - 10, "are hidden after the softmax": scores}[
            settings.get("hidden scores", "never count")])
    axis = AXES[settings["softmax over"]]
    weights = softmax(hidden, axis)
    if settings.get("hidden scores") == "are hidden after the softmax":
        weights = np.where(keep, weights, 0)
    empty = settings.get("a query that sees nothing", "gives NaN")
    if empty == "gives NaN":
        return weights
    nothing = ~np.broadcast_to(keep, scores.shape).any(axis, keepdims=True)
    return np.where(nothing, {
        "gives 0": 0.0, "gives the values' mean": 1 / scores.shape[axis],
        "sees everything": softmax(scores, axis),
        "sees everything, less 1e9": softmax(scores - 1e9, axis)}[empty],
        weights)


def capped(scores, cap):
    """c tanh(scores / c), or the scores where there is no cap."""
    return scores if cap == UNCAPPED else cap * np.tanh(scores / cap)


def shared(x, heads, order):
    """Heads of keys or values [B G S K], one for each head of queries."""
    groups = x.shape[1]
    if groups == heads:
        return x
    return x[:, SHARED[order](np.arange(heads), heads, groups)]


def rotated(q, k, tables, settings):
    """Queries and keys turned by their positions, where they are."""
    which = rotary.TURNED[settings.get("rotary on", "neither")]
    if not any(which):
        return q, k
    how = settings["rotary pairs"], settings["rotary direction"]
    turned = []
    for x, does in zip((q, k), which):
        if "cosines" in tables:
            given = [tables[name] for name in ("cosines", "sines")]
        else:
            angle = rotary.angles(np.arange(x.shape[2], dtype=float),
                                  x.shape[-1], settings["rotary base"])
            given = [np.cos(angle), np.sin(angle)]
        given = [table[:, None] if table.ndim == 3 else table
                 for table in given]
        turned.append(rotary.turned(x, *given, *how) if does else x)
    return turned


def scored(q, k, v, add, settings, tables):
    """Scores [B H T S] and values [B H S K] of what is [batch, time, width].

    ``tables`` has what attention was given besides: "cosines", "sines" and
    "position bias".
    """
    size, more = divmod(q.shape[-1], settings["heads"])
    if more or k.shape[-1] % size or v.shape[-1] % size:
        raise ValueError

    def split(x):
        heads = x.shape[-1] // size
        batch, time, width = x.shape
        if settings["grouping"] == "cut out of time and features":
            return x.reshape(batch, heads, time, -1)
        if settings["grouping"] == "feature by feature":
            return x.reshape(batch, time, -1, heads).transpose(0, 3, 1, 2)
        return x.reshape(batch, time, heads, -1).swapaxes(1, 2)
    heads, order = settings["heads"], settings.get("shared heads", "in order")
    q, k = rotated(split(q), split(k), tables, settings)
    k, v = (shared(x, heads, order) for x in (k, split(v)))
    scale = settings["scale"]
    if not isinstance(scale, float):
        scale = SCALES[scale](size, size * heads)
    if settings.get(NARROW) == narrow.SCALE:
        scale = narrow.single(scale)
    scores = q @ k.swapaxes(-1, -2) * scale
    if settings.get("soft cap's place") != BEHIND:
        scores = capped(scores, settings.get("soft cap", UNCAPPED))
    if add is not None:
        scores = scores + add
    if settings.get("position bias") == "added":
        scores = scores + tables["position bias"]
    return scores, v


def merged(y, settings):
    """Heads [B H T K] beside each other, [batch, time, width]."""
    batch, _, time, size = y.shape
    if settings["merging"] == "not moved back":
        return y.reshape(batch, time, -1)
    if settings["grouping"] == "feature by feature":
        return y.transpose(0, 2, 3, 1).reshape(batch, time, -1)
    return y.swapaxes(1, 2).reshape(batch, time, -1)
