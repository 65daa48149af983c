"""Models of OpenVINO and LiteRT, run for their outputs."""

import contextlib
import importlib
import warnings

import numpy as np

from parity_io.errors import InputError
from parity.quiet import without_chatter
from parity.exported.model import (
    ExportedModel, NotInstalled, fitted, named)
from parity.exported.onnx_file import need

#: How OpenVINO is asked to compute: with nothing shorter than float32.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}


def openvino(path, inputs, keywords):
    """The ExportedModel of a file of OpenVINO."""
    need("openvino")
    import openvino as ov
    try:
        with without_chatter():
            model = ov.Core().read_model(str(path))
    except Exception as error:
        raise _no_model(path, "OpenVINO", error) from None
    return openvino_model(model, inputs, keywords)


def openvino_model(model, inputs, keywords):
    """The ExportedModel of a model of OpenVINO, compiled or not."""
    import openvino as ov
    compiled = model if hasattr(model, "create_infer_request") else (
        ov.compile_model(model, "CPU", EXACT))
    asked = [(each.get_any_name(), each.get_element_type().to_dtype(), [
        size.get_length() if size.is_static else 0
        for size in each.get_partial_shape()]) for each in compiled.inputs]
    given = fitted(asked, inputs, keywords, "the model of OpenVINO")
    made = compiled(given)
    outputs = {next(iter(each.get_names()), f"{i}"): np.array(made[each])
               for i, each in enumerate(compiled.outputs)}
    found = ExportedModel("openvino", "OpenVINO model", given, named(outputs),
                          {"openvino": ov.__version__})
    if compiled is model:
        found.notes.append("a compiled model does not keep its inner outputs; "
                           "give the model, of which they are compared too.")
    else:
        found.inner = _openvino_values(model, given)
    return found


def _openvino_values(model, given):
    """(name, array) of what each operation makes, in the order of the graph.
    """
    import openvino as ov
    whole = model.clone()
    whole.add_outputs([
        output for node in whole.get_ordered_ops()
        if node.get_type_name() not in ("Parameter", "Constant", "Result")
        for output in node.outputs() if output.get_element_type().is_real()])
    made = ov.compile_model(whole, "CPU", EXACT)(given)
    makers = [each.get_node().input_value(0).get_node()
              for each in whole.outputs]
    order = {node.get_friendly_name(): number for number, node in enumerate(
        whole.get_ordered_ops(), 1)}
    return sorted(((f"{order[node.get_friendly_name()]}."
                    f"{node.get_type_name()}", np.array(made[i]))
                   for i, node in enumerate(makers)),
                  key=lambda each: int(each[0].partition(".")[0]))


def lite_rt(path, inputs, keywords):
    """The ExportedModel of a file of LiteRT, with its inner outputs."""
    runtime = _lite_runtime()
    try:
        with without_chatter(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TensorFlow's is deprecated
            interpreter = runtime.Interpreter(model_path=str(path))
            interpreter.allocate_tensors()
    except Exception as error:
        raise _no_model(path, "LiteRT", error) from None
    made = lite_interpreter(interpreter, inputs, keywords)
    made.notes.clear()
    plain = runtime.Interpreter(
        model_path=str(path), experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=runtime.OpResolverType
        .BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    _invoked(plain, made.inputs)
    made.inner = _lite_values(plain)
    return made


def _lite_runtime():
    """The module with LiteRT's Interpreter: its own, or TensorFlow's."""
    for name in ("ai_edge_litert.interpreter",
                 "tensorflow.lite.python.interpreter"):
        with contextlib.suppress(ImportError), without_chatter():
            return importlib.import_module(name)
    raise NotInstalled("ai_edge_litert is not installed")


def lite_interpreter(interpreter, inputs, keywords):
    """The ExportedModel of a LiteRT interpreter: its outputs alone."""
    asked = [(each["name"], each["dtype"], each["shape_signature"].tolist())
             for each in interpreter.get_input_details()]
    given = fitted(asked, inputs, keywords, "the model of LiteRT")
    _invoked(interpreter, given)
    outputs = {each["name"]: np.array(interpreter.get_tensor(each["index"]))
               for each in interpreter.get_output_details()}
    return ExportedModel(
        "litert", "LiteRT model", given, named(outputs), {}, notes=[
            "an interpreter does not keep its inner outputs; give the .tflite "
            "file, of which they are compared too."])


def _invoked(interpreter, given):
    """Run an interpreter on {name: array}."""
    details = interpreter.get_input_details()
    for each in details:
        interpreter.resize_tensor_input(
            each["index"], given[each["name"]].shape)
    interpreter.allocate_tensors()
    for each in details:
        interpreter.set_tensor(each["index"], given[each["name"]])
    try:
        interpreter.invoke()
    except RuntimeError as error:  # the runtime's own
        words = " ".join(str(error).split())[:160].rstrip(".")
        raise InputError(f"LiteRT cannot run the model ({words}); convert it "
                         "otherwise.") from None


def _lite_values(interpreter):
    """(name, array) of what each operation makes, of an interpreter that
    keeps all values."""
    found = []
    for number, each in enumerate(interpreter._get_ops_details(), 1):
        for place in map(int, each["outputs"]):
            array = np.array(interpreter.get_tensor(place))
            if array.dtype.kind == "f":
                found.append((f"{number}.{each['op_name']}", array))
    return found


def _no_model(path, runtime, error):
    """The InputError of a file that is no model."""
    words = " ".join(str(error).split())[:160].rstrip(".")
    return InputError(f"{str(path)!r} is no model that {runtime} can read "
                      f"({words}); export it again.")
