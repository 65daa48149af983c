"""The training step in place, without needless arrays.

The scalars of a step stay Python's; gradients are added into the first one, and
weights and moments change in place.
"""

import torch

from contract.dropping import dropping, places
from impl_torch import random, train
from impl_torch.fast.dropout import draw
from impl_torch.fast.optimizer import OPTIMIZERS
from impl_torch.loss import cross_entropy
from impl_torch.masks import causal_mask, padding_mask
from impl_torch.optimizer import clip_by_global_norm
from impl_torch.parameters import leaves, paths


def loss_and_gradients(model, source, target, key, native):
    """See impl_torch.train; what is dropped is drawn together."""
    config = model.config
    read, labels = target[:, :-1], target[:, 1:]
    source_mask = padding_mask(source, config.pad_id)
    target_mask = (padding_mask(read, config.pad_id)
                   & causal_mask(read.shape[1]))
    drawn = draw(key, places(config, *source.shape, read.shape[1]),
                 config.dropout, native)
    with torch.enable_grad(), dropping(paths(model), drawn):
        output = model(source, read, source_mask, target_mask)
        loss = cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)
    weights = [weight for _, weight, _ in leaves(model)]
    return loss.detach(), list(torch.autograd.grad(loss, weights))


class Trainer(train.Trainer):
    """See impl_torch.train."""

    def __init__(self, model, training):
        super().__init__(model, training)
        self.optimizer = OPTIMIZERS[training.optimizer](
            training, model.config.d_model)

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = torch.sum(targets[:, :, 1:] != pad_id, dim=(1, 2)).tolist()
        loss, gradients = 0, []
        for i, count in enumerate(counts):
            share = count / max(sum(counts), 1)
            loss_i, gradients_i = loss_and_gradients(
                self.model, sources[i], targets[i], random.fold_in(key, i),
                training.masks == "native")
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
