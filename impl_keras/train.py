"""Training: from a batch of pairs to new weights (section 5).

The decoder reads a target without its last token and predicts it without its
first, all positions at once (teacher forcing).
"""

from keras import ops

from transformer_contract.dropping import dropping, places
from impl_keras import parts, random
from impl_keras.dropout import draw
from impl_keras.gradients import value_and_gradients
from impl_keras.loss import cross_entropy
from impl_keras.masks import padding_mask
from impl_keras.optimizer import clip_by_global_norm
from impl_keras.parameters import leaves, paths


def loss_and_gradients(model, source, target, drawn):
    """The loss of one batch, and its gradient by every weight."""
    config = model.config
    # [1] read [B T]: the target without its last token
    read = target[:, :-1]
    # [2] labels [B T]: the target without its first token
    labels = target[:, 1:]
    source_mask = padding_mask(source, config.pad_id)
    # [3] target_mask [B 1 T T]: no later token; no padding after the first
    target_mask = parts.decoder_mask(config)(read, config.pad_id)
    convention = (config.pad_id, config.label_smoothing, config.smoothing)

    def loss_of():  # keras: its backends differentiate functions
        with dropping(paths(model), drawn):
            output = model(source, read, source_mask, target_mask)
        # [4] loss []: cross-entropy of the output with the labels
        loss = cross_entropy(output, labels, *convention)
        return loss

    # [5] gradients [*]: of the loss, by each weight
    loss, gradients = value_and_gradients(
        loss_of, [weight.get() for weight in leaves(model)])
    return loss, gradients


class Trainer:
    """A model, the optimizer's moments and the number of steps made."""

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = parts.optimizer(training, model.config.d_model)
        # keras: JAX makes no zeros like a variable
        self.m, self.v = ([ops.zeros_like(weight.get().value)
                           for weight in leaves(model)] for _ in range(2))

    def draw(self, key, shapes):
        """What dropout keeps in one batch, by place; shapes by place."""
        return draw(key, shapes, self.model.config.dropout,
                    self.training.masks == "native")

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        key = random.fold_in(random.fold_in(
            random.key(training.seed), "dropout"), self.step)
        counts = ops.sum(targets[:, :, 1:] != pad_id, axis=(1, 2))
        # [1] shares [A]: each batch's share of the tokens to predict  (R30)
        shares = (ops.cast(counts, self.m[0].dtype)
                  / max(int(ops.sum(counts)), 1))
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
