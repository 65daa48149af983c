"""The pages of known differences, as each framework answers when it is run, and
of known causes."""

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from transformer_contract.shipped import PACKAGES
from parity import ports
from parity.causes import page as causes
from parity.differences import registry
from parity.differences.asking import (
    SIDES, TOPICS, demonstrate, frameworks, versions)
from parity.render.differences import TITLES, found_with, page

#: The page as it was written last; a wheel has none.
WRITTEN = PACKAGES / "docs" / "differences.md"


def differences_text(port_names):
    """Every known difference, demonstrated, as a page in Markdown.

    A framework whose port is not among these is not run: what is recorded of
    it stands there. Where the page of the documents was written with the very
    versions that are here, no framework is run again: it is that page.
    """
    left_out = {side: "it was not asked for" for column in ports.usual_ports()
                if column not in port_names for side in SIDES[column]}
    rows = registry.select()
    if not left_out and WRITTEN.is_file():
        written = WRITTEN.read_text(encoding="utf-8")
        if (found_with(versions(frameworks(rows))) in written.splitlines()
                and all(row.about in written for row in rows)):
            return written
    found = [demonstrate(row, left_out) for row in rows]
    return page(found, versions(
        [name for name in frameworks(found) if name not in left_out]))


def differences_page(site):
    """What frameworks answer while the site is built."""
    found = site.call(differences_text, site.values.ports)
    return {"body": in_sections(with_anchors(found.partition("\n")[2])),
            "sides": {side: TITLES[side] for side in SIDES}, "topics": TOPICS,
            "recorded": {TITLES[column]: reason for column, reason
                         in site.values.not_checked.items()}}


def in_sections(html):
    """Each topic and each difference in a section, which says whose it is."""
    between = {row.name.replace("_", "-"): " ".join(
        map("-".join, registry.pairs(row))) for row in registry.select()}
    beginning, *parts = re.split(r"(?=<h[23] id=)", html)
    made: list = []
    for part in parts:
        name = re.findall(r'^<h[23] id="([^"]*)', part)[0]
        if part.startswith("<h3"):
            made[-1] += (f'<section class="difference" '
                         f'data-between="{between[name]}">{part}</section>')
        else:
            made.append(part)
    return Markup(beginning + "".join(
        f'<section class="topic">{each}</section>' for each in made))


def causes_page(site):
    """Every cause that is known, as docs/causes.md has them."""
    return {"body": with_anchors(causes.page().partition("\n")[2])}


def with_anchors(markdown):
    """Markdown as HTML, each heading with an id of its own words."""
    html = MarkdownIt("commonmark", {"html": False}).enable(
        "table").render(markdown)

    def heading(match):
        level, words = match[1], match[2]
        name = re.sub(r"\W+", "-", re.sub(r"<[^>]+>", "", words)).strip("-")
        name = name.lower()
        return (f'<h{level} id="{name}">{words}<a class="anchor" '
                f'href="#{name}" aria-label="Link to {name}">#</a>'
                f"</h{level}>")

    html = html.replace("<th></th>", "<td></td>")
    html = re.sub(r"<h([23])>(.*?)</h\1>", heading, html)
    return Markup(html.replace("<table>", '<div class="wide" tabindex="0">'
                               "<table>").replace("</table>",
                                                  "</table></div>"))
