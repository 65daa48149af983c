"""What all pages are made with: templates, style and script."""

import pathlib
import re

import jinja2

HERE = pathlib.Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"

#: The style of the site and of the reports, and the script of the site, in
#: the order in which their files are joined.
STYLES = ("base", "menu", "articles", "columns", "pictures", "touch", "report",
          "slides", "sentence", "print")
SCRIPTS = ("menu", "columns", "reading", "search", "light", "maps", "heads",
           "break", "lens", "filter", "slides", "live",
           "sentence")


#: What has no words that a line could break, a tag, or words between tags.
PIECES = re.compile(r"<(head|script|style|pre|svg|select|option|math)\b.*?</\1>"
                    r"|<[^>]*>|[^<]+", flags=re.DOTALL)

#: Numbers, dates and options that a browser would break behind a hyphen.
HYPHENED = re.compile(r"\b(?:\d+(?:\.\d+)?e-\d+|\d{4}-\d\d-\d\d)\b"
                      r"|(?<!\S)--[a-z][a-z-]*")


def unbroken(html):
    """A page on which no number as 5.7e-03, date or option is broken."""
    def piece(match):
        if match[0].startswith("<"):
            return match[0]
        return HYPHENED.sub(r'<span class="uncut">\g<0></span>', match[0])
    return PIECES.sub(piece, html)


def joined(names, suffix):
    """The files of these names, one after the other."""
    return "\n".join((STATIC / f"{name}.{suffix}").read_text("utf-8")
                     for name in names)


def style():
    """The style sheet of every page."""
    return joined(STYLES, "css")


def script():
    """The script of every page."""
    return joined(SCRIPTS, "js")


def environment(**filters):
    """The templates' environment: text is escaped, nothing is undefined."""
    result = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True)
    result.filters.update(filters)
    return result
