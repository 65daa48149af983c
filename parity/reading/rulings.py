"""RULINGS.md, read."""

import functools
import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from parity_io.errors import InputError
from transformer_contract.shipped import ROOT


@functools.cache
def text(root=ROOT):
    """The file.

    Raises:
        InputError: it is not there.
    """
    path = root / "RULINGS.md"
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            f"{str(path)!r} cannot be read; run this in a checkout of the "
            "project.") from None


@functools.cache
def all_of(root=ROOT):
    """[(number, title, HTML)] of every ruling, and the HTML before them."""
    parts = re.split(r"^## R(\d+)\. (.+)$", text(root), flags=re.M)
    before = re.sub(r"^# .*$", "", parts[0], count=1, flags=re.M)
    return [(int(n), title, rendered(body)) for n, title, body in zip(
        parts[1::3], parts[2::3], parts[3::3])], rendered(before)


def rendered(markdown, page=""):
    """Markdown as HTML for a page; HTML within it is text."""
    return linked(
        MarkdownIt("commonmark", {"html": False}).enable("table").render(
            markdown), page)


def linked(html, page="", root=ROOT):
    """HTML in which each ruling that there is leads to its text."""
    numbers = re.findall(r"^## R(\d+)\. ", text(root), flags=re.M)

    def link(match):
        if match[1] not in numbers:
            return match[0]
        return f'<a href="{page}#R{match[1]}">R{match[1]}</a>'

    return Markup(re.sub(r"\bR(\d+)\b", link, html))


@functools.cache
def tests(number, root=ROOT):
    """The tests that a ruling names."""
    parts = re.split(r"^## R(\d+)\. ", text(root), flags=re.M)
    bodies = dict(zip(map(int, parts[1::2]), parts[2::2]))
    return [f"{file}::{name}" if name else file for file, name in re.findall(
        r"`(test_\w+\.py)(?:::(\w+))?`", bodies.get(number, ""))]
