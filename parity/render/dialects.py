"""Tables of dialects: what each does unlike the paper, and how it was proved.
"""

import itertools

from rich.table import Table
from rich.text import Text

from transformer_contract.config import TransformerConfig, preset
from transformer_contract.dialects.table import SYSTEMS
from transformer_contract.files import write_whole
from parity.numerics.comparator import relative_error
from parity.numerics.words import number

#: Fields that are sizes or of training, in which every model differs.
SIZES = {
    "source_vocab", "target_vocab", "d_model", "n_heads", "d_ff", "dropout",
    "n_encoder_layers", "n_decoder_layers", "max_length", "pad_id",
    "label_smoothing", "smoothing", "source_max_length", "d_head",
    "n_kv_heads", "token_types",
}

#: What the original of this project is.
PAPER = preset("vaswani2017_base")


def fields(config):
    """{field: value} in which a model's maths is not the paper's."""
    paper = PAPER.as_dict()
    return {field: value for field, value in config.as_dict().items()
            if field not in SIZES and value != paper[field]}


def overview():
    """A line a dialect."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("dialect", no_wrap=True)
    table.add_column("unlike the paper")
    for dialect in SYSTEMS.values():
        table.add_row(dialect.name, ", ".join(
            f"{field} {value}" for field, value
            in fields(dialect.config({})).items()))
    return table


def beside(one, other):
    """The fields in which two dialects differ, their default sizes apart."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("field", one.name, other.name):
        table.add_column(title)
    first, second = (each.config({}).as_dict() for each in (one, other))
    for field in TransformerConfig().as_dict():
        if field not in SIZES and first[field] != second[field]:
            table.add_row(field, str(first[field]), str(second[field]))
    return table


def worst(findings):
    """{(dialect, kind): {port: the largest error, or None}}, and models."""
    errors, models = {}, {}
    for one in findings:
        row = errors.setdefault((one.dialect, one.kind), {})
        if one.port not in row or row[one.port] is not None:
            row[one.port] = (None if one.error is None else max(
                one.error, row.get(one.port) or 0.0))
        models.setdefault(one.dialect, set()).add(one.seed)
    return errors, {name: len(seeds) for name, seeds in models.items()}


def proofs(findings):
    """A row for each dialect and kind, a column for each port."""
    errors, models = worst(findings)
    ports = list(dict.fromkeys(one.port for one in findings))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("dialect", "models", "compared"):
        table.add_column(title)
    for port in ports:
        table.add_column(port, justify="right")
    for (dialect, kind), row in errors.items():
        table.add_row(dialect, str(models[dialect]), kind, *(
            "" if port not in row else "divergence" if row[port] is None
            else number(row[port]) + _fewer(findings, dialect, port)
            for port in ports))
    return table


def _fewer(findings, dialect, port):
    """How many models a port was compared on, where others had more; or ""."""
    own, every = (len({one.seed for one in findings if one.dialect == dialect
                       and which in ("", one.port)}) for which in (port, ""))
    return f" ({own})" if own < every else ""


#: What is said of a dialect's searches, before a column a port.
SEARCHED = ("dialect", "models", "inputs", "searches", "ended", "left out")


def search_rows(searches):
    """The cells of a line a dialect, and the ports of its last columns.

    Under a port it says how many of its rows have the original's tokens, all
    of a beam, and the largest error of a score.
    """
    ports = list(dict.fromkeys(one.port for one in searches))
    lines = []
    for dialect in dict.fromkeys(one.dialect for one in searches):
        by = {port: [one for one in searches
                     if (one.dialect, one.port) == (dialect, port)]
              for port in ports}
        first = by[ports[0]]
        inputs = sum({one.seed: one.rows for one in first}.values())
        asked = sum(one.rows for one in first)
        lines.append([
            dialect, str(len({one.seed for one in first})), str(inputs),
            str(asked), f"{sum(one.ended for one in first) / asked:.0%}",
            str(sum(one.left_out for one in first)), *(
                _equal(by[port]) for port in ports)])
    return lines, ports


def _equal(rows):
    """How many rows of one port are the original's, in words."""
    count = sum(one.rows - one.left_out for one in rows)
    different = sum(one.different for one in rows)
    if not rows:
        return ""
    if different:
        return f"{different} differ"
    return f"{count} equal, {max(one.error for one in rows):.0e}"


def searched(searches):
    """A row for each dialect whose searches were compared."""
    lines, ports = search_rows(searches)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (*SEARCHED, *ports):
        table.add_column(title)
    for line in lines:
        table.add_row(*line)
    return table


def heard(file, answers):
    """What each port heard in a sound, and how far its log p is off."""
    table = Table(box=None, pad_edge=False, header_style="bold", title=file,
                  title_justify="left")
    for title in ("port", "text", "error", "seconds"):
        table.add_column(title)
    first = answers[0]
    for one in answers:
        error = relative_error(one.score, first.score)[0]
        table.add_row(one.port, one.text, number(error),
                      f"{one.seconds:.1f}")
    return table


def guessed(guesses):
    """What each port guessed in a text, and how far its log p are off."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("port", "answer", "log p", "error"):
        table.add_column(title)
    for one in guesses:
        table.add_row(one.port, Text(one.text), f"{one.score:.12f}",
                      number(one.error(guesses[0])))
    return table


def write(path, findings=(), searches=()):
    """Write the page of dialects as Markdown, with a proof's tables.

    What the page said of dialects that were not proved now stays, for one
    dialect may be proved at a time.
    """
    old = (path.read_text(encoding="utf-8").splitlines()
           if path.is_file() else [])
    errors, models = worst(findings)
    proved = [{"dialect": dialect, "models": str(models[dialect]),
               "compared": kind} | {
        port: f"{error:.0e}" + _fewer(findings, dialect, port)
        for port, error in row.items() if error is not None}
        for (dialect, kind), row in errors.items()]
    lines = ["# Dialects", "", INTRODUCTION,
             *_section(old, "Proved", PROVED, proved)]
    cells, ports = search_rows(searches)
    lines += _section(old, "Searches", SEARCHES, [
        dict(zip((*SEARCHED, *ports), line)) for line in cells])
    lines += ["", "## Published models", "", PUBLISHED]
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


def _section(old, title, words, rows):
    """A section with a table, a row for each dialect, as lines; [] if empty.

    Args:
        old: the lines of an earlier page, whose rows of other dialects are
            taken over.
        rows: {title of a column: text} each.
    """
    heading = f"## {title}"
    table = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in itertools.takewhile(
                 lambda line: not line.startswith("## "),
                 old[old.index(heading) + 1:] if heading in old else ())
             if line.startswith("|")]
    now = {row["dialect"] for row in rows}
    kept = [dict(zip(table[0], cells)) for cells in table[2:]
            if cells[0] not in now]
    titles = list(dict.fromkeys(
        itertools.chain.from_iterable([*kept, *rows])))
    if not titles:
        return []
    order = list(SYSTEMS)
    return ["", heading, "", words, "", f"| {' | '.join(titles)} |",
            "|---" * len(titles) + "|", *(
                f"| {' | '.join(row.get(name, '') for name in titles)} |"
                for row in sorted([*kept, *rows], key=lambda row: order.index(
                    row["dialect"])))]


INTRODUCTION = """\
What other systems compute, as fields of our configuration, and what each does
unlike the paper. `parity dialects A B` says in what two differ and how far
their outputs part; `parity import` reads a model of any of them."""

PROVED = """\
The largest error against the original's own library, in float64, over models
of random sizes and weights; `parity dialects --prove` measures it. T5 and Llama
cast to float32 inside, whatever the model is in: here those casts are taken
out, and with them a stored answer is held to the limit of float32. BERT is
compared with its head, on tokens that are not padding. Whisper's two
convolutions are computed in NumPy, and from there on it is proved. The
tutorial's classes are those of the package annalog, their √d and √d_k not
rounded. JAX compiles each operation for each shape, about 500 a model; from the
second model on it is therefore compiled as a whole, under `jit`, and its
training step is that of the fast form; XLA is asked to compile quickly. Behind
an error stands how many models a port was compared on, where they were fewer; a
cell without one was not compared.

fairseq, Flax's example and T2T run from clones whose folders PYTHONPATH names:
facebookresearch/fairseq, the examples of google/flax, and
tensorflow/tensor2tensor; here as of September 2025, July 2026 and April 2023.
Casts to float32 are taken out: of fairseq that of the softmax whose weights are
given out, of Flax that of the last vectors, of T2T all. fairseq's table of
positions is its own formula in float64, then rounded as ours is; T2T's is not
rounded, and its row of a target language is left out. The vectors of padding,
which nothing reads, are not compared. What fairseq and T2T import for other
models is replaced by stand-ins, and T2T's graph has the layers that TensorFlow
keeps of its first version.

Flax's decoder reads its labels, shifted behind padding's id; and so begin the
targets of every second model of HF's Marian, BART and T5, but those of BART and
T5 in Keras, and of all three in JAX, where fewer models were run so.

Each setting of transformers' configurations, and each that its code reads, was
changed alone, in a small model of each of its dialects: outputs were again the
library's within 1e-12, or `parity import` refuses the setting by its name.

Marian is three programs in C++, `marian`, `marian-scorer` and `marian-decoder`,
which are run where PATH has them. They compute in float32. Each port's float64
is the truth, and Marian may be as far from it as the limits of float32 allow,
which follow NumPy's own float32 on the same numbers, and half a unit of the
last printed digit. Version 1.12.43 ran on 25 November 2026, and read the files
that are written here: with the norm behind and first, the tables shared in all
four ways, with and without a bias, with ReLU and swish. With the positions of
Hugging Face's port outputs are off by 5e-3 to 9e-2; with its ε by 2e-4 to 9e-4,
where the norm is behind and its inputs are small, and gradients by 2e-5 to .2.
Both are refused in each of 20 models.

Two things in Marian contradict its own outputs. Its gradient of a norm is γ · J
dy, where J is the derivative of what is normalised, and not J (γ · dy); so its
source has it for GPUs too. Where γ spreads by a quarter, the gradient of the
worst weight was off by .3 to 1.9 of its size; with that formula in the
reference the two agree. They agree as well where all of a γ is one number, as
before the first step, and of such models are the rows. And where the norm comes
first, its decoder leaves it out of keys and values of what is written: of 12
answers its scorer gave other scores, by 5 to 40%, where with the norm behind 7
were within 3e-6. With that in the reference, tokens and scores are the
decoder's."""

PUBLISHED = """\
Trained weights inside ordinary packages, which `parity fetch` reads as a zip.
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

SEARCHES = """\
Tokens of greedy search and of beams of 2 to 8, all W hypotheses, against
transformers' `generate()`, under each `early_stopping` and two length
penalties, over models of random sizes and weights whose answers end early. T5
and Llama end by any of three ids, BART lets no two or three tokens stand twice.
A search is one input in one beam. Scores are float32 in transformers: their
largest error stands beside. Where two candidates are nearer than 1e-5 the row
is left out, as near a tie. Of T5 and Llama the casts to float32 are taken out
here too, so that 1e-10 is near. Each dialect's search is said below; its W and
α, which are asked here in turn, are read from its source, not proved.

fairseq, Flax's example and T2T search by their own code, in float64, with beams
of 2 to 8 and two length penalties. At the greatest length fairseq forces an
end, which counts its log p there and is left to the caller: a row with such a
hypothesis is left out too. By the rule of Hugging Face, by which a better one
puts out one that has finished, 95 hypotheses of the 184 rows that are left
would be others. T2T is asked for all W, so that it does not stop at the best
finished one, and padding's row of its table is zeros here, as which T2T reads
padding that it has answered.

Marian's own decoder is asked for beams of 1 to 6, with the length to the power
of 0, .6 and 1, one input at a time and ten at once, on models with the norm
behind; near is there what float32 cannot tell, and with another rule of who may
finish tokens differ."""
