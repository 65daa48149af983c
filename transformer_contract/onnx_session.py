"""What every exporter to ONNX agrees on, and the runtime that runs a model."""

import numpy as np

from parity_io.errors import not_installed

#: The names of a model's inputs, and of its only output.
INPUTS = ("source", "target", "source_mask", "target_mask")
OUTPUT = "output"

#: An input's type, as ONNX Runtime calls it -> as NumPy does.
TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32",
         "tensor(bool)": "bool"}

#: What an exporter or a runtime lacks, in words, or "".
missing = not_installed


class Session:
    """A model as a function of a batch, run by ONNX Runtime on the processor.

    Args:
        runtime: the module onnxruntime, which nothing here needs.
        content: the bytes of an ONNX file.

    Attributes:
        count: how often it ran.
    """

    def __init__(self, runtime, content):
        self.session = runtime.InferenceSession(
            content, providers=["CPUExecutionProvider"])
        self.types = {one.name: one.type for one in self.session.get_inputs()}
        self.count = 0

    def __call__(self, *inputs):
        """The output of arrays in the order of INPUTS."""
        output, = self.session.run(None, {
            name: np.asarray(array, TYPES[self.types[name]])
            for name, array in zip(INPUTS, inputs)})
        self.count += 1
        return output
