"""A fault in one place of a model: in one layer, or in one attention.

The reference is built twice, without the fault and with it, and the part at the
place is taken from the second model. While that part computes, and only then,
the fault is in the code as well.
"""

import contextlib
import dataclasses
import fnmatch
from unittest import mock

from parity.causes.cause import Cause
from parity.causes.faults.putting import CALLS, module_of

#: What stands for every layer of a stack.
EVERY = "*"


@dataclasses.dataclass(frozen=True)
class PlacedCause:
    """A Cause in one place alone; it is put as a Cause is.

    Attributes:
        place: a path in the model; EVERY stands for the number of a layer.
    """

    cause: Cause
    place: str

    @property
    def name(self):
        """The cause and its place."""
        return f"{self.cause.name} ({in_words(self.place)} only)"

    @contextlib.contextmanager
    def put(self, port):
        """Let a port, or the reference, have it while a block runs."""
        engine, inject = module_of(port, "engine"), self.cause.put
        build = engine.build
        assert inject is not None

        def made(component, *arguments, **keywords):
            model = build(component, *arguments, **keywords)
            if component != "transformer":
                return model
            with (mock.patch.object(engine, "build", build),
                  inject(port)):
                other = engine.build(component, *arguments, **keywords)
            modules = module_of(port, "parameters").modules
            faulty = dict(modules(other))
            for path, _ in list(modules(model)):
                if fnmatch.fnmatchcase(path, self.place):
                    put_part(model, path, faulty[path])
                    keep_wrong(faulty[path], port, self.cause.put)
            return model

        with mock.patch.object(engine, "build", made):
            yield


def put_part(model, path, part):
    """Put a part into a model at a path."""
    *parents, last = path.split(".")
    owner = model
    for name in parents:
        owner = owner[int(name)] if name.isdigit() else getattr(owner, name)
    if last.isdigit():
        owner[int(last)] = part
    else:
        setattr(owner, last, part)


def keep_wrong(part, port, put):
    """Put a fault into a port whenever a part of a model is called."""
    kind = type(part)

    def method(name):
        def called(self, *arguments, **keywords):
            with put(port):
                return getattr(kind, name)(self, *arguments, **keywords)
        return called

    names = CALLS.get(port, "__call__"), "before", "after"
    part.__class__ = type(kind.__name__, (kind,), {
        "__module__": kind.__module__,
        **{name: method(name) for name in names if hasattr(kind, name)}})


def places_of(step):
    """The places that a step is in, widest first, but for the model itself."""
    *parts, _ = step.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if parts[end - 1] == "layers":
            continue
        if end > 3 and parts[1] == "layers":
            yield ".".join((*parts[:2], EVERY, *parts[3:end]))
        yield path


def in_words(place):
    """A place in words: "cross-attention of decoder layer 2"."""
    stack, *rest = place.split(".")
    words = stack.replace("_", " ")
    if rest[:1] == ["layers"]:
        number = rest[1]
        words += " layers" if number == EVERY else f" layer {int(number) + 1}"
        rest = rest[2:]
    for name in rest:
        name = name.replace("_attention", "-attention").replace("_", " ")
        words = f"{name} of {words}"
    return words
