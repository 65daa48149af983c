"""Objects that hold arrays in their attributes, such as a cache of keys."""

from collections.abc import Mapping

#: What is said of such an object, before its class.
OPENED = "opened: "

#: How deep attributes are looked into.
DEEPEST = 5


def held(value, name, is_array, every=False):
    """The arrays that an object's attributes hold: {NAME.path: array}.

    Lists, tuples, dicts and objects are looked into, what can be called is
    not: a model holds arrays of another kind.

    Args:
        value: any object.
        name: what it is called.
        is_array: says whether a value is an array.
        every: whether objects of any package are looked into, and private
            attributes; else public ones, of objects of the value's package.
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
        elif every or _package(value) == package:
            parts = ((key, part) for key, part in attributes(value).items()
                     if every or not key.startswith("_"))
        else:
            return
        for key, part in parts:
            look(part, f"{name}.{key}", depth + 1)
    look(value, name, 0)
    return found


def attributes(value):
    """{name: value} of an object's own attributes, those of slots as well."""
    if isinstance(value, type):
        return {}
    slots = [name for kind in type(value).__mro__ for name in (
        lambda names: (names,) if isinstance(names, str) else names)(
            vars(kind).get("__slots__", ()))]
    return {name: getattr(value, name) for name in slots
            if name not in ("__dict__", "__weakref__")
            and hasattr(value, name)} | getattr(value, "__dict__", {})


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
