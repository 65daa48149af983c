"""What a model holds, by path: its modules and its weights.

Every parameter that a module holds itself is a weight, under the module's path
and its attribute's name. torch's own layers have names of their own for them.
"""

import functools

import numpy as np
from torch import nn

from transformer_contract.leaves import Weight


def modules(module):
    """Yield (path, module) of a module and all below it, each once."""
    return module.named_modules()


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def leaf_of(owner, attribute):
    """The canonical name of a module's parameter, and its conversion."""
    if attribute == "weight" and isinstance(owner, nn.Linear):
        return "kernel", np.transpose  # torch: stored as [out in]
    if attribute == "weight" and isinstance(owner, nn.Embedding):
        return "", np.asarray
    return attribute, np.asarray


def leaves(module):
    """Yield the Weight of every parameter that a module and those below hold.
    """
    for path, owner in modules(module):
        for attribute, parameter in owner.named_parameters(recurse=False):
            leaf, convert = leaf_of(owner, attribute)
            yield Weight(
                ".".join(part for part in (path, leaf) if part),
                functools.partial(getattr, owner, attribute),
                parameter.data.copy_, convert, convert)


def home(module):
    """The kind of device that a module's weights lie on, such as "cpu".

    Of a module without weights the one that it was built on.
    """
    for parameter in module.parameters():
        return parameter.device.type
    return getattr(module, "home", "cpu")
