"""Weights: drawn at a seed in torch, and handed to ports by their names."""

import re

import numpy as np


def drawn(model, seed=0, size=0.2):
    """A torch model in float64; each parameter is its first value and noise.

    Running means and biases that are buffers get noise too, and running
    variances a factor of 0.5 to 2.

    Args:
        model: a torch module.
        seed: of the noise.
        size: its standard deviation.
    """
    import torch
    model = model.double().eval()
    g = torch.Generator().manual_seed(seed)

    def noise(x):
        return size * torch.randn(x.shape, generator=g, dtype=torch.float64)
    with torch.no_grad():
        for x in dict(sorted(model.named_parameters())).values():
            x.copy_((x if x.dim() < 2 else 0 * x) + noise(x))
        for name, x in sorted(model.named_buffers()):
            if name.endswith(("running_mean", "bias")):
                x.copy_(noise(x))
            elif name.endswith("running_var"):
                x.copy_(torch.exp(3 * noise(x).clamp(-0.25, 0.25)))
    return model


def arrays(model) -> dict:
    """{name: array} of a torch model."""
    return {name: x.detach().numpy() for name, x in model.state_dict().items()}


def found(model, path):
    """The part of a model at a dotted path; None where it has none."""
    for name in path.split("."):
        try:
            model = model[int(name)] if name.isdigit() else (
                getattr(model, name))
        except (AttributeError, IndexError, TypeError):
            return None
    return model


def renamed(name, names):
    """A name after (pattern, replacement) each."""
    for pattern, new in names:
        name = re.sub(pattern, new, name)
    return name


def into_nnx(model, given, names=()):
    """Fill an nnx model from torch's arrays.

    Kernels are turned round, kernels of convolutions as nnx has them.

    Args:
        model: an nnx module whose attributes are named as torch's are.
        given: {torch's name: array}; what the model has no place for is left.
        names: (pattern, replacement) each, applied to torch's names.
    """
    from flax import nnx
    for name, x in given.items():
        path, _, leaf = renamed(name, names).rpartition(".")
        part = found(model, path) if path else model
        if isinstance(part, (nnx.Linear, nnx.Conv)) and leaf == "weight":
            leaf, x = "kernel", np.transpose(x, (*range(2, x.ndim), 1, 0))
        elif isinstance(part, nnx.Embed) and leaf == "weight":
            leaf = "embedding"
        elif isinstance(part, nnx.Module) and hasattr(part, "scale"):
            leaf = {"weight": "scale", "running_mean": "mean",
                    "running_var": "var"}.get(leaf, leaf)
        target = getattr(part, leaf, None)
        if isinstance(target, nnx.Variable):
            if target.shape != x.shape:
                raise ValueError(f"{name}: {x.shape}, not {target.shape}")
            target.set_value(x.astype(np.float64))
    return model


#: torch's leaf -> the attribute of a Keras layer that holds it.
KERAS = {"weight": ("kernel", "gamma", "embeddings", "weight"),
         "bias": ("bias", "beta"), "running_mean": ("moving_mean",),
         "running_var": ("moving_variance",)}


def into_keras(model, given, names=()):
    """Fill a Keras model that has been called, as into_nnx does."""
    import keras
    for name, x in given.items():
        path, _, leaf = renamed(name, names).rpartition(".")
        part = found(model, path) if path else model
        for mine in KERAS.get(leaf, (leaf,)):
            target = getattr(part, mine, None)
            if isinstance(target, keras.Variable):
                if mine == "kernel":
                    x = np.transpose(x, (*range(2, x.ndim), 1, 0))
                    if isinstance(part, keras.layers.DepthwiseConv2D):
                        x = x.swapaxes(2, 3)
                target.assign(x)
                break
    return model


def into_torch(model, given, names=()):
    """Fill a torch model, in float64 and for evaluation, as into_nnx does.

    Every parameter of it has to be given.
    """
    import torch
    model = model.double().eval()
    mine = model.state_dict()
    taken = {renamed(name, names): torch.from_numpy(np.array(x))
             for name, x in given.items()}
    model.load_state_dict({name: taken[name] for name in mine})
    return model
