"""A comparison of two training runs as a page that holds all it needs."""


from markupsafe import Markup

from parity_io.files import write_whole
from parity.comparison import card_html
from parity.numerics.words import number
from parity.render import markup


def write_html(comparison, path):
    """Write the page; raises InputError where it cannot be written."""
    write_whole(path, as_html(comparison))


def as_html(comparison):
    """The page of a training.answer.TrainingComparison, as text."""
    pages = markup.environment(number=number)
    return markup.unbroken(pages.get_template("report-training.html").render(
        style=Markup(markup.style()), comparison=comparison,
        card=Markup(card_html.html(comparison.card()))))
