"""Weights laid out for a search, as each token's products read them best.

TensorFlow multiplies two or more rows by a transposed table in 8 to 13 times
the time that it takes for a kernel [D V], where it does not ask oneDNN, and one
row in 1.6 times. Self-attention's query, key and value are one product, since a
token is mostly the reading of weights, and long rows are read sooner. A search
that is long enough makes these copies once.
"""

from keras import ops

from impl_keras.projection import TiedProjection

#: Tokens of all rows of a search from which on a copy pays.
LONG = 16


class LaidOut:
    """A model for a long search, of which all else is the model's.

    Attributes:
        joined: for each decoder layer what gives self-attention's query, key
            and value.
    """

    def __init__(self, model):
        self.model = model
        self.joined = [Joined(layer.self_attention)
                       for layer in model.decoder.layers]
        self.projection = model.projection
        if isinstance(model.projection, TiedProjection):
            self.projection = Transposed(model.projection)

    def __getattr__(self, name):
        return getattr(self.model, name)

    def project(self, decoded):
        """Vectors [R 1 D] to a score for every token, [R 1 V]."""
        return type(self.model).project(self, decoded)


class Transposed:
    """A tied projection with its table as a kernel [D V]."""

    def __init__(self, projection):
        self.kernel = ops.transpose(projection.embedding.table.embeddings)
        self.bias = getattr(projection, "bias", 0)

    def __call__(self, x):
        """Map x [R 1 D] to logits."""
        return (x[:, 0] @ self.kernel)[:, None] + self.bias


class Joined:
    """An attention's query, key and value as one map."""

    def __init__(self, attention):
        projections = (attention.query_dense, attention.key_dense,
                       attention.value_dense)
        kernels = [each.kernel for each in projections]
        self.heads = [kernel.shape[1] for kernel in kernels]
        self.features = kernels[0].shape[-1]
        self.kernel = ops.concatenate([
            ops.reshape(kernel, (kernel.shape[0], -1))
            for kernel in kernels], axis=-1)
        self.bias = ops.concatenate([
            ops.zeros(kernel.shape[1:], kernel.dtype) if each.bias is None
            else each.bias for kernel, each in zip(kernels, projections)])

    def __call__(self, x):
        """Map x [1 R D] to each projection's [1 R H K]."""
        heads = ops.reshape(
            x[0] @ self.kernel, (1, x.shape[1], -1, self.features)) + self.bias
        places = [sum(self.heads[:i]) for i in range(1, len(self.heads))]
        return ops.split(heads, places, axis=2)
