"""What a case is, what became of it, and the table of all."""

import collections
import contextlib
import dataclasses
import io
import re
import time
from collections.abc import Callable

#: What may become of a case.
FATES = (RIGHT, FOUND, MISSED, WRONG, SILENT, ALARM, NONE, CRASH) = (
    "cause", "found", "missed", "wrong cause", "silent", "alarm",
    "no verdict", "crash")


@dataclasses.dataclass(frozen=True)
class CaseAnswer:
    """What was answered: the exit status, the causes, and all places."""

    status: int
    causes: list
    places: list


@dataclasses.dataclass(frozen=True)
class DeployedCase:
    """A fault, or a sound pair.

    Attributes:
        kind: the bench.
        name: an identifier.
        ask: returns a CaseAnswer.
        says: an expression that each cause has, if all are right; "" of what
            is sound.
        at: an expression that a right place has.
    """

    kind: str
    name: str
    ask: Callable
    says: str = ""
    at: str = ""


@dataclasses.dataclass(frozen=True)
class CaseOutcome:
    """What became of a case: its fate, whether the place was right, words."""

    case: DeployedCase
    fate: str
    place: bool
    words: str
    seconds: float

    @property
    def plain(self):
        """What a table counts."""
        return {"kind": self.case.kind, "name": self.case.name,
                "fault": bool(self.case.says), "fate": self.fate,
                "place": self.place}


def outcome_of(case):
    """Ask a DeployedCase, and judge."""
    began, place = time.perf_counter(), False
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            told = case.ask()
    except Exception as error:
        fate, words = CRASH, repr(error)[:200]
    else:
        words = f"{told.status} {'; '.join(told.causes)} {told.places[:1]}"
        place = any(re.search(case.at, each) for each in told.places[:1]
                    ) if case.at else bool(told.places)
        fate = _fate(case, told)
    return CaseOutcome(case, fate, place, words, time.perf_counter() - began)


def _fate(case, told):
    """What an answer is of what was asked."""
    if not case.says:
        if told.status == 1 or told.causes:
            return ALARM
        return SILENT if told.status == 0 else NONE
    if told.status != 1:
        return MISSED
    if not told.causes:
        return FOUND
    return RIGHT if all(re.search(case.says, cause, re.I)
                        for cause in told.causes) else WRONG


def table(outcomes):
    """Lines of Markdown: of each kind how many were found, and named.

    Args:
        outcomes: of each CaseOutcome what is ``plain``.
    """
    yield ("| bench | faults | found | place right | cause right | not named "
           "| wrong cause | crash | sound | silent | alarms | no verdict |")
    yield "|---|" + "---:|" * 11
    for kind in dict.fromkeys(each["kind"] for each in outcomes):
        here = [each for each in outcomes if each["kind"] == kind]
        faults = [each for each in here if each["fault"]]
        found = [each for each in faults
                 if each["fate"] in (RIGHT, FOUND, WRONG)]
        of = collections.Counter(each["fate"] for each in faults)
        sound = collections.Counter(
            each["fate"] for each in here if not each["fault"])
        yield " | ".join(map(str, (
            f"| {kind}", len(faults), len(found),
            sum(each["place"] for each in found), of[RIGHT], of[FOUND],
            of[WRONG], of[CRASH] + sound[CRASH], len(here) - len(faults),
            sound[SILENT], sound[ALARM], f"{sound[NONE]} |")))
