"""What a model holds, by path: its modules and its weights."""

import numpy as np
from torch import nn

from impl_torch.layer_norm import (
    Float32RMSNorm, LayerNorm, RMSNorm, ScalarStdLayerNorm, StdLayerNorm)
from impl_torch.positional import LearnedPositions, UnpaddedPositions
from impl_torch.projection import (
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
    LearnedPositions: _TABLE,
    UnpaddedPositions: _TABLE,
    LayerNorm: _NORM,
    StdLayerNorm: _NORM,
    ScalarStdLayerNorm: _NORM,
    RMSNorm: _RMS_NORM,
    Float32RMSNorm: _RMS_NORM,
}


def modules(module):
    """Yield (path, module) of a module and all below it, each once."""
    return module.named_modules()


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def leaves(module):
    """Yield (canonical name, tensor, conversion) of every weight."""
    for path, owner in modules(module):
        for leaf, (attribute, convert) in PARAMETERS.get(
                type(owner), {}).items():
            if (tensor := getattr(owner, attribute)) is not None:
                name = ".".join(part for part in (path, leaf) if part)
                yield name, tensor, convert
