"""Taps: how values inside a model are recorded without changing it.

``scores = tap(self, "scores", ...)`` is an identity, unless a trace is open.
A trace is open for the thread that opened it. torch.compile reads the place of
a thread and guards on it; it refuses context variables.
"""

import contextlib
import threading


class _OpenTrace(threading.local):
    """What is open in this thread; torch.compile guards on an attribute."""

    def __init__(self):
        self.recorder = None


_open = _OpenTrace()


class Recording:
    """The steps of one run, in the order in which they happened.

    Args:
        paths: id(module) -> its path from the root, "" for the root itself.
        watch: called with the name and value of every step; what it returns
            takes the value's place. Gradients of steps are found with it.
    """

    def __init__(self, paths, watch=None):
        self.paths, self.watch = paths, watch
        self.values = {}

    def record(self, module, name, value):
        """Store a step under ``path.name`` and hand it on."""
        path = self.paths[id(module)]
        name = f"{path}.{name}" if path else name
        if name in self.values:
            raise RuntimeError(f"the step {name} was recorded twice in a run")
        if self.watch:
            value = self.watch(name, value)
        self.values[name] = value
        return value


def tap(module, name, value):
    """Return ``value``; an open trace records it as a step of ``module``."""
    recorder = _open.recorder
    return value if recorder is None else recorder.record(module, name, value)


def is_open():
    """Whether taps of this thread are recorded."""
    return _open.recorder is not None


@contextlib.contextmanager
def recording(recorder):
    """Hand every tap of a ``with`` block to ``recorder.record``.

    It is called with a module, a name and a value, and returns the value. The
    taps of other threads are not handed on.
    """
    before, _open.recorder = _open.recorder, recorder
    try:
        yield recorder
    finally:
        _open.recorder = before


def tracing(paths, watch=None):
    """Open a Recording for the duration of a ``with`` block."""
    return recording(Recording(paths, watch))


def attention_weights(steps):
    """The attention weights of every layer, by name: [B H T S] each."""
    return {name: value for name, value in steps.items()
            if name.endswith("attention.weights")}
