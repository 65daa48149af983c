"""At which line each module of a model was made."""

import sys

from parity.operations.frames import Frames
from parity.operations.program import Place

#: Packages whose layers are set where they are made.
OWN = ("torch", "flax", "jax", "keras", "keras_hub", "tensorflow")


def construction_lines(make, modules_of, packages):
    """Make a model once more, and see where its modules are made.

    Python's profiling of this thread is used for it, and put back.

    Args:
        make: () -> (model, inputs, keywords).
        modules_of: model -> (path, module) of all that it has.
        packages: whose lines are no user's.

    Returns:
        {path: Place}; without those that only library code makes.
    """
    frames, made = Frames({}, packages), {}

    def seen(frame, event, _):
        code = frame.f_code
        if event != "call" or code.co_name != "__init__" or (
                not code.co_argcount):
            return
        owner = frame.f_locals.get(code.co_varnames[0])
        if id(owner) in made:
            return  # of the same object, by a class that it is made of
        outer = frame.f_back
        while outer is not None and (
                frames.kind(outer.f_code.co_filename) != 0
                or outer.f_code.co_name == "__init__" and outer.f_locals.get(
                    "self") is owner):
            outer = outer.f_back
        if outer is not None:
            made[id(owner)] = owner, Place(
                outer.f_code.co_filename, outer.f_lineno,
                outer.f_code.co_name)
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        model = make()[0]
    finally:
        sys.setprofile(before)
    return {path: made[id(module)][1] for path, module in modules_of(model)
            if id(module) in made}
