"""Known differences of optimisers."""

import numpy as np

from parity.differences.asking import Effect, add, x64
from parity.differences.tensors import as_numpy, gap_of, jax_array, word


def _torch_moves(name, gradients, dtype="float64", start=0.0, **more):
    """How far each weight has gone after each step, gradients [step, n]."""
    import torch
    weights = torch.full((len(gradients[0]),), start,
                         dtype=getattr(torch, dtype), requires_grad=True)
    optimiser = getattr(torch.optim, name)([weights], **more)
    for row in gradients:
        weights.grad = torch.tensor(row, dtype=weights.dtype)
        optimiser.step()
    return as_numpy(weights) - start


def _keras_moves(name, gradients, dtype="float64", start=0.0, **more):
    import keras
    weights = keras.Variable(np.full(len(gradients[0]), start), dtype=dtype)
    optimiser = getattr(keras.optimizers, name)(**more)
    for row in gradients:
        optimiser.apply([keras.ops.convert_to_tensor(
            np.array(row, dtype))], [weights])
    return as_numpy(weights) - start


def _optax_moves(optimizer, gradients, dtype="float64", start=0.0):
    import optax
    with x64(dtype == "float64"):
        weights = jax_array(np.full(len(gradients[0]), start, dtype))
        state = optimizer.init(weights)
        for row in gradients:
            updates, state = optimizer.update(
                jax_array(np.array(row, dtype)), state, weights)
            weights = optax.apply_updates(weights, updates)
        return as_numpy(weights) - start


def _optax_made(name, *args, **more):
    import optax
    return getattr(optax, name)(*args, **more)


def _effective(move, learning_rate):
    """ε of a first step g / (|g| + ε), from how far g = 1e-8 moved."""
    share = float(-move[0] / learning_rate)
    return 1e-8 / share - 1e-8


_SMALL = [[1e-8]]


add("adam_epsilon", "optimiser",
    "The ε that a first step of Adam divides by. Keras' default is 1e-7, and "
    "by its place it acts as 1e-7 / √(1 - β₂ᵗ), thirty times that at first.",
    {"torch": (1e-08, lambda: _effective(
         _torch_moves("Adam", _SMALL, lr=1.0), 1)),
     "keras": (3.1623e-06, lambda: _effective(_keras_moves(
          "Adam", _SMALL, learning_rate=1.0), 1)),
     "optax": (1e-08, lambda: _effective(
          _optax_moves(_optax_made("adam", 1.0), _SMALL), 1))})


_STEADY = [[1e-1, 1e-4, 1e-7, 1e-9]] * 3


def _travelled(moves):
    return tuple(float(m) for m in moves)


def _adam_effect():
    """Keras' steps against torch's, ε 1e-9 and 1e-7, usual gradients."""
    gaps = {}
    for eps in (1e-9, 1e-7):
        for size in (1e-2, 1e-7):
            gradients = [[size]] * 3
            gaps[f"ε {eps:g}, gradient {size:g}"] = gap_of(
                _keras_moves("Adam", gradients, learning_rate=1.0,
                             epsilon=eps),
                _torch_moves("Adam", gradients, lr=1.0, eps=eps))
    return gaps


add("adam_epsilon_place", "optimiser",
    "torch and Optax add ε to the corrected √v, Keras to √v before its "
    "correction. Here three steps at learning rate 1 with ε 1e-9 and gradients "
    "1e-1, 1e-4, 1e-7, 1e-9: no constant ε makes Keras' those of torch.",
    {"torch": ((-3.0, -3.0, -2.9703, -1.5), lambda: _travelled(_torch_moves(
         "Adam", _STEADY, lr=1.0, eps=1e-9))),
     "optax": ((-3.0, -3.0, -2.9703, -1.5), lambda: _travelled(_optax_moves(
          _optax_made("adam", 1.0, eps=1e-9), _STEADY))),
     "keras": (
          (-3.0, -2.9993, -2.4225, -0.12535), lambda: _travelled(_keras_moves(
          "Adam", _STEADY, learning_rate=1.0, epsilon=1e-9)))},
    effect=Effect("Keras' steps against torch's", _adam_effect,
                  hidden=("ε 1e-09, gradient 0.01",),
                  needs=("keras", "torch")))


def _powers(moves):
    """How exactly a first step, which is 1 with ε 0, was computed."""
    return word(abs(abs(moves[0]) - 1) < 1e-9, "float64", "float32")


add("adam_correction_precision", "optimiser",
    "1 - β₁ᵗ and 1 - β₂ᵗ of a float64 run: torch computes them in float64, "
    "and Optax too where JAX has 64 bits; Keras in float32, where 1 - 0.999 "
    "has lost three digits of seven. A lockstep in float64 shows it at once.",
    {"torch": ("float64", lambda: _powers(_torch_moves(
         "Adam", [[1.0]], lr=1.0, eps=0.0))),
     "keras": ("float32", lambda: _powers(_keras_moves(
          "Adam", [[1.0]], learning_rate=1.0, epsilon=0.0))),
     "optax": ("float64", lambda: _powers(_optax_moves(
          _optax_made("adam", 1.0, eps=0.0), [[1.0]])))},
    effect=Effect("a first step against 1", lambda: {
         "keras": float(abs(_keras_moves(
             "Adam", [[1.0]], learning_rate=1.0, epsilon=0.0)[0] + 1))},
         hidden=("keras",), needs=("keras",)))


def _decay_kind(moves):
    """A weight of 1, no gradient, decay 0.1, learning rate 0.01."""
    step = float(-moves[0])
    if abs(step) < 1e-9:
        return "none"
    return word(step > 5e-3, "in the gradient", "beside the step")


add("weight_decay_kind", "optimiser",
    "weight_decay of Adam: torch adds it to the gradient, and Adam then "
    "scales it away; Keras subtracts it from the weight, as AdamW does "
    "everywhere.",
    {"torch Adam": ("in the gradient", lambda: _decay_kind(_torch_moves(
         "Adam", [[0.0]], start=1.0, lr=0.01, weight_decay=0.1))),
     "torch AdamW": ("beside the step", lambda: _decay_kind(_torch_moves(
          "AdamW", [[0.0]], start=1.0, lr=0.01, weight_decay=0.1))),
     "keras Adam": ("beside the step", lambda: _decay_kind(_keras_moves(
          "Adam", [[0.0]], start=1.0, learning_rate=0.01, weight_decay=0.1))),
     "keras AdamW": ("beside the step", lambda: _decay_kind(_keras_moves(
          "AdamW", [[0.0]], start=1.0, learning_rate=0.01,
          weight_decay=0.1))),
     "optax adamw": ("beside the step", lambda: _decay_kind(_optax_moves(
          _optax_made("adamw", 0.01, weight_decay=0.1), [[0.0]],
          start=1.0)))})


add("weight_decay_default", "optimiser",
    "The decay that AdamW has unless told: a hundred times as much in torch "
    "as in Optax.",
    {"torch": (0.01, lambda: float(-_torch_moves(
         "AdamW", [[0.0]], start=1.0, lr=0.1)[0] / 0.1)),
     "keras": (0.004, lambda: float(-_keras_moves(
          "AdamW", [[0.0]], start=1.0, learning_rate=0.1)[0] / 0.1)),
     "optax": (0.0001, lambda: float(-_optax_moves(
          _optax_made("adamw", 0.1), [[0.0]], start=1.0)[0] / 0.1))})


add("learning_rate_default", "optimiser",
    "The default learning rate of Adam and SGD: that of Keras' SGD is ten "
    "times torch's, and Optax has none.",
    {"torch Adam": (0.001, lambda: float(-_torch_moves(
         "Adam", [[1.0]], eps=0.0)[0])),
     "torch SGD": (0.001, lambda: float(-_torch_moves("SGD", [[1.0]])[0])),
     "keras Adam": (0.001, lambda: float(-_keras_moves(
          "Adam", [[1.0]], epsilon=0.0)[0])),
     "keras SGD": (0.01, lambda: float(-_keras_moves("SGD", [[1.0]])[0])),
     "optax adam": ("TypeError", lambda: _optax_made("adam")),
     "optax sgd": ("TypeError", lambda: _optax_made("sgd"))})


def _torch_first_step():
    import torch
    steps = []
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)

    def rate(step):
        steps.append(step)
        return 1.0
    torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    return steps[0]


def _keras_first_step():
    import keras
    steps = []

    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            steps.append(int(step))
            return 1.0

        def get_config(self):
            return {}

    weights = keras.Variable(np.zeros(1))
    keras.optimizers.SGD(Schedule()).apply(
        [keras.ops.convert_to_tensor(np.ones(1, np.float32))], [weights])
    return steps[-1]


def _optax_first_step():
    steps = []

    def rate(step):
        steps.append(int(step))
        return 1.0
    optimizer = _optax_made("sgd", rate)
    weights = jax_array(np.zeros(1))
    optimizer.update(weights, optimizer.init(weights))
    return steps[0]


def _warm_up_effect():
    """The paper's learning rate from step 0, not 1, at the 10th update."""
    def rate(step):
        return min(step**-0.5, step * 4000**-1.5)

    return {"10th update": 1 - rate(9) / rate(10)}


add("first_step_of_a_schedule", "optimiser",
    "Which number a schedule is given for the first update: 0 everywhere, "
    "where the paper's formula, counted from 1, divides by the step.",
    {"torch": (0, _torch_first_step), "keras": (0, _keras_first_step),
     "optax": (0, _optax_first_step)},
    effect=Effect("the paper's learning rate, with steps counted "
                  "from 0", _warm_up_effect))


def _torch_two_rates():
    import torch
    weights = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([weights], lr=1.0, momentum=0.9)
    for rate in (1.0, 0.5):
        optimiser.param_groups[0]["lr"] = rate
        weights.grad = torch.ones(1, dtype=torch.float64)
        optimiser.step()
    return -weights.item()


def _keras_two_rates():
    import keras
    weights = keras.Variable(np.zeros(1), dtype="float64")
    optimiser = keras.optimizers.SGD(1.0, momentum=0.9)
    for rate in (1.0, 0.5):
        optimiser.learning_rate = rate
        optimiser.apply([keras.ops.convert_to_tensor(np.ones(1))], [weights])
    return float(-as_numpy(weights)[0])


def _optax_two_rates():
    optimizer = _optax_made("sgd", lambda step: 1.0 - 0.5 * step, momentum=0.9)
    return float(-_optax_moves(optimizer, [[1.0]] * 2)[0])


add("momentum_and_rate", "optimiser",
    "Momentum adds up gradients in torch and Optax, and steps (gradients "
    "times the learning rate) in Keras. Two steps with gradient 1 at learning "
    "rates 1 and ½: they are equal until the learning rate changes.",
    {"torch": (1.95, _torch_two_rates), "optax": (1.95, _optax_two_rates),
     "keras": (2.4, _keras_two_rates)})
