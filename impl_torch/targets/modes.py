"""The ways to run a model: as it is, compiled, and exported."""

import importlib.util
import io

import torch
from torch._dynamo import utils as dynamo

from impl_torch.engine import on, to_native, to_numpy
from impl_torch.loss import cross_entropy
from impl_torch.parameters import leaves
from impl_torch.targets import onnx


def eager(function, inputs):
    """The function as it is."""
    return function


def compiled(backend):
    """A way to run by torch.compile and one of its backends."""
    def prepare(function, inputs):
        torch.compiler.reset()  # torch: it counts what it compiled before
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
    return Session(onnxruntime.InferenceSession(
        onnx.to_onnx(model, [to_numpy(value) for value in inputs]),
        providers=["CPUExecutionProvider"]))


class Session:
    """What ONNX Runtime makes of a model, as a function of tensors.

    Attributes:
        count: how often it ran.
    """

    def __init__(self, session):
        self.session, self.count = session, 0

    def __call__(self, *inputs):
        output, = self.session.run(None, {
            name: to_numpy(value)
            for name, value in zip(onnx.INPUTS, inputs)})
        self.count += 1
        return torch.from_numpy(output)


#: The mode with a runtime of its own.
ONNX = "ONNX Runtime"

#: Mode -> what makes a function of a function and its inputs.
MODES = {"eager": eager, "aot_eager": compiled("aot_eager"),
         "inductor": compiled("inductor"), "export": exported,
         ONNX: onnx_runtime}


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
        return isinstance(run, Session) and run.count > 0
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
        if importlib.util.find_spec("onnxruntime") is None:
            return "onnxruntime is not installed"
        if dtype == "bfloat16":
            return "ONNX Runtime has no bfloat16 on processors"
        return onnx.missing()
    return ""


def missing_gradients(mode):
    """Why a mode has no gradients, in words, or ""."""
    return ("an exported program has its own copies of the weights"
            if mode in ("export", ONNX) else "")


def predictor(model, mode, inputs):
    """What computes a Transformer's output, () -> [B T V]; whether it ran so.
    """
    inputs = tuple(to_native(value, model.home) for value in inputs)
    dynamo.counters.clear()
    run = MODES[mode](model, inputs)

    def predict():
        with torch.no_grad(), on(model.home):
            return to_numpy(run(*inputs))

    return predict, lambda: ran(mode, run)


def differentiator(model, mode, inputs):
    """What computes a loss, () -> loss and {weight: gradient}; whether it ran.

    Args:
        inputs: source, target, both masks, and labels.
    """
    config = model.config
    inputs = tuple(to_native(value, model.home) for value in inputs)

    def loss_of(*inputs):
        *inputs, labels = inputs
        return cross_entropy(
            model(*inputs), labels, config.pad_id, config.label_smoothing,
            config.smoothing)

    dynamo.counters.clear()
    run = MODES[mode](loss_of, inputs)

    def differentiate():
        weights = list(leaves(model))
        with torch.enable_grad(), on(model.home):
            loss = run(*inputs)
        gradients = torch.autograd.grad(
            loss, [weight for _, weight, _ in weights])
        return to_numpy(loss), {
            name: convert(to_numpy(gradient))
            for (name, _, convert), gradient in zip(weights, gradients)}

    return differentiate, lambda: ran(mode, run)
