"""Adam with fewer passes over memory: sums in one call, roots in place."""

from impl_torch import optimizer


class Adam(optimizer.Adam):
    """See impl_torch.optimizer."""

    def update(self, weight, gradient, m, v, learning_rate,
               correction1, correction2):
        """One step of one weight, in place."""
        m.lerp_(gradient, 1 - self.beta1)
        v.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        root = (v / correction2).sqrt_().add_(self.eps)
        weight.addcdiv_(m, root, value=-learning_rate / correction1)


class AdamW(Adam):
    """See impl_torch.optimizer."""

    def update(self, weight, gradient, m, v, learning_rate,
               correction1, correction2):
        """One step of one weight, in place."""
        weight.mul_(1 - learning_rate * self.training.weight_decay)
        super().update(
            weight, gradient, m, v, learning_rate, correction1, correction2)


OPTIMIZERS = {"adam": Adam, "adamw": AdamW}
