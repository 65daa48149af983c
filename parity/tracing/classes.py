"""Calls seen by replacing ``__call__`` of classes, where each has its own."""

import contextlib

#: Class -> its own ``__call__``, while it is replaced.
CALLS: dict = {}


def call_of(module):
    """A module's own call, replaced or not."""
    return CALLS.get(type(module), type(module).__call__).__get__(module)


def is_called(kind):
    """Whether a class has a ``__call__``; a mere container has none."""
    return any("__call__" in vars(base) for base in kind.__mro__)


@contextlib.contextmanager
def calls_seen(modules, recorder):
    """Pass the calls of modules to a Recorder.

    A class that calls its base's ``__call__`` is recorded once, as itself.
    """
    replaced = []

    def replace(kind):
        before = kind.__call__
        inherited = "__call__" not in vars(kind)

        def __call__(self, *args, **keywords):
            if type(self) is not kind:
                return before(self, *args, **keywords)
            return recorder.call(
                self, lambda *a, **k: before(self, *a, **k), args, keywords)
        CALLS[kind] = before
        replaced.append((kind, before, inherited))
        kind.__call__ = __call__

    try:
        # Bases last, so that what a class inherits is still the original.
        kinds = {type(module) for module in modules if is_called(type(module))}
        for kind in sorted(kinds, key=lambda kind: -len(kind.__mro__)):
            replace(kind)
        yield
    finally:
        for kind, before, inherited in reversed(replaced):
            if inherited:
                del kind.__call__
            else:
                kind.__call__ = before
            CALLS.pop(kind, None)
