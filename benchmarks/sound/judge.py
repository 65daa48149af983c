"""Whether a pair is sound, and what is said of it."""

import collections
import contextlib
import dataclasses
import io
import time

import numpy as np

from benchmarks.sound.pair import LIMITS, Sound
from benchmarks.sound.weights import kind_of
from parity_io.errors import InputError
from parity.causes.cause import PRECISION
from parity.causes.diff import diff
from parity.comparison.result import FLOAT32
from parity.numerics.comparator import DIVERGENCE, MATCH

#: What became of a pair: nothing was said; an alarm; a cause was named; no
#: answer was given; the program failed; or the pair itself is no pair.
SILENT, ALARM, CAUSE, NONE, CRASH, UNSOUND = (
    "silent", "false alarm", "false cause", "no verdict", "crash", "not sound")

#: Pairs that are refused, with the reason: torch.jit's modules cannot be seen.
REFUSED = {"scripted_part"}

#: Verdicts that are right.
RIGHT = MATCH, FLOAT32


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What became of one Sound.

    Attributes:
        sound: the pair.
        fate: one of the words above.
        verdict: the program's.
        told: what it names, a few words each.
        error: the largest difference of the outputs, over the largest output.
        seconds: what the answer took.
    """

    sound: Sound
    fate: str
    verdict: str
    told: list
    error: float
    seconds: float


def flat(value):
    """The arrays of an output, in order, as float64; None is left out."""
    if value is None or isinstance(value, (str, bool)):
        return []
    if isinstance(value, dict) or hasattr(value, "to_tuple"):
        return [each for item in dict(value).values() for each in flat(item)]
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in flat(item)]
    if hasattr(value, "detach"):
        value = value.detach().double()
    return [np.asarray(value, np.float64)]


def output(made):
    """What a model itself makes, as a list of arrays."""
    model, inputs, keywords = made
    if kind_of(model) == "torch":
        import torch
        with torch.no_grad():
            return flat(model(*inputs, **keywords))
    return flat(model(*inputs, **keywords))


def difference(pair):
    """The largest difference of the outputs, over the largest output.

    Raises:
        AssertionError: they are of other number or shape, not finite or the
            same everywhere.
    """
    one, two = output(pair.a()), output(pair.b())
    assert one and len(one) == len(two), (len(one), len(two))
    worst = 0.0
    for first, second in zip(one, two):
        if pair.axes and second.ndim == len(pair.axes):
            second = second.transpose(pair.axes)
        assert first.shape == second.shape, (first.shape, second.shape)
        assert np.isfinite(first).all() and np.ptp(first) > 0
        worst = max(worst, float(np.abs(first - second).max()
                                 / np.abs(first).max()))
    return worst


def ask(a, b):
    """What is said of two makers: a Comparison, explained."""
    return diff(a, b)


def outcome_of(pair):
    """Check a pair, then ask."""
    error, begun = float("nan"), time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            error = difference(pair)
        except Exception as failure:  # the bench counts it
            return Judgement(pair, UNSOUND, "", [repr(failure)[:300]], error, 0)
        if not error <= LIMITS[pair.dtype]:
            return Judgement(pair, UNSOUND, "", [], error, 0)
        begun = time.perf_counter()
        try:
            comparison = ask(pair.a, pair.b)
        except InputError as refusal:
            return Judgement(pair, NONE, "refused", [str(refusal)[:300]], error,
                             time.perf_counter() - begun)
        except Exception as failure:
            return Judgement(pair, CRASH, "", [repr(failure)[:300]], error,
                             time.perf_counter() - begun)
    seconds = time.perf_counter() - begun
    verdict = comparison.verdict
    told = [each.cause for each in comparison.explanations]
    if any(each.identified and each.cause != PRECISION
           for each in comparison.explanations):
        fate = CAUSE
    elif verdict in RIGHT and comparison.status == 0:
        fate = SILENT
    else:
        fate = ALARM if verdict == DIVERGENCE else NONE
    return Judgement(pair, fate, verdict, told, error, seconds)


def table(outcomes):
    """Lines of Markdown: what became of each topic's pairs."""
    fates = SILENT, ALARM, CAUSE, NONE, CRASH, UNSOUND
    yield f"| topic | pairs | {' | '.join(fates)} | seconds |"
    yield "|---|" + "---:|" * (len(fates) + 2)
    for topic in (*dict.fromkeys(each.sound.topic for each in outcomes), ""):
        here = [each for each in outcomes if topic in ("", each.sound.topic)]
        counts = collections.Counter(each.fate for each in here)
        yield (f"| {topic or 'all'} | {len(here)} | " + " | ".join(
            str(counts[fate]) for fate in fates)
            + f" | {sum(each.seconds for each in here):.0f} |")
