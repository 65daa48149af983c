"""A Transformer as an ONNX model, by torch's own exporter."""

import contextlib
import io
import logging
import warnings

import numpy as np
import torch

from transformer_contract import onnx_session
from transformer_contract.onnx_session import INPUTS, OUTPUT
from impl_torch.engine import to_native
from impl_torch.parameters import home

#: What the exporter needs beside torch.
NEEDS = ("onnx", "onnxscript")

#: What of a batch may be another than of the one it is traced by.
FREE = ("rows", "lengths")


def missing(dtype):
    """What is not here to write a model of a dtype, in words, or ""."""
    return onnx_session.missing(NEEDS)


def to_onnx(model, inputs):
    """A Transformer as the bytes of an ONNX file, for batches of any shape.

    Args:
        inputs: source, target and both masks of a batch, by which it is
            traced; no two of its sizes are equal, and none is 1.
    """
    batch, source, target = torch.export.Dim("batch"), *(
        torch.export.Dim(name, max=most) for name, most in (
            ("source", model.config.source_length),
            ("target", model.config.max_length)))
    with quiet():
        program = torch.export.export(
            model, tuple(to_native(value, home(model)) for value in inputs),
            dynamic_shapes=(
                {0: batch, 1: source}, {0: batch, 1: target},
                {0: batch, 3: source}, {0: batch, 2: target, 3: target}))
        exported = torch.onnx.export(
            program, input_names=INPUTS, output_names=(OUTPUT,),
            dynamo=True, verbose=False)
    keep_scalars(exported.model, scalars(program))
    file = io.BytesIO()
    exported.save(file)
    return file.getvalue()


@contextlib.contextmanager
def quiet():
    """Without the exporter's words on its own libraries."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with (contextlib.redirect_stdout(io.StringIO()),
              warnings.catch_warnings()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def scalars(program):
    """The Python floats in an exported program."""
    return {argument for node in program.graph.nodes
            for argument in node.args if isinstance(argument, float)}


def keep_scalars(model, floats):
    """Store a program's Python floats in float64, as they are."""
    # torch: the exporter rounds them to float32 first, in a float64 model too:
    # √48 becomes 6.9282031 and the output is off by 2e-9.
    import onnx_ir
    with np.errstate(over="ignore"):
        exact = {float(np.float32(value)): value for value in floats}
    for name, value in model.graph.initializers.items():
        array = value.const_value.numpy()
        if array.dtype == np.float64 and array.shape == () and (
                array.item() in exact):
            value.const_value = onnx_ir.tensor(
                np.array(exact[array.item()]), name=name)
