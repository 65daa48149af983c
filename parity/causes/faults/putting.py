"""How a cause is put into a port, or into the reference, while a block runs.

Most are one change that suits all four, for their files have the same names.
What has to be written as arithmetic is written once, on NumPy arrays, and a
port's own arrays are carried over and back.
"""

import contextlib
import inspect
import sys
import textwrap
from unittest import mock

import numpy as np


def module_of(port, file):
    """A module of a port; the catalogue itself is read where there is none."""
    from parity import ports
    return ports.module_of(port, file)


#: How a framework calls a module's own method.
CALLS = {"numpy": "forward", "torch": "forward", "keras": "call"}


def replaced(file, name, make):
    """Replace FILE's NAME, or CLASS.NAME, by ``make(old, port)``.

    The name "call" is that of the port's own.
    """
    def put(port):
        module = module_of(port, file)
        target, _, attribute = name.rpartition(".")
        if attribute == "call":
            attribute = CALLS.get(port, "__call__")
        owner = getattr(module, target) if target else module
        return mock.patch.object(
            owner, attribute, make(getattr(owner, attribute), port))
    return put


def rewritten(file, name, old, new):
    """Replace a piece of source, the same in all four, in a function."""
    above = f"super({name.partition('.')[0]}, self)"

    def make(function, port):
        source = getattr(function, "rewritten", None) or textwrap.dedent(
            inspect.getsource(function)).replace("super()", above)
        if source.count(old) != 1:
            raise ValueError(f"{port}'s {name} has not one {old!r}")
        namespace = {}
        source = source.replace(old, new)
        exec(source, function.__globals__, namespace)
        made = namespace[function.__name__]
        made.rewritten = source
        return made
    return replaced(file, name, make)


def tabled(file, table, make):
    """Give a port another table of variants: ``make(old, port)`` is added.

    A table may be shared with other ports, so that it is never changed, but
    put in the place of the old one wherever the port holds that. A port whose
    layer asks its base class instead has no table, and needs none.
    """
    @contextlib.contextmanager
    def put(port):
        from parity import ports
        old = getattr(module_of(port, file), table, None)
        if old is None:
            yield
            return
        new = {**old, **make(old, port)}
        prefix = ports.package(port) + "."
        with contextlib.ExitStack() as stack:
            for name, module in list(sys.modules.items()):
                if name.startswith(prefix) and vars(module).get(
                        table) is old:
                    stack.enter_context(
                        mock.patch.object(module, table, new))
            yield
    return put


def worded(file, table, word, other):
    """Let a word of a table of variants mean another one, or a function."""
    return tabled(file, table, lambda old, port: {
        word: old.get(other) or getattr(module_of(port, file), other)})


def configured(**fields):
    """Build a port's modules of a config with other fields."""
    return made_with(
        lambda config, weights: (config.replace(**fields), weights))


def all_of(*puts):
    """Several changes at once."""
    @contextlib.contextmanager
    def put(port):
        with contextlib.ExitStack() as stack:
            for one in puts:
                stack.enter_context(one(port))
            yield
    return put


def made_with(change):
    """Change config and weights on their way into the port."""
    def make(old, port):
        def build(component, config, weights, *args, **keywords):
            return old(component, *change(config, dict(weights)), *args,
                       **keywords)
        return build
    return replaced("engine", "build", make)


def named_by(is_chosen, change):
    """Change each array whose name is chosen by ``change(array, config)``."""
    return weights_by(lambda name, array, config: (
        change(array, config) if is_chosen(name) else None))


def weights_by(change):
    """Change each array by ``change(name, array, config)``; None keeps it."""
    def all_arrays(config, weights):
        arrays = {}
        for name, array in weights.items():
            new = change(name, array, config)
            arrays[name] = array if new is None else np.ascontiguousarray(new)
        return config, arrays
    return made_with(all_arrays)


def after_init(file, cls, change):
    """Run ``change(self)`` after a class's ``__init__``."""
    def make(old, port):
        def made(self, *args, **keywords):
            old(self, *args, **keywords)
            change(self)
        return made
    return replaced(file, f"{cls}.__init__", make)


def numpy_of(port, value):
    """A port's array, or what holds one, as NumPy's."""
    get = getattr(value, "get_value", None)
    value = get() if get else value
    return value if port == "numpy" else module_of(
        port, "engine").to_numpy(value)


def native_of(port, array):
    """NumPy's array as a port's."""
    if port == "numpy":
        return array
    to_native = module_of(port, "engine").to_native
    if np.ndim(array) == 0:
        return to_native(np.reshape(array, 1), "cpu")[0]
    return to_native(array, "cpu")


def by_numpy(function):
    """What replaces a function of arrays by one that NumPy computes."""
    def make(old, port):
        def made(*values):
            return native_of(port, np.asarray(
                function(*(numpy_of(port, v) for v in values))))
        return made
    return make


def tapped(port, owner, steps):
    """What a module returns that computed these {step: array}, the last one
    being its output."""
    if port == "numpy":
        return list(steps.values())[-1], steps
    from transformer_contract.trace import tap
    for name, value in steps.items():
        output = tap(owner, name, native_of(port, value))
    return output
