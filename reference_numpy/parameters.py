"""What a model holds, by path: its modules and its weights.

Every array that a module holds is a weight, under the module's path and its
attribute's name.
"""

import functools

import numpy as np

from transformer_contract.leaves import Weight


def modules(module):
    """Yield (path, module) of a module and all below it, each once."""
    queue, seen = [("", module)], {id(module)}
    for path, owner in queue:
        yield path, owner
        for name, value in vars(owner).items():
            below = {name: value}
            if isinstance(value, list):
                below = {f"{name}.{i}": item for i, item in enumerate(value)}
            for name, item in below.items():
                ours = any(kind.__module__.startswith("reference_numpy")
                           for kind in type(item).__mro__)
                if ours and id(item) not in seen:
                    seen.add(id(item))
                    queue.append((f"{path}.{name}" if path else name, item))


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def held(module):
    """The names of the arrays that a module itself holds, a list."""
    return [leaf for leaf, value in vars(module).items()
            if isinstance(value, np.ndarray)]


def leaves(module):
    """Yield the Weight of every array that a module and all below it hold."""
    for path, owner in modules(module):
        for leaf in held(owner):
            yield Weight(
                f"{path}.{leaf}" if path else leaf,
                functools.partial(getattr, owner, leaf),
                functools.partial(setattr, owner, leaf),
                np.asarray, np.asarray)


def flatten(cache):
    """The steps of a cache by their full names; inputs are left out."""
    steps = {}
    for name, value in cache.items():
        if isinstance(value, dict):
            steps |= {f"{name}.{below}": step
                      for below, step in flatten(value).items()}
        elif isinstance(value, np.ndarray):
            steps[name] = value
    return steps
