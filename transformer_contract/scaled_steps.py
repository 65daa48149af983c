"""A step of training in mixed precision: its loss is scaled.

Micikevicius et al. 2018, §3.2. A step that overflows changes the scale alone.
"""

import numpy as np

from transformer_contract.dropping import places

#: What of an engine computes nothing, so that it is the same in every tier.
SHARED = {"NAME", "build", "devices", "export", "masks", "moments", "to_native",
          "to_numpy"}


def scaled_step(trainer, engine, random, clip, source, target, skipped=None):
    """Make a step on one batch: its loss and norm, the scale, and "skipped".

    Args:
        trainer: a port's Trainer with a LossScale, ``scale``, and ``update``,
            which moves every weight by its gradient.
        engine: the port's; its ``loss_and_gradients`` computes in the tier.
        random, clip: the port's ``random`` and ``clip_by_global_norm``.
        source, target: int [B S] and [B T + 1].
        skipped: whether the step is to be; by default if it overflows.

    Returns:
        {"loss": float32 [], the mean of a token's; "norm": float32 [], of all
        gradients before they are clipped; "scale": float, which the loss had;
        "skipped": bool}.
    """
    model, training = trainer.model, trainer.training
    read, labels = target[:, :-1], target[:, 1:]
    masks = engine.masks(source, read, model.config.pad_id, model.home,
                         model.config.stacks == "both")
    *inputs, labels = (engine.to_native(value, model.home) for value in (
        source, read, *masks.values(), labels))
    key = random.fold_in(random.fold_in(random.fold_in(
        random.key(training.seed), "dropout"), trainer.step + 1), 0)
    batch, length = source.shape
    drawn = trainer.draw(key, places(
        model.config, batch, length, read.shape[1]))
    scale = trainer.scale.value
    loss, gradients = engine.loss_and_gradients(
        model, inputs, labels, drawn, scale)
    gradients, norm = clip(gradients, training.clip_norm)
    loss, norm = engine.to_numpy(loss), engine.to_numpy(norm)
    if skipped is None:
        skipped = overflows(norm)
    if not skipped:
        trainer.update(gradients)
    trainer.scale.update(not skipped)
    return {"loss": loss, "norm": norm, "scale": scale, "skipped": skipped}


def overflows(norm):
    """Whether the norm of all gradients is not finite."""
    return not np.isfinite(norm)
