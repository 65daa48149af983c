"""Prove dialects on many models, and fill the page's tables.

    python -m parity_tests.originals docs/dialects.md bart t5 --seeds 20

Exit status: 0 match, 1 divergence, 4 nothing could be proved.
"""

import argparse
import pathlib
import sys

from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError
from parity import ports
from parity_tests.originals import page, run


def main(words=None):
    """Prove what these words name; say what diverges and what is missing."""
    parser = argparse.ArgumentParser(prog="python -m parity_tests.originals")
    parser.add_argument("page", type=pathlib.Path, metavar="PAGE.md")
    parser.add_argument("names", nargs="*", metavar="DIALECT")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--port", action="append")
    asked = parser.parse_args(words)
    names = asked.names or list(SYSTEMS)
    if unknown := set(names) - set(SYSTEMS):
        parser.error(f"{', '.join(sorted(unknown))} is no dialect")
    chosen = ["numpy", *ports.chosen(asked.port)]

    def say(text):
        print(text, file=sys.stderr)
    try:
        findings, left_out = run.proved(names, range(asked.seeds), chosen, say)
        searches = run.searched(names, asked.seeds, chosen, say)
    except InputError as error:
        parser.error(str(error))
    for sentence in left_out:
        print(f"not checked: {sentence}")
    different = [one for one in (*findings, *searches) if not one.matches]
    for one in different:
        print(f"DIVERGENCE: {one}")
    if not findings and not searches:
        return 4
    page.fill(asked.page, findings, searches)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
