"""What a model holds, by path: its modules and its weights."""

import numpy as np

from reference_numpy.embedding import TokenEmbedding, TypedEmbedding
from reference_numpy.layer_norm import (
    Float32RMSNorm, LayerNorm, RMSNorm, ScalarStdLayerNorm, StdLayerNorm)
from reference_numpy.linear import Linear, LinearWithoutBias
from reference_numpy.positional import LearnedPositions, UnpaddedPositions
from reference_numpy.projection import (
    BiasedTiedProjection, Projection, ProjectionWithoutBias)
from reference_numpy.relative import CausalRelative, RelativePositions

#: The arrays that a module of each type holds: canonical leaf -> attribute.
#: A port's table also says how to turn an array into its native shape.
PARAMETERS = {
    Linear: ("kernel", "bias"),
    LinearWithoutBias: ("kernel",),
    Projection: ("kernel", "bias"),
    ProjectionWithoutBias: ("kernel",),
    BiasedTiedProjection: ("bias",),
    TokenEmbedding: ("table",),
    TypedEmbedding: ("table", "types"),
    RelativePositions: ("table",),
    CausalRelative: ("table",),
    LearnedPositions: ("table",),
    UnpaddedPositions: ("table",),
    LayerNorm: ("scale", "bias"),
    StdLayerNorm: ("scale", "bias"),
    ScalarStdLayerNorm: ("scale", "bias"),
    RMSNorm: ("scale",),
    Float32RMSNorm: ("scale",),
}


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


def leaves(module):
    """Yield (canonical name, owner, attribute) of every weight."""
    for path, owner in modules(module):
        for leaf in PARAMETERS.get(type(owner), ()):
            yield f"{path}.{leaf}" if path else leaf, owner, leaf


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
