"""What goes wrong with gradients where the forward pass is right."""

import numpy as np

from parity.causes.cause import Cause
from parity.causes.faults.putting import replaced

TOPIC = "gradients"

#: The case in which they are put.
CASE = "gradients"


def gradients_by(change):
    """Change gradients on their way out: ``change(arrays, config, labels)``.

    ``arrays`` are those of weights and steps by name; it changes them, in
    copies.
    """
    def make(old, port):
        def made(model, source, target, source_mask, target_mask, labels,
                 key=None):
            loss, arrays = old(model, source, target, source_mask,
                               target_mask, labels, key)
            arrays = {name: np.array(array) for name, array in arrays.items()}
            change(arrays, model.config, labels)
            return loss, arrays
        return made
    return replaced("engine", "gradients", make)


def multiplied(factor):
    """Each gradient times ``factor(config, labels)``."""
    def change(arrays, config, labels):
        for array in arrays.values():
            array *= factor(config, labels)
    return gradients_by(change)


def without_padding(arrays, config, labels):
    """No gradient for the row of padding in any table."""
    for name, array in arrays.items():
        if name.endswith("embedding.table"):
            array[config.pad_id] = 0


def transposed(arrays, config, labels):
    """Square kernels' the other way round, as torch and TensorFlow differ."""
    for name, array in arrays.items():
        if name.endswith(".kernel") and array.shape[0] == array.shape[1]:
            array[...] = array.T.copy()


def exchanged(arrays, config, labels):
    """A key's kernel has the query's."""
    for name in list(arrays):
        if name.endswith("query.kernel"):
            other = name.replace("query.kernel", "key.kernel")
            one, two = arrays[name].copy(), arrays[other].copy()
            arrays[name][...], arrays[other][...] = two, one


FIRST = "grad source_embedding.table"


def _causes():
    for name, sentence, put, *step in (
            ("padding's embedding gets no gradient", "As with nn.Embedding's "
             "padding_idx.", gradients_by(without_padding),
             "grad target_embedding.table"),
            ("gradients are of the loss's sum", "Each is as many times too "
             "large as there are tokens to predict.", multiplied(
                 lambda config, labels: (labels != config.pad_id).sum())),
            ("gradients are divided by the batch", "Each is of the mean over "
             "rows, once more.", multiplied(
                 lambda config, labels: 1 / len(labels))),
            ("gradients are turned round", "Each has the other sign, as where "
             "the loss is made larger.", multiplied(
                 lambda config, labels: -1.0)),
            ("square kernels' gradients are transposed", "They are [out, in], "
             "and have the shape of [in, out].", gradients_by(transposed),
             "grad encoder.layers.0.self_attention.query.kernel"),
            ("gradients of query and key are exchanged", "Each has the "
             "other's.", gradients_by(exchanged),
             "grad encoder.layers.0.self_attention.query.kernel")):
        yield Cause(name, TOPIC, sentence, put=put, case=CASE,
                    step=step[0] if step else FIRST,
                    not_explained="a trace holds a model's forward pass; of "
                    "two traces with gradients each pair is compared")


CAUSES = tuple(_causes())
