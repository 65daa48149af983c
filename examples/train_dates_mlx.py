"""Learn dates in MLX, and save: train_dates_mlx.py STEPS FOLDER."""

import pathlib
import sys

import dates
import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Adam

from impl_mlx import Transformer, create, save


def loss_of(model, source, target):
    """Each token of a target is predicted from those before it."""
    labels = target[:, 1:]
    losses = nn.losses.cross_entropy(model(source, target[:, :-1]), labels)
    counts = labels != dates.PAD
    return (losses * counts).sum() / counts.sum()


def validated(model):
    """The loss on pairs that are not trained on, without dropout."""
    model.eval()
    return loss_of(model, *map(mx.array, dates.pairs(256, seed=1))).item()


def train(model, steps, rows=64):
    """Adam, for so many batches."""
    optimizer = Adam(1e-3, bias_correction=True)
    step = nn.value_and_grad(model, loss_of)
    model.train()
    for batch in dates.batches(steps, rows):
        _, gradients = step(model, *map(mx.array, batch))
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)


def saved(model, folder):
    """Write MLX's own file and the shared one; read the former again."""
    own = str(folder / "dates.mlx.safetensors")
    model.save_weights(own)
    again = Transformer(dates.CONFIG).load_weights(own)
    again.eval()
    save(model, folder / "dates_mlx.safetensors")
    return again


def main(steps=800, folder="."):
    """Returns the model, and that of MLX's own file."""
    steps, folder = int(steps), pathlib.Path(folder)
    mx.random.seed(0)  # of dropout
    model = create(dates.CONFIG, seed=0)
    print(f"loss before {validated(model):.6f}")
    train(model, steps)
    print(f"loss after {steps} steps {validated(model):.6f}")
    again = saved(model, folder)
    source = mx.array(dates.asked())
    print(dates.texts(again.generate(source, max_tokens=dates.TARGET)))
    return model, again


if __name__ == "__main__":
    main(*sys.argv[1:])
