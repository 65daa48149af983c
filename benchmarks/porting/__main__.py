"""Plant every fault, and print what became of it, and a table by family.

``python -m benchmarks.porting [FAMILY …] [--only PATTERN] [--markdown FILE]``
"""

from benchmarks import asking
from benchmarks.porting.every import faults
from benchmarks.porting.planted import RIGHT, outcome_of, table


def main():
    """The command; exit status 1 where an outcome is not right."""
    asked = asking.parser(__doc__, "FAMILY").parse_args()
    outcomes = []
    for planted in faults():
        if not asking.is_asked(asked, planted.family, planted.name):
            continue
        outcome = outcome_of(planted)
        outcomes.append(outcome)
        placed = outcome.planted.placed(outcome.first)
        print(f"{planted.family:18} {planted.name:28}{outcome.verdict:15}"
              f"{'elsewhere ' if placed is False else ''}"
              f"{outcome.first:40} {outcome.told}", flush=True)
    asking.show(asked, "porting", table(outcomes))
    raise SystemExit(any(each.verdict != RIGHT for each in outcomes))


if __name__ == "__main__":
    main()
