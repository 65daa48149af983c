"""Known differences for the eye: tables in a terminal, a page in Markdown."""


from rich import box
from rich.table import Table
from rich.text import Text

from parity_io.errors import plural
from parity import ports
from parity.differences.registry import causes_in_words
from parity.differences.asking import (
    CHANGED, HIDDEN, LEFT_OUT, RECORDED, TOPICS, UNCHECKED, framework, shown)
from parity.numerics.words import number as in_short

STYLES = {RECORDED: "green", CHANGED: "bold red", UNCHECKED: "yellow"}

#: What the libraries call themselves.
TITLES = {"numpy": "NumPy", "torch": "PyTorch", "keras": "Keras",
          "tensorflow": "TensorFlow", "jax": "JAX", "flax": "Flax",
          "optax": "Optax", "onnx": "ONNX", "tokenizers": "Tokenizers"}


def effect_words(demonstration):
    """An effect's numbers in words; "" without one."""
    if demonstration.effect is None:
        return ""
    if isinstance(demonstration.effect, ports.NotChecked):
        return f"{UNCHECKED}: {demonstration.effect.reason}"
    return "; ".join(f"{label}: {in_short(value)}"
                     for label, value in demonstration.effect.items())


def print_topics(out, rows, more, add):
    """A table a topic, of those that have any of the rows.

    Args:
        rows: what is shown: (topic, one) each.
        more: titles of the columns after the names and the answers.
        add: (table, one) -> None, which adds its lines.
    """
    for topic in TOPICS:
        of_topic = [one for name, one in rows if name == topic]
        if not of_topic:
            continue
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False,
                      header_style="bold", title=topic, title_justify="left",
                      title_style="bold cyan")
        table.add_column("name", overflow="fold", min_width=20)
        for title in ("who", "answers", *more):
            table.add_column(title, overflow="fold", ratio=3,
                             no_wrap=title == "status")
        for one in of_topic:
            add(table, one)
        out.print(table)


def print_rows(out, demonstrations):
    """What was found: an answerer a line, the effect and the status beside."""
    print_topics(out, [(one.known.topic, one) for one in demonstrations],
                 ("effect", "status"), _add_row)


def print_recorded(out, rows):
    """What is recorded, and how to ask again."""
    def add(table, row):
        for i, (text, names) in enumerate(alike(row.expected, {}).items()):
            name = "" if i else row.name
            table.add_row(*map(Text, (name, ", ".join(names), text)))

    print_topics(out, [(row.topic, row) for row in rows], (), add)
    if len(rows) == 1:
        out.print(Text(rows[0].about))
    out.print(f"{plural(len(rows), 'difference')}, as recorded "
              "with the versions of constraints.txt; --run asks the "
              "frameworks that are here, and measures effects")


def alike(answers, changes):
    """{an answer as text, with its change if any: who gives it}."""
    groups: dict = {}
    for who, value in answers.items():
        groups.setdefault(shown(value) + changes.get(who, ""), []).append(who)
    return groups


def _add_row(table, one):
    """One difference: answers that agree share a line."""
    lines = [(one.known.name, effect_words(one), Text(
        one.status.upper() if one.status == CHANGED else one.status,
        style=STYLES[one.status]))]
    changes = {who: f", not {shown(one.known.expected[who])}"
               for who in one.changed}
    for text, names in alike(one.answers, changes).items():
        name, effect, verdict = lines.pop() if lines else ("", "", Text(""))
        table.add_row(*map(Text, (name, ", ".join(names), text, effect)),
                      verdict)


def print_verdict(out, demonstrations, versions):
    """Versions, what changed, what was not checked, and the sums."""
    out.print(Text(", ".join(f"{name} {number}"
                             for name, number in versions.items())))
    for one in demonstrations:
        if one.changed:
            out.print(Text.assemble(
                ("changed: ", STYLES[CHANGED]),
                f"{one.known.name}, {one.reason()}"))
    missing: dict = {}
    for one in demonstrations:
        for who in one.missing:
            missing.setdefault(framework(who), one.answers[who].reason)
    for name, reason in missing.items():
        out.print(Text.assemble(
            ("not checked: ", STYLES[UNCHECKED]), f"{name}, {reason}"))
    count = {verdict: sum(one.status == verdict for one in demonstrations)
             for verdict in STYLES}
    out.print(f"{plural(len(demonstrations), 'difference')}: " + ", ".join(
        f"{number} {verdict}" for verdict, number in count.items()))


def found_with(versions):
    """The sentence of a page that says what was run."""
    return "Found with " + ", ".join(
        f"{TITLES.get(name, name)} {number}"
        for name, number in versions.items()) + "."


def page(demonstrations, versions):
    """What was found as a page in Markdown."""
    lines = [
        "# Known differences", "",
        "What frameworks do differently by default, and what that does to a "
        "port. Every answer below was found by running the framework"
        + (", or where it says so was recorded when it ran"
           if any(one.missing for one in demonstrations) else "") + "; "
        "`parity check differences --markdown FILE` writes this page, and a "
        "test fails when a release answers differently.", "",
        found_with(versions), "",
        f"Effects are relative L2 distances unless they say otherwise. One "
        f"below {HIDDEN:g} is marked *hidden*: a comparison in float32 may "
        "take it for rounding.", ""]
    topics = [topic for topic in TOPICS
              if any(one.known.topic == topic for one in demonstrations)]
    lines += [f"- [{topic.capitalize()}](#{topic})" for topic in topics]
    for topic in topics:
        lines += ["", f"## {topic.capitalize()}"]
        for one in demonstrations:
            if one.known.topic == topic:
                lines += _section(one)
    lines += ["", "## Left out", ""]
    lines += [f"- {what}: {why}." for what, why in LEFT_OUT.items()]
    return "\n".join(lines) + "\n"


def _section(one):
    """One difference: a heading, what it does, its answers, its effect."""
    lines = ["", f"### {one.known.name.replace('_', ' ')}", "",
             one.known.about, "", " ".join(filter(None, (
                 f"`parity check differences {one.known.name}`",
                 causes_in_words(one.known.name)))), "", "| who | answers |",
             "|---|---|"]
    for who, value in one.answers.items():
        first, _, rest = who.partition(" ")
        title = " ".join(filter(None, (TITLES.get(first, first), rest)))
        text = shown(value)
        if who in one.missing:
            text = (f"{shown(one.known.expected[who])} (recorded, not run "
                    "again)")
        if who in one.changed:
            text += f" (recorded: {shown(one.known.expected[who])})"
        lines.append(f"| {_cell(title)} | {_cell(text)} |")
    if isinstance(one.effect, dict):
        lines += ["", f"Effect, {one.known.effect.about}:", "",
                  "| where | effect | |", "|---|---|---|"]
        for label, value in one.effect.items():
            hidden = "hidden" if value < HIDDEN else ""
            lines.append(f"| {_cell(label)} | {in_short(value)} | "
                         f"{hidden} |")
    if one.status != RECORDED:
        lines += ["", f"{one.status.capitalize()}: {one.reason()}."]
    return lines


def _cell(text):
    """A text that a table's cell can hold."""
    return text.replace("|", "\\|").replace("_", "\\_").replace("*", "\\*")
