"""The engines that can run here, and ways to bend them."""

import contextlib
import importlib
import pathlib
import sys
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


@contextlib.contextmanager
def searching(engine, old, new):
    """The engine's searches, with one piece of their files replaced."""
    names = [f"{engine.__package__}.{file}"
             for file in ("search", "sample", "dialects.search")]
    paths = [pathlib.Path(importlib.import_module(name).__file__)
             for name in names]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert sum(text.count(old) for text in texts) == 1, (engine.NAME, old)
    with mock.patch.dict(sys.modules):
        for name, path, text in zip(names, paths, texts):
            sys.modules[name] = module = types.ModuleType(name)
            exec(compile(text.replace(old, new), str(path), "exec"),
                 module.__dict__)
        yield

