"""Linear, Dense, LinearGeneral, EinsumDense: x W + b, and what is fused."""

import itertools
import math

from parity.causes.formulas import activation
from parity.causes.formulas.family import Family, Sized, by_role, rounded

KERNELS = {"kernel": ("weight", "kernel", "w", "weights", "table"),
           "bias": ("bias", "b", "beta")}


class LinearMap(Family):
    """factor · activation(x W + b).

    Args:
        functions: () -> {name: function}, of activations.
    """

    name = "linear"
    narrow = (activation.CONSTANT,)

    def __init__(self, functions):
        self.functions = functions

    def readings(self, side):
        """A kernel as [in, out] and a bias as [out]; square ones both ways."""
        arrays, seen = by_role(side.parameters, KERNELS) or {}, side.seen[0]
        kernel, bias = arrays.get("kernel"), arrays.get("bias")
        if kernel is None or kernel.ndim < 2 or not seen.floats:
            return
        x, y = seen.x.shape, seen.output.shape
        if bias is not None:
            if bias.size not in _tails(y):
                return
            bias = bias.reshape(-1)
        ways = []
        for n in range(1, kernel.ndim):
            first, second = kernel.shape[:n], kernel.shape[n:]
            flat = kernel.reshape(math.prod(first), -1)
            if x[-len(first):] == first and y[-len(second):] == second:
                ways.append(flat)
            if (kernel.ndim == 2 and x[-1:] == second
                    and y[-1:] == first):
                ways.append(flat.T)
        if (side.framework == "torch" and "weight" in "".join(side.parameters)
                and "conv1d" not in side.step.kind.lower()):
            ways.reverse()
        for kernel in ways:
            yield {"kernel": kernel, "bias": bias}

    def fields(self, side, parameters):
        """What linear layers differ in."""
        setting = str(side.setting("activation") or "none")
        setting = activation.ALIASES.get(setting, setting)
        size = len(parameters["kernel"])
        fields = {
            "activation": [*([setting] if setting in self.functions() else []),
                           *activation.SOUND],
            "factor": [Sized(word, size) for word in (
                "1", "1/√d", "√d", "1/d")],
            "product": ["exact"],
        }
        if parameters["bias"] is not None:
            fields["bias"] = ["used"]
        fields["factor"] += self.observed(side, parameters, fields)
        return fields

    def compute(self, seen, parameters, settings):
        """factor · activation(x W + b)."""
        return self.activated(seen, parameters, settings, self.functions())

    def narrowed(self, seen, parameters, settings, exact):
        """The same with its activation's constant in float32."""
        return self.activated(seen, parameters, settings,
                              self.functions() | activation.ROUNDED)

    @staticmethod
    def activated(seen, parameters, settings, functions):
        """The same with these activations."""
        x, kernel = seen.x, parameters["kernel"]
        if settings["product"] != "exact":
            x, kernel = (rounded(v, settings["product"]) for v in (x, kernel))
        y = x.reshape(-1, len(kernel)) @ kernel
        if "bias" in settings:
            times = 2 if settings["bias"] == "added twice" else 1
            y = y + times * parameters["bias"]
        y = y.reshape(seen.output.shape)
        return settings["factor"] * functions[settings["activation"]](y)


def _tails(shape):
    """The sizes of a shape's ends."""
    return set(itertools.accumulate(reversed(shape), lambda p, n: p * n))
