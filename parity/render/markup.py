"""What all pages are made with: templates, style and script."""

import pathlib

import jinja2

HERE = pathlib.Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"


def environment(**filters):
    """The templates' environment: text is escaped, nothing is undefined."""
    result = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True)
    result.filters.update(filters)
    return result
