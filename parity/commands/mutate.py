"""The command ``parity mutate``: whether the check notices a wrong line."""

import pathlib
import time
from typing import Annotated, Optional

import typer
from rich.table import Table

from transformer_contract.errors import InputError, amount, one_of
from transformer_contract.files import check_writable
from parity import ports
from parity.commands.options import unable
from parity.commands.shell import DIVERGED, told_plainly
from parity.render import terminal

#: Fewer mutants than these are not worth preparing many questions.
FEW = 60


def mutate(
    port: Annotated[str, typer.Option(
        metavar="NAME", help="torch, keras or jax.")],
    file: Annotated[Optional[list[str]], typer.Option(
        metavar="FILE", help="Only these files of the port, such as "
        "attention.py; repeat it or separate names by commas.")] = None,
    sample: Annotated[int, typer.Option(
        metavar="N", min=0, help="Only N mutants, drawn by --seed; 0 is "
        "all.")] = 0,
    seed: Annotated[str, typer.Option(
        metavar="WORD", help="What draws the sample.")] = "",
    json_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--json", metavar="FILE", help="Write the results as JSON to FILE, "
        "again and again; if it exists, go on from it.")] = None,
    only_list: Annotated[bool, typer.Option(
        "--list", help="Print every mutant and try none.")] = False,
):
    """Edit a port in small ways; the check has to notice each edit.

    Exit status: 0 if each is noticed or explained, 1 if one is not, or the
    port's framework is too old, 2 usage, 3 it is not installed.
    """
    from parity.mutation.mutants import sampled
    from parity.mutation.results import Results
    from parity.mutation.run import Hunt
    start = time.perf_counter()
    with told_plainly():
        one_of(port, ports.known_ports(), "port")
        check_writable(json_file)
        hunt = Hunt(port)
        mutants = hunt.mutants(ports.split_words(
            file or ["all"], hunt.texts, "file"))
        if sample:
            mutants = sampled(mutants, sample, seed)
        results = Results(port, hunt.texts, json_file)
        if only_list:
            for mutant in mutants:
                print(shown(mutant))
            return
        if absent := ports.absent(port):
            print(f"parity: {absent.reason}.")
            raise typer.Exit(unable([absent]))
        tried(hunt, mutants, results, bool(file))
    report(terminal.console(), results, time.perf_counter() - start)
    raise typer.Exit(DIVERGED if results.survived() else 0)


def tried(hunt, mutants, results, some=False):
    """Try the mutants of which nothing is known yet; fill the Results.

    Args:
        some: whether they are of some files, so that few questions will do.
    """
    waiting = [mutant for mutant in mutants if not results.known(mutant)]
    with terminal.progress() as progress:
        bar = progress.add_task("starting")

        def tell(text):
            progress.update(bar, description=text)

        try:
            for mutant in mutants:
                if known := results.known(mutant):
                    results.add(known)
            if not waiting:
                return
            if some or len(waiting) < FEW:
                for result in hunt.few(waiting, tell):
                    results.add(result)
                return
            for result in hunt.many(waiting, tell):
                results.add(result)
        except RuntimeError as error:
            raise InputError(f"{error}; run parity check first.") from None
        finally:
            hunt.close()
            results.write()


def shown(mutant):
    """A mutant in one line."""
    return (f"{mutant.file}:{mutant.line}  {mutant.kind}: {mutant.edit}"
            f"  in  {mutant.text}")


def report(out, results, seconds):
    """Print those that survived, and the numbers of each file."""
    for result in results.survived():
        asked = (f"{result.asked} questions ran it" if result.asked
                 else "no question runs it")
        out.print(f"survived  {shown(result.mutant)}  ({asked})",
                  markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(results.port)
    titles = ("mutants", "killed", "equivalent", "survived")
    for title in titles:
        table.add_column(title, justify="right")
    every = [0] * len(titles)
    for file, counted in results.counts().items():
        numbers = [counted.total(), *(counted[title] for title in titles[1:])]
        table.add_row(file, *map(str, numbers))
        every = [a + b for a, b in zip(every, numbers)]
    table.add_row("all", *map(str, every))
    out.print(table)
    out.print(f"{amount(every[0], 'mutant')} in {seconds:.0f} seconds: "
              f"{every[-1]} "
              "survived")
