"""Learn dates in Keras, and save: train_dates_keras.py STEPS FOLDER."""

import pathlib
import sys

import dates
import keras

from impl_keras import create, save


def data(count, seed):
    """What the model reads, (source, target), and what it is to answer."""
    source, target = dates.pairs(count, seed)
    return (source, target[:, :-1]), target[:, 1:]


def compiled(model):
    """Adam, and the loss of each token that is not padding."""
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=dates.PAD))
    return model


def validated(model):
    """The loss on pairs that are not trained on, without dropout."""
    return model.evaluate(*data(256, seed=1), batch_size=256, verbose=0)


def train(model, steps, rows=64):
    """Adam, for so many batches."""
    model.fit(*data(steps * rows, seed=0), batch_size=rows, shuffle=False,
              verbose=0)


def saved(model, folder):
    """Write Keras' own file and the shared one; read the former again."""
    model.save(folder / "dates.keras")
    save(model, folder / "dates_keras.safetensors")
    return keras.saving.load_model(folder / "dates.keras")


def main(steps=800, folder="."):
    """Returns the model, and that of Keras' own file."""
    steps, folder = int(steps), pathlib.Path(folder)
    keras.utils.set_random_seed(0)  # of dropout
    model = compiled(create(dates.CONFIG, seed=0))
    print(f"loss before {validated(model):.6f}")
    train(model, steps)
    print(f"loss after {steps} steps {validated(model):.6f}")
    again = saved(model, folder)
    print(dates.texts(again.generate(dates.asked(), max_tokens=dates.TARGET)))
    return model, again


if __name__ == "__main__":
    main(*sys.argv[1:])
