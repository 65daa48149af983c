"""Ask of every case, and print a table by bench.

``python -m benchmarks.deployed [BENCH …] [--only PATTERN] [--markdown FILE]``:
caches, compiled, exported or lite.
"""

import importlib
import json
import pathlib

from benchmarks import asking
from benchmarks.deployed.case import outcome_of, table

BENCHES = "caches", "compiled", "exported", "lite"


def main():
    """The command."""
    parser = asking.parser(__doc__, "BENCH")
    parser.add_argument("--kept", metavar="FILE", type=pathlib.Path,
                        help="keep outcomes, and count those that are there")
    asked = parser.parse_args()
    outcomes = kept(asked.kept)
    done = {(each["kind"], each["name"]) for each in outcomes}
    for name in asked.groups or BENCHES:
        module = importlib.import_module(f"benchmarks.deployed.{name}")
        for case in module.cases():
            if not asking.is_asked(asked, name, case.name) or (
                    case.kind, case.name) in done:
                continue
            made = outcome_of(case)
            outcomes.append(made.plain)
            if asked.kept:
                with asked.kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(made.plain) + "\n")
            print(f"{name:9}{case.name:34.34}{made.fate:12}"
                  f"{'place' if made.place else '':6}{made.seconds:6.1f} s  "
                  f"{made.words}", flush=True)
    asking.show(asked, "deployed", table(outcomes))


def kept(path):
    """The outcomes in a file, which several runs may write."""
    if path is None or not path.exists():
        return []
    return [*map(json.loads, path.read_text("utf-8").splitlines())]


if __name__ == "__main__":
    main()
