"""What holds of every explanation."""

from parity.causes import catalogue


def known(explanations):
    """Explanations, each of which the catalogue has a name for."""
    for each in explanations:
        assert bool(each.names) == each.identified, each.text()
        for name in each.names:
            assert catalogue.by_name(name).explained
    return explanations
