"""softmax(Q Kᵀ / √d_k) V in heads, with its projections."""

import itertools
import re

import numpy as np

from parity.causes.formulas import masks, narrow, rotary
from parity.causes.formulas.family import Change, Family
from parity.causes.formulas.narrow import NARROW
from parity.matching.words import words_of
from parity.numerics.softmax import softmax
from parity.tracing.trace import is_float

NAMED = ("query", "key", "value", "output")

#: How a parameter is called that holds query, key and value.
PACKED = re.compile("in_proj|qkv|c_attn|query_key_value")

#: How modules call the number of their heads.
HEADS = ("num_heads", "nhead", "n_heads", "n_head", "heads", "h",
         "num_attention_heads", "_num_heads")

#: What is added to a hidden score is lower.
LOW = -1e4

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

#: How modules call the cap of their scores, caps that models have, and where
#: a cap is.
CAP_NAMES = ("attn_logit_softcapping", "attn_logits_soft_cap", "softcap",
             "logits_soft_cap", "logit_softcapping", "soft_cap")
CAPS = 50.0, 30.0, 20.0, 10.0, 5.0
UNCAPPED, BEHIND = "none", "after the mask"

#: How they call how many places a query sees, its own among them.
WINDOW_NAMES = ("sliding_window", "window_size", "sliding_window_size",
                "attention_window", "window")

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


def projections(side):
    """An attention's parameters by role, and the number of its heads.

    (None, None) where they are not those of an attention.
    """
    none = None, None
    roles: dict = {
        f"{name}{leaf}": None for name in NAMED for leaf in ("", " bias")}
    heads, turn = side.setting(*HEADS), side.framework == "torch"
    arrays = {path: array for path, array in side.parameters.items()
              if is_float(array)}
    for path, array in arrays.items():
        leaf = " bias" if words_of(path)[0][-1:] == ["bias"] else ""
        if array.ndim not in ((0, 1, 2) if leaf else (2, 3)):
            return none
        if PACKED.search(path):
            parts = unpacked(array.T if turn and not leaf and (
                "c_attn" not in path) else array, leaf)
            if parts is None:
                return none
            roles |= parts
            continue
        name = role_of(path, len(arrays))
        if roles[name + leaf] is not None:
            return none
        if array.ndim == 3:
            heads = array.shape[0 if name == "output" else 1]
        roles[name + leaf] = flat(array, name, leaf, turn)
    return (roles, heads) if belong_together(roles, heads) else none


def unpacked(array, leaf):
    """{role: third} of an array that holds query, key and value; or None."""
    if array.shape[-1] % 3:
        return None
    return {name + leaf: part
            for name, part in zip(NAMED, np.split(array, 3, -1))}


def role_of(path, count):
    """Which projection one of so many parameters is of, by its path."""
    words, numbers = words_of(path)
    name = next((word for word in words if word in NAMED[:3]), None)
    if name is None and count == 8 and len(numbers) == 1 and (
            numbers[0] < 4) and "output" not in words:
        return NAMED[numbers[0]]  # a list of four layers
    return name or "output"


def flat(array, name, leaf, turn):
    """A kernel as [in, out], whether it has heads or not, a bias as [out]."""
    if array.ndim == 3:
        return (array.reshape(-1, array.shape[-1]) if name == "output"
                else array.reshape(len(array), -1))
    if leaf:
        return array.reshape(-1)
    return array.T if turn else array


def belong_together(roles, heads):
    """Whether projections are there, and of widths that belong together."""
    query, key, value = (roles[name] for name in NAMED[:3])
    return not (query is None or key is None or value is None) and (
        not query.shape[1] % key.shape[1]
        and value.shape[1] == key.shape[1]
        and isinstance(heads, (int, type(None))))
