"""The catalogue as a page of Markdown, which docs/causes.md is."""

from parity.causes import catalogue

HEAD = """# What goes wrong

Every cause that this project knows, by topic. Each is written down once, in
`parity/causes/faults/`, and from there it is put into our ports by
`parity check faults`, named by `parity check`, found in anybody's model by
`parity compare`, and hinted at by `parity.assert_parity`.
`parity check faults --markdown docs/causes.md` writes this page.

The third column names the case and the step at which our ports show a cause
first. The fourth is what `parity compare` says of it. “hint: yes” means that
`parity.assert_parity` recognises it from the two arrays alone.
"""

TITLES = ("cause", "what it is", "in our ports", "in two traces", "hint")


def page():
    """The whole text."""
    parts = [HEAD]
    for topic in topics(catalogue.causes()):
        lines = [f"## {topic[0].upper()}{topic[1:]}\n", row(TITLES),
                 row(["---"] * len(TITLES))]
        parts.append("\n".join([*lines, *(
            row(cells(cause)) for cause in catalogue.causes()
            if cause.topic == topic)]) + "\n")
    return "\n".join(parts)


def topics(causes):
    """Every topic, in the order in which causes have them."""
    return list(dict.fromkeys(cause.topic for cause in causes))


def row(cells):
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def cells(cause):
    """What stands in a cause's columns."""
    ours = f"{cause.case}, {cause.step}"
    if cause.equivalent:
        ours = f"no fault: {cause.equivalent}"
    elif not cause.put:
        ours = f"not put: {cause.not_put}"
    theirs = "; ".join(
        f"{name}: {' or '.join(map(str, catalogue.alternatives(value)))}"
        for name, value in cause.settings.items())
    if cause.not_explained:
        theirs = f"not told: {cause.not_explained}"
    return (cause.name, cause.sentence, ours, theirs,
            "yes" if cause.hinted else "")
