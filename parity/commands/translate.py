"""The commands ``parity translate`` and ``parity train tokenizer``."""

import pathlib
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError, plural, one_of
from parity_io.files import check_writable, read_text
from transformer_contract.generation import CHOICES, GenerationConfig
from parity.commands.answering import names_of, respond
from parity.commands.options import Answering
from parity.commands.shell import told_plainly

PICTURES = (".html", ".png")


def translate(
    texts: Annotated[list[str], typer.Argument(
        metavar="TEXT…", help="What to translate; - reads standard input, a "
        "text a line, and answers each line as it comes.")],
    task: Annotated[Optional[str], typer.Option(
        metavar="NAME", help="The shipped model that answers: dates, or "
        "phrases in five languages to English.  [default: dates]")] = None,
    weights: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Weights that parity train wrote, instead."
    )] = None,
    tokenizer: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Its tokenizer.json.  [default: the one beside "
        "the weights]")] = None,
    port: Answering = "numpy",
    beam: Annotated[Optional[int], typer.Option(
        metavar="N", min=1, help="Search with a beam of N hypotheses.  "
        "[default: greedy search]")] = None,
    length_rule: Annotated[str, typer.Option(
        help=f"A beam's: {', '.join(CHOICES['length_rule'])}.")] = "paper",
    alpha: Annotated[float, typer.Option(
        help="The length rule's exponent.")] = 0.6,
    nbest: Annotated[int, typer.Option(
        metavar="N", min=1, help="How many hypotheses of a beam to show."
    )] = 1,
    sample: Annotated[bool, typer.Option(
        "--sample", help="Draw each token by its probability.")] = False,
    temperature: Annotated[float, typer.Option(
        help="A sample's: what logits are divided by.")] = 1.0,
    top_k: Annotated[int, typer.Option(
        help="Sample from the k likeliest tokens; 0 from all.")] = 0,
    top_p: Annotated[float, typer.Option(
        help="Sample from the likeliest that reach p; 1 from all.")] = 1.0,
    seed: Annotated[int, typer.Option(
        help="From which samples follow.")] = 0,
    max_tokens: Annotated[Optional[int], typer.Option(
        help="The most tokens of an answer.  [default: what the model can]"
    )] = None,
    batch: Annotated[int, typer.Option(
        min=1, help="Texts that are answered at once, alike in length."
    )] = 32,
    attention: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Draw what each token attends to: .png or .html."
    )] = None,
    strict: Annotated[bool, typer.Option(
        "--strict", help="Give no answer that the model is in doubt about, "
        "or that is cut off."
    )] = False,
    dtype: Annotated[str, typer.Option(
        help="float64 or float32.")] = "float64",
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    json_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--json", metavar="FILE", help="Write the answers as JSON to FILE; - "
        "writes them to standard output instead of the texts.")] = None,
):
    """Answer texts: dates, written out, in ISO 8601; or with --task phrases
    amounts, dates and names, in English.

    Prints an answer a line. A text that cannot be answered is told on standard
    error, its line stays empty, and the exit status is 2 after the others were
    answered; 1 says that ports differ. An answer that the model is in doubt
    about is told there too; with --strict it counts as none.
    """
    from parity.check import golden
    from parity.runs import translation
    with told_plainly():
        names_of(port)
        one_of(dtype, ("float64", "float32"), "dtype")
        check_writable(
            attention, json_file if str(json_file) != "-" else None)
        if attention and attention.suffix not in PICTURES:
            raise InputError(
                f"{str(attention)!r} is no picture that can be drawn; end it "
                f"in {' or '.join(PICTURES)}.")
        if beam and sample:
            raise InputError(
                "a beam and samples are two ways to search; choose --beam or "
                "--sample.")
        if nbest > 1 and not beam:
            raise InputError(
                f"--nbest {nbest} asks for hypotheses of a beam; give --beam "
                "too.")
        if task and weights:
            raise InputError(
                "a task has weights of its own; give one of --task and "
                "--weights.")
        if weights is None:
            name = one_of(task or golden.TRAINED, golden.MODELS, "task")
            weights = golden.sound(f"{name}.safetensors")
            tokenizer = tokenizer or golden.sound(f"{name}.tokenizer.json")
        model = translation.Model.load(weights, tokenizer)
        if strict and model.doubtful_below is None:
            raise InputError(
                f"{str(weights)!r} does not say how sure right answers are; "
                "leave --strict out, or train with more pairs to test on.")
        if model.tokenizer.bos_id is None or model.tokenizer.eos_id is None:
            raise InputError(
                f"the tokenizer of {str(weights)!r} does not say how a target "
                "begins and ends; ask parity run, which reads the model's own "
                "files.")
        settings = GenerationConfig(
            method="beam" if beam else "sample" if sample else "greedy",
            bos_id=model.tokenizer.bos_id,
            eos_id=model.tokenizer.eos_id, beam=beam or 1,
            length_rule=length_rule, alpha=alpha, temperature=temperature,
            top_k=top_k, top_p=top_p, seed=seed,
            max_tokens=(max_tokens if max_tokens is not None
                        else model.config.max_length)).check(model.config)
        respond(texts, port, model, settings, dtype, device, nbest, batch,
                strict, attention, json_file)


def tokenizer(
    files: Annotated[list[pathlib.Path], typer.Argument(
        metavar="FILE…", help="Text in UTF-8.")],
    out: Annotated[pathlib.Path, typer.Option(
        metavar="FILE", help="Where to write the tokenizer.")
    ] = pathlib.Path("tokenizer.json"),
    vocab: Annotated[int, typer.Option(
        min=260, max=2**24, help="How many tokens it has.")] = 1000,
    model: Annotated[str, typer.Option(
        help="bpe, of bytes; or wordpiece.")] = "bpe",
):
    """Train a tokenizer from text."""
    from transformer_contract.tokenizer import Tokenizer
    with told_plainly():
        check_writable(out, read=files)
        texts = [line for path in files for line in _lines(path)]
        if not any(text.strip() for text in texts):
            raise InputError("there is no text; give a file that has some.")
        trained = Tokenizer.train(texts, vocab, model=model)
        trained.save(out)
        pieces = sum(len(trained.encode(text)) for text in texts)
        signs = sum(map(len, texts))
        print(f"made {out}: {plural(trained.vocab_size, 'token')}, "
              f"{signs / max(pieces, 1):.2f} characters a token in this text")


def _lines(path):
    return read_text(path).splitlines()
