"""Ask of every pair, and print what is said, and a table by topic.

``python -m benchmarks.dumps [TOPIC …] [--only PATTERN] [--markdown FILE]``
"""

from benchmarks import asking
from benchmarks.dumps.pair import RIGHT, outcome_of, pairs, table


def main():
    """The command."""
    asked = asking.parser(__doc__, "TOPIC").parse_args()
    outcomes = []
    for pair in pairs():
        if not asking.is_asked(asked, pair.topic, pair.name):
            continue
        made = outcome_of(pair)
        outcomes.append(made)
        told = "" if made.fate == RIGHT and pair.kind == "sound" else made.told
        print(f"{pair.topic:9}{pair.kind:15}{pair.name:30}{made.fate:15}"
              f"{made.seconds:5.1f} s  {told}", flush=True)
    asking.show(asked, "dumps", table(outcomes))


if __name__ == "__main__":
    main()
