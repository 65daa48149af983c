"""The quality of shipped models for the eye: in a terminal, and as a page."""

from rich import box
from rich.table import Table

from parity_io.files import write_whole
from parity.numerics.words import number
from parity.render.markdown import code, plain

#: How many wrong answers are listed.
LISTED = 12

PAGE = """\
# How good the shipped models are

`parity train quality --port all --each 10 --markdown docs/quality.md` writes
this page; without `--each` all of the test sets are asked. No answer that is
tested was trained on. An answer is right if every character of it is. It is
*doubtful* if one of its tokens is less likely than a border, which was measured
where the model was trained: of 200 right answers, one is.
"""


def print_quality(out, quality):
    """What was measured, in a terminal."""
    out.print(f"[bold]{quality.task}[/bold]")
    for header, rows in tables(quality):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False,
                      header_style="bold")
        for place, title in enumerate(header):
            table.add_column(title, justify="right" if place else "left")
        for row in rows:
            table.add_row(*row)
        out.print(table)
    for words in sentences(quality):
        out.print(words, markup=False, soft_wrap=True)


def tables(quality):
    """[(header, rows)] of words: by group, and by probability."""
    groups = [(group, str(exact), str(of), share(exact, of))
              for group, (exact, of) in quality.groups.items()]
    ranges = [(f"{low:.2f} to {high:.2f}", str(exact), str(of),
               share(exact, of))
              for low, high, exact, of in quality.ranges]
    return [(("group", "exact", "of", ""), groups),
            (("least likely token", "exact", "of", ""), ranges)]


def share(part, of):
    """A share in percent."""
    return f"{part / of:.1%}" if of else "–"


def sentences(quality):
    """What the tables do not say."""
    right = sum(one.right for one in quality.asked)
    of = len(quality.asked)
    yield f"exact: {right} of {of}, {share(right, of)}."
    if quality.border is not None:
        sound, wrong = quality.doubtful(quality.asked)
        yield (f"doubtful, below {quality.border:.3f}: {sound} of {right} "
               f"right answers and {wrong} of {of - right} wrong ones.")
    if quality.unseen:
        guessed = sum(one.right for one in quality.unseen)
        sound, wrong = quality.doubtful(quality.unseen)
        yield (f"{quality.unseen_words}: {guessed} of {len(quality.unseen)} "
               f"are guessed; doubtful are {sound} of these, and {wrong} of "
               f"the {len(quality.unseen) - guessed} wrong answers.")
    if len(quality.ports) > 1:
        yield (f"DIVERGENCE: {quality.difference}" if quality.difference else
               "match: tokens identical, scores within "
               f"{number(quality.worst)} in {', '.join(quality.ports)}.")
    for name in quality.not_checked:
        yield f"not checked: {name} is not installed."


def page(qualities):
    """The page as Markdown."""
    parts = [PAGE]
    for quality in qualities:
        parts.append(f"## {quality.task.capitalize()}\n")
        parts += [f"- {plain(words)}" for words in sentences(quality)]
        for header, rows in tables(quality):
            parts += ["", *("| " + " | ".join(row) + " |" for row in (
                header, ("---", *["--:"] * 3), *rows))]
        wrong = [one for one in quality.asked if not one.right]
        if wrong:
            every = max(1, len(wrong) // LISTED)
            parts += ["", "Some of the wrong answers, and how likely their "
                      "least likely token is:", "",
                      "| asked | answered | right | |", "|---|---|---|--:|"]
            parts += [f"| {code(one.source)} | {code(one.answer)} | "
                      f"{code(one.target)} | {one.least:.2f} |"
                      for one in wrong[::every][:LISTED]]
        parts.append("")
    return "\n".join(parts)


def write(path, qualities):
    """Write the page, whole or not at all."""
    write_whole(path, page(qualities))
