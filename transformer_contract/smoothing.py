"""Label smoothing: the target probability of each token.

Label smoothing (section 5.4; Szegedy et al. 2016, section 7) moves a share ε
of the target distribution q from the right token to others, and systems
disagree on which others (R22)::

    uniform   ε / V on each of all V tokens, the right one included
    others    ε / (V - 1) on each token but the right one
    kl        ε / (V - 2) on each token but the right one and padding, and the
              loss is the divergence Σ q (log q - log p)

Each convention is four numbers: q of the right token, of another, of padding,
and Σ q log q, which is 0 where the loss leaves it out.
"""

import math


def uniform(label_smoothing, vocab):
    """The four numbers of "uniform"."""
    other = label_smoothing / vocab
    return 1 - label_smoothing + other, other, other, 0.0


def others(label_smoothing, vocab):
    """The four numbers of "others"."""
    other = label_smoothing / (vocab - 1)
    return 1 - label_smoothing, other, other, 0.0


def kl(label_smoothing, vocab):
    """The four numbers of "kl"; 0 log 0 is 0."""
    right, other = 1 - label_smoothing, label_smoothing / (vocab - 2)
    negative_entropy = right * math.log(right) + (
        label_smoothing * math.log(other) if other else 0.0)
    return right, other, 0.0, negative_entropy


SMOOTHINGS = {"uniform": uniform, "others": others, "kl": kl}
