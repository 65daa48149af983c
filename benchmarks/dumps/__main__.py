"""Ask of every pair, and print what is said, and a table by topic.

``python -m benchmarks.dumps [TOPIC …] [--only PATTERN] [--markdown FILE]``:
with a FILE the table is written between its two comments.
"""

import argparse
import pathlib
import re

from benchmarks.dumps.pair import RIGHT, outcome_of, pairs, table

#: Between these the table stands in a page.
BEGIN, END = "<!-- dumps -->", "<!-- /dumps -->"


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="of pairs, those whose names match")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    asked = parser.parse_args()
    outcomes = []
    for pair in pairs():
        if not re.search(asked.only, pair.name) or asked.topics and (
                pair.topic not in asked.topics):
            continue
        made = outcome_of(pair)
        outcomes.append(made)
        told = "" if made.fate == RIGHT and pair.kind == "sound" else made.told
        print(f"{pair.topic:9}{pair.kind:15}{pair.name:30}{made.fate:15}"
              f"{made.seconds:5.1f} s  {told}", flush=True)
    lines = "\n".join(table(outcomes))
    print(lines)
    if asked.markdown:
        page = asked.markdown.read_text(encoding="utf-8")
        asked.markdown.write_text(re.sub(
            f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{lines}\n{END}", page,
            flags=re.S), encoding="utf-8")


if __name__ == "__main__":
    main()
