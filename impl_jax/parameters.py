"""What a model holds, by path: its modules and its weights."""

from flax import nnx

from impl_jax.embedding import Table
from impl_jax.layer_norm import (
    Float32RMSNorm, LayerNorm, RMSNorm, ScalarStdLayerNorm, StdLayerNorm)
from impl_jax.positional import LearnedPositions, UnpaddedPositions
from impl_jax.projection import (
    BiasedTiedProjection, Projection, ProjectionWithoutBias)

_LINEAR = {"kernel": "kernel", "bias": "bias"}
_TABLE = {"table": "weight"}
_NORM = {"scale": "scale", "bias": "bias"}
_RMS_NORM = {"scale": "scale"}

#: The arrays that a module of each type holds: canonical leaf -> attribute.
#: NNX stores every one in our shape.
PARAMETERS = {
    nnx.Linear: _LINEAR,
    Projection: _LINEAR,
    ProjectionWithoutBias: _LINEAR,
    BiasedTiedProjection: {"bias": "bias"},
    nnx.Embed: {"": "embedding"},
    Table: {"": "embedding"},
    LearnedPositions: _TABLE,
    UnpaddedPositions: _TABLE,
    LayerNorm: _NORM,
    StdLayerNorm: _NORM,
    ScalarStdLayerNorm: _NORM,
    RMSNorm: _RMS_NORM,
    Float32RMSNorm: _RMS_NORM,
}


def modules(module):
    """Yield (path, module) of each, once, under its shortest path.

    nnx.iter_modules goes depth first and by the alphabet, so what is tied
    would be met, and named, as projection.embedding.
    """
    queue, seen = [("", module)], {id(module)}
    for path, owner in queue:
        yield path, owner
        for name, child in nnx.iter_children(owner):
            if isinstance(child, nnx.Module) and id(child) not in seen:
                seen.add(id(child))
                queue.append((f"{path}.{name}" if path else str(name), child))


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def leaves(module):
    """Yield (canonical name, nnx.Param) of every weight."""
    for path, owner in modules(module):
        for leaf, attribute in PARAMETERS.get(type(owner), {}).items():
            if (parameter := getattr(owner, attribute)) is not None:
                name = ".".join(part for part in (path, leaf) if part)
                yield name, parameter
