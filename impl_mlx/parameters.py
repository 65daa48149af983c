"""What a model holds, by path: its modules and its weights.

Every array that a module holds itself is a weight, under the module's path and
its attribute's name. MLX's own layers have names of their own for them.
"""

import functools

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from transformer_contract.leaves import Weight


def _children(owner):
    """Yield (name, module) of what a module holds, its lists item by item."""
    for name, value in owner.items():
        if isinstance(value, nn.Module):
            yield name, value
        elif isinstance(value, list):
            yield from ((f"{name}.{i}", child)
                        for i, child in enumerate(value))


def modules(module):
    """Yield (path, module) of each, once, under its shortest path.

    named_modules goes depth first, so what is tied would be met, and named,
    as projection.embedding.
    """
    queue, seen = [("", module)], {id(module)}
    for path, owner in queue:
        yield path, owner
        for name, child in _children(owner):
            if id(child) not in seen:
                seen.add(id(child))
                queue.append((f"{path}.{name}" if path else name, child))


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def leaf_of(owner, attribute):
    """The canonical name of a module's array, and its conversion."""
    if attribute == "weight" and isinstance(owner, nn.Linear):
        return "kernel", np.transpose  # mlx: stored as [out in]
    if attribute == "weight" and isinstance(owner, nn.Embedding):
        return "", np.asarray
    return attribute, np.asarray


def leaves(module):
    """Yield the Weight of every array that a module and those below hold."""
    for path, owner in modules(module):
        for attribute, value in list(owner.items()):
            if isinstance(value, mx.array):
                leaf, convert = leaf_of(owner, attribute)
                yield Weight(
                    ".".join(part for part in (path, leaf) if part),
                    functools.partial(getattr, owner, attribute),
                    functools.partial(setattr, owner, attribute),
                    convert, convert)


def home(module):
    """The device that a module computes on; MLX's arrays have none."""
    return getattr(module, "home", "cpu")
