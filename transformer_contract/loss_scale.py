"""Loss scaling: what a loss is multiplied by where gradients have 16 bits.

Micikevicius et al. 2018, §3.2: small gradients would be 0 in float16, so the
loss is multiplied and what comes out divided again, in float32. A step that
overflows changes nothing but the scale.
"""


class LossScale:
    """A scale that falls where a step overflows and else grows, in its turn.

    It begins far too large, falls at once and grows soon, so that a run of six
    steps has all of it; PyTorch begins with 2¹⁶, halves, and doubles after
    2,000 steps.

    Attributes:
        value: what the loss of the next step is multiplied by.
        backoff, growth: what it is multiplied by after an overflow, and after
            ``interval`` steps without one.
    """

    def __init__(self, value=2.0**34, backoff=2.0**-24, growth=2.0,
                 interval=2):
        self.value, self.backoff = value, backoff
        self.growth, self.interval = growth, interval
        self.finite_steps = 0

    def update(self, finite):
        """Note whether a step's gradients were finite."""
        self.finite_steps = self.finite_steps + 1 if finite else 0
        if not finite:
            self.value *= self.backoff
        elif self.finite_steps == self.interval:
            self.value *= self.growth
            self.finite_steps = 0
