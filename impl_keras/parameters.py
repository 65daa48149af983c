"""What a model holds, by path: its modules and its weights."""

import functools
import operator

import keras
import numpy as np

from transformer_contract.leaves import Weight


def _join_last(array):
    """[D H K] to [D H·K]; a matrix stays as it is."""
    return array.reshape(len(array), -1)


def _join_first(array):
    """[H K D] to [H·K D]; a matrix stays as it is."""
    return array.reshape(-1, array.shape[-1])


_DENSE = {"kernel": ("kernel", np.asarray), "bias": ("bias", np.asarray)}

#: The arrays of Keras' own kinds of layer, which it keeps under other names:
#: canonical leaf -> attribute, and what turns theirs into ours.
KEPT = {
    keras.layers.Dense: _DENSE,
    keras.layers.EinsumDense: _DENSE,
    keras.layers.Embedding: {"": ("embeddings", np.asarray)},
    keras.layers.LayerNormalization: {
        "scale": ("gamma", np.asarray), "bias": ("beta", np.asarray)},
    keras.layers.MultiHeadAttention: {
        "query.kernel": ("query_dense.kernel", _join_last),
        "query.bias": ("query_dense.bias", np.ravel),
        "key.kernel": ("key_dense.kernel", _join_last),
        "key.bias": ("key_dense.bias", np.ravel),
        "value.kernel": ("value_dense.kernel", _join_last),
        "value.bias": ("value_dense.bias", np.ravel),
        "output.kernel": ("output_dense.kernel", _join_first),
        "output.bias": ("output_dense.bias", np.asarray),
    },
}


def modules(module):
    """Yield (path, layer) of a layer and all below it, each once."""
    queue, seen = [("", module)], {id(module)}
    for path, owner in queue:
        yield path, owner
        # keras: on torch a layer is an nn.Module, keeping layers in _modules.
        attributes = vars(owner) | vars(owner).get("_modules", {})
        # keras: a functional model knows its layers by their names alone.
        attributes = {layer.name: layer for layer in getattr(
            owner, "operations", ())} | attributes
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


def _itself(variable):
    """A weight as it is."""
    return variable


def _shaped_as(variable, array):
    """An array in ours, as a variable lays it out."""
    return array.reshape(variable.shape)


def _held(owner):
    """{leaf: (a variable, what turns its array into ours)} of one layer."""
    held = {
        leaf: (operator.attrgetter(attribute)(owner), to_ours)
        for kind, kept in KEPT.items() if isinstance(owner, kind)
        for leaf, (attribute, to_ours) in kept.items()}
    known = {id(variable) for variable, _ in held.values()}
    own = {name: (value, np.asarray) for name, value in vars(owner).items()
           if name[0] != "_" and isinstance(value, keras.Variable)
           and id(value) not in known}
    return held | own


def leaves(module):
    """Yield the Weight of every array that a layer and all below it hold."""
    for path, owner in modules(module):
        for leaf, (variable, to_ours) in _held(owner).items():
            if variable is not None:
                name = ".".join(part for part in (path, leaf) if part)
                yield Weight(
                    name, functools.partial(_itself, variable),
                    variable.assign, to_ours,
                    functools.partial(_shaped_as, variable))
