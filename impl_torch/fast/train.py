"""The training step in place, without needless arrays.

The scalars of a step stay Python's; gradients are added into the first one, and
weights and moments change in place, in one pass over all.
"""

import torch

from transformer_contract.dropping import dropping, places
from transformer_contract.packing import pack_kept
from impl_torch import parts, random, train
from impl_torch.dialects.output import Output
from impl_torch.fast import optimizer
from impl_torch.fast.embedding import sparse
from impl_torch.fast.loss import kernel_and_bias, loss_and_gradients
from impl_torch.fast.packing import packed, packed_vectors
from impl_torch.masks import padding_mask
from impl_torch.parameters import leaves, paths


def dense(gradient, weight):
    """A gradient as an array of its own; zeros where there is none."""
    if gradient is None:
        return torch.zeros_like(weight)
    return gradient.to_dense() if gradient.is_sparse else gradient


def vectors(model, source, target, source_mask, target_mask):
    """What a model projects: [B T D], or of an encoder alone [B S D]."""
    if model.config.stacks == "encoder":
        return model.encode(source, source_mask)
    if model.config.stacks == "decoder":
        return model.read(target, target_mask, None)
    memory = model.encode(source, source_mask)
    return model.decode(target, memory, source_mask, target_mask, None)


def gradients_of(model, inputs, labels, drawn, both=None):
    """The loss of a batch, and its gradient by every weight, in order.

    ``both`` says how sources and targets are packed; None if they are not.
    """
    weights = [weight.get() for weight in leaves(model)]
    if both:
        drawn = pack_kept(drawn, both)
        labels = both[model.config.stacks != "encoder"].pack(labels[..., None])
    with torch.enable_grad(), dropping(paths(model), drawn), sparse():
        x = (packed_vectors(model, *inputs, both) if both
             else vectors(model, *inputs))
        if isinstance(model, Output):
            x = model.projected(x)
        x = x.flatten(0, 1)
    loss, dx, *by_projection = loss_and_gradients(
        model.projection, x.detach(), labels.flatten(), model.config)
    gradients = torch.autograd.grad(x, weights, dx, allow_unused=True)
    of_projection = {id(weight): gradient for weight, gradient in zip(
        kernel_and_bias(model.projection), by_projection)
        if weight is not None}
    return loss, [
        dense(gradient, weight) if id(weight) not in of_projection
        else of_projection[id(weight)] if gradient is None
        else of_projection[id(weight)].add_(gradient)
        for weight, gradient in zip(weights, gradients)]


class Trainer(train.Trainer):
    """See impl_torch.train."""

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = torch.sum(targets[:, :, 1:] != pad_id, dim=(1, 2)).tolist()
        read, labels = targets[:, :, :-1], targets[:, :, 1:]
        shapes = places(
            self.model.config, *sources.shape[1:], read.shape[2])
        decoder_mask = parts.decoder_mask(self.model.config)
        loss, gradients = 0, []
        for i, count in enumerate(counts):
            share = count / max(sum(counts), 1)
            inputs = (sources[i], read[i], padding_mask(sources[i], pad_id),
                      decoder_mask(read[i], pad_id))
            loss_i, gradients_i = gradients_of(
                self.model, inputs, labels[i],
                self.draw(random.fold_in(key, i), shapes),
                packed(self.model.config, sources[i], labels[i]))
            loss = loss + share * loss_i
            if share != 1:
                torch._foreach_mul_(gradients_i, share)
            if gradients:
                torch._foreach_add_(gradients, gradients_i)
            else:
                gradients = gradients_i
        norm = optimizer.clip_by_global_norm(gradients, training.clip_norm)
        settings = self.optimizer.settings(self.step)
        optimizer.update([weight.get() for weight in leaves(self.model)],
                         gradients, self.m, self.v, self.step, settings[0],
                         training)
        return loss, norm, settings[0]
