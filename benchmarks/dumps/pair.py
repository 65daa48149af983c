"""What the bench holds, and the judgement of what is told of it."""

import collections
import dataclasses
import importlib
import io
import re
import tempfile
import time
import typing
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from parity_io.errors import InputError
from parity.comparison.compare import compare
from parity.numerics.comparator import DIVERGENCE

#: Files of pairs: the topics.
FILES = ("engines", "ids", "tokenizers", "images", "sounds")

#: What became of a pair. RIGHT: of a fault, the cause or the place; of others,
#: that nothing false was said.
RIGHT, NOTHING, WRONG, MISSED, CRASH = (
    "right", "not identified", "wrong", "missed", "crash")

FAULT, SAME, UNKNOWN = "fault", "sound", "no known cause"

#: Name -> DumpPair, in the order in which they are defined.
PAIRS: dict = {}


@dataclasses.dataclass(frozen=True)
class DumpPair:
    """Two sides to compare.

    Attributes:
        name: an identifier, the only one of its name.
        topic: the file that defines it.
        kind: FAULT, SAME or UNKNOWN.
        make: called with an empty folder; returns two Traces.
        says: of a fault: what the sentence on the inputs is to have, or
            what the path of the first step in a is to match.
        place: whether ``says`` is of a path.
        words: what is different.
    """

    name: str
    topic: str
    kind: str
    make: typing.Callable
    says: str = ""
    place: bool = False
    words: str = ""


def fault(says, place=False, name=""):
    """Put a function that makes both sides on the list of faults."""
    return lambda make: _add(make, FAULT, says, place, name)


def same(make, name=""):
    """Put a function on the list of sound pairs."""
    return _add(make, SAME, "", False, name)


def unknown(make):
    """Put a function on the list of what has no cause that could be told."""
    return _add(make, UNKNOWN, "", False, "")


def _add(make, kind, says, place, name):
    name = name or make.__name__
    if name in PAIRS:
        raise ValueError(f"two pairs are named {name}; rename one.")
    PAIRS[name] = DumpPair(name, make.__module__.rpartition(".")[2], kind,
                           make, says, place, make.__doc__ or "")
    return make


def pairs():
    """Every DumpPair of FILES."""
    for name in FILES:
        importlib.import_module(f"benchmarks.dumps.{name}")
    return [*PAIRS.values()]


@dataclasses.dataclass(frozen=True)
class DumpOutcome:
    """What became of a DumpPair: a word, what was told, and the seconds."""

    pair: DumpPair
    fate: str
    told: str
    seconds: float


def outcome_of(pair):
    """Ask of a pair, and judge."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(
            io.StringIO()), redirect_stdout(io.StringIO()):
        try:
            a, b = pair.make(Path(folder))
            began = time.perf_counter()
            comparison = compare(a, b)
            told, first = comparison.sentence(), comparison.first
            verdict = comparison.verdict
        except InputError as error:
            told, first, verdict = str(error), None, "inputs"
        except Exception as error:  # the bench counts it
            return DumpOutcome(pair, CRASH, repr(error)[:300], 0.0)
    return DumpOutcome(pair, judged(pair, verdict, first, told), told,
                       time.perf_counter() - began)


def judged(pair, verdict, first, told):
    """What became of a pair.

    Args:
        verdict: of the comparison; "inputs" where the inputs differ.
        first: the first row that differs, or None.
        told: the sentence.
    """
    cause = cause_of(told) if verdict == "inputs" else ""
    if pair.kind == SAME:
        return WRONG if verdict in ("inputs", DIVERGENCE) else RIGHT
    if pair.kind == UNKNOWN:
        return MISSED if verdict != "inputs" else WRONG if cause else RIGHT
    if pair.place:
        if verdict != DIVERGENCE:
            return MISSED
        return RIGHT if re.fullmatch(pair.says, first.a) else WRONG
    if verdict != "inputs":
        return MISSED
    if not cause:
        return NOTHING
    return RIGHT if re.fullmatch(pair.says, cause) else WRONG


def cause_of(told):
    """The cause in a sentence on inputs; "" where none is told.

    Where ids or texts part is no cause: what stands behind it is.
    """
    found = re.search(r" differ, (.*); trace both", told, re.S)
    words = found[1] if found else ""
    parting = re.match(
        r"(?:ids differ at|texts differ at|a has|shape \[)", words)
    if not parting:
        return words
    if words.startswith("shape ["):
        return re.sub(r"^shape \[.*?\] in a, \[.*?\] in b(, )?", "", words)
    return words if re.search(r" in b: ", words) else ""


def table(outcomes):
    """Lines of Markdown: what became of each topic's pairs."""
    yield ("| topic | faults | right | not identified | wrong | missed | crash "
           "| sound pairs | alarms | no known cause | told a cause |")
    yield "|---|" + "---:|" * 10
    for topic in (*dict.fromkeys(each.pair.topic for each in outcomes), ""):
        here = [each for each in outcomes if topic in ("", each.pair.topic)]
        fates = {kind: collections.Counter(
            each.fate for each in here if each.pair.kind == kind)
            for kind in (FAULT, SAME, UNKNOWN)}
        count = {kind: sum(fates[kind].values()) for kind in fates}
        yield (f"| {topic or 'all'} | {count[FAULT]} | " + " | ".join(
            str(fates[FAULT][fate]) for fate in (
                RIGHT, NOTHING, WRONG, MISSED, CRASH))
            + f" | {count[SAME]} | {count[SAME] - fates[SAME][RIGHT]}"
            f" | {count[UNKNOWN]} | {count[UNKNOWN] - fates[UNKNOWN][RIGHT]} |")
