"""Ask of one pair, and say whether the answer is right."""

import dataclasses
import time

from parity.comparison.verdicts import FLOAT32
from parity.numerics.comparator import DIVERGENCE
from parity.training.diff_training import diff_training

COLUMNS = ("faults", "found", "step", "quantity", "cause right",
           "not identified", "wrong", "sound pairs", "alarms", "crash",
           "seconds")


@dataclasses.dataclass
class Judged:
    """What was said of a pair.

    Attributes:
        pair: the TrainingPair.
        verdict, told: the verdict, and the causes as texts.
        marks: the COLUMNS that it counts in.
        seconds: how long it took.
    """

    pair: object
    verdict: str
    told: list
    marks: set
    seconds: float


def judged(pair):
    """Compare the two trainings of a pair; a Judged."""
    began = time.perf_counter()
    kind = {"sound pairs" if pair.sound else "faults"}
    try:
        made = diff_training(*pair.make(), pair.steps)
    except Exception as error:
        return Judged(pair, "crash", [repr(error)[:200]], kind | {"crash"},
                      time.perf_counter() - began)
    causes = [each for each in made.causes if not each.rounding]
    told = [f"{each.what or '?'}: {each.in_a} / {each.in_b}"
            for each in causes]
    if pair.sound:
        silent = made.verdict != DIVERGENCE and not causes and (
            made.verdict != FLOAT32 or pair.narrow)
        marks = kind | (set() if silent else {"alarms"})
    else:
        names = {each.what for each in causes if each.what}
        first = made.first
        marks = kind | {word for word, is_so in (
            ("found", made.verdict == DIVERGENCE),
            ("step", first and first.step == pair.step),
            ("quantity", first and first.quantity == pair.quantity),
            ("cause right", names == {*pair.causes}),
            ("wrong", names - {*pair.causes}),
            ("not identified", not names)) if is_so}
    return Judged(pair, made.verdict, told, marks,
                  time.perf_counter() - began)


def table(outcomes):
    """The lines of a table by topic, in Markdown."""
    yield f"| topic | {' | '.join(COLUMNS)} |"
    yield "|---|" + "---:|" * len(COLUMNS)
    topics = [*dict.fromkeys(each.pair.topic for each in outcomes)]
    for topic in (*topics, "all"):
        some = [each for each in outcomes if topic in (
            "all", each.pair.topic)]
        cells = [str(sum(name in each.marks for each in some))
                 for name in COLUMNS[:-1]]
        cells.append(f"{sum(each.seconds for each in some):.0f}")
        yield f"| {topic} | {' | '.join(cells)} |"
