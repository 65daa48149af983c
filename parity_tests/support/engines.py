"""The engines that can run here, and ways to bend them."""

import contextlib
import importlib
import inspect
import pathlib
import textwrap
import types
from unittest import mock

import pytest

from parity import ports
from parity.ports import NotChecked


def usable(name, form="readable"):
    """An engine with its precision set; skips where it cannot run."""
    engine = ports.engine(name, form)
    if isinstance(engine, NotChecked):
        pytest.skip(f"not checked: {engine.reason}")
    engine.set_precision()
    return engine


@contextlib.contextmanager
def uncompiled(engine):
    """Train without TensorFlow's compiler, which would take most of the time.

    The numbers are the compiled ones' to rounding; whole runs are compared
    compiled.
    """
    if engine.NAME == "keras" and "tensorflow" in engine.versions():
        import tensorflow as tf
        tf.config.run_functions_eagerly(True)
        try:
            yield
        finally:
            tf.config.run_functions_eagerly(False)
    else:
        yield


def patched(port, file, name, make):
    """Replace ``impl_<port>.<file>.<name>`` by ``make(old)``."""
    module = importlib.import_module(f"impl_{port}.{file}")
    target, _, attribute = name.rpartition(".")
    owner = getattr(module, target) if target else module
    return mock.patch.object(
        owner, attribute, make(getattr(owner, attribute)))


def rewritten(port, file, name, old, new):
    """Replace a piece of the source of ``impl_<port>.<file>.<name>``.

    It stands there once, in a function that does not call ``super()``.
    """
    def make(function):
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(old) == 1, (port, file, old)
        made = {}
        exec(source.replace(old, new), function.__globals__, made)
        return made[function.__name__]
    return patched(port, file, name, make)


def searching(engine, old, new):
    """The engine's searches, with one piece of their file replaced."""
    original = importlib.import_module(f"{engine.__package__}.search")
    path = pathlib.Path(original.__file__)
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    module = types.ModuleType(original.__name__)
    exec(compile(text.replace(old, new), str(path), "exec"), module.__dict__)
    return mock.patch.multiple(
        original, Greedy=module.Greedy, Beam=module.Beam)
