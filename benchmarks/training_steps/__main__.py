"""Ask of every pair, print what is said, and a table by topic.

``python -m benchmarks.training_steps [TOPIC …] [--only PATTERN] [--markdown
FILE]``
"""

from benchmarks import asking
from benchmarks.training_steps.judge import judged, table
from benchmarks.training_steps.pair import pairs


def main():
    """The command; exit status 1 where an answer is not right."""
    asked = asking.parser(__doc__, "TOPIC").parse_args()
    outcomes = []
    for pair in pairs():
        if not asking.is_asked(asked, pair.topic, pair.name):
            continue
        made = judged(pair)
        outcomes.append(made)
        bad = "" if is_right(made) else "WRONG "
        print(f"{pair.topic:18}{pair.name:30}{bad}{made.verdict} "
              f"{'; '.join(made.told)} {made.seconds:.1f} s "
              f"{'' if not bad else sorted(made.marks)}", flush=True)
    asking.show(asked, "training", table(outcomes))
    raise SystemExit(not all(map(is_right, outcomes)))


def is_right(made):
    """Whether everything said of a pair is right."""
    if made.pair.sound:
        return made.marks == {"sound pairs"}
    return {"found", "step", "quantity", "cause right"} <= made.marks


if __name__ == "__main__":
    main()
