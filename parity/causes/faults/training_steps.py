"""What goes wrong between the steps of a training run."""

from parity.causes.cause import Cause
from parity.causes.faults.masks import begin_hidden
from parity.causes.faults.putting import replaced, rewritten

#: The case in which they are put: a short run, by parity.check.training_runs.
CASE = "training"

TOPIC = "training"


def in_step(old, new):
    """Replace a piece of the training step's source."""
    return rewritten("train", "Trainer.train_step", old, new)


def corrected_late(old, port):
    """The bias corrections of the step before."""
    return lambda self, step: (
        old(self, step)[0], *old(self, max(step - 1, 1))[1:])


def resumed_by(change):
    """Moments changed on their way back: ``change(moments)``."""
    return replaced("engine", "resume", lambda old, port: (
        lambda trainer, step, moments: old(trainer, step, change(moments))))


def forgotten(*kinds):
    """Zeros in place of some moments."""
    return resumed_by(lambda moments: {
        name: array * 0 if name.startswith(kinds) else array
        for name, array in moments.items()})


def late(training, d_model, step):
    """Equation 3, warmed up a step longer than said."""
    return training.learning_rate * d_model**-0.5 * min(
        max(step - 1, training.warmup_steps)**-0.5,
        step * training.warmup_steps**-1.5)


def rising(training, d_model, step):
    """The same learning rate, but for a warm-up."""
    return training.learning_rate * min(1, step / training.warmup_steps)


def scheduled(word, schedule):
    """Another schedule under a word."""
    file = "optimizer" if word == "inverse_sqrt" else "dialects.optimizer"
    return replaced(file, word, lambda old, port: schedule)


def _causes():
    shares = "for i, share in enumerate(shares)"
    for name, sentence, put, step, *changes in (
            ("accumulated batches count alike",
             "The mean of the batches' means, not of all tokens (R30).",
             in_step(shares, "for i, share in enumerate("
                     "[1 / len(shares)] * len(shares))"), "step 1 loss"),
            ("accumulated losses are summed",
             "The loss is the sum of the batches' means.",
             in_step("loss + share * loss_i", "loss + loss_i"),
             "step 1 loss"),
            ("accumulated gradients are summed",
             "The gradient is the sum of the batches' gradients.",
             in_step("g + share * g_i", "g + g_i"), "step 1 norm"),
            ("the bos counts as a token to predict",
             "A batch's share is of all tokens, its bos included.",
             in_step("targets[:, :, 1:]", "targets"), "step 1 loss"),
            ("dropout masks are those of the first batch",
             "The batches of a step drop the same values.",
             in_step("random.fold_in(key, i)", "random.fold_in(key, 0)"),
             "step 1 loss"),
            ("dropout masks are those of the first step",
             "Every step drops the same values.",
             in_step('"dropout"), self.step', '"dropout"), 1'),
             "step 2 loss"),
            ("dropout masks are counted from step 0",
             "The first step is step 0.",
             in_step('"dropout"), self.step', '"dropout"), self.step - 1'),
             "step 1 loss"),
            ("a begin that is padding is hidden in training",
             "A target may begin with padding's id, which is read (R52).",
             replaced("masks", "decoder_mask", begin_hidden), "step 1 loss"),
            ("a seed is cut to 32 bits",
             "Seeds that differ by 2³² are one.",
             in_step("training.seed", "training.seed & 0xFFFFFFFF"),
             "step 1 loss"),
            ("bias correction is a step late",
             "1 - βᵗ⁻¹ for 1 - βᵗ, from step 2 on.",
             replaced("optimizer", "Adam.settings", corrected_late),
             "step 2 weights"),
            ("warm-up ends a step late",
             "The learning rate falls from warmup_steps + 1 on.",
             scheduled("inverse_sqrt", late), "step 4 weights"),
            ("a constant learning rate warms up",
             "It rises while warming up.", scheduled("constant", rising),
             "step 1 weights", {"schedule": "constant"}),
            ("moments are 0 when resumed",
             "A checkpoint's moments are not read back.",
             forgotten("m.", "v."), "step 3 weights"),
            ("m is 0 when resumed", "A checkpoint's m is not read back.",
             forgotten("m."), "step 3 weights"),
            ("v is 0 when resumed", "A checkpoint's v is not read back.",
             forgotten("v."), "step 3 weights")):
        yield Cause(name, TOPIC, sentence, put=put, case=CASE, step=step,
                    changes=changes[0] if changes else {},
                    not_explained="a trace holds a model's forward pass, and "
                    "no training")


CAUSES = tuple(_causes())
