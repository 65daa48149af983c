"""How a torch.nn.Module is traced; see parity.tracing.trace.

Hooks are not used: a module that has one does not take torch's fast path, and
then computes other numbers. Instead ``torch.nn.Module.__call__`` is wrapped
while the model runs.
"""

import contextlib
import functools
import sys

import ml_dtypes
import numpy as np
import torch

from parity_io.errors import InputError
from parity.tracing.recorder import (
    Framework, Recorder, check_scalar, finished)
from parity.tracing.storage import View, is_stored
from parity.tracing.trace import WHOLE
from parity.tracing.wrapping import wrapped


def has_memory(value):
    """Whether a tensor's numbers lie anywhere: those of torch.vmap do not."""
    try:
        value.data_ptr()
    except RuntimeError:
        return False
    return True


class Torch(Framework):
    """PyTorch, as parity.tracing.recorder.Framework describes it."""

    name = "torch"

    def __init__(self, device):
        self.device = device

    def device_of(self, value):
        """Where a tensor lies."""
        return str(getattr(value, "device", ""))

    def is_array(self, value):
        """Whether a value is a tensor or NumPy's array."""
        return isinstance(value, (torch.Tensor, np.ndarray))

    def is_seen(self, value):
        """Whether a tensor has values."""
        if isinstance(value, np.ndarray):
            return True
        return (value.device.type != "meta" and value.layout == torch.strided
                and not value.is_quantized and not value.is_nested
                and has_memory(value))

    def unseen(self, value):
        """Why a tensor has no values that can be kept."""
        return ("of sparse tensors" if value.layout != torch.strided else
                "of quantized tensors" if value.is_quantized else
                "of nested tensors" if value.is_nested else
                "of tensors within torch.vmap or torch.func"
                if value.device.type != "meta" and not has_memory(value) else
                super().unseen(value))

    def to_numpy(self, value):
        """A copy of the same dtype; 8-bit floats become float32."""
        if isinstance(value, np.ndarray):
            return np.array(value)
        value = value.detach().cpu().resolve_conj().resolve_neg()
        if value.dtype == torch.bfloat16:
            return np.array(value.contiguous().view(torch.int16).numpy().view(
                ml_dtypes.bfloat16))
        if value.dtype.itemsize == 1 and value.dtype.is_floating_point:
            value = value.float()
        return np.array(value.numpy(), order="C")

    def to_native(self, array):
        """A tensor of the same dtype, on the model's device."""
        array = np.array(array, order="C")
        if array.dtype == ml_dtypes.bfloat16:
            tensor = torch.from_numpy(array.view(np.int16)).view(
                torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        return tensor.to(self.device)

    def function(self, module):
        """The method whose parameters name the inputs."""
        return module.forward

    def state(self):
        """Whether a graph is made, and autocast: {device: on, dtype}."""
        return torch.is_grad_enabled(), {
            kind: (torch.is_autocast_enabled(kind),
                   torch.get_autocast_dtype(kind))
            for kind in {"cpu", self.device.type}
            if torch.amp.is_autocast_available(kind)}

    @contextlib.contextmanager
    def within(self, state):
        """A ``with`` block that makes a graph or not, and its autocast."""
        graph, autocast = state
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(graph))
            for kind, (on, dtype) in autocast.items():
                if on or torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, dtype, on))
            yield


def versions():
    """The framework's versions, by name."""
    return {"torch": torch.__version__}


def precision():
    """The present settings that decide how exact a product is."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "autocast": torch.is_autocast_enabled("cpu")
        or torch.is_autocast_enabled("cuda"),
        "default_dtype": str(torch.get_default_dtype()).partition(".")[2],
    }


def calls_seen(model, recorder):
    """Pass every module's call to a Recorder."""
    def seen(call, module, /, *args, **keywords):
        return recorder.call(module, call, args, keywords)
    return wrapped({(torch.nn.Module, "__call__"): seen})


@contextlib.contextmanager
def put_back(model, device=None):
    """Restore buffers and random states afterwards.

    Args:
        device: where the states are; that of the model where none is given.
    """
    device = device or framework_for(model).device
    devices = [device] if device.type == "cuda" else []
    buffers = {name: (buffer, buffer.detach().clone())
            for name, buffer in model.named_buffers() if buffer is not None}
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, value in buffers.values():
                    same = torch.equal(
                        buffer.reshape(-1).view(torch.uint8),
                        value.reshape(-1).view(torch.uint8)
                    ) if buffer.numel() else True
                    if not same:
                        buffer.copy_(value)


def named_arrays(model):
    """Every parameter and buffer: {path: tensor}, {alias: path}."""
    tensors, aliases = {}, {}
    seen: dict = {}
    for each in (model.named_parameters, model.named_buffers):
        for path, tensor in each(remove_duplicate=False):
            if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
                continue
            if id(tensor) in seen:
                aliases[path] = seen[id(tensor)]
            else:
                tensors[path] = tensor
                seen[id(tensor)] = path
    return tensors, aliases


def modules(model):
    """Yield (path, module) of a model and all below it, each once."""
    for path, module in model.named_modules():
        yield path or WHOLE, module


def setters(model):
    """{path of a parameter: what puts NumPy's array into it}."""
    framework = framework_for(model)

    def put(tensor, array):
        with torch.no_grad():
            tensor.copy_(framework.to_native(array))
    return {path: functools.partial(put, tensor)
            for path, tensor in named_arrays(model)[0].items()}


def share(model, parameters):
    """Have a model read its large parameters from the files of a trace.

    Only what the run left as it was, and lies in memory of its own, is read
    there; what the model writes is its own.

    Args:
        parameters: those of the model's Trace.
    """
    view, seen = View(), set()
    for path, tensor in named_arrays(model)[0].items():
        array = parameters[path]
        if (not isinstance(tensor, torch.nn.Parameter)
                or not is_stored(array) or id(array) in seen
                or array.dtype.isbuiltin != 1  # such as bfloat16
                or str(tensor.dtype) != f"torch.{array.dtype.name}"
                or tensor.device.type != "cpu" or tensor.is_inference()
                or not tensor.is_contiguous()
                or tensor.untyped_storage().nbytes() != array.nbytes):
            continue
        own = torch.from_numpy(view.of(array))
        if torch.equal(own, tensor):
            seen.add(id(array))
            tensor.data = own
        view.put_away()


class Gradients:
    """Collects the gradient by every output during the backward pass."""

    def __init__(self):
        self.gradients, self.leaves, self.seen = {}, [], {}
        self.watched = {}

    def watch(self, key, tensor):
        """The replacement of a tensor, whose gradient is collected.

        A tensor that is another step's output already, as of dropout in
        evaluation, gets a view: its own gradient includes its other uses.
        """
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if not tensor.requires_grad:  # a constant, such as positions
            leaf = tensor.detach().requires_grad_()
            self.leaves.append(leaf)
            tensor = leaf.clone()
        elif id(tensor) in self.seen or tensor.is_leaf:
            tensor = tensor.view_as(tensor)
        if not tensor.requires_grad:  # no graph is made here
            return tensor
        self.seen[id(tensor)], self.watched[key] = tensor, tensor
        gradients = self.gradients  # a hook that had self would never end

        def hook(gradient):
            gradients[key] = gradient.detach()
        tensor.register_hook(hook)
        return tensor

    def found(self):
        """{key: gradient} of what was watched; zeros where the loss does not
        depend on it."""
        return {key: self.gradients.get(key, torch.zeros_like(tensor))
                for key, tensor in self.watched.items()}

    def let_go(self):
        """Keep no tensor any longer, and with it no graph."""
        for kept in (self.gradients, self.leaves, self.seen, self.watched):
            kept.clear()


def is_compiled(model):
    """Whether torch.compile made a module.

    Its part of torch takes longer to import than all else. Where nobody has
    imported it, no module was made by it.
    """
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    return dynamo is not None and isinstance(model, dynamo.OptimizedModule)


def framework_for(model):
    """Torch, on the device of the model's first array."""
    arrays = [*model.parameters(), *model.buffers()]
    return Torch(arrays[0].device if arrays else torch.device("cpu"))


def capture(model, inputs, keywords, loss_of, run=None):
    """Trace a torch.nn.Module; see parity.tracing.trace.trace."""
    if is_compiled(model):
        raise InputError(
            "the model is compiled; trace the module that was given to "
            "torch.compile.")
    scripted = next((path for path, module in model.named_modules()
                     if isinstance(module, torch.jit.ScriptModule)), None)
    if scripted is not None:
        raise InputError(
            f"{scripted or 'the model'} is scripted (torch.jit), so that its "
            "parts cannot be run one by one; trace the module that it was "
            "made of.")
    arrays = [*model.parameters(), *model.buffers()]
    if any(array.is_meta for array in arrays):
        raise InputError(
            "the model is on the meta device, which holds no numbers; load "
            "its weights before it is traced.")
    framework = framework_for(model)
    paths: dict = {}
    for path, module in model.named_modules():
        paths.setdefault(id(module), path or WHOLE)
    tensors, aliases = named_arrays(model)
    collected = Gradients() if loss_of else None
    own = {path or WHOLE: [
        f"{path}.{name}" if path else name
        for group in (module._parameters, module._buffers)
        for name, tensor in group.items() if tensor is not None]
        for path, module in model.named_modules()}
    recorder = Recorder(framework, paths, own,
                        collected.watch if collected else None)
    recorder.silent = {
        path for path, module in model.named_modules()
        if type(module).forward is torch.nn.Module.forward}
    parameters = {path: recorder.keep(tensor)
                  for path, tensor in tensors.items()}
    loss, gradients = None, {}
    with put_back(model), contextlib.ExitStack() as stack:
        if collected is not None:
            stack.callback(collected.let_go)
            stack.enter_context(torch.enable_grad())
            stack.enter_context(torch.inference_mode(False))
        before = torch.random.get_rng_state()
        with calls_seen(model, recorder), recorder.tapping():
            output = recorder.whole(model, inputs, keywords, run)
        recorder.active = False
        drew = not torch.equal(before, torch.random.get_rng_state())
        if loss_of:
            loss, gradients = backward(
                framework, recorder, collected, loss_of(output), tensors,
                (inputs, keywords))
    late, aliases = named_arrays(model)
    for path, tensor in late.items():  # made by the first call
        if path not in parameters:
            parameters[path] = recorder.keep(tensor)
    notes = []
    if model.training:
        notes.append("the model is in training mode, so any dropout drops "
                     "values and running averages are not used.")
    if drew:
        notes.append("the model draws random numbers; one that begins from "
                     "another state draws others.")
    notes += fused(model, recorder)

    def rerun(path, arrays):
        with put_back(model, framework.device):
            return recorder.again(path, arrays)
    trainable = [path for path, tensor in late.items()
                 if isinstance(tensor, torch.nn.Parameter)]
    return finished(recorder, versions(), precision(), parameters, trainable,
                    aliases, gradients, loss, rerun, notes)


def fused(model, recorder):
    """Yield a sentence on encoder layers that torch computed at once."""
    seen = recorder.called | recorder.hidden.keys()
    at_once = [path for path, module in modules(model)
               if isinstance(module, torch.nn.TransformerEncoderLayer)
               and path in seen and not any(
                   each.startswith("" if path == WHOLE else f"{path}.")
                   for each in seen - {path})]
    if at_once and torch.backends.mha.get_fastpath_enabled():
        more = f" and {len(at_once) - 1} more" if at_once[1:] else ""
        yield (f"torch computed {at_once[0]}{more} at once, by its fast path, "
               "and called no module inside; call torch.backends.mha."
               "set_fastpath_enabled(False) before, so that they are seen.")


def backward(framework, recorder, collected, loss, tensors, arguments):
    """The loss and its gradients by parameter; those by step go to the steps.

    ``.grad`` is not changed.
    """
    check_scalar(loss, isinstance(loss, torch.Tensor))
    if not loss.requires_grad:
        raise InputError(
            "the loss depends on nothing that can have a gradient; let the "
            "model's parameters require one.")
    parameters = {path: tensor for path, tensor in tensors.items()
              if tensor.requires_grad and tensor.is_leaf}
    leaves = [*parameters.values(), *collected.leaves]
    torch.utils._pytree.tree_map(
        lambda x: leaves.append(x) if isinstance(x, torch.Tensor)
        and x.requires_grad and x.is_leaf else None, arguments)
    gradients = torch.autograd.grad(loss.reshape(()), leaves, allow_unused=True)
    recorder.put_gradients(collected.found())
    return float(loss.detach()), {
        path: recorder.keep(torch.zeros_like(tensor) if gradient is None
                            else gradient)
        for (path, tensor), gradient in zip(parameters.items(), gradients)}
