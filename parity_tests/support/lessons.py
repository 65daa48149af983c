"""The pages with one lesson run; the others' code stands there unrun."""

from parity.reading import lessons


def alone(number):
    """What makes the pages: ``call`` of a Site that runs one lesson."""
    def call(make, *what):
        if make is lessons.shown and what[0] != lessons.paths()[number - 1]:
            return lessons.cells(what[0]), ""
        return make(*what)
    return call
