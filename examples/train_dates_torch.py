"""Learn dates in PyTorch, and save: train_dates_torch.py STEPS FOLDER."""

import pathlib
import sys

import dates
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from impl_torch import Transformer, create, save


def data(count, seed):
    """Pairs as a dataset of torch."""
    return TensorDataset(*(
        torch.from_numpy(ids).long() for ids in dates.pairs(count, seed)))


def loss_of(model, source, target):
    """Each token of a target is predicted from those before it."""
    logits = model(source, target[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(),
                           ignore_index=dates.PAD)


def validated(model):
    """The loss on pairs that are not trained on, without dropout."""
    model.eval()
    with torch.no_grad():
        return loss_of(model, *data(256, seed=1).tensors).item()


def train(model, steps, rows=64):
    """Adam, for so many batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for source, target in DataLoader(data(steps * rows, seed=0), rows):
        optimizer.zero_grad()
        loss_of(model, source, target).backward()
        optimizer.step()


def saved(model, folder):
    """Write torch's own file and the shared one; read the former again."""
    torch.save(model.state_dict(), folder / "dates.pt")
    again = Transformer(dates.CONFIG).eval()
    again.load_state_dict(torch.load(folder / "dates.pt"))
    save(model, folder / "dates_torch.safetensors")
    return again


def main(steps=800, folder="."):
    """Returns the model, and that of torch's own file."""
    steps, folder = int(steps), pathlib.Path(folder)
    torch.manual_seed(0)  # of dropout
    model = create(dates.CONFIG, seed=0)
    print(f"loss before {validated(model):.6f}")
    train(model, steps)
    print(f"loss after {steps} steps {validated(model):.6f}")
    again = saved(model, folder)
    source = torch.from_numpy(dates.asked()).long()
    print(dates.texts(again.generate(source, max_tokens=dates.TARGET)))
    return model, again


if __name__ == "__main__":
    main(*sys.argv[1:])
