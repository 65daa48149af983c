"""Ask of every planted fault and sound pair, and print a table by family.

``python -m benchmarks.families [FAMILY …] [--only PATTERN] [--markdown FILE]``:
with a FILE the table is written between its two comments. ``--kept FILE``
writes there what became of each pair, and asks of none that stands there: so
parts may be run one after another. ``--check`` asks nothing, and says how far
each pair's outputs are apart; ``--modules`` asks ``parity.compare`` and
``parity.explain``, not ``parity.diff``.
"""

import argparse
import json
import pathlib
import re
import sys

from benchmarks.families.checking import CHANGED, SOUND, difference
from benchmarks.families.every import pairs
from benchmarks.families.judging import BenchOutcome, outcome_of, table

#: Between these the table stands in a page.
BEGIN, END = "<!-- families -->", "<!-- /families -->"


def main():
    """The command; exit status 1 if --check finds a pair that is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="of pairs, those whose names match")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--modules", action="store_true",
                        help="ask of modules alone, not of operations")
    parser.add_argument("--kept", type=pathlib.Path, metavar="FILE",
                        help="what became of pairs, a line of JSON each")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    asked = parser.parse_args()
    chosen = [pair for pair in pairs(asked.families)
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
    lines = "\n".join(table(outcomes))
    print(lines)
    if asked.markdown:
        page = asked.markdown.read_text(encoding="utf-8")
        asked.markdown.write_text(re.sub(
            f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{lines}\n{END}", page,
            flags=re.S), encoding="utf-8")


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
