"""A checkpoint: all that the next step of training depends on.

It is a file of arrays under canonical names, so that any port can go on from
it: ``weights.NAME``, both moments ``m.NAME`` and ``v.NAME``, ``step``, the
number of the last step, and ``key``, from which the next step's masks follow.
"""

import numpy as np

from transformer_contract import random, weights
from parity_io.errors import InputError
from transformer_contract.schema import schema


def key(trainer):
    """The key of the next step's dropout masks, uint32 [2]."""
    return random.fold_in(random.fold_in(random.key(
        trainer.training.seed), "dropout"), trainer.step + 1)


def arrays(engine, trainer):
    """All that the next step of an engine's Trainer depends on, by name."""
    return {
        **{f"weights.{name}": array for name, array
           in engine.export(trainer.model).items()},
        **engine.moments(trainer),
        "step": np.array([trainer.step], np.int64), "key": key(trainer)}


def resumed(engine, path, config, training, dtype, device="cpu"):
    """The engine's Trainer that goes on from a checkpoint.

    Args:
        path: the file that holds ``arrays``.
        config, training, dtype, device: those of the run.

    Raises:
        InputError: the file cannot be read, lacks an array, or is another
            run's.
    """
    found, _ = weights.load(path)
    for name, like in (("step", np.zeros(1, np.int64)),
                       ("key", np.zeros(2, np.uint32))):
        own = found.get(name, np.zeros(0))
        if (own.dtype, own.shape) != (like.dtype, like.shape):
            raise InputError(
                f"{str(path)!r} has no {name!r} of {like.dtype} "
                f"{list(like.shape)}, so it is not a checkpoint; choose the "
                "folder of a run.")
    if not 0 <= found["step"][0] < 2**53:
        raise InputError(
            f"the step in {str(path)!r} is {found['step'][0]}; the file was "
            "changed, so start again.")
    trainer = engine.trainer(engine.build(
        "transformer", config, of_model(found, config, path, dtype), dtype,
        device), training)
    engine.resume(trainer, int(found["step"][0]), found)
    if not np.array_equal(found["key"], key(trainer)):
        raise InputError(
            f"the key in {str(path)!r} is not that of its seed and step; the "
            "file was changed, so start again.")
    return trainer


def of_model(found, config, path, dtype):
    """The weights in a checkpoint's arrays; its moments are checked too."""
    shapes = schema(config)
    for kind in ("m.", "v."):
        weights.check(weights.select(found, kind), shapes, str(path))
    model = weights.select(found, "weights.")
    weights.check(model, shapes, str(path))
    return {name: array.astype(dtype) for name, array in model.items()}
