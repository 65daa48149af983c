"""What other training runs have: a constant learning rate, decayed weights."""

from reference_numpy.optimizer import Adam


def constant(training, d_model, step):
    """The same learning rate at every step."""
    return training.learning_rate


class AdamW(Adam):
    """Adam that first shrinks each weight, whatever its gradient (R29)."""

    def update(self, weight, gradient, m, v, learning_rate,
               correction1, correction2):
        """One step of one weight: the new weight, m and v."""
        # [1] decayed [*]: weight · (1 - learning rate · λ)
        decayed = weight * (1 - learning_rate * self.training.weight_decay)
        return super().update(
            decayed, gradient, m, v, learning_rate, correction1, correction2)
