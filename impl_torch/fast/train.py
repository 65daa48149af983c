"""The training step in place, without needless arrays.

The scalars of a step stay Python's; gradients are added into the first one, and
weights and moments change in place.
"""

import torch

from contract.dropping import places
from impl_torch import random, train
from impl_torch.fast.dropout import draw
from impl_torch.fast.optimizer import OPTIMIZERS
from impl_torch.optimizer import clip_by_global_norm
from impl_torch.parameters import leaves


class Trainer(train.Trainer):
    """See impl_torch.train."""

    def __init__(self, model, training):
        super().__init__(model, training)
        self.optimizer = OPTIMIZERS[training.optimizer](
            training, model.config.d_model)

    def draw(self, key, shapes):
        """See impl_torch.train; what is dropped is drawn together."""
        return draw(key, shapes, self.model.config.dropout,
                    self.training.masks == "native")

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = torch.sum(targets[:, :, 1:] != pad_id, dim=(1, 2)).tolist()
        shapes = places(
            self.model.config, *sources.shape[1:], targets.shape[2] - 1)
        loss, gradients = 0, []
        for i, count in enumerate(counts):
            share = count / max(sum(counts), 1)
            drawn = self.draw(random.fold_in(key, i), shapes)
            loss_i, gradients_i = train.loss_and_gradients(
                self.model, sources[i], targets[i], drawn)
            loss = loss + share * loss_i
            gradients_i = [
                g_i.mul_(share) if share != 1 else g_i for g_i in gradients_i]
            gradients = gradients_i if i == 0 else [
                g.add_(g_i) for g, g_i in zip(gradients, gradients_i)]
        gradients, norm = clip_by_global_norm(gradients, training.clip_norm)
        settings = self.optimizer.settings(self.step)
        with torch.no_grad():
            for (_, weight, _), *arrays in zip(
                    leaves(self.model), gradients, self.m, self.v):
                self.optimizer.update(weight, *arrays, *settings)
        return loss, norm, settings[0]
