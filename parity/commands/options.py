"""Options that several commands have, and a port that is required."""

import json
import pathlib
import sys
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError
from parity import ports
from parity.commands.shell import DIVERGED, MISSING

Words = Optional[list[str]]
Json = Annotated[Optional[pathlib.Path], typer.Option(
    "--json", metavar="FILE", help="Write the report as JSON to FILE.")]
Markdown = Annotated[Optional[pathlib.Path], typer.Option(
    "--markdown", metavar="FILE", help="Write it as a page to FILE.")]
Html = Annotated[Optional[pathlib.Path], typer.Option(
    "--html", metavar="FILE", help="Write a page to FILE.")]
Port = Annotated[Words, typer.Option(
    "--port", metavar="NAME", help="torch, keras, jax or all, by commas.  "
    "[default: all]")]
Answering = Annotated[str, typer.Option(
    "--port", metavar="NAME", help="numpy, torch, keras, jax, or all: then "
    "all four answer and are compared.")]
Require = Annotated[Words, typer.Option(
    "--require", metavar="NAME", help="Ports that must be installed, else "
    "exit 3.")]


#: How Python writes what JSON writes otherwise.
PYTHON = {"True": True, "False": False, "None": None}


def exit_if_missing(names):
    """Exit with 3 unless every one of these ports can run."""
    exit_if_any(ports.require(names))


def exit_if_any(absent):
    """Exit with 3 if there is a NotChecked, of a port that is required.

    With 1 if no framework is missing, and one is too old.
    """
    absent = list(absent)
    for port in absent:
        print(f"parity: {port.port} is required and cannot be checked: "
              f"{port.reason}.", file=sys.stderr)
    if absent:
        raise typer.Exit(unable(absent))


def unable(absent):
    """The exit status of a command that cannot run without some ports.

    Args:
        absent: a NotChecked each.
    """
    old = all(isinstance(port, ports.TooOld) for port in absent)
    return DIVERGED if old else MISSING


def key_values(words):
    """{key: value} of "key=value", each; as JSON or Python write them."""
    described = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise InputError(
                f"{word!r} sets nothing; write KEY=VALUE, such as n_heads=8.")
        try:
            described[key] = PYTHON[value] if value in PYTHON else json.loads(
                value)
        except ValueError:
            described[key] = value
    return described
