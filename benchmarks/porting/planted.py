"""One planted fault, and what became of it."""

import collections
import contextlib
import dataclasses
import io
import re
import typing

from benchmarks.porting.hugging_face import copies
from parity.causes.cause import PRECISION
from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.comparison.result import FLOAT32
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.tracing.trace import trace

#: What became of a planted fault.
RIGHT, UNKNOWN, WRONG, CRASH = "right", "not identified", "wrong", "crash"

#: What is told of a fault that nobody knows: nothing, or what stands behind.
NOBODYS = [()]

#: Where a cause first shows, by what is told of it: an expression that the
#: name of the first diverging step matches.
PLACES = {
    "epsilon": "norm|ln|input", "epsilon's place": "norm", "mean": "norm",
    "activation": "act|mlp|fc|intermediate|wi|dense|inner|outer|linear|ff",
    "mask": "att|mha", "shared heads": "attn", "gate": "mlp|gate|dense|wi",
    "rotary base": "rotary|attn", "rotary factor": "rotary|attn",
    "rotary pairs": "attn", "rotary direction": "attn", "rotary on": "attn",
    "first position": "pos|wpe|embed|rotary|attn",
    "buckets": "att|bias", "greatest distance": "att|bias",
}


@dataclasses.dataclass(frozen=True)
class Planted:
    """A fault in a copy of a model, or in a port of it.

    Attributes:
        family: which model.
        name: what is wrong, in a word or two.
        causes: what is told of it: (cause, what it is in a, and in b) each,
            of which others than the first may be left out; [] of equal models.
        config: fields of the copy's config.
        change: what is done to the copy.
        both: fields of both models' config.
        verdict: what is said of the two, where it is not that of the causes.
        models: makes both, each with its arguments and keywords, instead of
            Hugging Face's and a copy.
        at: where it first shows, as in PLACES.
        across: whether the two are of different libraries, so that float32
            inside one of them may be told as well.
    """

    family: str
    name: str
    causes: list
    config: dict = dataclasses.field(default_factory=dict)
    change: typing.Callable | None = None
    both: dict = dataclasses.field(default_factory=dict)
    verdict: str = ""
    models: typing.Callable | None = None
    at: str = ""
    across: bool = False

    @property
    def expected(self):
        """The verdicts that are right."""
        if self.across and not self.causes:
            return {MATCH, FLOAT32}
        return {self.verdict or (DIVERGENCE if self.causes else MATCH)}

    def judged(self, verdict, told):
        """What became of it, by the verdict and what was told, () for what is
        not identified."""
        if self.across and self.causes[:1] != NOBODYS:
            told = [each for each in told if each[:1] != (PRECISION,)]
        if verdict not in self.expected or not {*told} <= {(), *self.causes}:
            return WRONG
        if self.causes[:1] == NOBODYS:  # and no other is named first
            return RIGHT if told[:1] == NOBODYS else WRONG
        return RIGHT if {*self.causes[:1]} <= {*told} else UNKNOWN

    def placed(self, first):
        """Whether a fault was first seen where it is; None if it has no place.
        """
        cause = self.causes[0][0] if self.causes and self.causes[0] else ""
        at = (self.at or PLACES.get(cause, "")) if self.causes else ""
        return bool(re.search(at, first, re.I)) if at else None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one Planted: a verdict, what was told and where."""

    planted: Planted
    verdict: str
    told: list
    first: str = ""


def outcome_of(planted):
    """Plant a fault, compare and explain."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            both = (planted.models or copies)(planted)
            if planted.change:
                planted.change(both[1][0])
            traces = [trace(model, *given, **named)
                      for model, given, named in both]
            comparison = compare(*traces)
            told = explain(comparison, *traces)
    except Exception as error:  # the bench counts it
        return Outcome(planted, CRASH, [repr(error)[:200]])
    named = [(each.cause, each.in_a, plain(each.in_b)) if each.identified
             else () for each in told]
    return Outcome(planted, planted.judged(comparison.verdict, named), named,
                   comparison.first.name if comparison.first else "")


def plain(words):
    """What is told without which order it is."""
    return words.partition(" order: ")[0] + " order" * (" order: " in words)


def table(outcomes):
    """Lines of Markdown: what became of each family's, and where it showed."""
    yield ("| family | planted | cause right | not identified | wrong | crash "
           "| first step right |")
    yield "|---|---:|---:|---:|---:|---:|---:|"
    families = dict.fromkeys(each.planted.family for each in outcomes)
    for family in (*families, ""):
        here = [each for each in outcomes
                if family in ("", each.planted.family)]
        counts = collections.Counter(each.verdict for each in here)
        places = [place for each in here if each.verdict != CRASH and (
            place := each.planted.placed(each.first)) is not None]
        yield (f"| {family or 'all'} | {len(here)} | " + " | ".join(
            str(counts[word]) for word in (RIGHT, UNKNOWN, WRONG, CRASH))
            + f" | {sum(places)} of {len(places)} |")
