"""One step of Adam.

Kingma and Ba 2015, algorithm 1. `m` and `v` are the moments before this step,
`step` counts from 1:

    m = β₁ m + (1 - β₁) g              m̂ = m / (1 - β₁^step)
    v = β₂ v + (1 - β₂) g²             v̂ = v / (1 - β₂^step)
    weight = weight - learning_rate · m̂ / (√v̂ + ε)

Return the tuple of the new weight, m and v. Do not change the arrays that are
given.
"""


def adam(weight, gradient, m, v, step, learning_rate, beta1, beta2, eps):
    raise NotImplementedError
