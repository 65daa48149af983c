"""Learn dates in JAX, and save: train_dates_jax.py STEPS FOLDER."""

import pathlib
import sys

import dates
import optax
import orbax.checkpoint
from flax import nnx

from impl_jax import Transformer, create, save


def loss_of(model, source, target):
    """Each token of a target is predicted from those before it."""
    labels = target[:, 1:]
    losses = optax.softmax_cross_entropy_with_integer_labels(
        model(source, target[:, :-1]), labels)
    return losses.mean(where=labels != dates.PAD)


def validated(model):
    """The loss on pairs that are not trained on, without dropout."""
    model.eval()
    return float(nnx.jit(loss_of)(model, *dates.pairs(256, seed=1)))


@nnx.jit
def step(model, optimizer, source, target):
    """One step of the optimiser."""
    optimizer.update(model, nnx.grad(loss_of)(model, source, target))


def train(model, steps, rows=64):
    """Adam, for so many batches."""
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    model.train()
    for batch in dates.batches(steps, rows):
        step(model, optimizer, *batch)


def saved(model, folder):
    """Write Orbax' own folder and the shared file; read the former again."""
    path = folder.absolute() / "dates.orbax"
    again = Transformer(dates.CONFIG, rngs=nnx.Rngs(1))
    again.eval()
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, nnx.state(model, nnx.Param), force=True)
        checkpointer.wait_until_finished()
        nnx.update(again, checkpointer.restore(
            path, nnx.state(again, nnx.Param)))
    save(model, folder / "dates_jax.safetensors")
    return again


def main(steps=800, folder="."):
    """Returns the model, and that of Orbax' own folder."""
    steps, folder = int(steps), pathlib.Path(folder)
    model = create(dates.CONFIG, seed=0)
    print(f"loss before {validated(model):.6f}")
    train(model, steps)
    print(f"loss after {steps} steps {validated(model):.6f}")
    again = saved(model, folder)
    print(dates.texts(again.generate(dates.asked(), max_tokens=dates.TARGET)))
    return model, again


if __name__ == "__main__":
    main(*sys.argv[1:])
