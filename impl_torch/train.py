"""Training: from a batch of pairs to new weights (section 5)."""

import torch

from contract.dropping import dropping, places
from impl_torch import random
from impl_torch.dropout import draw
from impl_torch.loss import cross_entropy
from impl_torch.masks import causal_mask, padding_mask
from impl_torch.optimizer import OPTIMIZERS, clip_by_global_norm
from impl_torch.parameters import leaves, paths


def loss_and_gradients(model, source, target, key, native):
    """The loss of one batch, and its gradient by every weight, a list."""
    config = model.config
    read, labels = target[:, :-1], target[:, 1:]
    drawn = draw(key, places(config, *source.shape, read.shape[1]),
                 config.dropout, native)
    source_mask = padding_mask(source, config.pad_id)
    with target.device:
        target_mask = (padding_mask(read, config.pad_id)
                       & causal_mask(read.shape[1]))
    with torch.enable_grad(), dropping(paths(model), drawn):
        output = model(source, read, source_mask, target_mask)
        loss = cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)
    weights = [weight for _, weight, _ in leaves(model)]
    return loss.detach(), list(torch.autograd.grad(loss, weights))


class Trainer:
    """A model, its optimiser's moments, and how many steps were made."""

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = OPTIMIZERS[training.optimizer](
            training, model.config.d_model)
        self.m, self.v = ([torch.zeros_like(weight, requires_grad=False)
                           for _, weight, _ in leaves(model)]
                          for _ in range(2))

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = (targets[:, :, 1:] != pad_id).sum(axis=(1, 2))
        shares = counts / max(counts.sum(), 1)
        home = self.m[0].device
        key, sources, targets = (
            torch.as_tensor(x, device=home) for x in (key, sources, targets))
        loss, gradients = 0, [0] * len(self.m)
        for i, share in enumerate(shares.tolist()):
            loss_i, gradients_i = loss_and_gradients(
                self.model, sources[i], targets[i], random.fold_in(key, i),
                training.masks == "native")
            loss = loss + share * loss_i
            gradients = [g_i.mul_(share).add_(g)  # torch: in their place
                         for g, g_i in zip(gradients, gradients_i)]
        gradients, norm = clip_by_global_norm(gradients, training.clip_norm)
        settings = self.optimizer.settings(self.step)
        with torch.no_grad():
            for i, (_, weight, _) in enumerate(leaves(self.model)):
                new, self.m[i], self.v[i] = self.optimizer.update(
                    weight, gradients[i], self.m[i], self.v[i], *settings)
                weight.copy_(new)
        return loss, norm, settings[0]
