"""The command ``parity read``: four columns, one Transformer, as pages."""

import contextlib
import importlib
import pathlib
import sys
import time
import types
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError
from parity import compiled, ports
from parity.commands.shell import told_plainly

#: Where the site goes if nothing else is said.
FOLDER = pathlib.Path("reading")

#: Where the server listens.
TCP_PORT = 8750


def read(
    out: Annotated[pathlib.Path, typer.Option(
        metavar="DIR", help="The folder of the pages; made if need be, and "
        "written anew.")] = FOLDER,
    port: Annotated[Optional[list[str]], typer.Option(
        "--port", metavar="NAME", help="torch, keras, jax or all; repeat it "
        "or separate names by commas.  [default: all]")] = None,
    serve: Annotated[bool, typer.Option(
        "--serve", help="Serve the pages to this machine alone, at once, and "
        "let the reader's own text be read.")] = False,
    browser: Annotated[bool, typer.Option(
        help="Do not open the browser, as --serve does where a person sits "
        "at the terminal.")] = True,
    tcp_port: Annotated[int, typer.Option(
        "--tcp-port", metavar="N", min=0, max=65535, help="Where --serve "
        "listens on 127.0.0.1; 0 for any that is free.")] = TCP_PORT,
    rebuild: Annotated[bool, typer.Option(
        "--rebuild", help="Make the pages anew, where there are ready ones; "
        "so does --port without --serve.")] = False,
):
    """Write pages on which the four stand side by side, with real numbers."""
    with told_plainly():
        if not (port or serve or rebuild) and _opened(out):
            print(f"open {out}/index.html")
            return
        names = ports.chosen(port)
        here = [name for name in ports.known_ports()
                if name in names and not ports.absent(name)]
        if serve:
            _serve(out, names, here, tcp_port, rebuild,
                   browser and sys.stdout.isatty())
            return
        modules = _modules("pages", "prebuild", "result_cache", "threads",
                           "values")
        from parity.render import terminal
        modules.pages.refuse(out)
        start = time.perf_counter()
        print(f"Making {len(modules.pages.addresses())} pages in {out}, which "
              "takes some minutes where they are new.", flush=True)
        run = modules.values.Values, tuple(names)
        with (terminal.telling() as tell, modules.threads.one_thread(),
              compiled.once("parity-read-"),
              modules.prebuild.running(
                  here, first=[run],
                  folder=modules.result_cache.folder()) as call):
            tell("models run, forward and backward")
            values = call(*run)
            values.complete(call)
            sizes = modules.pages.Site(values, call=call).write(out, tell)
        for column, reason in values.not_checked.items():
            print(f"not checked: {column}, {reason}", file=sys.stderr)
        print(f"wrote {len(sizes)} pages to {out} in "
              f"{time.perf_counter() - start:.0f} s; open {out}/index.html")


def _serve(out, names, here, tcp_port, rebuild, browser):
    """Serve what is there at once; make meanwhile what is not there."""
    modules = _modules("ready", "rebuild", "serving", "threads")

    def answers():
        behind = _modules("asking", "live")
        return behind.asking.TextAnswers(behind.live.Loading(names))

    modules.ready.refuse(out)
    modules.serving.refuse(tcp_port)
    with contextlib.ExitStack() as stack:
        stack.enter_context(modules.threads.one_thread())
        stack.enter_context(compiled.once("parity-read-"))
        reading = modules.serving.Reading(out, answers)
        mark = modules.ready.there(out)
        if mark and not rebuild and not modules.ready.fit(mark):
            print(f"The pages in {out} are of other code than is here; "
                  "--rebuild makes them anew.")
        if rebuild or not (mark or _opened(out)):
            stack.enter_context(modules.rebuild.making(reading, here))
        modules.serving.serve(reading, tcp_port, browser)


def _opened(out):
    """Whether there are ready pages that fit; they are in ``out`` then."""
    from parity.reading import ready
    if not ready.are_here():
        return False
    mark = ready.unpack(out)
    print("ready pages, made with " + "; ".join(mark["with"].values())
          + "; --rebuild makes them with what is installed here")
    print(f"wrote {len(mark['pages'])} pages to {out}")
    return True


def _modules(*names):
    """The modules that make pages, which need libraries of their own."""
    try:
        return types.SimpleNamespace(**{
            name: importlib.import_module(f"parity.reading.{name}")
            for name in names})
    except ModuleNotFoundError as error:
        raise InputError(
            f"the pages need {error.name}, which is not installed; install "
            "this project again.") from None
