"""Whether a step of Adam was computed in float32 from its own moments.

In a precision tier a limit has room for what rounding to 16 bits changes. But
moments before and after a step say what gradient it had, and what it must move
to a few units of float32: an update, a square or a factor of clipping that had
16 bits is seen by that, however small it is.
"""

import numpy as np

from parity.numerics import mixed
from parity.numerics.dtypes import EPS

#: What a float32 is rounded by, how many roundings of a term there may be, and
#: what is too small to be held.
UNIT, ROUNDINGS, TINY = EPS["float32"], 16, float(np.finfo(np.float32).tiny)

#: Of fewer values all may happen to have 16 bits.
SEVERAL = 4


class Updates:
    """The weights and moments of a run, from one step to the next.

    Args:
        optimizer: the reference's Adam.
        weights: {name: float32 array}, before the first step.
    """

    def __init__(self, optimizer, weights):
        self.optimizer, self.step = optimizer, 0
        self.weights = exact(weights)
        self.m, self.v = ({name: np.zeros(array.shape)
                           for name, array in weights.items()}
                          for _ in range(2))

    def problems(self, weights, moments, norm, short):
        """What of one more step is not as it says: {name: words}.

        Args:
            weights: after the step, {name: float32 array}.
            moments: after it, {"m.name" or "v.name": float32 array}.
            norm: of all gradients, before they were clipped.
            short: the 16-bit dtype that the tier has, or "".
        """
        self.step += 1
        before, m0, v0 = self.weights, self.m, self.v
        self.weights = exact(weights)
        self.m, self.v = (
            exact({name: moments[f"{kind}.{name}"] for name in weights})
            for kind in "mv")
        beta1, beta2 = self.optimizer.beta1, self.optimizer.beta2
        rate, correction1, correction2 = self.optimizer.settings(self.step)
        limit = self.optimizer.training.clip_norm
        found, gradients, slacks = {}, [], []
        for name, m in self.m.items():
            v = self.v[name]
            gradient = (m - beta1 * m0[name]) / (1 - beta1)
            slack = 4 * UNIT * (
                abs(m) + beta1 * abs(m0[name])) / (1 - beta1) + TINY
            gradients.append(gradient.ravel())
            slacks.append(slack.ravel())
            added = (1 - beta2) * gradient**2
            if far(v, beta2 * v0[name] + added, ROUNDINGS * UNIT * v + (
                    1 - beta2) * slack * (2 * abs(gradient) + slack)):
                found[f"v of {name}"] = "it is not its gradient's square"
            move = rate * (m / correction1) / (
                np.sqrt(v / correction2) + self.optimizer.eps)
            if far(self.weights[name], before[name] - move, UNIT * (
                    ROUNDINGS * abs(move) + 2 * abs(before[name]))):
                found[f"move of {name}"] = "it is not what its moments say"
            if (short and self.step == 1 and limit and norm > limit
                    and is_short(gradient, slack, short)):
                found[f"clipped gradient of {name}"] = (
                    f"it holds no more than {short}")
        clipped, slack = map(np.concatenate, (gradients, slacks))
        expected = min(norm, limit) if limit else norm
        if far(np.linalg.norm(clipped), expected, np.linalg.norm(slack)
               + ROUNDINGS * UNIT * expected):
            found["clipped norm"] = (
                f"{np.linalg.norm(clipped):.9g}, and not {expected:.9g}")
        return found


def exact(arrays):
    """Arrays by name in float64."""
    return {name: np.asarray(array, np.float64)
            for name, array in arrays.items()}


def far(found, expected, slack):
    """Whether anything is further from what is expected than its slack, or no
    number."""
    with np.errstate(invalid="ignore"):
        return not np.all(abs(found - expected) <= slack + TINY)


def is_short(values, slack, short):
    """Whether all values are of a 16-bit dtype, to float32's rounding."""
    moving = values != 0
    return np.count_nonzero(moving) >= SEVERAL and not far(
        values[moving], mixed.to_short(values, short).astype(np.float64)[
            moving], slack[moving])
