"""Which ports there are, and which can be used here.

A port is a folder ``impl_<name>`` with an ``engine``; it is imported by name
and only when asked for, so that nothing here needs a framework.
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

#: What is meant to be read, and what is made for speed, as a port's folder
#: has them.
FORMS = {"readable": "", "fast": "fast."}


def known_ports():
    """The names of the ``impl_*`` folders beside this one, in fixed order."""
    root = pathlib.Path(__file__).resolve().parent.parent
    found = {path.parent.name.removeprefix("impl_")
             for path in root.glob("impl_*/engine.py")}
    first = [name for name in NEEDS if name in found]
    return (*first, *sorted(found - set(first)))


def package(name):
    """The folder of a port, or of the reference, as Python imports it."""
    return "reference_numpy" if name == "numpy" else f"impl_{name}"


@dataclasses.dataclass(frozen=True)
class NotChecked:
    """A port that could not be compared, and why."""

    port: str
    reason: str


def missing(name):
    """The first distribution that a port needs and that is not here."""
    for need in NEEDS.get(name, ()):
        if need == "tensorflow" and _keras_backend() != "tensorflow":
            continue
        if importlib.util.find_spec(need) is None:
            return need
    return None


def _keras_backend():
    return os.environ.get("KERAS_BACKEND", "tensorflow")


@functools.cache
def engine(name, form="readable"):
    """The engine of a port, or NotChecked if its framework is not installed.

    ``numpy`` is the reference. A framework that is installed and cannot be
    imported is a NotChecked too, with the import's own words.

    Args:
        name: the port's.
        form: one of FORMS.
    """
    one_of(form, FORMS, "form")
    if name != "numpy":
        one_of(name, known_ports(), "port")
    if need := missing(name):
        return NotChecked(name, f"{need} is not installed")
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
    found = engine(name, form)
    if isinstance(found, NotChecked):
        raise InputError(
            f"{name} cannot run here: {found.reason}; install it or choose "
            "another port.")
    found.set_precision()
    if device not in found.devices():
        raise InputError(
            f"{name} has no device {device} here; choose one of "
            f"{', '.join(found.devices())}.")
    return found


def require(names):
    """Which of these ports cannot run here, as a list of NotChecked."""
    found = [engine(one_of(name, known_ports(), "port")) for name in names]
    return [port for port in found if isinstance(port, NotChecked)]


def split_words(values, allowed, what):
    """Words given as ``a b``, ``a,b`` or repeated; ``all`` means every one.

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
