"""What a search finds: steps, terms, rulings, differences, faults, pages."""

import inspect
import json
import pathlib
import re
import tomllib

from transformer_contract.config import TransformerConfig
from transformer_contract.steps import AXES
from parity.causes import catalogue

#: What readers call things.
WORDS = pathlib.Path(__file__).parent / "words.toml"

#: How the headings of a page are called in answers; others are "page".
KINDS = {"rulings.html": "ruling", "differences.html": "difference",
         "errata.html": "erratum", "dialects.html": "system"}


def entries(rows, outlines):
    """[(kind, title, words, address)] of all that can be found.

    Args:
        rows: {file: its PageRows}.
        outlines: {address: (title, its Signposts)} of the other pages.
    """
    result = [("page", f"{name}.py", "", f"{name}.html") for name in rows]
    for name, lines in rows.items():
        for row in lines:
            if row.kind == "step":
                result.append((
                    "step", f"{row.owner} {row.name}",
                    f"{row.step.number}. {row.step.text}",
                    f"{name}.html#{row.id}"))
            elif row.kind in ("head", "plain") and row.prose:
                result.append((
                    "code", row.name if row.owner in ("", row.name)
                    else f"{row.owner}.{row.name}", first(row.prose),
                    f"{name}.html#{row.id}"))
    for address, (title, signposts) in outlines.items():
        kind = KINDS.get(address, "page")
        if address.startswith("lesson-"):
            kind = "lesson"
        result.append(("page" if kind != "lesson" else kind, title, "",
                       address))
        result += [(kind, one.words, title, address + one.address)
                   for one in signposts]
    result += terms()
    result += synonyms()
    for cause in catalogue.causes():
        result.append(("fault", cause.name, cause.sentence,
                       f"causes.html#{cause.topic.replace(' ', '-')}"))
    return result


def first(prose):
    """The first sentence of a docstring."""
    return re.split(r"(?<=\.)\s", " ".join(prose.split()))[0]


def terms():
    """The letters of shapes, and the fields of a config."""
    for letter, words in AXES.items():
        yield "term", letter, f"in shapes: {words}", "attention.html"
    text = inspect.getdoc(TransformerConfig).partition("Attributes:\n")[2]
    for names, words in re.findall(
            r"^    (\w[\w, ]*): (.+(?:\n     .+)*)", text, flags=re.M):
        for name in names.split(", "):
            yield "term", name, " ".join(words.split()), "variants.html"


def synonyms():
    """The terms of the field, with their other names."""
    for name, one in tomllib.loads(WORDS.read_text("utf-8")).items():
        yield "term", name, one["words"], one["at"]


def script(found):
    """The entries as a script, which a page opened from disk can ask for."""
    text = json.dumps(list(found), ensure_ascii=False, separators=(",", ":"))
    return f"window.parityIndex={text.replace('//', '/' + chr(92) + '/')};\n"
