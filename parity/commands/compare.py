"""The commands ``parity dump`` and ``parity compare``."""

import importlib
import importlib.util
import pathlib
import sys
import traceback
from typing import Annotated, Optional

import typer

from contract.errors import InputError, one_of
from contract.files import check_writable, write_json
from parity.commands.shell import told_plainly
from parity.numerics.dtypes import DTYPES

FRAMEWORKS = {"torch": "torch", "keras": "keras", "jax": "flax.nnx"}

File = Optional[pathlib.Path]


def call_script(target):
    """Call FUNCTION of SCRIPT.py.

    Args:
        target: ``SCRIPT.py:FUNCTION``.

    Returns:
        The model, its inputs as a tuple, and keywords as a dict.

    Raises:
        InputError: there is no such script or function, it fails, or it
            returns something else.
    """
    path, colon, name = str(target).rpartition(":")
    if not colon or not path or not name:
        raise InputError(
            f"{str(target)!r} names no function; write SCRIPT.py:FUNCTION.")
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"there is no script {str(path)!r}; check the path.")
    specification = importlib.util.spec_from_file_location(
        "traced_script", path)
    if specification is None:
        raise InputError(
            f"{str(path)!r} is no Python script; give a file that ends in "
            ".py.")
    module = importlib.util.module_from_spec(specification)
    folder = str(path.resolve().parent)
    sys.modules["traced_script"] = module
    sys.path.insert(0, folder)
    try:
        try:
            specification.loader.exec_module(module)
        except Exception as error:
            raise InputError(_failed(f"{str(path)!r} cannot be imported",
                                     path, error)) from None
        function = getattr(module, name, None)
        if not callable(function):
            raise InputError(
                f"{str(path)!r} has no function {name!r}; check its name.")
        try:
            result = function()
        except Exception as error:
            raise InputError(_failed(f"{name} of {str(path)!r} failed", path,
                                     error)) from None
    finally:
        sys.path.remove(folder)
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise InputError(
            f"{name} of {str(path)!r} must return (model, inputs) or (model, "
            f"inputs, keywords); it returned a {type(result).__name__}.")
    model, inputs, keywords = (*result, {})[:3]
    if not isinstance(inputs, (tuple, list)):
        inputs = (inputs,)
    if not isinstance(keywords, dict):
        raise InputError(
            f"the keywords that {name} of {str(path)!r} returned must be a "
            f"dict; they are a {type(keywords).__name__}.")
    return model, tuple(inputs), keywords


def _failed(what, path, error):
    """One sentence on an exception, with the script's line."""
    at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
          if pathlib.Path(frame.filename).resolve() == path.resolve()]
    where = f" at line {at[-1]}" if at else ""
    text = " ".join(str(error).split())[:300].rstrip(".")
    return f"{what}{where} ({type(error).__name__}: {text}); mend it."


def dump(
    target: Annotated[str, typer.Argument(
        metavar="SCRIPT.py:FUNCTION", help="A function without parameters "
        "that returns (model, inputs) or (model, inputs, keywords).")],
    out: Annotated[pathlib.Path, typer.Option(
        metavar="DIR", help="The folder to make.")],
    framework: Annotated[Optional[str], typer.Option(
        help="torch, keras or jax.  [default: the model's]")] = None,
):
    """Run a model once and store what every sub-module saw and made."""
    from parity.tracing import folder
    from parity.tracing.trace import framework_of, trace
    with told_plainly():
        if framework is not None:
            one_of(framework, FRAMEWORKS, "framework")
            if importlib.util.find_spec(
                    FRAMEWORKS[framework].partition(".")[0]) is None:
                raise InputError(
                    f"the framework {framework} is not installed; install "
                    "it, or name another.")
        folder.check_vacant(out)
        model, inputs, keywords = call_script(target)
        actual = framework_of(model)
        if framework not in (None, actual):
            raise InputError(
                f"{target} returned a model of {actual}, not of {framework}; "
                f"write --framework {actual}.")
        try:
            recording = trace(model, *inputs, **keywords)
        except InputError:
            raise
        except Exception as error:
            raise InputError(_failed(
                f"the model of {target} failed",
                pathlib.Path(target.rpartition(":")[0]), error)) from None
        folder.dump(recording, out)
        print(f"made {out}: {len(recording.steps)} steps, "
              f"{len(recording.parameters)} parameters, {recording.dtype}")
        for note in recording.notes:
            print(f"note: {note}")


def compare(
    a: Annotated[pathlib.Path, typer.Argument(
        metavar="A", help="A dump: the truth.")],
    b: Annotated[pathlib.Path, typer.Argument(
        metavar="B", help="A dump: what is held against it.")],
    map_file: Annotated[File, typer.Option(
        "--map", metavar="FILE", help="What is what, as TOML.  [default: "
        "found by values, names, order and shapes]")] = None,
    write_map: Annotated[File, typer.Option(
        metavar="FILE", help="Write what is what to FILE, to correct it."
    )] = None,
    dtype: Annotated[Optional[str], typer.Option(
        help="What b must have been computed in, where a is in higher "
        f"precision: {', '.join(DTYPES)}.")] = None,
    everything: Annotated[bool, typer.Option(
        "--all", help="Show what matches too.")] = False,
    allow_same: Annotated[bool, typer.Option(
        "--allow-same", help="Compare dumps that are the same bit by bit, "
        "such as one from before and one from after a rewrite.")] = False,
    html: Annotated[File, typer.Option(
        metavar="FILE", help="Write a page to FILE.")] = None,
    json_file: Annotated[File, typer.Option(
        "--json", metavar="FILE", help="Write the report as JSON to FILE."
    )] = None,
):
    """Compare two dumps: name the first step at which they part, and why.

    Exit status: 0 match, 1 divergence, 2 usage or unreadable input, 4 nothing,
    or not the models' outputs, was compared.
    """
    from parity.causes import explain
    from parity.comparison.belonging import check_comparable
    from parity.comparison.compare import compare as compared
    from parity.matching import mapping_file
    from parity.matching.steps import suggest
    from parity.render import terminal
    from parity.render import comparison as pages
    from parity.tracing import folder
    with told_plainly():
        if dtype is not None:
            one_of(dtype, DTYPES, "dtype")
        for path in (write_map, html, json_file):
            check_writable(path)
        if a.resolve() == b.resolve():
            raise InputError(
                f"a and b are one folder, {str(a)!r}, and a comparison of a "
                "run with itself says nothing; give two different ones.")
        first, second = folder.load(a), folder.load(b)
        check_comparable(first, second, dtype, allow_same)
        names = (mapping_file.read(map_file, first, second) if map_file
                 else suggest(first, second))
        if write_map:
            mapping_file.write(names, write_map)
        comparison = compared(first, second, names, dtype=dtype,
                              allow_same=allow_same)
        explain.explain(comparison, first, second)
        pages.print_comparison(terminal.console(), comparison, everything)
        if html:
            pages.write_html(comparison, html)
        if json_file:
            write_json(json_file, comparison.as_json())
        raise typer.Exit(comparison.status)
