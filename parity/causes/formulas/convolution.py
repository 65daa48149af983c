"""Convolutions over places: of sound, of pictures cut into patches."""

import itertools
import math

import numpy as np

from parity.causes.formulas import activation
from parity.causes.formulas.family import Change, Family, by_role
from parity.causes.formulas.linear import KERNELS
from parity.numerics.distance import strict_distance

#: How places outside are filled -> NumPy's word.
FILLED: dict = {"zeros": "constant", "mirrored": "reflect",
                "the edge repeated": "edge", "from the other end": "wrap"}

#: How modules call these.
MODES = {"reflect": "mirrored", "replicate": "the edge repeated",
         "circular": "from the other end"}

TURNED, EXCHANGED = "turned round", "with its axes exchanged"

#: What tells which places a window sees.
SEEN = "stride", "dilation", "window", "padding before"


class Sizes(tuple):
    """A number for each axis; in words one number if all are alike."""

    def __str__(self):
        return " by ".join(map(str, self if len({*self}) > 1 else self[:1]))


def windows(x, window, count, settings):
    """What each window sees: [B *count C *window].

    Args:
        x: [B *places C].
        window: how many places it has along each axis.
        count: how many windows there are along each axis.
        settings: stride, dilation, and the padding before. What is behind
            follows from the count.

    Raises:
        ValueError: no such windows.
    """
    before, after = settings["padding before"], behind(
        x.shape[1:-1], window, count, settings)
    spans = [(size - 1) * step + 1 for size, step in zip(
        window, settings["dilation"])]
    if any(low >= span or high >= span for low, high, span in zip(
            before, after, spans)) and (any(before) or max(after) > 0):
        raise ValueError  # a window would see nothing but padding
    x = np.pad(x, [(0, 0), *((low, max(high, 0)) for low, high in zip(
        before, after)), (0, 0)], FILLED[settings["padding filled with"]])
    axes = range(1, x.ndim - 1)
    x = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(axes))
    places = [slice(None, (size - 1) * step + 1, step) for size, step in zip(
        count, settings["stride"])]
    inner = [slice(None, None, step) for step in settings["dilation"]]
    return x[(slice(None), *places, slice(None), *inner)]


def behind(places, window, count, settings):
    """How many places are put behind the last one; below 0, are left out."""
    return [(last - 1) * stride + (size - 1) * step + 1 - length - low
            for length, size, last, stride, step, low in zip(
                places, window, count, settings["stride"],
                settings["dilation"], settings["padding before"])]


def convolved(x, kernel, count, settings):
    """Σ over window and channels: [B *count O].

    Args:
        x: [B *places C].
        kernel: [*window C/groups O].
        count: how many windows there are along each axis.
        settings: of the family, without bias and activation.
    """
    groups, n = settings["groups"], len(count)
    if (x.shape[-1] != groups * kernel.shape[-2] or kernel.shape[-1] % groups
            or settings["window"] != kernel.shape[:n]):
        raise ValueError
    seen = windows(x, kernel.shape[:-2], count, settings)
    rows = np.moveaxis(seen, n + 1, -1)  # [B *count *window C]
    channels = np.arange(x.shape[-1]).reshape(groups, -1)
    if settings["grouped channels"] == "in turn":
        channels = channels.reshape(-1, groups).T
    parts = []
    for mine, each in zip(channels, np.split(kernel, groups, -1)):
        part = rows[..., mine].reshape(len(x) * math.prod(count), -1)
        parts.append(part @ each.reshape(part.shape[-1], -1))
    return np.concatenate(parts, -1).reshape(len(x), *count, -1)


class Convolution(Family):
    """activation(Σ over a window of x W + b), in one, two or three axes.

    Args:
        functions: () -> {name: function}, of activations.
    """

    name = "convolution"
    own = ("channels",)
    whole = (*SEEN, "groups", "channels")

    def __init__(self, functions):
        self.functions = functions

    def readings(self, side):
        """A kernel as [*window C/groups O]; first as its framework has it."""
        arrays, seen = by_role(side.parameters, KERNELS) or {}, side.seen[0]
        kernel, bias = arrays.get("kernel"), arrays.get("bias")
        if kernel is None or not 3 <= kernel.ndim <= 5 or (
                len(seen.floats) != 1):
            return
        n = kernel.ndim - 2
        if seen.x.ndim not in (n + 1, n + 2) or (
                seen.output.ndim != seen.x.ndim):
            return
        usual = [*range(2, n + 2), 1, 0] if side.framework == "torch" else [
            *range(n + 2)]
        if "depthwise" in side.step.kind.lower():
            kernel = kernel.reshape(*kernel.shape[:n], 1, -1)
        for order in dict.fromkeys(
                [tuple(usual), *itertools.permutations(range(n + 2))]):
            each = kernel.transpose(order)
            if bias is not None and bias.size != each.shape[-1]:
                continue
            for axes in ((), tuple(range(n)), *(
                    (axis,) for axis in range(n) if n > 1)):
                yield {"kernel": np.flip(each, axes),
                       "bias": None if bias is None else bias.reshape(-1)}

    def fields(self, side, parameters):
        """What convolutions differ in."""
        n = parameters["kernel"].ndim - 2
        window = parameters["kernel"].shape[:n]
        strides = [sizes(side.setting("stride", "strides"), n)]
        dilations = [sizes(side.setting(
            "dilation", "dilation_rate", "kernel_dilation"), n)]
        numbers = {Sizes([number] * n) for number in (1, 2, 3, 4)}
        spans = [(size - 1) * step + 1 for size, step in zip(
            window, dilations[0])]
        befores = itertools.product(*(range(span) for span in spans)) if (
            n == 1) else ([number] * n for number in range(max(spans)))
        where = self.channels(side, parameters["kernel"])
        x, _ = placed(side.seen[0], n, {"channels": where[0]})
        mode = str(side.setting("padding_mode", "padding")).lower()
        setting = str(side.setting("activation") or "none")
        setting = activation.ALIASES.get(setting, setting)
        fields = {
            "stride": [*strides, *sorted(numbers), Sizes(window)],
            "dilation": [*dilations, *sorted(numbers)],
            "window": [Sizes(window)],
            "padding before": [Sizes(each) for each in befores],
            "padding filled with": [MODES.get(mode, "zeros"), *FILLED],
            "channels": where,
            "grouped channels": ["in order"],
            "activation": [*([setting] if setting in self.functions() else []),
                           *activation.SOUND],
        }
        fields["groups"] = [max(
            x.shape[-1] // parameters["kernel"].shape[-2], 1)]
        if parameters["bias"] is not None:
            fields["bias"] = ["used"]
        return fields

    @staticmethod
    def channels(side, kernel):
        """Where the channels may be, first as the module says."""
        n, seen = kernel.ndim - 2, side.seen[0]
        says = side.setting("data_format") or (
            "first" if side.framework == "torch" else "last")
        order = ["first", "last"] if "first" in says else ["last", "first"]
        return [where for where in order if seen.output.shape[
            -1 if where == "last" else -n - 1] == kernel.shape[-1]] or order

    def compute(self, seen, parameters, settings):
        """activation(Σ over windows + b)."""
        kernel, (x, y) = parameters["kernel"], placed(
            seen, parameters["kernel"].ndim - 2, settings)
        result = convolved(x, kernel, y.shape[1:-1], settings)
        if settings.get("bias") == "used":
            result = result + parameters["bias"]
        if settings["channels"] == "first":
            result = np.moveaxis(result, -1, 1)
        return self.functions()[settings["activation"]](
            result).reshape(seen.output.shape)

    def relation(self, name, mine, other):
        """That a kernel is turned round, or two of its axes are exchanged."""
        if name != "kernel":
            return None
        if mine.shape != other.shape:  # told as groups, or another window
            return ("", "") if mine.shape[-1] == other.shape[-1] else None
        n = mine.ndim - 2
        if np.array_equal(mine, other):
            return None
        for count in range(1, n + 1):
            for axes in itertools.combinations(range(n), count):
                if np.array_equal(np.flip(mine, axes), other):
                    along = "" if n == count else (
                        f" along axis {axes[0]} of its window")
                    return TURNED, f"{TURNED}{along} in b"
        words = [*(f"axis {axis} of its window" for axis in range(n)),
                 "inputs", "outputs"]
        for one, two in itertools.combinations(range(n + 2), 2):
            if np.array_equal(mine.swapaxes(one, two), other):
                return EXCHANGED, (
                    f"{words[one]} and {words[two]} exchanged in b")
        return None

    def also(self, first, second, sides):
        """What is behind the last place, and which axis has the channels."""
        n = second.parameters["kernel"].ndim - 2
        arrays = [placed(side.seen[0], n, fit.settings)
                  for fit, side in zip((first, second), sides)]
        alike = all(first.settings[name] == second.settings[name]
                    for name in SEEN)
        counts = [y.shape[1:-1] for _, y in arrays]
        if alike and counts[0] != counts[1]:
            after = [Sizes(behind(
                x.shape[1:-1], fit.settings["window"], count, fit.settings))
                for fit, (x, _), count in zip(
                    (first, second), arrays, counts)]
            yield Change("padding behind", *after, after[1], second.settings | {
                "channels": "none"}, second.parameters)
        one, two = (side.seen[0].x for side in sides)
        if first.settings["channels"] != second.settings["channels"] and (
                one.shape == two.shape
                and strict_distance(two, one) <= sides[1].limit):
            yield Change(
                "channels", *(fit.settings["channels"] for fit in (
                    first, second)), second.settings["channels"],
                second.settings | {"channels": first.settings["channels"]},
                second.parameters)


def placed(seen, n, settings):
    """The input and the output as [B *places C].

    Raises:
        ValueError: the setting says of no axis that it has the channels.
    """
    x, y = (array if array.ndim == n + 2 else array[None]
            for array in (seen.x, seen.output))
    if settings["channels"] not in ("first", "last"):
        raise ValueError
    if settings["channels"] == "first":
        x, y = np.moveaxis(x, 1, -1), np.moveaxis(y, 1, -1)
    return x, y


def sizes(value, n):
    """A setting as a number for each axis; 1 where it says nothing."""
    if isinstance(value, int) and value > 0:
        return Sizes([value] * n)
    if isinstance(value, list) and len(value) in (1, n) and all(
            isinstance(each, int) and each > 0 for each in value):
        return Sizes(value * n if len(value) == 1 else value)
    return Sizes([1] * n)
