"""Words of anybody in Markdown, where they mark nothing."""

import re

from parity_io.errors import visible


def plain(words):
    """Words in one line, where they mark nothing."""
    return re.sub(r"([\\|<`\[\]*])", r"\\\1",
                  visible(" ".join(words.split())))


def code(words):
    """Words as code in one line, also in a table."""
    line = visible(" ".join(words.split()))
    return "`" + line.replace("`", "'").replace("|", "¦") + "`"
