"""A tied table laid out as a projection's own kernel is, [D V].

TensorFlow multiplies two or more rows by a transposed table in 8 to 13 times
the time that it takes for a kernel, where it does not ask oneDNN, and one row
in 1.6 times. A search that is long enough makes that copy once.
"""

from keras import ops

#: Tokens of all rows of a search from which on a copy of the table pays.
LONG = 64


class Turned:
    """A model that projects by a copy of its tied table.

    All else of it is the model's.
    """

    def __init__(self, model):
        self.model = model
        self.kernel = ops.transpose(
            model.projection.embedding.table.embeddings)

    def __getattr__(self, name):
        return getattr(self.model, name)

    def project(self, decoded):
        """Vectors [R 1 D] to a score for every token, [R 1 V]."""
        x = self.head(decoded) * self.output_factor
        logits = (x[:, 0] @ self.kernel)[:, None]
        if self.config.has_output_bias:
            logits = logits + self.projection.bias
        return self.output_function(logits)
