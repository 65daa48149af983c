"""Calls seen by wrapping ``__call__`` of classes, where each has its own."""

import functools

from parity.tracing.wrapping import wrapped


def is_called(kind):
    """Whether a class has a ``__call__``; a mere container has none."""
    return any("__call__" in vars(base) for base in kind.__mro__)


def calls_seen(modules, recorder):
    """Pass the calls of modules to a Recorder.

    A class that calls its base's ``__call__`` is recorded once, as itself.
    """
    def seen(kind, call, module, /, *args, **keywords):
        if type(module) is not kind:
            return call(*args, **keywords)
        return recorder.call(module, call, args, keywords)
    # Bases last, so that what a class inherits is still the original.
    kinds = sorted({type(module) for module in modules
                    if is_called(type(module))},
                   key=lambda kind: -len(kind.__mro__))
    return wrapped({(kind, "__call__"): functools.partial(seen, kind)
                    for kind in kinds})
