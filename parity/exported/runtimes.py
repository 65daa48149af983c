"""Models of OpenVINO and LiteRT, run for their outputs."""

import numpy as np

from parity_io.errors import InputError
from parity.exported.model import ExportedModel, fitted, named
from parity.exported.onnx_file import need


def openvino(path, inputs, keywords):
    """The ExportedModel of a file of OpenVINO."""
    need("openvino")
    import openvino as ov
    try:
        model = ov.Core().read_model(str(path))
    except Exception as error:
        raise _no_model(path, "OpenVINO", error) from None
    return openvino_model(model, inputs, keywords)


def openvino_model(model, inputs, keywords):
    """The ExportedModel of a model of OpenVINO, compiled or not."""
    import openvino as ov
    compiled = model if hasattr(model, "create_infer_request") else (
        ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32",
                                        "EXECUTION_MODE_HINT": "ACCURACY"}))
    asked = [(each.get_any_name(), each.get_element_type().to_dtype(), [
        size.get_length() if size.is_static else 0
        for size in each.get_partial_shape()]) for each in compiled.inputs]
    given = fitted(asked, inputs, keywords, "the model of OpenVINO")
    made = compiled(given)
    outputs = {next(iter(each.get_names()), f"{i}"): np.array(made[each])
               for i, each in enumerate(compiled.outputs)}
    return ExportedModel("openvino", "OpenVINO model", given, named(outputs),
                   {"openvino": ov.__version__})


def lite_rt(path, inputs, keywords):
    """The ExportedModel of a file of LiteRT."""
    need("ai_edge_litert")
    from ai_edge_litert.interpreter import Interpreter
    try:
        interpreter = Interpreter(model_path=str(path))
        interpreter.allocate_tensors()
    except Exception as error:
        raise _no_model(path, "LiteRT", error) from None
    return lite_interpreter(interpreter, inputs, keywords)


def lite_interpreter(interpreter, inputs, keywords):
    """The ExportedModel of a LiteRT interpreter."""
    details = interpreter.get_input_details()
    asked = [(each["name"], each["dtype"], each["shape_signature"].tolist())
             for each in details]
    given = fitted(asked, inputs, keywords, "the model of LiteRT")
    for each in details:
        interpreter.resize_tensor_input(
            each["index"], given[each["name"]].shape)
    interpreter.allocate_tensors()
    for each in details:
        interpreter.set_tensor(each["index"], given[each["name"]])
    interpreter.invoke()
    outputs = {each["name"]: np.array(interpreter.get_tensor(each["index"]))
               for each in interpreter.get_output_details()}
    return ExportedModel("litert", "LiteRT model", given, named(outputs), {})


def _no_model(path, runtime, error):
    """The InputError of a file that is no model."""
    words = " ".join(str(error).split())[:160].rstrip(".")
    return InputError(f"{str(path)!r} is no model that {runtime} can read "
                      f"({words}); export it again.")
