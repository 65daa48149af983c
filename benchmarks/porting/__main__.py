"""Plant every fault, and print what became of it, and a table by family.

``python -m benchmarks.porting [FAMILY …] [--markdown FILE]``: with a FILE the
table is written between its two comments.
"""

import argparse
import pathlib
import re

from benchmarks.porting.every import faults
from benchmarks.porting.planted import outcome_of, table

#: Between these the table stands in a page.
BEGIN, END = "<!-- porting -->", "<!-- /porting -->"


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="of faults, those whose names match")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    asked = parser.parse_args()
    outcomes = []
    for planted in faults():
        if asked.families and planted.family not in asked.families or (
                not re.search(asked.only, planted.name)):
            continue
        outcome = outcome_of(planted)
        outcomes.append(outcome)
        placed = outcome.planted.placed(outcome.first)
        print(f"{planted.family:18} {planted.name:28}{outcome.verdict:15}"
              f"{'elsewhere ' if placed is False else ''}"
              f"{outcome.first:40} {outcome.told}", flush=True)
    lines = "\n".join(table(outcomes))
    print(lines)
    if asked.markdown:
        page = asked.markdown.read_text(encoding="utf-8")
        asked.markdown.write_text(re.sub(
            f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{lines}\n{END}", page,
            flags=re.S), encoding="utf-8")


if __name__ == "__main__":
    main()
