"""Known differences of losses."""

import math

import numpy as np

from parity import ports
from parity.differences.asking import Effect, add
from parity.differences.tensors import jax_array, torch_tensor, word

_LOGITS = np.array([[[0, 1, 2, 3, 2, 1, 0], [2, 0, 1, 0, 3, 1, 1],
                     [1, 0, 0, 2, 0, 1, 3]],
                    [[3, 1, 0, 1, 0, 2, 0], [0, 2, 1, 1, 1, 0, 2],
                     [1, 1, 0, 0, 2, 1, 0]]], np.float32)

_LABELS = np.array([[2, 4, 0], [5, 0, 0]])


def _reference_loss(labels=_LABELS, smoothing="uniform", share=0.0, pad=0):
    return float(ports.engine("numpy").loss(
        _LOGITS.astype(np.float64), labels, pad, share, smoothing))


_EVERY = np.array([[2, 4, 1], [5, 3, 6]])


def _torch_loss(labels, **more):
    import torch
    return torch.nn.functional.cross_entropy(
        torch_tensor(_LOGITS).flatten(0, 1), torch_tensor(labels).flatten(),
        **more).item()


def _keras_smoothed():
    import keras
    return float(keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=0.1)(np.eye(7)[_EVERY], _LOGITS))


def _optax_smoothed():
    import optax
    labels = optax.smooth_labels(jax_array(np.eye(7, dtype=np.float32)[_EVERY]),
                                 0.1)
    return float(optax.softmax_cross_entropy(jax_array(_LOGITS), labels).mean())


def _smoothing_effect():
    """Each convention's loss against the first."""
    uniform = _reference_loss(_EVERY, "uniform", 0.1)
    return {name: abs(_reference_loss(_EVERY, name, 0.1) / uniform - 1)
            for name in ("others", "kl")}


add("label_smoothing", "loss",
    "Where ε of the label's weight goes: to all V tokens, to the V - 1 "
    "others, or to the V - 2 that are not padding either, less an entropy. "
    "Here the loss of six predictions, V 7 and ε 0.1.",
    {"torch": (2.1428, lambda: _torch_loss(_EVERY, label_smoothing=0.1)),
     "keras": (2.1428, _keras_smoothed), "optax": (2.1428, _optax_smoothed),
     "reference uniform": (
          2.1428, lambda: _reference_loss(_EVERY, "uniform", 0.1)),
     "reference others": (
          2.1479, lambda: _reference_loss(_EVERY, "others", 0.1)),
     "reference kl": (1.6658, lambda: _reference_loss(_EVERY, "kl", 0.1))},
    effect=Effect("loss against ε over all tokens", _smoothing_effect))


def _takes(function, name):
    import inspect
    return word(name in inspect.signature(function).parameters,
                f"takes {name}", f"has no {name}")


def _torch_takes():
    import torch
    return _takes(torch.nn.CrossEntropyLoss, "label_smoothing")


def _keras_takes(name):
    import keras
    return _takes(getattr(keras.losses, name), "label_smoothing")


def _optax_takes():
    import optax
    return _takes(optax.softmax_cross_entropy_with_integer_labels,
                  "label_smoothing")


add("smoothing_of_integer_labels", "loss",
    "Only torch smooths labels that are given as integers; Keras and Optax "
    "want them as rows of weights first.",
    {"torch CrossEntropyLoss": ("takes label_smoothing", _torch_takes),
     "keras SparseCategoricalCrossentropy": (
          "has no label_smoothing",
          lambda: _keras_takes("SparseCategoricalCrossentropy")),
     "keras CategoricalCrossentropy": (
          "takes label_smoothing",
          lambda: _keras_takes("CategoricalCrossentropy")),
     "optax with integer labels": ("has no label_smoothing", _optax_takes)})


def _keras_loss(labels, weighted=False, **more):
    import keras
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, **more)
    weights = (labels != 0).astype(np.float32) if weighted else None
    return float(loss(labels, _LOGITS, sample_weight=weights))


add("mean_over_padding", "loss",
    "Three of six labels are padding. torch and Keras told to ignore them "
    "divide by three; Keras given a mask as weights divides by six, and told "
    "nothing every one counts.",
    {"reference": (1.3179, _reference_loss),
     "torch ignore_index": (
          1.3179, lambda: _torch_loss(_LABELS, ignore_index=0)),
     "torch": (1.9452, lambda: _torch_loss(_LABELS)),
     "keras ignore_class": (
          1.3179, lambda: _keras_loss(_LABELS, ignore_class=0)),
     "keras sample_weight": (
          0.65894, lambda: _keras_loss(_LABELS, weighted=True)),
     "keras": (1.9452, lambda: _keras_loss(_LABELS))},
    effect=Effect("a mean over all labels against one over the kept", lambda: {
         "half is padding": abs(_keras_loss(_LABELS, weighted=True)
                                / _reference_loss() - 1)},
                  needs=("keras",)))


add("loss_of_padding_alone", "loss",
    "A batch in which every label is padding: 0/0 in torch, 0 in Keras and "
    "the reference.",
    {"reference": (0.0, lambda: _reference_loss(0 * _LABELS)),
     "torch ignore_index": (
          math.nan, lambda: _torch_loss(0 * _LABELS, ignore_index=0)),
     "keras ignore_class": (
          0.0, lambda: _keras_loss(0 * _LABELS, ignore_class=0))})


def _torch_accumulated():
    """The mean of two batches' means, of 2 labels and of 1."""
    import torch
    return float(np.mean([torch.nn.functional.cross_entropy(
        torch_tensor(_LOGITS[i]), torch_tensor(_LABELS[i]),
        ignore_index=0).item()
        for i in range(2)]))


add("mean_of_means", "loss",
    "Two batches of different numbers of labels, accumulated: the mean of "
    "their means is not the mean over all labels.",
    {"torch one batch": (
         1.3179, lambda: _torch_loss(_LABELS, ignore_index=0)),
     "torch two batches": (1.3837, _torch_accumulated)},
    effect=Effect("two batches against one", lambda: {
         "2 labels and 1": abs(_torch_accumulated()
                               / _reference_loss() - 1)}, needs=("torch",)))


def _keras_plain_loss():
    import keras
    return float(keras.losses.SparseCategoricalCrossentropy()(
        _EVERY, _LOGITS + 1))


def _optax_loss():
    import optax
    return float(optax.softmax_cross_entropy_with_integer_labels(
        jax_array(_LOGITS), jax_array(_EVERY)).mean())


add("logits_or_probabilities", "loss",
    "torch's and Optax's losses take logits; Keras' takes probabilities "
    "unless told from_logits=True, and logits handed to it give a number, "
    "but another.",
    {"torch": (2.1118, lambda: _torch_loss(_EVERY)),
     "optax": (2.1118, _optax_loss),
     "keras": (1.9459, _keras_plain_loss),
     "keras from_logits=True": (2.1118, lambda: _keras_loss(_EVERY))},
    effect=Effect("logits read as probabilities", lambda: {
         "six predictions": abs(_keras_plain_loss()
                                / _reference_loss(_EVERY, pad=-1) - 1)
     }, needs=("keras",)))


def _torch_class_axis(axis):
    import torch
    logits = np.moveaxis(_LOGITS, -1, axis)
    return word(math.isfinite(torch.nn.functional.cross_entropy(
        torch_tensor(logits), torch_tensor(_EVERY)).item()),
        "accepted", "not finite")


add("class_axis", "loss",
    "torch wants the classes on axis 1, Keras and Optax on the last. Where "
    "there are as many positions as classes nothing fails.",
    {"torch [B V T]": ("accepted", lambda: _torch_class_axis(1)),
     "torch [B T V]": ("RuntimeError", lambda: _torch_class_axis(-1)),
     "keras [B T V]": ("accepted", lambda: word(math.isfinite(
          _keras_loss(_EVERY)), "accepted", "not finite")),
     "optax [B T V]": ("accepted", lambda: word(math.isfinite(
          _optax_loss()), "accepted", "not finite"))})
