"""The same numbers in the layers of three frameworks.

A model's parameters are walked in the order in which its layers are defined.
Each is turned to one layout: kernels [..., in, out]. So two models that define
the same layers in one order are drawn alike, whatever their names.
"""

import contextlib
import dataclasses
import math
import sys
import typing

import numpy as np

#: What computing is done in now; see ``computing``.
_dtype = "float64"

#: Names of arrays of a layer -> their place in it.
PLACES = {"weight": 0, "kernel": 0, "scale": 0, "gamma": 0, "embedding": 0,
          "embeddings": 0, "bias": 1, "beta": 1, "running_mean": 2, "mean": 2,
          "moving_mean": 2, "running_var": 3, "var": 3, "moving_variance": 3}


@dataclasses.dataclass(frozen=True)
class WeightSlot:
    """One array of a model, in one layout.

    Attributes:
        name: its own name in its layer.
        read: returns it as NumPy's.
        write: takes another of its shape.
    """

    name: str
    read: typing.Callable
    write: typing.Callable


@contextlib.contextmanager
def computing(dtype):
    """Make models in this dtype: "float64", "float32" or "bfloat16"."""
    global _dtype
    before, _dtype = _dtype, dtype
    with contextlib.ExitStack() as stack:
        if torch := sys.modules.get("torch"):
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(getattr(torch, dtype))
        if jax := sys.modules.get("jax"):
            jax.config.update("jax_enable_x64", True)
        if keras := sys.modules.get("keras"):
            stack.callback(keras.config.set_dtype_policy,
                           keras.config.dtype_policy())
            keras.config.set_dtype_policy(dtype)
        try:
            yield
        finally:
            _dtype = before


def current():
    """The dtype in which models are made now, by its name."""
    return _dtype


def kind_of(model):
    """"torch", "keras" or "jax"."""
    for kind in type(model).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("torch", "keras", "flax"):
            return {"flax": "jax"}.get(root, root)
    raise TypeError(f"{type(model).__name__} is no model")


def slots(model):
    """Every WeightSlot of a model, in the order of its layers."""
    walk = {"torch": _torch, "jax": _jax, "keras": _keras}[kind_of(model)]
    return [slot for slot, _ in walk(model, set())]


def _ordered(found):
    """Slots of one layer: weights, bias, mean, variance, then others."""
    return sorted(found, key=lambda each: PLACES.get(each[0].name, 0))


def _torch(module, seen):
    """Slots of a torch.nn.Module."""
    from torch import nn
    if id(module) in seen:
        return
    seen.add(id(module))
    own = [(name, value) for name, value in (
        *module._parameters.items(), *module._buffers.items())
        if value is not None and id(value) not in seen
        and (name in module._parameters or name.startswith("running_"))]
    found = []
    for name, value in own:
        seen.add(id(value))
        axes = None
        if name.startswith("weight") and value.ndim > 1:
            if isinstance(module, nn.modules.conv._ConvTransposeNd):
                axes = (*range(2, value.ndim), 0, 1)
            elif isinstance(module, nn.modules.conv._ConvNd):
                axes = (*range(2, value.ndim), 1, 0)
            elif isinstance(module, (nn.Linear, nn.RNNBase, nn.RNNCellBase)):
                axes = 1, 0
        found.append((_slot_of_torch(name, value, axes), None))
    yield from _ordered(found)
    for child in module._modules.values():
        if child is not None:
            yield from _torch(child, seen)


def _slot_of_torch(name, value, axes):
    import torch
    axes = axes or tuple(range(value.ndim))
    back = [*np.argsort(axes)]

    def read():
        return value.detach().double().numpy().transpose(axes)

    def write(array):
        with torch.no_grad():
            value.copy_(torch.from_numpy(np.array(
                np.asarray(array, np.float64).transpose(back))))
    return WeightSlot(name, read, write)


def _jax(module, seen, name=""):
    """Slots of an nnx.Module, or of a list or dict of them."""
    from flax import nnx
    if id(module) in seen:
        return
    seen.add(id(module))
    if isinstance(module, nnx.Variable):
        if isinstance(module, (nnx.Param, nnx.BatchStat)) and (
                module.get_value() is not None):
            yield _slot_of_jax(name, module), None
        return
    items = (module.items() if isinstance(module, dict)
             else enumerate(module) if isinstance(module, (
                 list, tuple, nnx.List))
             else vars(module).items() if isinstance(module, nnx.Module)
             else ())
    own, below = [], []
    for key, value in items:
        (own if isinstance(value, nnx.Variable) else below).extend(
            _jax(value, seen, str(key)))
    yield from _ordered(own)
    yield from below


def _slot_of_jax(name, variable):
    import jax.numpy as jnp

    def write(array):
        variable.set_value(jnp.asarray(array, _dtype))
    return WeightSlot(name, lambda: np.array(variable.get_value()), write)


def _keras(layer, seen):
    """Slots of a Keras layer that is built."""
    if id(layer) in seen:
        return
    seen.add(id(layer))
    own = []
    for value in (*layer._trainable_variables,
                  *layer._non_trainable_variables):
        if id(value) not in seen and "float" in str(value.dtype):
            seen.add(id(value))
            own.append((WeightSlot(
                value.name, lambda value=value: np.array(value),
                value.assign), None))
    yield from _ordered(own)
    for child in layer._layers:
        yield from _keras(child, seen)


def drawn(model, *inputs, seed=0):
    """Draw a model's numbers; a Keras layer is first built on the inputs."""
    if kind_of(model) == "keras":
        model(*_native(model, inputs))
    elif kind_of(model) == "torch":
        import torch
        model.to(getattr(torch, _dtype)).eval()
    else:
        model.eval()
    generator = np.random.default_rng(seed)
    for slot in slots(model):
        shape, place = slot.read().shape, PLACES.get(slot.name, 0)
        array = generator.normal(size=shape)
        if place == 3:
            array = 0.5 + array ** 2
        elif len(shape) > 1:
            array *= 0.9 / math.sqrt(math.prod(shape[:-1]))
        elif place == 0:
            array = 1 + 0.2 * array
        else:
            array *= 0.2
        slot.write(array)
    return model


def copied(a, b):
    """b with a's numbers; both define the same layers in one order."""
    mine, theirs = slots(a), slots(b)
    assert len(mine) == len(theirs), (len(mine), len(theirs))
    for one, two in zip(mine, theirs):
        two.write(one.read())
    return b


def arrays(layer):
    """The arrays of a layer, in one layout: kernel [..., in, out], bias."""
    return [slot.read() for slot in slots(layer)]


def give(layer, *given):
    """Put arrays into a layer, in the order and layout of ``arrays``."""
    here = slots(layer)
    assert len(here) == len(given), (len(here), len(given))
    for slot, array in zip(here, given):
        slot.write(array)
    return layer


def _native(model, values):
    """NumPy's arrays as those of a model's framework, floats in its dtype."""
    kind = kind_of(model)

    def one(value):
        if isinstance(value, dict):
            return {name: one(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(one(each) for each in value)
        if not isinstance(value, np.ndarray):
            return value
        if kind == "torch":
            import torch
            made = torch.from_numpy(value.copy())
            return made.to(getattr(torch, _dtype)) if (
                made.is_floating_point()) else made
        array = value.astype(_dtype) if value.dtype.kind == "f" else value
        if kind == "jax":
            import jax.numpy as jnp
            return jnp.asarray(array)
        import keras
        return keras.ops.convert_to_tensor(array)
    return one(values)


def call(model, *inputs, **keywords):
    """(model, inputs, keywords), with arrays of its framework."""
    return model, _native(model, tuple(inputs)), _native(model, keywords)


def twins(a, b, *inputs, theirs=None, **keywords):
    """Both drawn alike, and called with the same.

    Args:
        a, b: models that define the same layers in one order.
        inputs, keywords: of both, as NumPy's arrays.
        theirs: b's inputs, where they are in another layout.
    """
    others = inputs if theirs is None else theirs
    return (call(drawn(a, *inputs), *inputs, **keywords),
            call(drawn(b, *others), *others, **keywords))


def both(a, b, *inputs, theirs=None, **keywords):
    """Two models that have their numbers, called with the same."""
    return (call(a, *inputs, **keywords),
            call(b, *(inputs if theirs is None else theirs), **keywords))


def normal(*shape, seed=1):
    """An input of standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape)


def tokens(*shape, vocabulary=20, seed=2):
    """An input of ids from 1 on."""
    return np.random.default_rng(seed).integers(1, vocabulary, shape)
