"""Objects that hold arrays in their attributes, such as a cache of keys."""

from collections.abc import Mapping

#: What is said of such an object, before its class.
OPENED = "opened: "

#: How deep attributes are looked into.
DEEPEST = 5


def held(value, name, is_array):
    """The arrays that an object's public attributes hold: {NAME.path: array}.

    Lists, tuples, dicts and objects of the same package are looked into, what
    can be called is not: a model holds arrays of another kind.

    Args:
        value: any object.
        name: what it is called.
        is_array: says whether a value is an array.
    """
    found, seen, package = {}, set(), _package(value)

    def look(value, name, depth):
        if is_array(value):
            found[name] = value
            return
        if depth == DEEPEST or id(value) in seen or callable(value):
            return
        seen.add(id(value))
        if isinstance(value, (list, tuple)):
            parts = enumerate(value)
        elif isinstance(value, Mapping):
            parts = value.items()
        elif hasattr(value, "__dict__") and _package(value) == package:
            parts = ((key, part) for key, part in vars(value).items()
                     if not key.startswith("_"))
        else:
            return
        for key, part in parts:
            look(part, f"{name}.{key}", depth + 1)
    look(value, name, 0)
    return found


def _package(value):
    return type(value).__module__.partition(".")[0]


def holders(step):
    """{name: class} of the objects among a step's outputs that were opened."""
    begin = "outputs."
    return {name.removeprefix(begin): text.removeprefix(OPENED)
            for name, text in step.others.items()
            if name.startswith(begin) and text.startswith(OPENED)}


def holder_of(step, name):
    """The opened object that an output is a part of; "" if it is of none."""
    return next((holder for holder in holders(step)
                 if name.startswith(f"{holder}.")), "")
