"""The ports that exist, and those that can be used here.

A port is a folder ``impl_<name>`` with an ``engine``; it is imported by name
and only when it is needed, so that nothing here needs a framework.
"""

import dataclasses
import functools
import importlib
import importlib.util
import os
import pathlib

from contract.errors import InputError, one_of

#: The distributions without which a port cannot run.
NEEDS = {
    "torch": ("torch",),
    "keras": ("keras", "tensorflow"),
    "jax": ("jax", "flax"),
}

#: The form to read and the one made for speed -> its prefix in a port's folder.
FORMS = {"readable": "", "fast": "fast."}


def known_ports():
    """The names of the ``impl_*`` folders beside this one, in fixed order."""
    root = pathlib.Path(__file__).resolve().parent.parent
    names = {path.parent.name.removeprefix("impl_")
             for path in root.glob("impl_*/engine.py")}
    first = [name for name in NEEDS if name in names]
    return (*first, *sorted(names - set(first)))


def package(name):
    """The folder of a port, or of the reference, as Python imports it."""
    return "reference_numpy" if name == "numpy" else f"impl_{name}"


def folder(name):
    """The folder of a port, or of the reference, as a path."""
    return pathlib.Path(__file__).resolve().parent.parent / package(name)


@dataclasses.dataclass(frozen=True)
class NotChecked:
    """A port that could not be compared, and why."""

    port: str
    reason: str


def missing(name):
    """The first distribution that a port needs and that is not installed."""
    for need in NEEDS.get(name, ()):
        if need == "tensorflow" and _keras_backend() != "tensorflow":
            continue
        if importlib.util.find_spec(need) is None:
            return need
    return None


def absent(name):
    """A NotChecked if a port's framework is not installed, else None."""
    need = missing(name)
    return NotChecked(name, f"{need} is not installed") if need else None


def _keras_backend():
    return os.environ.get("KERAS_BACKEND", "tensorflow")


@functools.cache
def engine(name, form="readable"):
    """The engine of a port, or NotChecked if its framework is not installed.

    ``numpy`` is the reference. A framework that is installed and cannot be
    imported is a NotChecked too, with the message of the import.

    Args:
        name: the port's.
        form: one of FORMS.
    """
    one_of(form, FORMS, "form")
    if name != "numpy":
        one_of(name, known_ports(), "port")
    if port := absent(name):
        return port
    try:
        module = importlib.import_module(
            f"{package(name)}.{FORMS[form]}engine")
    except ImportError as error:
        return NotChecked(name, f"its framework cannot be imported: {error}")
    return module


def ready(name, device="cpu", form="readable"):
    """The engine of a port or of the reference, its precision set.

    Raises:
        InputError: it cannot run here, or has no such device.
    """
    module = engine(name, form)
    if isinstance(module, NotChecked):
        raise InputError(
            f"{name} cannot run here: {module.reason}; install it or choose "
            "another port.")
    module.set_precision()
    if device not in module.devices():
        raise InputError(
            f"{name} has no device {device} here; choose one of "
            f"{', '.join(module.devices())}.")
    return module


def require(names):
    """Which of these ports cannot run here, as a list of NotChecked."""
    engines = [engine(one_of(name, known_ports(), "port")) for name in names]
    return [port for port in engines if isinstance(port, NotChecked)]


def split_words(values, allowed, what):
    """Words separated by spaces or commas, or repeated; ``all`` means all.

    Raises:
        InputError: a word is not among those allowed, or there is none.
    """
    words = [word for value in values
             for word in value.replace(",", " ").split()]
    if not words:
        raise InputError(
            f"no {what} is given; choose from {', '.join(allowed)}.")
    if "all" in words:
        return list(allowed)
    return list(dict.fromkeys(one_of(w, allowed, what) for w in words))
