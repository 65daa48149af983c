"""Tables of dialects: what each does unlike the paper, and what it answers."""

import re

from rich.table import Column
from rich.text import Text

from transformer_contract.config import TransformerConfig, preset
from transformer_contract.dialects.table import SYSTEMS
from parity_io.files import write_whole
from parity.numerics.comparator import relative_error
from parity.numerics.words import number
from parity.render.terminal import plain_table

#: Fields that are sizes or of training, in which every model differs.
SIZES = {
    "source_vocab", "target_vocab", "d_model", "n_heads", "d_ff", "dropout",
    "n_encoder_layers", "n_decoder_layers", "max_length", "pad_id",
    "label_smoothing", "smoothing", "source_max_length", "d_head",
    "n_kv_heads", "token_types",
}

#: The page's sections that ``parity_tests.originals`` measures and writes.
KEPT = "Proved", "Searches"

#: What the original of this project is.
PAPER = preset("vaswani2017_base")


def fields(config):
    """{field: value} in which a model's maths is not the paper's."""
    paper = PAPER.as_dict()
    return {field: value for field, value in config.as_dict().items()
            if field not in SIZES and value != paper[field]}


def overview():
    """A line a dialect."""
    table = plain_table(Column("dialect", no_wrap=True), "unlike the paper")
    for dialect in SYSTEMS.values():
        table.add_row(dialect.name, ", ".join(
            f"{field} {value}" for field, value
            in fields(dialect.config({})).items()))
    return table


def beside(one, other):
    """The fields in which two dialects differ, their default sizes apart."""
    table = plain_table("field", one.name, other.name)
    first, second = (each.config({}).as_dict() for each in (one, other))
    for field in TransformerConfig().as_dict():
        if field not in SIZES and first[field] != second[field]:
            table.add_row(field, str(first[field]), str(second[field]))
    return table


def heard(file, answers):
    """What each port heard in a sound, and how far its log p is off."""
    table = plain_table("port", "text", "error", "seconds", title=file,
                        title_justify="left")
    first = answers[0]
    for one in answers:
        error = relative_error(one.score, first.score)[0]
        table.add_row(one.port, one.text, number(error),
                      f"{one.seconds:.1f}")
    return table


def guessed(guesses):
    """What each port guessed in a text, and how far its log p are off."""
    table = plain_table("port", "answer", "log p", "error")
    for one in guesses:
        table.add_row(one.port, Text(one.text), f"{one.score:.12f}",
                      number(one.error(guesses[0])))
    return table


def write(path):
    """Write the page of dialects as Markdown.

    Its sections KEPT, what the originals themselves answered, stay as they are.
    """
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = ["# Dialects", "", INTRODUCTION, "", *(
        section.rstrip("\n") + "\n" for title in KEPT
        for section in re.findall(
            rf"^## {title}\n.*?(?=^## )", old, re.M | re.S)),
        "## Published models", "", PUBLISHED]
    for dialect in SYSTEMS.values():
        lines += ["", f"## {dialect.name}", "", f"Source: {dialect.source}.",
                  "", *(f"- {line}" for line in dialect.unlike), "",
                  "| field | the paper | here |", "|---|---|---|"]
        lines += [f"| `{field}` | {PAPER.as_dict()[field]} | {value} |"
                  for field, value in fields(dialect.config({})).items()]
        if dialect.search:
            lines += ["", "Its search: " + ", ".join(
                f"`{field}` {value}" for field, value
                in dialect.search.items()) + "."]
    write_whole(path, "\n".join(lines) + "\n")


INTRODUCTION = """\
What other systems compute, as fields of our configuration, and what each does
unlike the paper. `parity dialects A B` says in what two differ and how far
their outputs differ; `parity import` reads a model of any of them."""

PUBLISHED = """\
Trained weights inside ordinary packages, which `parity import` reads as a zip.
The original's own code ran beside ours in one process: ANNalog's from its
package, rxnfp's pretrained BERT in transformers. In float64 logits differ by
1e-15 (of ANNalog once its √d_k is not rounded), in float32 by 3e-7. The times
are of one call in float32 on one thread, a batch of 8 rows of 23 tokens:
CPU time, the median of rounds in which all took turns, over the original's.

| model | form | numpy | torch | keras | jax |
|---|---|---|---|---|---|
| annalog | readable | 1.72 | 1.08 | 5.63 | 2.18 |
| annalog | fast | 1.30 | 0.95 | 0.79 | 0.76 |
| rxnfp | readable | 4.64 | 1.11 | 5.04 | 1.55 |
| rxnfp | fast | 4.18 | 1.02 | 0.94 | 0.68 |

Whisper tiny.en heard three seconds of a synthetic sound, by greedy search in
float32, in one process: all four wrote CTranslate2's 8 tokens. They took 3.3
(NumPy), 1.3 (PyTorch), 12.8 (Keras) and 4.5 (JAX) times its CPU time, with
building the model, but not the two convolutions of the sound. NumPy and PyTorch
keep the keys and values of the sound and of what is written; Keras and JAX the
latter alone, since their compiled searches know no prompt and no tokens that
are suppressed.

A GPT-2 of 1.2 GB in one file of float32, its pages in the system's memory, in a
process each; of several runs the median. A mapped page counts in a peak once it
is read; nothing is copied.

| what | seconds | peak, MB |
|---|---|---|
| `parity`'s reader: names and shapes | 0.02 | 32 |
| the same, made ours, every number looked at | 1.9 | 1198 |
| `parity import`: with a checksum, and written again | 15 | 1198 |
| `safetensors.torch.load_file` | 0.02 | 227 |
| the same, every number added | 1.1 | 1376 |
| transformers' `from_pretrained` | 0.5 | 382 |"""
