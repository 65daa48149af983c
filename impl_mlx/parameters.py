"""What a model holds, by path: its modules and its weights."""

import numpy as np
import mlx.nn as nn

from impl_mlx.embedding import Table
from impl_mlx.layer_norm import (
    Float32RMSNorm, LayerNorm, RMSNorm, ScalarStdLayerNorm, StdLayerNorm)
from impl_mlx.positional import LearnedPositions, UnpaddedPositions
from impl_mlx.projection import (
    BiasedTiedProjection, Projection, ProjectionWithoutBias)

_LINEAR = {"kernel": ("weight", np.transpose), "bias": ("bias", np.asarray)}
_TABLE = {"table": ("table", np.asarray)}
_NORM = {"scale": ("scale", np.asarray), "bias": ("bias", np.asarray)}
_RMS_NORM = {"scale": ("scale", np.asarray)}

#: The arrays that a module of each type holds: canonical leaf -> attribute,
#: and what turns ours into theirs (and, being its own inverse, back).
PARAMETERS = {
    nn.Linear: _LINEAR,
    Projection: _LINEAR,
    ProjectionWithoutBias: _LINEAR,
    BiasedTiedProjection: {"bias": ("bias", np.asarray)},
    nn.Embedding: {"": ("weight", np.asarray)},
    Table: {"": ("weight", np.asarray)},
    LearnedPositions: _TABLE,
    UnpaddedPositions: _TABLE,
    LayerNorm: _NORM,
    StdLayerNorm: _NORM,
    ScalarStdLayerNorm: _NORM,
    RMSNorm: _RMS_NORM,
    Float32RMSNorm: _RMS_NORM,
}


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


def leaves(module):
    """Yield (canonical name, owner, attribute, conversion) of every weight."""
    for path, owner in modules(module):
        for leaf, (attribute, convert) in PARAMETERS.get(
                type(owner), {}).items():
            if attribute in owner:
                name = ".".join(part for part in (path, leaf) if part)
                yield name, owner, attribute, convert
