"""A Transformer as an ONNX model, by jax2onnx."""

import contextlib
import logging
import warnings

import jax
from flax import nnx

from transformer_contract import onnx_session
from transformer_contract.onnx_session import INPUTS, OUTPUT

#: What the exporter needs beside JAX.
NEEDS = ("onnx", "jax2onnx")

#: What of a batch may be another than the one it is traced by: layers read
#: lengths as numbers.
FREE = ("rows",)

#: The dtypes that it writes: 16 bits become 64 between two steps of a norm.
DTYPES = ("float64", "float32")


def missing(dtype):
    """What is not here to write a model of a dtype, in words, or ""."""
    return onnx_session.missing(NEEDS) or (
        "" if dtype in DTYPES else f"jax2onnx writes no {dtype}")


def to_onnx(model, inputs):
    """A Transformer as the bytes of an ONNX file, for any number of rows.

    Its ids are int64 in float64, and else int32.

    Args:
        inputs: source, target and both masks of a batch, by which it is
            traced.
    """
    graph, state = nnx.split(model)
    return written(lambda *inputs: nnx.merge(graph, state)(*inputs), inputs,
                   jax.tree.leaves(nnx.state(model, nnx.Param))[0].dtype)


def written(function, inputs, dtype):
    """A function of a batch as to_onnx writes it; dtype is its weights'."""
    import jax2onnx
    with quiet():
        return jax2onnx.to_onnx(
            function, [
                jax.ShapeDtypeStruct(("rows", *value.shape[1:]), value.dtype)
                for value in inputs],
            enable_double_precision=dtype == "float64",
            input_names=INPUTS, output_names=(OUTPUT,)).SerializeToString()


@contextlib.contextmanager
def quiet():
    """Without the exporter's words on shapes and on its own float64."""
    logger = logging.getLogger("onnx_ir")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
