"""Ask of every pair, print what is said, and a table by topic.

``python -m benchmarks.training_steps [TOPIC …] [--only PATTERN] [--markdown
FILE]``: with a FILE the table is written between its two comments.
"""

import argparse
import pathlib
import re

from benchmarks.training_steps.judge import judged, table
from benchmarks.training_steps.pair import pairs

#: Between these the table stands in a page.
BEGIN, END = "<!-- training -->", "<!-- /training -->"


def main():
    """The command; exit status 1 where an answer is not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="of pairs, those whose names match")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    asked = parser.parse_args()
    outcomes = []
    for pair in pairs():
        if not re.search(asked.only, pair.name) or asked.topics and not (
                pair.topic.startswith(tuple(asked.topics))):
            continue
        made = judged(pair)
        outcomes.append(made)
        bad = "" if is_right(made) else "WRONG "
        print(f"{pair.topic:18}{pair.name:30}{bad}{made.verdict} "
              f"{'; '.join(made.told)} {made.seconds:.1f} s "
              f"{'' if not bad else sorted(made.marks)}", flush=True)
    lines = "\n".join(table(outcomes))
    print(lines)
    if asked.markdown:
        page = asked.markdown.read_text(encoding="utf-8")
        asked.markdown.write_text(re.sub(
            f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{lines}\n{END}", page,
            flags=re.S), encoding="utf-8")
    raise SystemExit(not all(map(is_right, outcomes)))


def is_right(made):
    """Whether everything said of a pair is right."""
    if made.pair.sound:
        return made.marks == {"sound pairs"}
    return {"found", "step", "quantity", "cause right"} <= made.marks


if __name__ == "__main__":
    main()
