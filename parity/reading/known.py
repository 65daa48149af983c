"""The pages of known differences, as each framework answers when it is run, and
of known causes."""

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from parity import ports
from parity.causes import page as causes_page
from parity.differences import registry
from parity.differences.asking import (
    SIDES, demonstrate, frameworks, versions)
from parity.render.differences import TITLES, page


def text(port_names):
    """Every known difference, demonstrated, as a page in Markdown.

    A framework whose port is not among these is not run: what is recorded of
    it stands there.
    """
    left_out = {side: "it was not asked for" for column in ports.known_ports()
                if column not in port_names for side in SIDES[column]}
    found = [demonstrate(row, left_out) for row in registry.select()]
    return page(found, versions(
        [name for name in frameworks(found) if name not in left_out]))


def of_known(site):
    """What frameworks answer while the site is built."""
    found = site.call(text, tuple(site.values.ports))
    return {"body": with_anchors(found.partition("\n")[2]),
            "recorded": {TITLES[column]: reason for column, reason
                         in site.values.not_checked.items()}}


def of_causes(site):
    """Every cause that is known, as docs/causes.md has them."""
    return {"body": with_anchors(causes_page.page().partition("\n")[2])}


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
