"""A model of torch made anew, so that its tables too are float64."""

import torch

from parity.operations.torch_calls import Mode, Unfused, mutated, tree_map
from parity.operations.torch_recording import EMPTY, TorchRecording
from parity.operations.torch_twins import LONGER, SIZE, widened

aten = torch.ops.aten

#: Models of more numbers have their weights once, in their own dtype.
LARGE = 20_000_000

#: In these, arrays of so many numbers are made as they are asked for.
LONG = 1 << 20



def rebuilt(make, plain):
    """A model that ``make`` builds with nothing shorter than float64.

    Weights and what is kept with them are those of ``plain``; so is every
    other tensor that differs from the new one by more than rounding to its
    dtype does. A large model has the weights of ``plain`` themselves, which a
    run widens one by one.
    """
    theirs = dict(tables(plain))
    large = sum(each.numel() for each in theirs.values()) > LARGE
    model = built(make, theirs) if large else None
    if model is None:
        with torch.random.fork_rng(devices=[]), Unfused(True), Exact(large):
            model = make()[0]
    (model if large else model.double()).train(plain.training)
    kept = plain.state_dict(keep_vars=True).keys()
    with torch.no_grad():
        for path, tensor in [*tables(model)]:
            other = theirs.get(path)
            if other is None or other.shape != tensor.shape or (
                    other.dtype not in SIZE):
                continue
            if large and (path in kept or tensor.is_meta):
                put(model, path, other)
            elif path in kept or not torch.allclose(
                    tensor, other.to(tensor.dtype), rtol=1e-6, atol=1e-6):
                tensor.copy_(other)
    return model


def built(make, theirs):
    """A model whose weights take no memory; None where ``make`` reads them, or
    the plain model has no such."""
    with torch.random.fork_rng(devices=[]), Unfused(True), Exact(True, True):
        try:
            model = make()[0]
        except Exception:  # of the caller's own; it is called once more
            return None
    return None if any(
        each.is_meta and (path not in theirs
                          or theirs[path].shape != each.shape)
        for path, each in tables(model)) else model


def tables(model):
    """Yield (path, tensor): parameters, buffers, and tensors that are plain
    attributes of modules."""
    for path, module in model.named_modules():
        for name, value in (*module._parameters.items(),
                            *module._buffers.items(),
                            *vars(module).items()):
            if isinstance(value, torch.Tensor):
                yield f"{path}.{name}" if path else name, value


def put(model, path, tensor):
    """Let a model have another tensor as a parameter, buffer or attribute."""
    owner, _, name = path.rpartition(".")
    module = model.get_submodule(owner)
    for held in (module._parameters, module._buffers, vars(module)):
        if name in held:
            held[name] = tensor
            return


class Exact(Mode):
    """Computes in float64 what is computed in anything shorter.

    Args:
        large: leave weights as they are asked for: what is long, and made
            empty to be written to.
        meta: these have a shape alone, and no numbers.
    """

    def __init__(self, large=False, meta=False):
        super().__init__()
        self.mode = TorchRecording((), True, None, False, {})
        self.large, self.meta = large, meta

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if self.large and function.overloadpacket in EMPTY:
            made = function(*args, **{**kwargs, "device": "meta"})
            if made.numel() >= LONG:
                return made if self.meta else function(*args, **kwargs)
        if self.large and any(
                each.numel() >= LONG and each.dtype in LONGER
                for each in mutated(function, args, kwargs)):
            return function(*args, **kwargs)
        declared = self.mode.declared(args, kwargs)
        args, kwargs = self.mode.wide(function, args, kwargs, declared)
        made = self.mode.done(function, args, kwargs, declared)
        return tree_map(widened, made)
