"""The ways to run a model: as it is, compiled, and exported."""

import io

import numpy as np
import torch
from torch._dynamo import utils as dynamo

from transformer_contract import onnx_session
from impl_torch import engine
from impl_torch.engine import on, to_native, to_numpy
from impl_torch.loss import cross_entropy
from impl_torch.parameters import home, leaves
from impl_torch.targets import onnx


def eager(function, inputs):
    """The function as it is."""
    return function


def compiled(backend):
    """A way to run by torch.compile and one of its backends."""
    def prepare(function, inputs):
        torch.compiler.reset()  # torch: it counts what it compiled before
        if torch.are_deterministic_algorithms_enabled():
            torch.use_deterministic_algorithms(True, warn_only=True)
        return torch.compile(
            function, backend=backend, fullgraph=True, dynamic=False)
    return prepare


def exported(model, inputs):
    """A model exported to bytes, and what they hold."""
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, inputs), file)
    file.seek(0)
    return torch.export.load(file).module()


def onnx_runtime(model, inputs):
    """A model exported to ONNX, and run by ONNX Runtime on the processor."""
    import onnxruntime
    session = onnx_session.Session(onnxruntime, onnx.to_onnx(
        model, [to_numpy(value) for value in inputs]))

    def run(*inputs):
        return torch.from_numpy(session(*map(to_numpy, inputs)))

    run.session = session
    return run


def openvino(model, inputs):
    """A model as OpenVINO reads what was exported, run on the processor."""
    import openvino as ov
    compiled = ov.compile_model(
        ov.convert_model(torch.export.export(model, inputs)), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY"})

    def run(*inputs):
        output = compiled([to_numpy(value) for value in inputs])[0]
        if dtype == torch.bfloat16:  # NumPy has none: 16 bits of another name
            return torch.from_numpy(output.view(np.int16)).view(dtype)
        return torch.from_numpy(output)

    dtype = next(model.parameters()).dtype
    run.compiled = compiled
    return run


def lite_rt(model, inputs):
    """A model as LiteRT converts it, run by its interpreter."""
    import litert_torch
    with onnx.quiet():
        converted = litert_torch.convert(model, inputs)

    def run(*inputs):
        return torch.from_numpy(converted(*(
            # torch: it narrows ids to int32
            to_numpy(value if value.dtype == torch.bool else value.int())
            for value in inputs)))

    run.converted = converted
    return run


#: The modes with a runtime of their own.
ONNX, OPENVINO, LITE_RT = "ONNX Runtime", "OpenVINO", "LiteRT"

#: Mode -> what makes a function of a function and its inputs.
MODES = {"eager": eager, "aot_eager": compiled("aot_eager"),
         "inductor": compiled("inductor"), "export": exported,
         ONNX: onnx_runtime, OPENVINO: openvino,
         LITE_RT: lite_rt}


def ran(mode, run):
    """Whether a function has run in a mode, by what torch itself counted."""
    count = dynamo.counters
    match mode:
        case "aot_eager":
            return count["aot_autograd"]["total"] > 0 and not count["inductor"]
        case "inductor":
            return bool(count["inductor"])
        case "export":
            return isinstance(run, torch.fx.GraphModule)
    if mode == ONNX:
        return hasattr(run, "session") and run.session.count > 0
    if mode == OPENVINO:
        return type(getattr(run, "compiled", None)).__name__ == "CompiledModel"
    if mode == LITE_RT:
        return type(getattr(run, "converted", None)).__name__ == "LiteRTModel"
    return mode == "eager"


def missing(mode, dtype):
    """What a mode needs and is not here, in words, or ""."""
    if mode == "inductor":
        from torch._inductor import cpp_builder
        try:
            cpp_builder.get_cpp_compiler()
        except Exception:
            return "inductor needs a C++ compiler, and there is none"
    if mode == ONNX:
        if dtype == "bfloat16":
            return "ONNX Runtime has no bfloat16 on processors"
        return (onnx_session.missing(["onnxruntime"])
                or onnx.missing(dtype))
    if mode == OPENVINO:
        if dtype == "float64":
            return "OpenVINO computes float64 in float32"
        return onnx_session.missing(["openvino"])
    if mode == LITE_RT:
        if dtype != "float32":
            return f"LiteRT looks up no embedding in {dtype}"
        return onnx_session.missing(["litert_torch"])
    return ""


def missing_gradients(mode):
    """Why a mode has no gradients, in words, or ""."""
    return ("an exported program has its own copies of the weights"
            if mode in ("export", ONNX, OPENVINO, LITE_RT) else "")


def predictor(model, mode, inputs):
    """What computes a Transformer's output, () -> [B T V]; whether it ran so.
    """
    inputs = tuple(to_native(value, home(model)) for value in inputs)
    dynamo.counters.clear()
    run = MODES[mode](model, inputs)

    def predict():
        with torch.no_grad(), on(home(model)):
            return to_numpy(run(*inputs))

    return predict, lambda: ran(mode, run)


def differentiator(model, mode, inputs):
    """What computes a loss, () -> loss and {weight: gradient}; whether it ran.

    Args:
        inputs: source, target, both masks, and labels.
    """
    config = model.config
    inputs = tuple(to_native(value, home(model)) for value in inputs)

    def loss_of(*inputs):
        *inputs, labels = inputs
        return cross_entropy(
            model(*inputs), labels, config.pad_id, config.label_smoothing,
            config.smoothing)

    dynamo.counters.clear()
    run = MODES[mode](loss_of, inputs)

    def differentiate():
        weights = [weight.get() for weight in leaves(model)]
        with torch.enable_grad(), on(home(model)):
            loss = run(*inputs)
        gradients = torch.autograd.grad(loss, weights)
        return to_numpy(loss), engine.exported(model, gradients)

    return differentiate, lambda: ran(mode, run)
