"""The command ``parity doctor``: what is installed, and what is not checked."""

import concurrent.futures
import contextlib
import importlib.metadata
import multiprocessing
import platform
import signal
import sys

import typer

from transformer_contract import shipped
from parity_io.errors import InputError
from parity import ports
from parity.commands.shell import USAGE, told_plainly
from parity.numerics.dtypes import DTYPES

#: The distribution, as pip knows it.
DISTRIBUTION = "transformer-parity"

#: The versions of Python that are tested, oldest and newest.
OLDEST, NEWEST = (3, 11), (3, 13)


def version():
    """The version of this program."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "of a folder that is not installed"


def doctor():
    """Say what is installed, what is too old, and what is not checked and why.

    Exit status: 0 nothing is wrong, 2 something is.
    """
    with told_plainly():
        wrong = [*_python(), *_frameworks(), *_shipped(), *_clashes()]
        print("nothing is wrong" if not wrong else
              f"wrong: {'; '.join(wrong)}")
        raise typer.Exit(USAGE if wrong else 0)


def _python():
    """Print versions; yield what is wrong with Python."""
    print(f"parity  {version()}")
    own = tuple(map(int, platform.python_version_tuple()[:2]))
    print(f"python  {platform.python_version()}, {platform.platform()}")
    if not OLDEST <= own <= NEWEST:
        yield (f"Python {own[0]}.{own[1]} is not tested; take {OLDEST[0]}."
               f"{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}")


def answer(name):
    """An implementation's versions and devices, or its NotChecked."""
    engine = ports.engine(name)
    return engine if isinstance(engine, ports.NotChecked) else (
        engine.versions(), engine.devices())


def _answers(names):
    """Yield (name, its answer); frameworks are imported side by side, each in
    a process of its own, unless this one has imported them."""
    apart = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            if ports.absent(name) or {*ports.needs(name)} <= {*sys.modules}:
                continue
            apart[name] = stack.enter_context(
                concurrent.futures.ProcessPoolExecutor(
                    1, multiprocessing.get_context("spawn"), signal.signal,
                    (signal.SIGINT, signal.SIG_IGN))).submit(answer, name)
        for name in names:
            try:
                yield name, (apart[name].result() if name in apart
                             else answer(name))
            except concurrent.futures.BrokenExecutor:
                yield name, ports.NotChecked(
                    name, "the process that imports its framework ends")


def _frameworks():
    """Print a line a port; yield what is wrong with those installed."""
    for name, found in _answers(("numpy", *ports.known_ports())):
        if isinstance(found, ports.NotChecked):
            hint = f"; pip install '{DISTRIBUTION}[{name}]'"
            print(f"{name:7} not checked: {found.reason}"
                  + (hint if ports.absent(name) else ""))
            if not ports.missing(name):
                yield f"{name}: {found.reason}"
            continue
        versions, devices = found
        told = ", ".join(f"{package} {number}"
                         for package, number in versions.items())
        print(f"{name:7} {told}; devices: {', '.join(devices)}")
    print(f"dtypes  {', '.join(DTYPES)}")


def _shipped():
    """Print how the shipped files are; yield which of them are not sound."""
    count = sound = 0
    for folder in (shipped.WEIGHTS, shipped.DATA):
        try:
            names = shipped.sums(folder)
        except InputError as error:
            yield str(error)
            continue
        for name in names:
            count += 1
            try:
                shipped.sound(name, folder)
                sound += 1
            except InputError as error:
                yield str(error)
    print(f"files   {sound} of {count} shipped files are sound, "
          f"in {shipped.ROOT}")


def _clashes():
    """Yield which packages of ours another distribution installs as well."""
    installed = importlib.metadata.packages_distributions()
    for name in sorted({"parity_io", "transformer_contract", "parity", *map(
            ports.package, ("numpy", *ports.known_ports()))}):
        others = set(installed.get(name, ())) - {DISTRIBUTION}
        if others:
            yield (f"the package {name} is also installed by "
                   f"{', '.join(sorted(others))}; uninstall that")
