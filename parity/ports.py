"""The ports that exist, and those that can be used here.

A port is a folder ``impl_<name>`` with an ``engine``; it is imported by name
and only when it is needed, so that nothing here needs a framework.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import os
import pathlib
import re
import sys

from parity_io.errors import InputError, not_installed, one_of, visible
from transformer_contract.shipped import PACKAGES
from parity import quiet

#: What a port cannot run without, and the oldest version that it can run on.
NEEDS = {
    "torch": {"torch": "2.6"},
    "keras": {"keras": "3.15", "tensorflow": "2.20"},
    "jax": {"jax": "0.10", "flax": "0.12.8"},
    "mlx": {"mlx": "0.32"},
}

#: The ports that are asked only where they are named. "all", and no name, mean
#: the others, and the site has no column of theirs.
ONLY_NAMED = {"mlx"}

#: How far a port gives way to those that work beside it and take longer: the
#: niceness of its process.
NICENESS = {"torch": 6, "jax": 3}

#: The form to read and the one made for speed -> its prefix in a port's folder.
FORMS = {"readable": "", "fast": "fast."}

#: These, and each framework's own layers, which only answer and learn.
EVERY_FORM = {**FORMS, "native": "native."}

#: The forms that compile the step of every training run: seconds each time;
#: and those to which any model of other sizes is seconds.
COMPILED = {("keras", "fast"), ("jax", "fast")}
SLOW = COMPILED | {("keras", "readable"), ("jax", "readable")}


def known_ports():
    """The names of the ``impl_*`` folders beside this one, in fixed order."""
    names = {path.parent.name.removeprefix("impl_")
             for path in PACKAGES.glob("impl_*/engine.py")}
    first = [name for name in NEEDS if name in names]
    return (*first, *sorted(names - set(first)))


def usual_ports():
    """The known ports that are asked where none is named."""
    return tuple(name for name in known_ports() if name not in ONLY_NAMED)


def package(name):
    """The folder of a port, or of the reference, as Python imports it."""
    return "reference_numpy" if name == "numpy" else f"impl_{name}"


def packages():
    """The packages of the reference and of every port."""
    return [package(name) for name in ("numpy", *known_ports())]


def folder(name):
    """The folder of a port, or of the reference, as a path."""
    return PACKAGES / package(name)


@dataclasses.dataclass(frozen=True)
class NotChecked:
    """A port that could not be compared, and why; on one device, if it says so.
    """

    port: str
    reason: str
    device: str = ""

    @property
    def what(self):
        """What was lacking, in words."""
        return f"{self.port} on {self.device}" if self.device else self.port


class TooOld(NotChecked):
    """A port whose framework is installed and too old: it fails, and so does
    what it was asked for."""


def needs(name):
    """What a port needs here: {module: its oldest version}."""
    return {need: oldest for need, oldest in NEEDS.get(name, {}).items()
            if need != "tensorflow" or backend(name) == "tensorflow"}


def missing(name):
    """What a port needs and is not installed, in words; "" where all is."""
    return not_installed(needs(name))


def absent(name):
    """NotChecked if a framework is not installed, TooOld, or else None."""
    if words := missing(name):
        return NotChecked(name, words)
    for need, oldest in needs(name).items():
        version = installed(need)
        if version and numbers(version) < numbers(oldest):
            return TooOld(
                name, f"{need} {version} is too old; install {oldest} or later")
    return None


def no_step_access(name):
    """NotChecked if what a port runs on shows no single step, or else None."""
    if backend(name) == "openvino":
        return NotChecked(
            name,
            "OpenVINO runs nothing step by step; parity check matrix --backend "
            "openvino compares outputs")
    return None


def installed(need):
    """The version of a module as its distribution has it, or ""."""
    for distribution in (need, f"{need}-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(distribution)
    return ""


def imported():
    """What of NEEDS this process has imported."""
    return {need for needs in NEEDS.values() for need in needs
            if need in sys.modules}


def numbers(version):
    """The first three numbers of a version."""
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def backend(name):
    """What a port's framework runs on, where that is a choice; else ""."""
    return (os.environ.get("KERAS_BACKEND", "tensorflow")
            if name == "keras" else "")


@functools.cache
def engine(name, form="readable"):
    """The engine of a port, or NotChecked if its framework is not installed.

    ``numpy`` is the reference. A framework that is installed and cannot be
    imported is a NotChecked too, with the message, and one that is too old is
    TooOld.

    Args:
        name: the port's.
        form: one of EVERY_FORM.

    Raises:
        Exception: whatever a port's own files raise; its framework is sound.
    """
    one_of(form, EVERY_FORM, "form")
    if name != "numpy":
        one_of(name, known_ports(), "port")
    if port := absent(name):
        return port
    try:
        with quiet.uncollected():
            if name == "keras":
                quiet.start_keras()
            return importlib.import_module(
                f"{package(name)}.{EVERY_FORM[form]}engine")
    except (Exception, SystemExit):
        for need in needs(name):
            try:
                importlib.import_module(need)
            except (Exception, SystemExit) as error:
                return NotChecked(name, visible(
                    f"its framework cannot be imported: {error}"))
            if path := shadowing_module(need):
                return NotChecked(
                    name, f"{path!r} stands in the way of {need}; rename it, "
                    "or run in another folder")
        raise


def shadowing_module(need):
    """The file of a module that is not its distribution's; "" if it is."""
    path = importlib.import_module(need).__file__ or ""
    for distribution in (need, f"{need}-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            folder = str(importlib.metadata.distribution(
                distribution).locate_file(""))
            return "" if pathlib.Path(path).is_relative_to(folder) else path
    return ""


def modes(name):
    """The modes of a port's runs: its ``targets/modes.py``."""
    return importlib.import_module(f"{package(name)}.targets.modes")


def whole(name):
    """What compiles a port's models as a whole: its ``targets/whole.py``."""
    return importlib.import_module(f"{package(name)}.targets.whole")


def meshes(name):
    """What runs a port's models on a mesh: its ``targets/mesh.py``."""
    return importlib.import_module(f"{package(name)}.targets.mesh")


def mixed(name):
    """A port's mixed precision, its ``targets/mixed.py``; None if it has none.
    """
    file = folder(name) / "targets" / "mixed.py"
    return module_of(name, "targets.mixed") if file.is_file() else None


def exporter(name):
    """What writes a port's models as ONNX: its ``targets/onnx.py``."""
    return importlib.import_module(f"{package(name)}.targets.onnx")


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


def unsupported_in_fast(engine, config, what, settings=None):
    """What a fast form leaves to the readable one of some work, as lines.

    Args:
        what: "training" or "generation".
        settings: a GenerationConfig, of generation.
    """
    for words in getattr(engine, "not_fused", lambda *_: ())(config, settings):
        if what in words:
            yield (f"{engine.NAME}: {words} is not in the fast form; the "
                   "readable form computes it.")


def require(names):
    """Which of these ports cannot run here, as a list of NotChecked."""
    unavailable = []
    for name in names:
        try:
            port = engine(one_of(name, known_ports(), "port"))
        except InputError:
            raise
        except Exception as error:  # the port's own
            port = NotChecked(name, f"{type(error).__name__}: {error}")
        if isinstance(port, NotChecked):
            unavailable.append(port)
    return unavailable


def chosen(values, reference=False):
    """The ports that words name; where there are none, the usual ones.

    Args:
        values: as split_words takes them, or None.
        reference: whether "numpy" is one of them.

    Raises:
        InputError: a word is no port, or there is none in values.
    """
    first = ("numpy",) if reference else ()
    return split_words(values or ["all"], (*first, *known_ports()), "port",
                       usual=(*first, *usual_ports()))


def split_words(values, allowed, what, spaces=True, usual=None):
    """Words separated by commas, or repeated; ``all`` means all.

    Args:
        spaces: whether spaces separate words too; an allowed word that has
            some is taken as it stands.
        usual: what ``all`` means, if not all that are allowed.

    Raises:
        InputError: a word is not among those allowed, or there is none.
    """
    pieces = [" ".join(piece.split())
              for value in values for piece in value.split(",")]
    words = [word for piece in filter(None, pieces) for word in (
        piece.split() if spaces and piece not in allowed else [piece])]
    if not words:
        raise InputError(
            f"no {what} is given; choose from {', '.join(allowed)}.")
    if "all" in words and not usual:
        return list(allowed)
    return list(dict.fromkeys(
        name for word in words for name in (
            usual if word == "all" and usual
            else [one_of(word, allowed, what)])))


def module_of(name, file):
    """A module of a port, or of the reference, by its file's name."""
    return importlib.import_module(f"{package(name)}.{file}")
