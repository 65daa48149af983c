"""The port's one face to the harness."""

import contextlib

import ml_dtypes
import numpy as np
import torch

import transformer_contract.weights
from transformer_contract import components
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping, places
from transformer_contract.trace import tracing
from transformer_contract.weights import check
from impl_torch import parts, random
from impl_torch.dropout import draw, evaluating
from impl_torch.loss import cross_entropy
from impl_torch.masks import padding_mask
from impl_torch.optimizer import clip_by_global_norm
from impl_torch.parameters import home, leaves, paths
from impl_torch.train import Trainer

NAME = "torch"


def versions():
    """What computes here, by name."""
    return {"torch": torch.__version__}


def set_precision():
    """Full-precision products everywhere; what was set, by name."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # torch: use_deterministic_algorithms does the same, and imports the
    # compiler, longer than all else, to tell it: targets/modes.py does.
    torch.set_deterministic_debug_mode("warn")
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "deterministic_algorithms": True,
    }


def devices():
    """The devices that a real computation ran on."""
    names = []
    for name in ("cpu", "cuda", "mps", "xpu"):
        with contextlib.suppress(Exception):
            x = torch.ones(2, 2, device=name)
            if (x @ x).sum() == 8:
                names.append(name)
    return names


def to_native(value, device):
    """An array as a tensor of the same dtype; ids as int32 or int64."""
    value = np.ascontiguousarray(value)
    # torch: looks up no other whole numbers in a table.
    if value.dtype.kind in "iu" and value.dtype != np.int32:
        value = value.astype(np.int64, copy=False)
    if value.dtype == ml_dtypes.bfloat16:
        tensor = torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(value)
    return tensor.to(device)


def to_numpy(tensor):
    """A tensor as an array of the same dtype."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def on(device):
    """Make new tensors on ``device`` where none is named."""
    # torch: this looks into every call, so it is left out where it can be
    if torch.get_default_device().type == device:
        return contextlib.nullcontext()
    return torch.device(device)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights; see the reference's engine.

    It is in evaluation mode.
    """
    with torch.device("meta"):  # no first values: all are loaded
        make, arguments = components.component(
            __package__, component, config)
        module = make(*arguments)
    # torch: to_empty does the same, and imports sympy for it
    module.load_state_dict({
        name: torch.empty(tensor.shape, dtype=getattr(torch, dtype),
                          device=device)
        for name, tensor in module.state_dict().items()}, assign=True)
    module.home = device
    check(weights, {
        weight.name: weight.to_ours(np.empty(weight.get().shape, bool)).shape
        for weight in leaves(module)})
    for weight in leaves(module):
        weight.set(to_native(weight.to_theirs(weights[weight.name]), device))
    return module.eval()


def exported(module, tensors):
    """Tensors in the places of weights, as arrays by canonical names."""
    return {weight.name: np.array(weight.to_ours(to_numpy(tensor)), order="C")
            for weight, tensor in zip(leaves(module), tensors)}


def export(module):
    """The weights under their canonical names, as arrays."""
    return exported(module, [weight.get() for weight in leaves(module)])


def call(module, *inputs, method="__call__", **keywords):
    """Run a module on arrays: what it returns, and every step by name."""
    with (torch.no_grad(), evaluating(module), on(home(module)),
          tracing(paths(module)) as trace):
        returned = getattr(module, method)(
            *(to_native(value, home(module)) for value in inputs), **keywords)
    # A step may be a part of a table, which no answer hands out.
    return to_numpy(returned), {
        name: to_numpy(value.clone()) for name, value in trace.values.items()}


def run(module, *inputs, **keywords):
    """Run a module on arrays; return every step by name."""
    return call(module, *inputs, **keywords)[1]


def run_residual(residual, x, y):
    """Run a residual around a sub-layer that makes y of x; as ``run``."""
    with (torch.no_grad(), evaluating(residual),
          tracing(paths(residual)) as trace):
        x, y = (to_native(value, home(residual)) for value in (x, y))
        if hasattr(residual, "before"):
            residual.before(x)
        residual(x, y)
    return {name: to_numpy(value) for name, value in trace.values.items()}


def drawn(model, source, target, key):
    """The values that dropout keeps in a run with a key; all if None."""
    if key is None:
        return {}
    shapes = places(model.config, *source.shape, target.shape[1])
    return draw(to_native(key.view(np.int32), home(model)), shapes,
                model.config.dropout, False)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), drawn(model, source, target, key)):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by everything; see the reference's engine."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with (torch.enable_grad(), evaluating(model), on(home(model)),
          tracing(paths(model), watch) as trace,
          dropping(paths(model), drawn(model, source, target, key))):
        output = model(*(to_native(value, home(model)) for value in inputs))
        loss = cross_entropy(
            output, to_native(labels, home(model)), model.config.pad_id,
            model.config.label_smoothing, model.config.smoothing)
    weights = [weight.get() for weight in leaves(model)]
    grads = torch.autograd.grad(loss, [*weights, *trace.values.values()])
    return to_numpy(loss), {
        **exported(model, grads[:len(weights)]),
        **{name: to_numpy(gradient) for name, gradient
           in zip(trace.values, grads[len(weights):])}}


def watch(name, value):
    """Let a step that is a constant, such as positions, have a gradient."""
    return value if value.requires_grad else value.requires_grad_()


def initial_weights(config, seed):
    """Initial weights for training, drawn here: float64, by name."""
    return transformer_contract.weights.initial_weights(config, seed, random)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the reference's engine."""
    check_pairs(trainer.model.config, sources, targets)
    device = home(trainer.model)
    with on(device):
        loss, norm, learning_rate = trainer.train_step(
            to_native(sources, device), to_native(targets, device))
    return {"loss": to_numpy(loss), "norm": to_numpy(norm),
            "rate": np.asarray(learning_rate)}


def moments(trainer):
    """Both of Adam's moments of every weight: {"m.NAME" and "v.NAME"}."""
    return {f"{kind}.{name}": array
            for kind, tensors in (("m", trainer.m), ("v", trainer.v))
            for name, array in exported(trainer.model, tensors).items()}


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, tensors in (("m", trainer.m), ("v", trainer.v)):
        for weight, tensor in zip(leaves(trainer.model), tensors):
            tensor.copy_(to_native(weight.to_theirs(
                moments[f"{kind}.{weight.name}"]), home(trainer.model)))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with torch.no_grad(), evaluating(model), on(home(model)):
        return to_numpy(model(*(to_native(x, home(model)) for x in inputs)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine."""
    rows = check_search(model.config, source, settings, rows)
    with torch.no_grad(), evaluating(model), on(home(model)):
        tokens, scores = parts.search(model.config, settings)(
            model, to_native(source, home(model)), settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}


def masks(source, target, pad_id, device="cpu", begun=True):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], of ids; see masks.py."""
    source, target = to_native(source, device), to_native(target, device)
    with on(device):
        return {
            "source_mask": to_numpy(padding_mask(source, pad_id)),
            "target_mask": to_numpy(
                parts.part(parts.DECODER_MASKS, begun)(target, pad_id)),
        }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    return to_numpy(cross_entropy(
        to_native(logits, device), to_native(labels, device), pad_id,
        label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return to_numpy(to_native(a, device) @ to_native(b, device))
