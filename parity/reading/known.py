"""The pages of known differences, as each framework answers when it is run, and
of known causes."""

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from parity import ports
from parity.causes import page as causes_page
from parity.differences import registry
from parity.differences.asking import demonstrate, frameworks, versions
from parity.render.differences import page


def of_known(site):
    """Every known difference, demonstrated while the site is built.

    A site of some ports alone has no such page to show: the demonstrations
    would run frameworks that it was asked to leave out.
    """
    if len(site.values.engines) <= len(ports.known_ports()):
        return {"body": None}
    demonstrations = [demonstrate(row) for row in registry.select()]
    text = page(demonstrations, versions(frameworks(demonstrations)))
    return {"body": with_anchors(text.partition("\n")[2])}


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
