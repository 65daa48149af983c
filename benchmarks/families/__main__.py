"""Ask of every planted fault and sound pair, and print a table by family.

``python -m benchmarks.families [FAMILY …] [--only PATTERN] [--markdown FILE]``:
``--kept FILE`` writes there what became of each pair, and asks of none that
stands there: so parts may be run one after another. ``--check`` asks nothing,
and says how far each pair's outputs are apart; ``--modules`` asks
``parity.compare`` and ``parity.explain``, not ``parity.diff``.
"""

import json
import pathlib
import re
import sys

from benchmarks import asking
from benchmarks.families.checking import CHANGED, SOUND, difference
from benchmarks.families.every import pairs
from benchmarks.families.judging import BenchOutcome, outcome_of, table


def main():
    """The command; exit status 1 if --check finds a pair that is none."""
    parser = asking.parser(__doc__, "FAMILY")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--modules", action="store_true",
                        help="ask of modules alone, not of operations")
    parser.add_argument("--kept", type=pathlib.Path, metavar="FILE",
                        help="what became of pairs, a line of JSON each")
    asked = parser.parse_args()
    chosen = [pair for pair in pairs(asked.groups)
              if re.search(asked.only, pair.name)]
    if asked.check:
        sys.exit(sum([not checked(pair) for pair in chosen]) > 0)
    outcomes, before = [], kept(asked.kept)
    for pair in chosen:
        way = "across" if pair.across else "within"
        key = [pair.family, pair.name, way, str(pair.where)]
        if outcome := before.get(tuple(key)):
            outcomes.append(BenchOutcome(pair, **outcome))
            continue
        outcome = outcome_of(pair, not asked.modules)
        outcomes.append(outcome)
        if asked.kept:
            with asked.kept.open("a", encoding="utf-8") as file:
                print(json.dumps([*key, {
                    name: value for name, value in vars(outcome).items()
                    if name != "pair"}]), file=file)
        print(f"{pair.family:12} {way} {pair.name:32} {outcome.verdict:15}"
              f"{outcome.seconds:4.0f} s  {' ¶ '.join(outcome.told)[:500]}",
              flush=True)
    asking.show(asked, "families", table(outcomes))


def kept(file):
    """{(family, name, way, lines): what became of it} of a file that has
    it."""
    lines = file.read_text(encoding="utf-8").splitlines() if (
        file and file.exists()) else ()
    return {tuple(key): outcome for *key, outcome in map(json.loads, lines)}


def checked(pair):
    """Whether a fault changes an output, and a sound pair does not."""
    try:
        error = difference(pair)
    except Exception as reason:
        print(f"{pair.family:12} {pair.name:32} {reason!r}"[:400], flush=True)
        return False
    good = error < SOUND if pair.sound else error > (
        SOUND if pair.across else CHANGED)
    print(f"{pair.family:12} {pair.name:32} {error:9.1e} "
          f"{'' if good else 'NO'} {pair.where}", flush=True)
    return good


if __name__ == "__main__":
    main()
