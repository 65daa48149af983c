"""The scripts of users that make a model: SCRIPT.py:FUNCTION."""

import ast
import contextlib
import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import traceback
from collections.abc import Mapping

import typer

from parity_io.errors import InputError
from parity import out_of_memory, ports, quiet
from parity.inputs.raw import checked

#: Where this program lies.
OURS = pathlib.Path(__file__).resolve().parent.parent

#: What a script is imported as.
NAME = "traced_script"

#: What C++ libraries tell of themselves as they are loaded, and no setting
#: leaves out: absl's lines of information and warning.
CHATTER = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog|"
    rb"[IW]\d{4} \d\d:\d\d:\S+ +\d+ \S+\.cc:\d+\]|"
    rb"To enable the following instructions: ")


def call_script(target):
    """Call FUNCTION of SCRIPT.py.

    Args:
        target: ``SCRIPT.py:FUNCTION``.

    Returns:
        A Called: the model, its inputs as a tuple, and keywords as a dict.

    Raises:
        InputError: there is no such script or function, it fails, or it
            returns something else.
    """
    result = script_result(target)
    path, _, name = str(target).rpartition(":")
    if not isinstance(result, tuple) or len(result) not in (2, 3, 4):
        raise InputError(
            f"{name} of {path!r} must return (model, inputs) or (model, "
            f"inputs, keywords); it returned a {type(result).__name__}.")
    model, inputs, keywords, before = (*result, {}, {})[:4]
    if not isinstance(inputs, (tuple, list)):
        inputs = (inputs,)
    if not isinstance(keywords, Mapping):
        raise InputError(
            f"the keywords that {name} of {path!r} returned must be a "
            f"dict; they are a {type(keywords).__name__}.")
    if not all(isinstance(key, str) for key in keywords):
        raise InputError(
            f"{name} of {path!r} returned keywords that are no texts; "
            "name each argument as the model does.")
    return Called((model, tuple(inputs), dict(keywords)), checked(
        before, f"{name} of {path!r}"))


class Called(tuple):
    """The model, inputs and keywords that a function returned.

    Attributes:
        raw: what the inputs were made of, as parity.inputs.raw has it.
    """

    def __new__(cls, parts, raw):
        return super().__new__(cls, parts)

    def __init__(self, parts, raw):
        self.raw = raw


def named(target):
    """The path and the function's name in ``SCRIPT.py:FUNCTION``.

    Raises:
        InputError: there is no such script, or it names no function.
    """
    path, colon, name = str(target).rpartition(":")
    path = pathlib.Path(path if colon else name)
    if not path.is_file():
        raise InputError(f"there is no script {str(path)!r}; check the path.")
    if not colon or not name:
        raise InputError(
            f"{str(target)!r} names no function; write SCRIPT.py:FUNCTION, "
            f"such as {path}:{(functions_in(path) or ['make'])[0]}"
            f"{in_words(path)}.")
    return path, name


def script_result(target):
    """What FUNCTION of SCRIPT.py returns, whatever it is.

    Args:
        target: ``SCRIPT.py:FUNCTION``; the script is run anew each time.

    Raises:
        InputError: there is no such script or function, or it fails.
    """
    path, name = named(target)
    specification = importlib.util.spec_from_file_location(
        NAME, path)
    if specification is None:
        raise InputError(
            f"{str(path)!r} is no Python script; give a file that ends in "
            ".py.")
    module = importlib.util.module_from_spec(specification)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # errors only
    folder = os.path.dirname(os.path.realpath(path))
    before = ports.imported()
    sys.modules[NAME] = module
    sys.path.insert(0, folder)
    try:
        try:
            with without_chatter(), not_ended():
                specification.loader.exec_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(failed(f"{str(path)!r} cannot be imported",
                                    path, error)) from None
        if ports.imported() != before:
            quiet.settled()
        function = getattr(module, name, None)
        if not callable(function):
            raise InputError(f"{str(path)!r} has no function {name!r}; check "
                             f"its name{in_words(path)}.")
        try:
            with not_ended():
                return function()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(failed(f"{name} of {str(path)!r} failed", path,
                                    error)) from None
    finally:
        sys.path.remove(folder)


def functions_in(path):
    """The names of a script's functions that need no arguments, in order."""
    try:
        body = ast.parse(pathlib.Path(path).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in body
            if isinstance(node, ast.FunctionDef)
            and not node.name.startswith("_")
            and len(node.args.posonlyargs + node.args.args) <= len(
                node.args.defaults)]


def in_words(path):
    """In brackets which functions a script has that make something."""
    there = ", ".join(functions_in(path))
    return f" (it has {there or 'none that takes no arguments'})"


@contextlib.contextmanager
def without_chatter():
    """Write what goes to the error stream afterwards, but for CHATTER.

    Where no temporary folder has room, all is written at once.
    """
    sys.stderr.flush()
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
        except OSError:
            yield
            return
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            for line in file:
                if not CHATTER.match(line):
                    os.write(2, line)


@contextlib.contextmanager
def not_ended():
    """Let no code of a user's end this process by ``os._exit``.

    Its status would be taken for a verdict. Children may end as they like.
    """
    own, before = os.getpid(), os._exit

    def refused(status):
        if os.getpid() != own:
            before(status)
        raise InputError(
            f"the script calls os._exit({status}), which would end this "
            "command with its status; let it return.")

    os._exit = refused
    try:
        yield
    finally:
        os._exit = before


def failed(what, path, error):
    """One sentence on an exception, with the script's line."""
    at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
          if os.path.realpath(frame.filename) == os.path.realpath(path)]
    where = f" at line {at[-1]}" if at else ""
    text = " ".join(str(error).split())[:300].rstrip(".")
    return f"{what}{where} ({type(error).__name__}: {text}); mend it."


def function_of(name):
    """Another function of the script that was called last.

    Raises:
        InputError: it has no such function.
    """
    function = getattr(sys.modules[NAME], name, None)
    if not callable(function):
        raise InputError(
            f"the script has no function {name!r}; check its name.")
    return function


@contextlib.contextmanager
def running(target):
    """Say in one sentence that the model of a script failed.

    What fails in this program itself, but for the calls that it traces, is no
    mistake of the model's.
    """
    try:
        with not_ended():
            yield
    except (InputError, MemoryError, KeyboardInterrupt, typer.Exit):
        raise
    except BaseException as error:
        if out_of_memory.message(error):
            raise
        last = pathlib.Path(traceback.extract_tb(
            error.__traceback__)[-1].filename)
        if OURS in last.parents and OURS / "tracing" not in last.parents:
            raise
        raise InputError(failed(
            f"the model of {target} failed",
            pathlib.Path(target.rpartition(":")[0]), error)) from None
