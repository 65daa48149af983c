"""Models whose modules have a class each: what is below one, and its calls."""

import functools

from parity.tracing.trace import WHOLE
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


def below(model, children):
    """Yield (path, module) of a model and all below it, each once.

    A module has its shortest path.

    Args:
        children: yields (name, module) of what a module itself has.
    """
    queue, seen = [(WHOLE, model)], {id(model)}
    for path, owner in queue:
        yield path, owner
        for name, child in children(owner):
            if id(child) not in seen:
                seen.add(id(child))
                queue.append((name if path == WHOLE else f"{path}.{name}",
                              child))


def opened(name, value, module):
    """Yield (name, value); of a container that is no module what it holds."""
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, dict) and not isinstance(value, module):
        items = value.items()
    else:
        yield name, value
        return
    for key, item in items:
        yield from opened(f"{name}.{key}", item, module)
