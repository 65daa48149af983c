"""Ask of every sound pair, and print what is said, and a table by topic.

``python -m benchmarks.sound [TOPIC …] [--only PATTERN] [--markdown FILE]``
"""

from benchmarks import asking
from benchmarks.sound.judge import (
    LIMITS, REFUSED, SILENT, difference, outcome_of, table)
from benchmarks.sound.pair import pairs


def main():
    """The command; exit status 1 where a pair is not sound, or all but silent.
    """
    parser = asking.parser(__doc__, "TOPIC")
    parser.add_argument("--check", action="store_true",
                        help="only whether the pairs are sound")
    asked = parser.parse_args()
    chosen = [each for each in pairs()
              if asking.is_asked(asked, each.topic, each.name)]
    if asked.check:
        raise SystemExit(check(chosen))
    outcomes = []
    for each in chosen:
        made = outcome_of(each)
        outcomes.append(made)
        told = "" if made.fate == SILENT else " ".join(
            [made.verdict, *map(str, made.told)])
        print(f"{each.topic:22}{each.name:34}{made.fate:13}"
              f"{made.error:9.1e}{made.seconds:7.1f} s  {told}", flush=True)
    asking.show(asked, "sound", table(outcomes))
    raise SystemExit(any(each.fate != SILENT for each in outcomes
                         if each.sound.name not in REFUSED))


def check(chosen):
    """Print how near the outputs of each pair are; whether any is too far."""
    failed = 0
    for each in chosen:
        try:
            error = difference(each)
            bad = "" if error <= LIMITS[each.dtype] else "NOT SOUND"
        except Exception as failure:
            error, bad = float("nan"), f"NOT SOUND {failure!r}"[:500]
        failed += bool(bad)
        print(f"{each.topic:22}{each.name:34}{each.dtype:16}{error:9.1e} "
              f"{bad}", flush=True)
    print(f"{len(chosen)} pairs, {failed} not sound")
    return bool(failed)


if __name__ == "__main__":
    main()
