"""Bad inputs for commands, and what must hold of each answer."""

import os
import re
import time

from hypothesis import HealthCheck, settings
from typer.testing import CliRunner

from parity.cli import app

#: How many inputs a test tries; PARITY_FUZZ multiplies it.
TIMES = int(os.environ.get("PARITY_FUZZ", "1"))

#: Statuses that a command may end with, and the CPU seconds it may take,
#: with the import of a framework.
STATUSES, SECONDS = (0, 1, 2, 3, 4), 10


def tries(count):
    """Hypothesis' settings: the same inputs each time, so many of them."""
    return settings(
        max_examples=count * TIMES, derandomize=True, deadline=None,
        database=None, suppress_health_check=list(HealthCheck))


def answered(words):
    """Run a command; assert that it ends well, and return its result."""
    start = time.process_time()
    found = CliRunner().invoke(app, [str(word) for word in words])
    seconds = time.process_time() - start
    about = f"{words!r}\n{found.output[-3000:]}"
    assert found.exit_code in STATUSES, about
    assert "Traceback" not in found.output, about
    assert "Warning" not in found.stderr, about
    assert seconds < SECONDS, f"{seconds:.0f} s: {about}"
    if found.exit_code == 2 and "Usage: " not in found.stderr:
        lines = [line for line in found.stderr.splitlines() if line]
        assert lines and all(line.startswith("parity: ") for line in lines), (
            about)
        assert all(len(line) < 2100 for line in lines), about
        assert not any(map(doubled, lines)), about
    return found


def doubled(text):
    """Where a sentence of ours ends twice, as in ``'a.'.`` and ``(b.);``.

    What is quoted is of others, and is left out.
    """
    return re.search(r"""[.][.]($|\s)|[.][”’"')\]]+[.;,]|[.][)\]][.;]?$""",
                     re.sub(r"'[^']*'", "", text))
