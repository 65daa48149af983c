"""Training: from a batch of pairs to new weights (section 5).

The decoder reads a target without its last token and predicts it without its
first, all positions at once (teacher forcing).
"""

import numpy as np

from transformer_contract.dropping import dropping, places
from reference_numpy import parts, random
from reference_numpy.dropout import draw
from reference_numpy.loss import cross_entropy, cross_entropy_backward
from reference_numpy.masks import padding_mask
from reference_numpy.optimizer import clip_by_global_norm
from reference_numpy.parameters import flatten, leaves, paths


def loss_and_gradients(model, source, target, drawn):
    """The loss of one batch, and its gradient by every weight.

    Args:
        model: a Transformer.
        source: int [B S].
        target: int [B T + 1], from bos to eos.
        drawn: what dropout keeps, by place.

    Returns:
        The mean loss over the labels that are not padding, and the gradients,
        a list in the order of ``leaves``.
    """
    config = model.config
    # [1] read [B T]: the target without its last token
    read = target[:, :-1]
    # [2] labels [B T]: the target without its first token
    labels = target[:, 1:]
    source_mask = padding_mask(source, config.pad_id)
    # [3] target_mask [B 1 T T]: no later token; no padding after the first
    target_mask = parts.decoder_mask(config)(read, config.pad_id)
    convention = (config.pad_id, config.label_smoothing, config.smoothing)
    with dropping(paths(model), drawn):
        output, c = model.forward(source, read, source_mask, target_mask)
    # [4] loss []: cross-entropy of the output with the labels
    loss = cross_entropy(output, labels, *convention)
    g = flatten(model.backward(
        cross_entropy_backward(output, labels, *convention), c))
    # [5] gradients [*]: of the loss, by each weight
    gradients = [g[weight.name] for weight in leaves(model)]
    return loss, gradients


class Trainer:
    """A model, the optimizer's moments and the number of steps made.

    Attributes:
        step: the number of the last step; 0 before the first.
        m, v: both moments of every weight, lists in the order of ``leaves``.
    """

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = parts.optimizer(training, model.config.d_model)
        self.m, self.v = ([np.zeros_like(weight.get())
                           for weight in leaves(model)] for _ in range(2))

    def draw(self, key, shapes):
        """What dropout keeps in one batch, by place; shapes by place."""
        return draw(key, shapes, self.model.config.dropout,
                    self.training.masks == "native")

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one.

        Each batch's gradient counts by its share of all predicted tokens, so
        that the sum is the gradient of the mean over all of them (R30).

        Args:
            sources: int [A B S].
            targets: int [A B T + 1].

        Returns:
            The mean loss before the step, the gradient's global norm before
            clipping, and the learning rate.
        """
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = np.sum(targets[:, :, 1:] != pad_id, axis=(1, 2))
        # [1] shares [A]: each batch's share of the tokens to predict  (R30)
        shares = counts.astype(self.m[0].dtype) / max(int(np.sum(counts)), 1)
        shapes = places(
            self.model.config, *sources.shape[1:], targets.shape[2] - 1)
        loss, gradients = 0, [0] * len(self.m)
        for i, share in enumerate(shares):
            drawn = self.draw(random.fold_in(key, i), shapes)
            loss_i, gradients_i = loss_and_gradients(
                self.model, sources[i], targets[i], drawn)
            # [2] loss []: the sum of share · loss
            loss = loss + share * loss_i
            # [3] gradients [*]: the sum of share · gradient, by each weight
            gradients = [
                g + share * g_i for g, g_i in zip(gradients, gradients_i)]
        # [4] norm []: of all gradients together, before they are clipped  (R28)
        gradients, norm = clip_by_global_norm(gradients, training.clip_norm)
        settings = self.optimizer.settings(self.step)
        for i, old in enumerate(leaves(self.model)):
            # [5] weight [*]: one step of the optimizer
            weight, self.m[i], self.v[i] = self.optimizer.update(
                old.get(), gradients[i], self.m[i], self.v[i], *settings)
            old.set(weight)
        return loss, norm, settings[0]
