"""Training runs of a tiny model, in Python and on the command line."""

import functools

from transformer_contract.training import TrainingConfig
from parity.runs import tasks, training

TRAINING = TrainingConfig(warmup_steps=10, clip_norm=1.0)

#: The same model, in words of the command.
TINY = ("--batch", "4", "--every", "2", *(
    word for field in ("d_model=24", "n_heads=2", "d_ff=40", "warmup_steps=10",
                       "n_encoder_layers=1", "n_decoder_layers=1")
    for word in ("--set", field)))


@functools.cache
def tiny_task():
    return tasks.task("dates")


def tiny_run(engine, folder, dtype="float32", **changes):
    config = tiny_task().config.replace(
        d_model=24, n_heads=2, d_ff=40, n_encoder_layers=1,
        n_decoder_layers=1)
    return training.Run(engine, tiny_task(), training.Settings(
        task="dates", config=config, training=TRAINING.replace(**changes),
        rows=5, accumulate=2, dtype=dtype), folder)


def answers_of(module, validated, tested, steps):
    """The answers of a task's two kept sets, and those it is trained on.

    Args:
        module: parity.runs.dates or its like.
        validated, tested: how many strings each group of a set has.
        steps: how many steps of training.
    """
    kept = {target for name, each in (("validation", validated),
                                      ("test", tested))
            for _, target, _ in module.pairs(name, each)}
    return kept, {target for step in range(1, 1 + steps)
                  for target in module.batch(step, 64)[1]}
