"""softmax(Q Kᵀ / √d_k) V in heads, with its projections."""

import itertools

import numpy as np

from parity.causes.formulas import masks, narrow
from parity.causes.formulas.family import Change, Family
from parity.causes.formulas.narrow import NARROW
from parity.causes.formulas.projections import NAMED, projections
from parity.causes.formulas.scores import (
    BEHIND, SCALES, UNCAPPED, capped, merged, scored, weighed)
from parity.matching.words import words_of
from parity.tracing.trace import is_float

#: What is added to a hidden score is lower.
LOW = -1e4

#: How modules call the cap of their scores, and caps that models have.
CAP_NAMES = ("attn_logit_softcapping", "attn_logits_soft_cap", "softcap",
             "logits_soft_cap", "logit_softcapping", "soft_cap")
CAPS = 50.0, 30.0, 20.0, 10.0, 5.0

#: How they call how many places a query sees, its own among them.
WINDOW_NAMES = ("sliding_window", "window_size", "sliding_window_size",
                "attention_window", "window")


def scales(size, width, says):
    """The factors of scores, of those that are one number here the first; and
    what a module says, if that is none of them."""
    found = {}
    for word, scale in SCALES.items():
        found.setdefault(scale(size, width), word)
    if isinstance(says, float) and says > 0 and not any(
            abs(says - number) <= 1e-9 * number for number in found):
        found[says] = says
    return [*found.values()]


def futures(side):
    """What may be seen of later places, first as a module says."""
    causal = side.setting("is_causal", "causal") or any(
        side.step.others.get(f"inputs.{name}") == "True" for name in (
            "is_causal", "use_causal_mask", "causal"))
    return [*(["hidden"] if causal else []), "seen", "hidden",
            "hidden with the place itself", "hidden but for the next",
            *masks.windows(side.seen[0], side.setting(*WINDOW_NAMES))]


def meanings(side):
    """{"mask NAME": what an array may mean} of each mask, the usual first."""
    hides = side.framework == "torch" and (
        "MultiheadAttention" in side.step.kind)
    usual = "True hides" if hides else "True keeps"
    return {f"mask {name}": [
        "added" if is_float(array) else usual,
        "True keeps", "True hides", "added", "ignored"]
        for name, array in masks.among(side.seen[0].others).items()}


class Attention(Family):
    """Multi-head attention with its projections.

    Args:
        masked: () -> {words: function}, what goes wrong with a mask.
    """

    name = "attention"
    narrow = narrow.SOFTMAX, narrow.SCALE
    own = ("batch", "future", "mistake")

    def __init__(self, masked):
        self.masked = masked

    def readings(self, side):
        """Kernels as [in, out], biases as [out], by query, key, value, output.

        Square kernels are read each way, packed ones in each order.
        """
        arrays, heads = projections(side)
        if arrays is None:
            return
        yield arrays | {"heads": heads}
        for names in itertools.permutations(NAMED[:3]):
            if names != NAMED[:3]:
                others = {f"{new}{leaf}": arrays[f"{old}{leaf}"]
                          for new, old in zip(NAMED, names)
                          for leaf in ("", " bias")}
                if all(a is None or b is None or a.shape == b.shape
                       for a, b in ((others[n], arrays[n]) for n in others)):
                    yield arrays | others | {"heads": heads}
        square = [name for name in NAMED if arrays[name] is not None
                  and arrays[name].shape[0] == arrays[name].shape[1]]
        several = (square, square[:3], square[:2]) if len(square) > 2 else ()
        for names in (*([name] for name in square), *several):
            yield arrays | {name: arrays[name].T for name in names} | {
                "heads": heads}

    def fields(self, side, parameters):
        """What attentions differ in."""
        width = self.width(side, parameters)
        counts = [n for n in range(1, min(width, 32) + 1) if not width % n]
        heads = parameters["heads"] or counts[0]
        cap = side.setting(*CAP_NAMES)
        own = [float(cap)] if isinstance(cap, (int, float)) and cap > 0 else []
        fields: dict = {
            "heads": [heads, *counts],
            "scale": scales(width // heads, width, side.setting(
                "scaling", "scale")),
            "grouping": ["head by head"], "merging": ["moved back"],
            "softmax over": ["keys"], "batch": ["first", "second"],
            "future": futures(side),
            "soft cap": [*own, UNCAPPED, *CAPS],
            "soft cap's place": ["before the mask"],
        }
        if side.setting("batch_first") is False:
            fields["batch"].reverse()
        if parameters["key"] is not None and (
                parameters["key"].shape[1] != width):
            fields["shared heads"] = ["in order"]
        fields |= meanings(side)
        fields |= {f"{name} bias": ["used"] for name in NAMED
                   if parameters[f"{name} bias"] is not None}
        if masks.among(side.seen[0].others) or fields["future"][0] != "seen":
            fields |= {
                "mistake": ["none", *self.masked()],
                "hidden scores": ["never count"],
                "a query that sees nothing": [
                    "gives NaN", "gives 0", "gives the values' mean"]}
        return fields

    @staticmethod
    def width(side, parameters):
        """The width of all heads together."""
        return parameters["query"].shape[1]

    def is_own(self, name):
        """Whether a setting tells how this module's own arrays are meant."""
        return super().is_own(name) or name.startswith("mask ")

    def mask(self, seen, settings, shape):
        """What is kept, [batch, 1, query, key], and what is added or None."""
        batch, queries, keys = shape
        keep, add = np.ones((1, 1, queries, keys), bool), None
        for name, array in masks.among(seen.others).items():
            how = settings.get(f"mask {name}", "ignored")
            if how == "ignored":
                continue
            array = masks.placed(array, name, batch, queries, keys)
            if how == "added":
                low = np.where(np.isneginf(array), 0, array)
                keep = keep & ~np.isneginf(array)
                if low.any():
                    add = low if add is None else add + low
            else:
                keep = keep & ((array != 0) == (how == "True keeps"))
        offset = {"hidden": 0, "hidden with the place itself": -1,
                  "hidden but for the next": 1}.get(settings["future"])
        if isinstance(settings["future"], masks.Window):
            keep = keep & masks.behind(queries, keys, settings["future"])
        elif offset is not None:
            keep = keep & np.tril(np.ones((queries, keys), bool), offset)
        mistake = self.masked().get(settings.get("mistake"))
        if mistake:
            low = 0.0 if add is None else add
            keep = mistake(np.array(keep & (low > LOW)))
            add = None if add is None else np.where(low > LOW, low, 0.0)
        return keep, add

    def also(self, first, second, sides):
        """What is hidden in one and not in the other."""
        entries = []
        for fit, side in zip((first, second), sides):
            seen = side.seen[0]
            x, y, _ = self.inputs(seen, fit.settings)
            keep, add = self.mask(seen, fit.settings, (
                len(x), x.shape[1], y.shape[1]))
            seem = keep if add is None else keep & (add > LOW)
            entries.append((keep, add, np.broadcast_to(seem, (
                len(x), max(len(seem[0]), 1), *seem.shape[2:]))))
        (keep, add, mine), (_, _, other) = entries
        if mine.shape[2:] != other.shape[2:] or len(mine) != len(other):
            return
        mine, other = np.broadcast_arrays(mine, other)
        if np.array_equal(mine, other):
            return
        words = masks.in_words(mine, other, self.masked())
        setting, *told = ("mask", "", words, words.removesuffix(" in b"))
        if windows := masks.windows_apart(mine, other):
            setting, told = "sliding window", windows
        yield Change(setting, *told, second.settings | {
            "kept": (keep, add)}, second.parameters)

    def inputs(self, seen, settings):
        """The inputs of query, key and value, the batch first."""
        by_name = {}
        for name, array in seen.floats.items():
            which = set(words_of(name)[0]) & set(NAMED[:3])
            if len(which) == 1:
                by_name[which.pop()] = array
        arrays = list(seen.floats.values())
        if len(arrays) > 3 or any(x.ndim != 3 for x in arrays):
            raise ValueError
        x = by_name.get("query", arrays[0])
        other = [array for array in arrays if array is not x] or [x]
        value = by_name.get("value", by_name.get("key", other[-1]))
        key = by_name.get("key", value if "value" in by_name else other[0])
        return [each.swapaxes(0, 1) if settings["batch"] == "second" else each
                for each in (x, key, value)]

    def compute(self, seen, parameters, settings):
        """Project, attend head by head, merge, project."""
        scores, keep, v = self.attended(seen, parameters, settings)
        y = merged(weighed(scores, keep, settings) @ v, settings)
        if parameters["output"] is not None:
            y = y @ parameters["output"]
            if settings.get("output bias") == "used":
                y = y + parameters["output bias"]
        y = y.swapaxes(0, 1) if settings["batch"] == "second" else y
        return y.reshape(seen.output.shape)

    def attended(self, seen, parameters, settings):
        """Scores [B H T S], what of them is kept, and values [B H S K]."""
        parts = []
        inputs = self.inputs(seen, settings)
        for x, name in zip(inputs, NAMED):
            y = x if parameters[name] is None else seen.product(
                x, parameters[name])
            if settings.get(f"{name} bias") == "used":
                y = y + parameters[f"{name} bias"]
            parts.append(y)
        keep, add = settings.get("kept") or self.mask(
            seen, settings, (len(inputs[0]), inputs[0].shape[1],
                             inputs[1].shape[1]))
        scores, v = scored(*parts, add, settings, seen.tables)
        if settings.get("soft cap's place") == BEHIND:
            scores = capped(np.where(keep, scores, -np.inf),
                            settings["soft cap"])
            keep = keep | (settings["soft cap"] != UNCAPPED)
        return scores, keep, v

    def narrowed(self, seen, parameters, settings, exact):
        """The softmax in float32, or a scale that was rounded to it.

        Where the weights are seen, each must be that of the softmax, and they
        give the output. Where they are not, what they mixed must be.
        """
        if settings[NARROW] == narrow.SCALE:
            return exact
        if settings["grouping"] != "head by head" or settings["merging"] != (
                "moved back") or settings["softmax over"] != "keys":
            return exact
        if "weights" in seen.tables:
            weights, v = self.weights(seen, parameters, settings)
            return merged(weights @ v, settings)
        scores, keep, v = self.attended(seen, parameters, settings)
        wide = weighed(scores, keep, settings)
        weights = narrow.softmaxes(np.where(keep, scores, -np.inf))
        inner = self.undone(seen, parameters, settings)
        if inner is None:
            return exact
        batch, time, _ = inner.shape
        inner = inner.reshape(batch, time, v.shape[1], -1).swapaxes(1, 2)
        return seen.output if narrow.is_softmax(inner, wide @ v, (
            (each @ v, which) for each, which in weights)) else exact

    def weights(self, seen, parameters, settings):
        """Weights [B H T S], those seen if the softmax is in float32 and they
        are its, and values [B H S K]."""
        scores, keep, v = self.attended(seen, parameters, settings)
        if settings.get(NARROW) != narrow.SOFTMAX:
            return weighed(scores, keep, settings), v
        return narrow.near_softmax(np.where(
            keep, scores, -np.inf), seen.tables["weights"]), v

    @staticmethod
    def undone(seen, parameters, settings):
        """What the last projection was given, [batch, time, width].

        None where that cannot be told from the output.
        """
        y, kernel = seen.output, parameters["output"]
        y = y.swapaxes(0, 1) if settings["batch"] == "second" else y
        if kernel is None:
            return y
        if kernel.shape[0] != kernel.shape[1] or np.linalg.cond(kernel) > 1e6:
            return None
        if settings.get("output bias") == "used":
            y = y - parameters["output bias"]
        return y @ np.linalg.inv(kernel)
