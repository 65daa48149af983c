"""The exercises of lessons 8 to 10: backward, training and loss."""

import functools
import math

import numpy as np

from parity.ports import module_of
from parity.check.cases import ids, values
from parity.course.exercise import AUTOGRAD, Exercise

attention = module_of("numpy", "attention")
losses = module_of("numpy", "loss")
LayerNorm = module_of("numpy", "layer_norm").LayerNorm


def gradients_of_weights():
    """(dweights, weights), [.. T S] each; the weights are a softmax's."""
    for number, shape in enumerate(((2, 3), (2, 3, 4, 5))):
        yield (values(f"exercise 8.1 d {number}", *shape),
               attention.softmax(values(f"exercise 8.1 {number}", *shape)))


def jacobian_diagonal(dweights, weights):
    """Only the diagonal: each weight by its own score."""
    return dweights * weights * (1 - weights)


def gradients_of_norms():
    """(doutput, x, ε)."""
    for number, (d, eps) in enumerate(((4, 1e-5), (7, 0.1))):
        yield (values(f"exercise 8.2 d {number}", 2, 3, d),
               2 + values(f"exercise 8.2 {number}", 2, 3, d), eps)


def norm_gradient(doutput, x, eps):
    """dx of a layer norm without scale and bias."""
    norm = LayerNorm(x.shape[-1], eps)
    return norm.backward(doutput, norm.forward(x)[1])[0]


def as_constants(doutput, x, eps, through_mean=False):
    """The deviation, and perhaps the mean, taken for constants."""
    dx = doutput / np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    return dx - through_mean * dx.mean(axis=-1, keepdims=True)


def functions():
    """(f, x): scalar functions of an array, and where to differentiate."""
    x, w = values("exercise 8.3", 2, 3), values("exercise 8.3 w", 2, 3)
    return [(lambda x: float((w * x * x).sum()), x),
            (lambda x: float(np.sin(x).prod()), x),
            (lambda x: float((w * attention.softmax(x)).sum()), x),
            (lambda x: float((x**3).sum()), 1 + values("exercise 8.3 y", 4))]


def exact_gradient(f, x):
    """The gradient, extrapolated from two central differences."""
    def central(h):
        g = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[place] = h
            g[place] = (f(x + step) - f(x - step)) / (2 * h)
        return g
    return (4 * central(1e-3) - central(2e-3)) / 3


def one_sided(f, x, h=1e-4):
    """(f(x + h) - f(x)) / h."""
    g = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        g[place] = (f(x + step) - f(x)) / h
    return g


def updates():
    """(weight, gradient, m, v, step, learning rate, β₁, β₂, ε)."""
    for step, *numbers in ((1, 0.1, 0.9, 0.98, 1e-9),
                           (2, 0.03, 0.8, 0.999, 1e-2),
                           (50, 1e-3, 0.95, 0.9, 1e-3)):
        w, g, m, v = (values(f"exercise 9.1 {name} {step}", 3, 4)
                      for name in "wgmv")
        first = step == 1
        yield (w, g, 0 * m if first else m, 0 * v if first else v * v, step,
               *numbers)


def adam(w, g, m, v, step, rate, beta1, beta2, eps, form=""):
    """Adam's step, or one with a mistake."""
    if form == "swapped":
        beta1, beta2 = beta2, beta1
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    one, two = 1 - beta1**step, 1 - beta2**step
    if form == "uncorrected":
        one = two = 1
    if form == "keras":
        direction = math.sqrt(two) / one * m / (np.sqrt(v) + eps)
    elif form == "inside":
        direction = m / one / np.sqrt(v / two + eps)
    else:
        direction = m / one / (np.sqrt(v / two) + eps)
    return w - rate * direction, m, v


def wrong_adam(form):
    """Adam with a mistake."""
    return functools.partial(adam, form=form)


def steps():
    """(step, d_model, warm-up)."""
    return [(1, 512, 4000), (3999, 512, 4000), (4000, 512, 4000),
            (100_000, 512, 4000), (7, 16, 3)]


def learning_rate(step, d_model, warmup, ahead=0):
    """Equation 3 of the paper."""
    step += ahead
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def gradients_to_clip():
    """(gradients, limit): two arrays in a list; some need no clipping.

    Some are 0, and have a norm of 0.
    """
    a, b = values("exercise 9.3 a", 2, 3), values("exercise 9.3 b", 4)
    return [([a, b], 1.0), ([a, 100 * b], 0.5), ([1e-3 * a, 1e-3 * b], 1.0),
            ([0 * a, 0 * b], 1.0)]


def clipped(gradients, limit, added=0.0):
    """All gradients together scaled to a norm of at most ``limit``."""
    norm = math.sqrt(sum((g * g).sum() for g in gradients))
    factor = limit / (norm + added) if norm + added > limit else 1.0
    return tuple(g * factor for g in gradients)


def one_by_one(gradients, limit):
    """Each scaled by its own norm."""
    return tuple(clipped([g], limit)[0] for g in gradients)


def logits_and_labels():
    """(logits [B T V], labels [B T], pad_id); rows end in padding.

    Of some logits the exponential is above every float64, or 0.
    """
    for number, (vocab, pad_id) in enumerate(((5, 0), (11, 3))):
        labels = ids(f"exercise 10.1 {number}", 2, 6, vocab)
        labels[labels == pad_id] = pad_id + 1
        labels[0, 4:] = labels[1, 1:2] = pad_id
        labels[1, 3] = 0
        logits = 3 * values(f"exercise 10.1 x {number}", 2, 6, vocab)
        yield logits, labels, pad_id
        yield logits + np.array([[[1000]], [[-1000]]]), labels, pad_id


def loss(logits, labels, pad_id, eps=0.0, smoothing="uniform"):
    """The mean over labels that are not padding."""
    return losses.cross_entropy(logits, labels, pad_id, eps, smoothing)


def each(logits, labels):
    """-log p of every label: [B T]."""
    return -np.take_along_axis(losses.log_softmax(logits), labels[..., None],
                               axis=-1)[..., 0]


def row_by_row(logits, labels, pad_id):
    """The mean of each row's mean."""
    kept = labels != pad_id
    rows = (each(logits, labels) * kept).sum(axis=1) / kept.sum(axis=1)
    return rows.mean()


def to_smooth():
    """(logits, labels, pad_id, ε)."""
    for eps in (0.1, 0.3):
        for one in logits_and_labels():
            yield *one, eps


def q_of(logits, labels, pad_id, eps, smoothing="uniform"):
    """The mean cross-entropy with a target distribution."""
    return loss(logits, labels, pad_id, eps, smoothing)


def loss_gradient(logits, labels, pad_id):
    """(p - q) over the number of kept labels; 0 where padding is."""
    return losses.cross_entropy_backward(logits, labels, pad_id, 0.0,
                                         "uniform")


def scaled_gradient(factor):
    """The gradient of a loss that is ``factor(labels kept)`` times ours."""
    return lambda logits, labels, pad_id: loss_gradient(
        logits, labels, pad_id) * factor(labels, labels != pad_id)


EXERCISES = (
    Exercise(
        "8.1", "softmax_backward", lambda: list(gradients_of_weights()),
        attention.softmax_backward,
        {"only the diagonal of the Jacobian is used: each weight depends on "
         "every score of its row": jacobian_diagonal,
         "the weighted mean is not subtracted":
             lambda dweights, weights: dweights * weights},
        without=AUTOGRAD),
    Exercise(
        "8.2", "layer_norm_backward", lambda: list(gradients_of_norms()),
        norm_gradient,
        {"mean and deviation are taken for constants": as_constants,
         "the deviation is taken for a constant": functools.partial(
             as_constants, through_mean=True)}, limit=1e-11,
        without=AUTOGRAD),
    Exercise(
        "8.3", "numerical_gradient", functions, exact_gradient,
        {"the difference is taken on one side, and its error is of the size "
         "of the step": one_sided}, limit=1e-7),
    Exercise(
        "9.1", "adam", lambda: list(updates()), adam,
        {"Adam's ε before the correction, as Keras has it":
             wrong_adam("keras"),
         "Adam's ε inside the root": wrong_adam("inside"),
         "Adam without bias correction": wrong_adam("uncorrected"),
         "Adam's β₁ and β₂ swapped": wrong_adam("swapped")}),
    Exercise(
        "9.2", "learning_rate", steps, learning_rate,
        {"schedule one step ahead": functools.partial(
            learning_rate, ahead=1),
         "there is no warm-up: the rate only falls":
             lambda step, d_model, warmup: (d_model * step)**-0.5}),
    Exercise(
        "9.3", "clipped", gradients_to_clip, clipped,
        {"each weight clipped by its own norm": one_by_one,
         "clipping adds 1e-6 to the norm, as torch does": functools.partial(
             clipped, added=1e-6),
         "no clipping": lambda gradients, limit: tuple(gradients)}),
    Exercise(
        "10.1", "cross_entropy", lambda: list(logits_and_labels()), loss,
        {"loss over padding": lambda x, labels, pad: each(x, labels).mean(),
         "loss divided by all places": lambda x, labels, pad: np.mean(
             each(x, labels) * (labels != pad)),
         "loss summed, not averaged": lambda x, labels, pad: np.sum(
             each(x, labels) * (labels != pad)),
         "loss averaged row by row": row_by_row}),
    Exercise(
        "10.2", "smoothed_loss", lambda: list(to_smooth()), q_of,
        {"label smoothing by others, not uniform": functools.partial(
            q_of, smoothing="others"),
         "label smoothing by kl, not uniform": functools.partial(
             q_of, smoothing="kl"),
         "nothing is smoothed": lambda x, labels, pad, eps: q_of(
             x, labels, pad, 0.0)}),
    Exercise(
        "10.3", "loss_backward", lambda: list(logits_and_labels()),
        loss_gradient,
        {"gradients are of the loss's sum": scaled_gradient(
            lambda labels, kept: kept.sum()),
         "gradients are turned round": scaled_gradient(
             lambda labels, kept: -1),
         "the gradient is divided by all places, padding among them":
             scaled_gradient(lambda labels, kept: kept.mean())}, zeros=True,
        without=AUTOGRAD),
)
