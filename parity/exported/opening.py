"""Which compiled or exported model something is, opened."""

import pathlib
import sys

from parity_io.errors import InputError
from parity.exported import functions, onnx_file, runtimes
from parity.exported.model import ExportedModel

#: The files that are models.
FILES = (".onnx", ".pt2", ".tflite", ".xml")


def is_file(path):
    """Whether a path is a file of an exported model."""
    return pathlib.Path(path).suffix in FILES


def read(path, inputs, keywords):
    """The ExportedModel of a file.

    Args:
        path: the file's.
        inputs, keywords: of the other model.

    Raises:
        InputError: it is no such file, or the inputs do not fit.
        NotInstalled: its runtime is not here.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; check the path.")
    if path.suffix == ".onnx":
        return onnx_file.opened(onnx_file.loaded(path), str(path), inputs,
                                keywords)
    if path.suffix == ".pt2":
        from parity.exported import torch_graphs
        return torch_graphs.loaded(path, inputs, keywords)
    if path.suffix == ".tflite":
        return runtimes.lite_rt(path, inputs, keywords)
    return runtimes.openvino(path, inputs, keywords)


def framework_for(model, inputs=(), keywords=None) -> str:
    """Of which framework's arrays a compiled or exported model, or a plain
    function of JAX, takes its inputs: "numpy" of a runtime; "" of anything
    else.
    """
    name = f"{type(model).__module__}.{type(model).__name__}"
    if name.startswith("torch.export.") and hasattr(model, "graph_module"):
        return "torch"
    if name.startswith(("onnx.", "onnxruntime.", "openvino.")) or (
            "Interpreter" in name and hasattr(model, "allocate_tensors")):
        return "numpy"
    return functions.framework_for(model, inputs, keywords)


def opened(model, inputs, keywords) -> ExportedModel | None:
    """The ExportedModel of what a function returned as its model.

    None of a module that can be traced as it is.

    Raises:
        InputError: it cannot be run, with the reason.
    """
    if "torch" in sys.modules:
        from parity.exported import torch_graphs
        if (made := torch_graphs.opened(model, inputs, keywords)) is not None:
            return made
    name = f"{type(model).__module__}.{type(model).__name__}"
    if name.startswith("onnx.") and name.endswith(".ModelProto"):
        return onnx_file.opened(model, "the model", inputs, keywords)
    if name.startswith("onnxruntime.") and hasattr(model, "get_inputs"):
        return onnx_file.of_session(model, inputs, keywords)
    if name.startswith("openvino"):
        return runtimes.openvino_model(model, inputs, keywords)
    if "Interpreter" in name and hasattr(model, "allocate_tensors"):
        return runtimes.lite_interpreter(model, inputs, keywords)
    return functions.opened(model, inputs, keywords)
