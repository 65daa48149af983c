"""What a model holds, by path: its modules and its weights."""

import operator

import keras
import numpy as np

from impl_keras.attention import MultiHeadAttention
from impl_keras.embedding import Table
from impl_keras.layer_norm import (
    Float32RMSNorm, LayerNorm, RMSNorm, ScalarStdLayerNorm, StdLayerNorm)
from impl_keras.positional import LearnedPositions, UnpaddedPositions
from impl_keras.projection import (
    BiasedTiedProjection, Projection, ProjectionWithoutBias)


def _join_last(array):
    """[D H K] to [D H·K]; a matrix stays as it is."""
    return array.reshape(len(array), -1)


def _join_first(array):
    """[H K D] to [H·K D]; a matrix stays as it is."""
    return array.reshape(-1, array.shape[-1])


_DENSE = {"kernel": ("kernel", np.asarray), "bias": ("bias", np.asarray)}
_TABLE = {"table": ("table", np.asarray)}
_NORM = {"scale": ("scale", np.asarray), "bias": ("bias", np.asarray)}
_RMS_NORM = {"scale": ("scale", np.asarray)}

#: The arrays that a layer of each type holds: canonical leaf -> attribute, and
#: what turns theirs into ours; ours is reshaped into theirs.
PARAMETERS = {
    keras.layers.Dense: _DENSE,
    Projection: _DENSE,
    ProjectionWithoutBias: _DENSE,
    BiasedTiedProjection: {"bias": ("bias", np.asarray)},
    keras.layers.Embedding: {"": ("embeddings", np.asarray)},
    Table: {"": ("embeddings", np.asarray)},
    LearnedPositions: _TABLE,
    UnpaddedPositions: _TABLE,
    MultiHeadAttention: {
        "query.kernel": ("query_dense.kernel", _join_last),
        "query.bias": ("query_dense.bias", np.ravel),
        "key.kernel": ("key_dense.kernel", _join_last),
        "key.bias": ("key_dense.bias", np.ravel),
        "value.kernel": ("value_dense.kernel", _join_last),
        "value.bias": ("value_dense.bias", np.ravel),
        "output.kernel": ("output_dense.kernel", _join_first),
        "output.bias": ("output_dense.bias", np.asarray),
    },
    LayerNorm: _NORM,
    StdLayerNorm: _NORM,
    ScalarStdLayerNorm: _NORM,
    RMSNorm: _RMS_NORM,
    Float32RMSNorm: _RMS_NORM,
}


def modules(module):
    """Yield (path, layer) of a layer and all below it, each once."""
    queue, seen = [("", module)], {id(module)}
    for path, owner in queue:
        yield path, owner
        # keras: on torch a layer is an nn.Module, keeping layers in _modules.
        attributes = vars(owner) | vars(owner).get("_modules", {})
        for name, value in attributes.items():
            if name[0] == "_":
                continue
            below = {name: value}
            if isinstance(value, list):
                below = {f"{name}.{i}": item for i, item in enumerate(value)}
            for name, item in below.items():
                ours = isinstance(item, keras.layers.Layer)
                if ours and id(item) not in seen:
                    seen.add(id(item))
                    queue.append((f"{path}.{name}" if path else name, item))


def paths(module):
    """id(module) -> path, for a trace or a run."""
    return {id(below): path for path, below in modules(module)}


def leaves(module):
    """Yield (canonical name, variable, conversion) of every weight."""
    for path, owner in modules(module):
        for leaf, (attribute, convert) in PARAMETERS.get(
                type(owner), {}).items():
            if (variable := operator.attrgetter(attribute)(owner)) is not None:
                name = ".".join(part for part in (path, leaf) if part)
                yield name, variable, convert
