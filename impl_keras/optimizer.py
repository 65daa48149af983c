"""The optimizer: Adam, its learning rate, and clipping (section 5.3).

    m = β₁ m + (1 - β₁) g             m̂ = m / (1 - β₁ᵗ)
    v = β₂ v + (1 - β₂) g²            v̂ = v / (1 - β₂ᵗ)
    w = w - learning rate · m̂ / (√v̂ + ε)

keras.optimizers.Adam is another one (R26). Other training runs:
dialects/optimizer.py.
"""

from keras import ops

from impl_keras import parts


def inverse_sqrt(training, d_model, step):
    """Equation 3: up in a line while warming up, then down as 1/√step."""
    return training.learning_rate * d_model**-0.5 * min(
        step**-0.5, step * training.warmup_steps**-1.5)


def clip_by_global_norm(gradients, limit):
    """Scale all gradients so that their norm is at most ``limit`` (R28)."""
    norm = ops.sqrt(sum(ops.sum(g * g) for g in gradients))
    if limit and norm > limit:
        gradients = [g * (limit / norm) for g in gradients]
    return gradients, norm


class Adam:
    """Adam for one weight at a time."""

    def __init__(self, training, d_model):
        self.training, self.d_model = training, d_model
        self.beta1, self.beta2 = training.beta1, training.beta2
        self.eps, self.schedule = training.eps, parts.schedule(training)

    def settings(self, step):
        """(learning rate, 1 - β₁ᵗ, 1 - β₂ᵗ) of step t, as Python's floats."""
        learning_rate = self.schedule(self.training, self.d_model, step)
        return learning_rate, 1 - self.beta1**step, 1 - self.beta2**step

    def update(self, weight, gradient, m, v, learning_rate,
               correction1, correction2):
        """One step of one weight: the new weight, m and v."""
        # [1] m [*]: β₁ m + (1 - β₁) g
        m = self.beta1 * m + (1 - self.beta1) * gradient
        # [2] v [*]: β₂ v + (1 - β₂) g²
        v = self.beta2 * v + (1 - self.beta2) * (gradient * gradient)
        # [3] direction [*]: m̂ / (√v̂ + ε)  (R26)
        direction = (m / correction1) / (ops.sqrt(v / correction2) + self.eps)
        # [4] weight [*]: weight - learning rate · direction
        weight = weight - learning_rate * direction
        return weight, m, v
