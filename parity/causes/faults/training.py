"""What goes wrong in a loss and in an optimiser."""

import math

import numpy as np

from parity.causes.cause import Cause
from parity.causes.faults.putting import (
    after_init, all_of, native_of, numpy_of, replaced)

UNTRACED = "a trace holds a model's forward pass, and no {}"


# The loss

def loss_by(function):
    """Another loss: ``function(old, logits, labels, pad_id, ε, word)``."""
    def make(old, port):
        def made(logits, labels, pad_id, epsilon, word):
            loss = function(
                lambda *args: numpy_of(port, old(
                    native_of(port, args[0]), native_of(port, args[1]),
                    *args[2:])),
                numpy_of(port, logits), numpy_of(port, labels), pad_id,
                epsilon, word)
            return native_of(port, np.asarray(loss, np.float64))
        return made
    return replaced("engine", "cross_entropy", make)


def over_padding(old, logits, labels, pad_id, epsilon, word):
    """Labels that are padding count like any other."""
    return old(logits, labels, -1, epsilon, word if word != "kl"
               else "uniform")


def over_all_places(old, logits, labels, pad_id, epsilon, word):
    """Summed over what is kept, divided by all places."""
    share = (labels != pad_id).mean()
    return old(logits, labels, pad_id, epsilon, word) * share


def summed(old, logits, labels, pad_id, epsilon, word):
    """The sum, not the mean."""
    return (old(logits, labels, pad_id, epsilon, word)
            * (labels != pad_id).sum())


def by_row(old, logits, labels, pad_id, epsilon, word):
    """The mean of each row's mean."""
    return np.mean([old(logits[i:i + 1], labels[i:i + 1], pad_id, epsilon,
                        word) for i in range(len(labels))])


def smoothed_as(other):
    """The convention of another system."""
    return lambda old, logits, labels, pad_id, epsilon, word: old(
        logits, labels, pad_id, epsilon, other)


def in_bits(old, logits, labels, pad_id, epsilon, word):
    """Bits, not nats."""
    return old(logits, labels, pad_id, epsilon, word) / math.log(2)


def normalised_again(old, logits, *more):
    """Of log-probabilities, as if they were logits."""
    highest = logits.max()
    return old(logits - highest - np.log(np.exp(logits - highest).sum(
        -1, keepdims=True)), *more)


def _losses():
    where = {"case": "loss", "step": "loss",
             "not_explained": UNTRACED.format("loss")}
    for name, sentence, function, more in (
            ("loss over padding", "Labels that are padding count as any "
             "other.", over_padding, {}),
            ("loss divided by all places", "The sum over kept labels, "
             "divided by all positions.", over_all_places, {}),
            ("loss summed, not averaged", "The sum over kept labels.",
             summed, {}),
            ("loss averaged row by row", "The mean of each row's mean.",
             by_row, {}),
            ("loss in bits", "The logarithm is to base 2.", in_bits,
             {"factor": lambda size: 1 / math.log(2)})):
        yield Cause(name, "loss", sentence, put=loss_by(function), **more,
                    **where)
    for other in ("others", "kl"):
        yield Cause(f"label smoothing by {other}, not uniform", "loss",
                    "Other tokens share the mass (R22).", put=loss_by(
                        smoothed_as(other)), **where | {
                            "case": "loss, label smoothing 0.1, uniform"})
    yield Cause("the loss normalises log-probabilities once more", "loss",
                "The same numbers by another way.", put=loss_by(
                    normalised_again), equivalent="log-softmax of a "
                "log-softmax is itself: the probabilities add up to 1, whose "
                "log is 0", **where)


# The optimiser

def updated_by(function, cls="Adam"):
    """Another update: ``function(self, w, g, m, v, lr, c1, c2)``."""
    file = "optimizer" if cls == "Adam" else "dialects.optimizer"
    return replaced(file, f"{cls}.update", lambda old, port: function)


def moments(self, g, m, v):
    """Both moments with a gradient in them."""
    return (self.beta1 * m + (1 - self.beta1) * g,
            self.beta2 * v + (1 - self.beta2) * (g * g))


def adam(self, w, g, m, v, lr, c1, c2):
    """As it should be, for what is changed before it."""
    m, v = moments(self, g, m, v)
    return w - lr * (m / c1) / ((v / c2)**0.5 + self.eps), m, v


def adam_of_keras(self, w, g, m, v, lr, c1, c2):
    """ε beside √v, before the bias correction."""
    m, v = moments(self, g, m, v)
    return w - lr * (c2**0.5 / c1) * m / (v**0.5 + self.eps), m, v


def adam_eps_inside(self, w, g, m, v, lr, c1, c2):
    """ε under the root."""
    m, v = moments(self, g, m, v)
    return w - lr * (m / c1) / (v / c2 + self.eps)**0.5, m, v


def adam_uncorrected(self, w, g, m, v, lr, c1, c2):
    """No bias correction."""
    return adam(self, w, g, m, v, lr, 1.0, 1.0)


def adam_m_uncorrected(self, w, g, m, v, lr, c1, c2):
    """m as it is."""
    return adam(self, w, g, m, v, lr, 1.0, c2)


def adam_v_uncorrected(self, w, g, m, v, lr, c1, c2):
    """v as it is."""
    return adam(self, w, g, m, v, lr, c1, 1.0)


def decay_in_gradient(self, w, g, m, v, lr, c1, c2):
    """λ w added to the gradient, as torch.optim.Adam's weight_decay."""
    return adam(self, w, g + self.training.weight_decay * w, m, v, lr, c1,
                c2)


def decay_without_lr(self, w, g, m, v, lr, c1, c2):
    """w (1 - λ), whatever the learning rate."""
    return adam(self, w * (1 - self.training.weight_decay), g, m, v, lr,
                c1, c2)


def decay_after(self, w, g, m, v, lr, c1, c2):
    """The new weight shrunk, not the old one."""
    w, m, v = adam(self, w, g, m, v, lr, c1, c2)
    return w * (1 - lr * self.training.weight_decay), m, v


def setting_of_adam(**values):
    """Adam with other numbers; a word stands for another one's number."""
    def change(self):
        for name, value in {
                name: getattr(self, value) if isinstance(value, str)
                else value for name, value in values.items()}.items():
            setattr(self, name, value)
    return after_init("optimizer", "Adam", change)


def clipped_by(function):
    """Another clipping: ``function(gradients, norm, limit)`` on arrays."""
    def make(old, port):
        def made(gradients, limit):
            same, norm = old(gradients, 0.0)
            arrays = [numpy_of(port, g) for g in gradients]
            results = function(arrays, float(numpy_of(port, norm)), limit)
            return [native_of(port, g) for g in results], norm
        return made
    return all_of(*(replaced(file, "clip_by_global_norm", make)
                    for file in ("optimizer", "train")))


def clipped(arrays, norm, limit, added=0.0):
    """All of them by one norm."""
    if limit and norm > limit:
        return [g * (limit / (norm + added)) for g in arrays]
    return arrays


def each_clipped(arrays, norm, limit):
    """Each by its own norm."""
    return [clipped([g], np.sqrt((g * g).sum()), limit)[0] for g in arrays]


def schedule_from(shift):
    """A schedule that counts steps from elsewhere."""
    return replaced("optimizer", "inverse_sqrt", lambda old, port: (
        lambda training, d_model, step: old(training, d_model, step + shift)))


def _optimisers():
    for name, sentence, put, step, case in (
            ("Adam's ε before the correction, as Keras has it",
             "ε is added to √v, before it is corrected.",
             updated_by(adam_of_keras), "weight 0", "Adam"),
            ("Adam's ε inside the root", "√(v̂ + ε).",
             updated_by(adam_eps_inside), "weight 0", "Adam"),
            ("Adam without bias correction", "m / (√v + ε).",
             updated_by(adam_uncorrected), "weight 0", "Adam"),
            ("Adam's m without bias correction", "m / (√v̂ + ε).",
             updated_by(adam_m_uncorrected), "weight 0", "Adam"),
            ("Adam's v without bias correction", "m̂ / (√v + ε).",
             updated_by(adam_v_uncorrected), "weight 0", "Adam"),
            ("Adam's ε is 1e-8", "As in torch and Optax.",
             setting_of_adam(eps=1e-8), "weight 0", "Adam"),
            ("Adam's β₂ is 0.999", "As in every framework.",
             setting_of_adam(beta2=0.999), "v 0", "Adam"),
            ("Adam's β₁ and β₂ swapped", "Each has the other's number.",
             setting_of_adam(beta1="beta2", beta2="beta1"), "m 0", "Adam"),
            ("weight decay added to the gradient",
             "g + λ w, as torch.optim.Adam's weight_decay.",
             updated_by(decay_in_gradient, "AdamW"), "m 0", "AdamW"),
            ("weight decay not times the rate", "w (1 - λ).",
             updated_by(decay_without_lr, "AdamW"), "weight 0", "AdamW"),
            ("weight decay after the step", "The new weight is shrunk, not "
             "the old one.", updated_by(decay_after, "AdamW"), "weight 0",
             "AdamW"),
            ("schedule one step ahead", "The first step is step 2.",
             schedule_from(1), "rate", CLIPPED),
            ("clipping adds 1e-6 to the norm, as torch does",
             "g · limit / (norm + 1e-6).", clipped_by(
                 lambda g, norm, limit: clipped(g, norm, limit, 1e-6)),
             "m 0", CLIPPED),
            ("each weight clipped by its own norm",
             "As Keras' clipnorm does.", clipped_by(each_clipped), "m 0",
             CLIPPED),
            ("no clipping", "The gradients as they are.", clipped_by(
                lambda g, norm, limit: g), "m 0", CLIPPED)):
        yield Cause(name, "optimiser", sentence, put=put, case=case,
                    step=f"{step}, step 1",
                    not_explained=UNTRACED.format("optimiser"))


CLIPPED = "Adam, warming up, clipped"

CAUSES = *_losses(), *_optimisers()
