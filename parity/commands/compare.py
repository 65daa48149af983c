"""The commands ``parity dump`` and ``parity compare``."""

import functools
import importlib.util
import os
import pathlib
import shlex
import time
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError, plural, one_of, visible
from parity_io.files import check_writable, write_json
from parity.commands.options import Json
from parity.commands.scripts import call_script, named, running
from parity.commands.shell import told_plainly
from parity.commands.training import compare_trainings
from parity.inputs.raw import kept
from parity.numerics.dtypes import DTYPES

FRAMEWORKS = {"torch": "torch", "keras": "keras", "jax": "flax.nnx",
              "mlx": "mlx.nn"}

File = Optional[pathlib.Path]


def dump(
    target: Annotated[str, typer.Argument(
        metavar="SCRIPT.py:FUNCTION", help="A function without parameters "
        "that returns (model, inputs) or (model, inputs, keywords).")],
    out: Annotated[pathlib.Path, typer.Option(
        metavar="DIR", help="The folder to make.")],
    framework: Annotated[Optional[str], typer.Option(
        help="torch, keras or jax.  [default: the model's]")] = None,
    operations: Annotated[bool, typer.Option(
        "--operations", help="Store each operation as well, of a run with "
        "nothing shorter than float64 inside.")] = False,
):
    """Run a model once and store what every sub-module saw and made."""
    from parity.causes.deciding import Side
    from parity.operations import stored
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
        made = model, inputs, keywords = call_script(target)
        actual = framework_of(model)
        if framework not in (None, actual):
            raise InputError(
                f"{target} returned a model of {actual}, not of {framework}; "
                f"write --framework {actual}.")
        with running(target):
            recording = trace(model, *inputs, **keywords)
            side = Side(*made, functools.partial(call_script, target))
            also = stored.files_of(side.runner(), sum(
                array.size for array in recording.parameters.values())
            ) if operations else {}
        recording.raw = kept(made.raw, recording.inputs)
        folder.dump(recording, out, also)
        print(f"made {out}: {plural(len(recording.steps), 'step')}, "
              f"{plural(len(recording.parameters), 'parameter')}, "
              f"{recording.dtype}")
        for note in recording.notes:
            print(visible(f"note: {note}"))


def is_script(path):
    """Whether a path is a script, with the name of a function or without."""
    return ".py:" in path.name and not path.exists() or (
        path.suffix == ".py" and not path.is_dir())


def traced_both(a, b):
    """What ``traced`` gives of each; a file of an exported model is run on the
    other's inputs."""
    from parity.exported.opening import is_file
    files = [is_file(path) for path in (a, b)]
    if all(files):
        raise InputError(
            "a and b are both files of models, which have no inputs; give one "
            "as SCRIPT.py:FUNCTION.")
    if not files[0]:
        first = traced(a)
        return first, traced(b, first[1])
    second = traced(b)
    return traced(a, second[1]), second


def traced(path, other=None):
    """The Trace in a dump, or of what a script's function returns; and the
    Side that can be run again, None of a dump.

    Args:
        other: the Side of which a file of a model has its inputs, or None.
    """
    from parity.exported import opening
    if opening.is_file(path):
        if other is None:
            raise InputError(
                f"{str(path)!r} is run on the other model's inputs, and that "
                "one is a dump; give it as SCRIPT.py:FUNCTION.")
        foreign = opening.read(path, other.inputs, other.keywords)
        return foreign.trace(), foreign.side
    if not is_script(path):
        from parity.dumps.read import load
        from parity.operations.stored import side_of
        return load(path), side_of(path)
    from parity.causes.deciding import Side
    from parity.tracing.trace import trace_alone
    made = call_script(path)
    with running(str(path)):
        model, inputs, keywords = made
        if foreign := opening.opened(model, inputs, keywords):
            return foreign.trace(), foreign.side
        recording = trace_alone(model, *inputs, **keywords)
    recording.raw = kept(made.raw, recording.inputs)
    return recording, Side(*made, functools.partial(call_script, path))


def compare(
    a: Annotated[pathlib.Path, typer.Argument(
        metavar="A", help="The truth: a dump, or SCRIPT.py:FUNCTION.")],
    b: Annotated[File, typer.Argument(
        metavar="B", help="What is held against it: likewise, or a file of "
        "an exported model: .onnx, .pt2, .tflite, .xml.")] = None,
    map_file: Annotated[File, typer.Option(
        "--map", metavar="FILE", help="What is what, as TOML.  [default: "
        "found by values, names, order and shapes]")] = None,
    write_map: Annotated[File, typer.Option(
        metavar="FILE", help="Write what is what to FILE, to correct it."
    )] = None,
    dtype: Annotated[Optional[str], typer.Option(
        help="What b must have been computed in, where a is in higher "
        f"precision: {', '.join(DTYPES)}.")] = None,
    layers: Annotated[Optional[str], typer.Option(
        metavar="START:STOP", help="Compare these layers of a alone, counted "
        "from 0 as they run: 0:4, then 4:8, and so on to the end.")] = None,
    steps: Annotated[bool, typer.Option(
        "--steps", help="Show every pair of steps above the answer.")] = False,
    everything: Annotated[bool, typer.Option(
        "--all", help="The same, with matching inputs, parameters and "
        "gradients.")] = False,
    exact: Annotated[bool, typer.Option(
        "--exact", help="Compare with nothing shorter than float64 inside, "
        "also where the outputs agree as they are: both are scripts.")] = False,
    train: Annotated[Optional[int], typer.Option(
        "--train", metavar="N", help="Train both for N steps, and compare "
        "loss, gradients, optimiser and weights of each: both are scripts "
        "that return a parity.Training.")] = None,
    evidence: Annotated[File, typer.Option(
        metavar="DIR", help="Write a page and JSON for a pull request to DIR."
    )] = None,
    html: Annotated[File, typer.Option(
        metavar="FILE", help="Write a page to FILE.")] = None,
    json_file: Json = None,
):
    """Compare two models: name the first step at which they diverge, and why.

    Exit status: 0 match, also but for float32 inside, 1 divergence, 2 usage or
    unreadable input, 4 nothing, or not the models' outputs, was compared.
    """
    from parity.causes.deciding import decide
    from parity.comparison.belonging import check_comparable
    from parity.comparison.compare import compare as compared
    from parity.dumps.printed import alike
    from parity.causes.foreign import finish
    from parity.exported.model import NotInstalled
    from parity.matching import mapping_file
    from parity.matching.crossed import uncrossed
    from parity.matching.steps import suggest
    from parity.render import terminal
    from parity.render import comparison as screens
    with told_plainly():
        if b is None:
            if is_script(a):
                named(a)
            raise InputError(
                f"two models are compared, and {str(a)!r} is one; name the "
                "other behind it.")
        if dtype is not None:
            one_of(dtype, DTYPES, "dtype")
        check_writable(write_map, html, json_file, read=(
            map_file, *(str(path).partition(".py:")[0] + ".py"
                        if is_script(path) else path for path in (a, b))))
        if train is not None:
            for path in (a, b):
                if not is_script(path):
                    raise InputError(
                        f"--train trains models, and {str(path)!r} is no "
                        "SCRIPT.py:FUNCTION; give one that returns a "
                        "parity.Training.")
            compare_trainings(a, b, train, exact, html, json_file, {
                "--map": map_file, "--write-map": write_map, "--dtype": dtype,
                "--layers": layers, "--evidence": evidence})
        folder = None
        if evidence:
            from parity.render import evidence as evidence_page
            folder = evidence_page.made(evidence)
        if os.path.realpath(a) == os.path.realpath(b) and not is_script(a):
            raise InputError(
                f"a and b are one folder, {str(a)!r}, and a comparison of a "
                "run with itself says nothing; give two different ones.")
        began = time.perf_counter()
        try:
            (first, one), (second, two) = traced_both(a, b)
        except NotInstalled as reason:
            print(f"verdict: not compared: {reason}.")
            raise typer.Exit(4) from None
        first, second = alike(first, second)
        if exact and None in (one, two):
            raise InputError(
                "--exact runs the models, and a dump without operations is "
                "none; give both as SCRIPT.py:FUNCTION, or dumps that were "
                "made with --operations.")
        check_comparable(first, second, dtype)
        names = (mapping_file.read(map_file, first, second) if map_file
                 else suggest(first, second))
        comparison = compared(first, second, names, dtype=dtype, layers=layers)
        if not (map_file or one or two) and comparison.first is not None and (
                other := uncrossed(names, first, second, comparison.first.a)):
            names = other
            comparison = compared(first, second, names, dtype=dtype,
                                  layers=layers)
        if write_map:
            mapping_file.write(names, write_map)
        with running(str(b)):
            decide(comparison, first, second, one, two, exact)
            finish(comparison, one, two)
        comparison.seconds = time.perf_counter() - began
        screens.print_comparison(terminal.console(), comparison,
                                 steps or everything, everything)
        if folder:
            from parity.comparison.evidence import evidence as facts
            command = ["parity", "compare", str(a), str(b)]
            for name, value in (("--map", map_file), ("--dtype", dtype),
                                ("--layers", layers)):
                command += [name, str(value)] if value else []
            evidence_page.write(facts(
                comparison, first, second, shlex.join(command)), folder)
        if html:
            from parity.render import comparison_page
            comparison_page.write_html(comparison, html)
        if json_file:
            write_json(json_file, comparison.as_json())
        raise typer.Exit(comparison.status)
