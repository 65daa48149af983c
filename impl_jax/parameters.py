"""What a model holds, by path: its modules and its weights.

Every nnx.Param that a module holds is a weight, under the module's path and its
attribute's name. NNX stores every one in our shape.
"""

import jax
import numpy as np
from flax import nnx

from transformer_contract.leaves import Weight


def modules(module):
    """Yield (path, module) of each, once, under its shortest path.

    nnx.iter_modules goes depth first, so what is tied would be met, and named,
    as projection.embedding.
    """
    queue, seen = [("", module)], {id(module)}
    for path, owner in queue:
        yield path, owner
        for name, child in sorted(vars(owner).items()):
            if isinstance(child, nnx.Module) and id(child) not in seen:
                seen.add(id(child))
                queue.append((f"{path}.{name}" if path else name, child))


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def leaves(module):
    """Yield the Weight of every parameter that a module and all below it hold.
    """
    for path, owner in modules(module):
        # nnx: what is merged stands by the alphabet; a kernel before its bias
        for leaf, value in sorted(vars(owner).items(), reverse=True):
            if isinstance(value, nnx.Param):
                # nnx: an Embed is its table
                leaf = "" if isinstance(owner, nnx.Embed) else leaf
                yield Weight(".".join(part for part in (path, leaf) if part),
                             value.get_value, value.set_value,
                             np.asarray, np.asarray)


def home(module):
    """JAX's name of the kind of device that a module's weights lie on.

    Of a module without weights the one that it was built on, if any.
    """
    for weight in leaves(module):
        if isinstance(weight.get(), jax.Array):
            return next(iter(weight.get().devices())).platform
    return getattr(module, "home", None)
