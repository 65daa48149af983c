"""Numbers as texts of a table."""

#: What is said where a model is one of milliseconds.
TINY = "A tiny model, to see that all runs: its times say nothing."


def number(value, form, scale=1):
    """A number as text; empty for none."""
    return "" if value is None else format(value * scale, form)


def milliseconds(seconds):
    """Seconds as milliseconds in three digits or more; empty for none."""
    return "" if seconds is None else format(
        seconds * 1e3, ".3g" if seconds < 0.1 else ".0f")
