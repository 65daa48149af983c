"""Watching a training run in PyTorch, whatever its loop looks like.

Backward passes, the steps of every torch.optim optimiser and the calls of the
model's modules are seen. A step ends at the first call of the model after its
weights have changed, so that a loop need not say where its steps are.
"""

import contextlib
import functools
import inspect

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from parity_io.errors import InputError
from parity.tracing.recorder import mapped
from parity.tracing.torch import Torch, framework_for, modules, named_arrays
from parity.tracing.torch import setters as setters_of
from parity.tracing.trace import WHOLE
from parity.training import form
from parity.training.observer import Observer, number_of
from parity.training.records import Copy
from parity.training.reading import of_torch

#: Of a model with more numbers in its outputs than this, only its own are kept.
KEPT = 2_000_000

#: So many operations before a loss are looked at for its targets.
NODES = 64

#: What optimisers call their state -> what it is.
SLOTS = {"exp_avg": "first moment", "exp_avg_sq": "second moment",
         "square_avg": "second moment", "momentum_buffer": "momentum",
         "sum": "sum of squares", "max_exp_avg_sq": "largest second moment"}


#: What is said of an optimiser of another model.
STRANGE = "the optimiser {} holds none of the model's parameters"


class TorchWatcher:
    """Tells an Observer of a run in PyTorch; a context manager.

    Args:
        observer: the Observer.
        model: the model, or None for the first that is called.
    """

    def __init__(self, observer, model=None):
        self.observer, self.model = observer, None
        self.depth, self.size, self.states = 0, 0, []
        self.optimizers, self.beside, self.copies = [], 0, {}
        observer.state = self.state
        if model is not None:
            self.adopt(model)

    def adopt(self, model):
        """Watch this model from now on."""
        self.model, self.framework = model, framework_for(model)
        self.paths = {id(module): path for path, module in modules(model)}
        tensors = named_arrays(model)[0]
        self.names = {id(tensor): path for path, tensor in tensors.items()}
        run = self.observer.run
        run.training = model.training
        run.modules = {path: (type(module).__name__, Torch(
            torch.device("cpu")).settings(module) | {
                "training": module.training})
            for path, module in modules(model)}
        self.observer.buffers = frozenset(
            path for path, tensor in tensors.items()
            if not isinstance(tensor, torch.nn.Parameter))
        self.observer.arrays = self.arrays
        self.observer.put = lambda found: [
            setters_of(model)[path](array) for path, array in found.items()]
        self.observer.begin()

    def arrays(self):
        """{path: array}: parameters and buffers."""
        return {path: self.framework.to_numpy(tensor)
                for path, tensor in named_arrays(self.model)[0].items()}

    def parameters(self):
        """{path: parameter}."""
        return {path: tensor for path, tensor
                in named_arrays(self.model)[0].items()
                if isinstance(tensor, torch.nn.Parameter)}

    def state(self):
        """The optimisers' state by slot."""
        slots: dict = {}
        for optimizer in self.optimizers:
            for tensor, held in optimizer.state.items():
                path = self.names.get(id(tensor))
                for slot, value in held.items():
                    if path and isinstance(value, torch.Tensor) and (
                            value.shape == tensor.shape and value.ndim):
                        slots.setdefault(SLOTS.get(slot, slot), {})[path] = (
                            self.framework.to_numpy(value))
        return slots

    @contextlib.contextmanager
    def __call__(self):
        hooks = torch.nn.modules.module
        handles = [
            hooks.register_module_forward_pre_hook(self.entered),
            hooks.register_module_forward_hook(self.left, always_call=True),
            register_optimizer_step_pre_hook(self.stepping)]
        before = torch.autograd.backward, torch.autograd.grad
        torch.autograd.backward = functools.partial(
            self.backward, before[0])
        torch.autograd.grad = functools.partial(self.grad, before[1])
        try:
            yield self
        finally:
            torch.autograd.backward, torch.autograd.grad = before
            for handle in handles:
                handle.remove()

    def entered(self, module, args):
        """Before a module is called."""
        if self.model is None:
            self.adopt(module)
        if id(module) not in self.paths:
            if not self.depth and not self.beside:
                self.see_copy(module)
            self.beside += 1
            return
        if self.observer.done:
            return
        if not self.depth:
            if self.observer.lazy and self.observer.passed():
                self.observer.end()
            if self.observer.record is not None:
                mapped(args, "", lambda name, value: self.observer.record.batch
                       .append(self.framework.to_numpy(value))
                       if isinstance(value, torch.Tensor) else None)
        self.depth += 1
        self.states.append(torch.random.get_rng_state())

    def left(self, module, args, output):
        """After a module was called."""
        if self.model is None or id(module) not in self.paths:
            self.beside = max(self.beside - 1, 0)
            return
        if not self.depth:
            return
        self.depth -= 1
        path = self.paths[id(module)]
        before, run = self.states.pop(), self.observer.run
        if not torch.equal(before, torch.random.get_rng_state()) and not any(
                each.startswith(f"{path}." if path != WHOLE else "")
                for each in run.dropping) and path not in run.dropping:
            run.dropping.append(path)
        if self.observer.record is None:
            return
        def keep(name, value):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                self.size += value.numel()
                if path == WHOLE or self.size < KEPT:
                    self.observer.record.outputs.append(
                        (path, self.framework.to_numpy(value.detach())))
            return value
        mapped(output, "", keep)

    def see_copy(self, module):
        """Keep the weights of a module beside the model that has its own."""
        if id(module) not in self.copies:
            own = {path: tensor.shape for path, tensor
                   in self.parameters().items()}
            found = {}
            for path, tensor in named_arrays(module)[0].items():
                for end in (path, path.partition(".")[2]):
                    if own.get(end) == tensor.shape:
                        found[end] = tensor
            known = Copy(type(module).__name__, list(found))
            self.copies[id(module)] = module, found, known
            if found:
                self.observer.run.copies.append(known)
        _, found, known = self.copies[id(module)]
        seen = {path: self.framework.to_numpy(tensor)
                for path, tensor in found.items()}
        if seen and not (known.seen and all(np.array_equal(
                array, known.seen[-1][path]) for path, array in seen.items())):
            known.seen.append(seen)

    def backward(self, call, *args, **keywords):
        """In the place of torch.autograd.backward."""
        if self.model is None or self.observer.done:
            return call(*args, **keywords)
        found = self.parameters()
        before = {path: None if tensor.grad is None else
                  tensor.grad.detach().clone()
                  for path, tensor in found.items()}
        self.see_targets(args[0] if args else keywords.get("tensors"))
        made = call(*args, **keywords)
        gained = {path: tensor.grad if before[path] is None
                  else tensor.grad - before[path]
                  for path, tensor in found.items() if tensor.grad is not None}
        losses = args[0] if args else keywords.get("tensors")
        loss = losses[0] if isinstance(losses, (tuple, list)) else losses
        instead = self.observer.backward(
            number_of(loss), {path: self.framework.to_numpy(tensor.to_dense())
                              for path, tensor in gained.items()})
        for path, array in instead.items():
            tensor, old = found[path], before[path]
            if tensor.grad is not None:
                new = self.native(array, tensor)
                tensor.grad.copy_(new if old is None else old + new)
        return made

    def see_targets(self, losses):
        """Keep what a loss' operations read beside the outputs."""
        if self.observer.record is not None:
            loss = losses[0] if isinstance(losses, (tuple, list)) else losses
            self.observer.record.targets.append([
                self.framework.to_numpy(each) for each in targets_of(loss)])

    def grad(self, call, outputs, inputs, *args, **keywords):
        """In the place of torch.autograd.grad."""
        if self.model is not None and not self.observer.done:
            self.see_targets(outputs)
        made = call(outputs, inputs, *args, **keywords)
        if self.model is None or self.observer.done:
            return made
        several = isinstance(inputs, (list, tuple))
        asked = list(inputs) if several else [inputs]
        paths = [self.names.get(id(tensor)) for tensor in asked]
        if not any(paths):
            return made
        loss = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        instead = self.observer.backward(number_of(loss), {
            path: self.framework.to_numpy(gradient)
            for path, gradient in zip(paths, made)
            if path and gradient is not None})
        return tuple(self.native(instead[path], tensor)
                     if gradient is not None and path in instead else gradient
                     for path, gradient, tensor in zip(paths, made, asked))

    def stepping(self, optimizer, args, keywords):
        """Before an optimiser's step."""
        if self.model is None or self.observer.record is None:
            return
        if args and callable(args[0]) or keywords.get("closure"):
            return  # it asks for gradients inside
        groups = [(group, tensor, self.names[id(tensor)])
                  for group in optimizer.param_groups
                  for tensor in group["params"] if id(tensor) in self.names]
        run = self.observer.run
        if not groups:
            if (note := STRANGE.format(type(optimizer).__name__)) not in (
                    run.notes):
                run.notes.append(note)
            return
        if optimizer not in self.optimizers:
            self.optimizers.append(optimizer)
        run.optimizer = type(optimizer).__name__
        run.groups |= {
            self.names[id(tensor)]: (i, len(optimizer.param_groups))
            for i, group in enumerate(optimizer.param_groups)
            for tensor in group["params"] if id(tensor) in self.names
            and len(optimizer.param_groups) > 1}
        run.rules |= {path: of_torch(optimizer, group)
                      for group, _, path in groups}
        instead = self.observer.updating(
            {path: self.framework.to_numpy(tensor.grad.to_dense())
             for _, tensor, path in groups if tensor.grad is not None},
            {path: float(group["lr"]) for group, _, path in groups
             if "lr" in group})
        for _, tensor, path in groups:
            if path in instead and tensor.grad is not None:
                tensor.grad = self.native(instead[path], tensor)

    def native(self, array, like):
        """NumPy's array as a tensor like another."""
        return self.framework.to_native(np.asarray(array)).to(
            like.dtype).to(like.device)


def targets_of(loss):
    """The targets and indices that the last operations of a loss saved."""
    found, left = [], [getattr(loss, "grad_fn", None)]
    seen: set = set()
    while left and len(seen) < NODES:
        node = left.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        for name in ("_saved_target", "_saved_index"):
            with contextlib.suppress(RuntimeError):  # it was freed
                value = getattr(node, name, None)
                if isinstance(value, torch.Tensor):
                    found.append(value.detach())
        left += [each for each, _ in node.next_functions]
    return found


def made_by(make, steps, lock=None):
    """What a user's function returns, and the run that it made by itself.

    Returns:
        (what it returned, its WatchedRun or None where it trained nothing).
    """
    observer = Observer("torch", steps, lock, lazy=True, stop=False)
    watcher = TorchWatcher(observer)
    with watcher():
        made = make()
        if watcher.model is not None and observer.passed():
            observer.end()
    run = observer.run if observer.run.steps else None
    return made, run


def watched(training, steps, lock=None):
    """The WatchedRun of a Training."""
    lazy = training.loop and not inspect.isgeneratorfunction(training.loop)
    observer = Observer("torch", steps, lock, lazy)
    with TorchWatcher(observer, training.model)():
        observer.drive(training, observer.end,
                       lambda: _declared(observer, training))
    return observer.run


def strange(training):
    """Whether a training's optimiser is of another model."""
    own = {id(tensor) for tensor in training.model.parameters()}
    groups = getattr(training.optimizer, "param_groups", [])
    return bool(groups and own) and not any(
        id(tensor) in own for group in groups for tensor in group["params"])


def _declared(observer, training):
    """The loop of a Training with a loss."""
    size, batches = training.accumulate, training.batches
    for start in range(0, len(batches) - size + 1, size):
        training.model.zero_grad()
        for batch in batches[start:start + size]:
            loss = form.loss_on(training, batch)
            if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
                raise InputError(
                    "the loss depends on no parameter that requires a "
                    "gradient, so nothing can be trained; do not detach it, "
                    "nor freeze every parameter.")
            (loss.reshape(()) / size).backward()
        if callable(training.clip):
            training.clip(training.model.parameters())
        elif training.clip is not None:
            torch.nn.utils.clip_grad_norm_(
                training.model.parameters(), training.clip)
        if training.optimizer is not None:
            training.optimizer.step()
        if training.schedule is not None:
            training.schedule.step()
        observer.end()


def widen(training):
    """Make a training float64, weights, buffers and batches."""
    training.model.double()

    def cast(name, value):
        return value.double() if isinstance(value, torch.Tensor) and (
            value.is_floating_point()) else value

    def seen(module, args, keywords):
        return mapped(args, "", cast), mapped(keywords, "", cast)
    training.model.register_forward_pre_hook(seen, with_kwargs=True)
    training.batches = [mapped(batch, "", cast) for batch in training.batches]


def undropped(training):
    """Let a model drop nothing."""
    for module in training.model.modules():
        for name, value in list(vars(module).items()):
            if name in ("p", "dropout", "dropout_p") and isinstance(
                    value, float):
                setattr(module, name, 0.0)


def switched(training, on):
    """Put a model into training mode, or out of it."""
    training.model.train(on)
