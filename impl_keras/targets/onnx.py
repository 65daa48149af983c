"""A Transformer as an ONNX model, by tf2onnx."""

import keras

from transformer_contract import onnx_session
from transformer_contract.onnx_session import INPUTS, OUTPUT
from impl_keras.engine import home, to_native

#: What the exporter needs beside TensorFlow.
NEEDS = ("onnx", "tf2onnx")

#: What of a batch may be another than the one it is traced by: layers read
#: its sizes as numbers.
FREE = ()

#: The newest operators that tf2onnx writes for all that a model does.
OPSET = 18


def missing(dtype):
    """What is not here to write a model of a dtype, in words, or ""."""
    if keras.backend.backend() != "tensorflow":
        return "Keras is written as ONNX on TensorFlow alone"
    return onnx_session.missing(NEEDS)


def to_onnx(model, inputs):
    """A Transformer as the bytes of an ONNX file, for batches of one shape.

    Args:
        inputs: source, target and both masks of a batch of that shape.
    """
    return written(lambda *inputs: model(*inputs), [
        to_native(value, home(model)) for value in inputs])


def written(function, inputs):
    """A function of a batch as to_onnx writes it; inputs are native."""
    import tensorflow as tf
    import tf2onnx
    signature = [tf.TensorSpec(value.shape, value.dtype, name)
                 for name, value in zip(INPUTS, inputs)]
    exported, _ = tf2onnx.convert.from_function(
        tf.function(lambda *inputs: tf.identity(function(*inputs), OUTPUT),
                    signature), signature, opset=OPSET)
    return exported.SerializeToString()
