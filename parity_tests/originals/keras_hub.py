"""keras_hub's encoder and decoder layers, between embeddings and a projection.
"""

import numpy as np

from parity_tests.originals import random_models
from parity_tests.originals.stack_ends import add_embeddings_and_projection


class KerasHub:
    """One model, with ends as ``stack_ends.py`` describes them; on TensorFlow.

    Args:
        dialect: not used; the same as the others'.
        described: the layers' arguments, and the sizes of the ends.
    """

    #: Keras rounds 1/√d_k to float32, and TensorFlow the √2 of a GELU: a width
    #: whose root is exact, and no GELU, leave nothing to round.
    DRAWN = {"widths": (16,), "activation": "relu"}

    provable = staticmethod(add_embeddings_and_projection)
    asked = staticmethod(random_models.asked)
    completed = staticmethod(lambda weights, source: weights)

    def __init__(self, dialect, described):
        import keras
        import keras_hub
        import tensorflow
        self.tf, self.pad_id = tensorflow, described["pad_id"]
        width = described["hidden_dim"]
        words = {"dropout": 0.0, "dtype": "float64", **{
            name: described[name] for name in (
                "intermediate_dim", "num_heads", "activation",
                "layer_norm_epsilon", "normalize_first")}}
        self.encoder = [keras_hub.layers.TransformerEncoder(**words)
                        for _ in range(described["encoder_layers"])]
        self.decoder = [keras_hub.layers.TransformerDecoder(**words)
                        for _ in range(described["decoder_layers"])]
        vector = (None, None, width)
        for layer in self.encoder:
            layer.build(vector)
        for layer in self.decoder:
            layer.build(vector, vector)
        self.variables = {
            f"{stack}/{i}/" + variable.path.partition("/")[2]: variable.value
            for stack, layers in (("encoder", self.encoder),
                                  ("decoder", self.decoder))
            for i, layer in enumerate(layers)
            for variable in layer.trainable_variables}
        for name, shape in {
                "source.weight": (described["source_vocab"], width),
                "target.weight": (described["target_vocab"], width),
                "projection.weight": (described["target_vocab"], width),
                "projection.bias": (described["target_vocab"],)}.items():
            self.variables[name] = self.tf.Variable(
                np.zeros(shape), dtype="float64")
        keras.backend.clear_session()

    def arrays(self):
        """Every array of it by its own name."""
        return {name: variable.numpy()
                for name, variable in self.variables.items()}

    def load(self, arrays):
        """Take arrays by name."""
        for name, array in arrays.items():
            self.variables[name].assign(array)

    def run(self, question):
        """Its outputs by name."""
        return {name: value.numpy()
                for name, value in self._forward(question).items()}

    def _forward(self, question):
        keep = self.tf.constant(question.source != self.pad_id)
        x = self.tf.gather(self.variables["source.weight"], question.source)
        for layer in self.encoder:
            x = layer(x, padding_mask=keep)
        y = self.tf.gather(self.variables["target.weight"], question.target)
        for layer in self.decoder:
            y = layer(y, x, encoder_padding_mask=keep)
        logits = self.tf.einsum(
            "btd,vd->btv", y, self.variables["projection.weight"])
        return {"memory": x, "output": y,
                "logits": logits + self.variables["projection.bias"]}

    def gradients(self, question):
        """The loss, and its gradient by every variable."""
        with self.tf.GradientTape() as tape:
            losses = self.tf.nn.sparse_softmax_cross_entropy_with_logits(
                question.labels, self._forward(question)["logits"])
            loss = self.tf.reduce_mean(losses)
        gradients = tape.gradient(loss, self.variables)
        return float(loss), {
            name: self.tf.convert_to_tensor(gradient).numpy()
            for name, gradient in gradients.items()}

    def step(self, question, training):
        """Make one step of Adam, whose formula is written out; the loss.

        Keras has its ε before the bias correction, which is another step.
        """
        loss, gradients = self.gradients(question)
        for name, gradient in gradients.items():
            self.variables[name].assign_sub(
                training.learning_rate * gradient
                / (np.abs(gradient) + training.eps))
        return loss
