"""Searches compared: the tokens exactly, the scores to the limits.

The truth is the reference's uncached search in float64, of all sources at once.
Held against it are the reference and every port, cached and uncached, and in
batches of several sizes, which no row may depend on.

A search decides, and where two hypotheses score alike to the last digits, the
digits decide. So a row of which the reference came nearer than GUARD limits to
another answer is left out of what is compared in that dtype, and counted.
"""

import dataclasses
import functools
import hashlib
import types

import numpy as np

from transformer_contract.generation import CHOICES, GenerationConfig
from parity.check.margins import margins
from parity.check.runners import InputsChanged, arrays_by_name
from parity.numerics import tolerances
from parity.numerics.comparator import DIVERGENCE, Difference, compare
from parity.numerics.dtypes import BOTH

#: How many limits apart two hypotheses must stand.
GUARD = 64

BEAMS = (1, 4, 8)

#: By what a search may be asked to end, and not to repeat (R56): two more ids
#: that end a target, and how many tokens may not stand twice. Of 2W candidates,
#: where there should be 4W, fewer than W go on.
ENDS_AND_BIGRAMS = "beam 4, three ends, no bigram twice"
END_SETTINGS = {"more_eos_ids": (24, 6), "no_repeat_ngram": 2}

#: The batch sizes in which the same sources are searched for.
BATCHES = (1, 3, 8)

#: Name, settings, and the dtypes that can decide it: a model trained with
#: label smoothing gives all wrong tokens nearly equal chances, so that in
#: float32 a draw from among them is always near a tie.
SAMPLES = (
    ("sample", {"seed": 1}, BOTH),
    ("sample, temperature 0.7", {"seed": 2, "temperature": 0.7}, BOTH),
    ("sample, temperature 2, top 5",
     {"seed": 3, "temperature": 2.0, "top_k": 5}, BOTH),
    ("sample, temperature 1.5, p 0.8",
     {"seed": 4, "temperature": 1.5, "top_p": 0.8}, BOTH[:1]))


@dataclasses.dataclass(frozen=True)
class SearchCase:
    """One search, under its name in tables, and where it is compared."""

    name: str
    settings: GenerationConfig
    dtypes: tuple = BOTH


def every_search(bos_id, eos_id, max_tokens):
    """Greedy search, beams of each width under each rule, and samples.

    One beam has rules of its own.
    """
    base = GenerationConfig(
        bos_id=bos_id, eos_id=eos_id, max_tokens=max_tokens)
    yield SearchCase("greedy", base)
    for beam in BEAMS:
        for rule in CHOICES["length_rule"]:
            yield SearchCase(f"beam {beam}, {rule}", base.replace(
                method="beam", beam=beam, length_rule=rule))
    yield SearchCase(ENDS_AND_BIGRAMS, base.replace(
        method="beam", **END_SETTINGS), BOTH[:1])
    for name, changes, dtypes in SAMPLES:
        yield SearchCase(name, base.replace(method="sample", **changes), dtypes)


def some_searches(bos_id, eos_id, max_tokens):
    """One search of each method, and one with rules."""
    names = {"greedy", "beam 4, paper", ENDS_AND_BIGRAMS, SAMPLES[0][0]}
    return [search for search in every_search(bos_id, eos_id, max_tokens)
            if search.name in names]


class AskedOnce:
    """A model of the reference that computes the same only once.

    Searches that differ by a rule ask it the same until the rule decides. A
    cache changes while it is asked, so that what has one is computed anew.
    """

    def __init__(self, model):
        self.model = model
        self.encode, self.decode, self.project = map(once, (
            model.encode, model.decode, model.project))

    def __getattr__(self, name):
        return getattr(self.model, name)


class RunnerAskedOnce:
    """An EngineRunner of the reference, its model as AskedOnce."""

    def __init__(self, runner):
        self.engine, self._runner = runner.engine, runner

    @functools.cached_property
    def model(self):
        """The model, built when it is first asked."""
        return AskedOnce(self._runner.model)


def once(function):
    """A function of arrays that is called once for their values.

    Of what it returns the first is kept, without what a backward needs.
    """
    results = {}

    def call(*arrays):
        if any(isinstance(caches, list) for caches in arrays):
            return function(*arrays)
        key = tuple(array is not None and (
            array.shape, array.dtype.str, hashlib.blake2b(
                np.ascontiguousarray(array).data).digest()) for array in arrays)
        if key not in results:
            results[key] = function(*arrays)[0], None
        return results[key]

    return call


@dataclasses.dataclass
class SearchOracle:
    """What the reference answers, for the rows that it decided clearly.

    Attributes:
        tokens: int64 [B W N].
        scores: float64 [B W].
        rows: which of the sources these are.
        limit: of the scores.
        close: how many rows were left out.
    """

    tokens: np.ndarray
    scores: np.ndarray
    rows: np.ndarray
    limit: float
    close: int


def truth_of(reference, low, source, settings, dtype, exact=False):
    """The truth of a search.

    Args:
        reference: an engine and model in float64.
        low: the same in ``dtype``, or None where that is float64.
        exact: whether ties are exact, so that no row is left out.
    """
    settings = settings.replace(cached=False)
    engine, model = reference
    truth = margins(engine, model, source, settings)
    finite = np.isfinite(truth["scores"])
    scale = max(1.0, np.abs(truth["scores"][finite]).max(initial=0))
    own = 0.0
    if low:
        engine, model = low
        ours = engine.generate(model, source, settings)
        same = np.all(ours["tokens"] == truth["tokens"], axis=(1, 2))
        own = compare(ours["scores"][same], truth["scores"][same], np.inf,
                      least=least_score(truth["scores"][same])).error
        if own is None:
            own = np.inf
    threshold = GUARD * tolerances.limit(dtype, own, inner=True) * scale
    threshold = -np.inf if exact else threshold
    rows = np.flatnonzero(truth["margins"] > threshold)
    return SearchOracle(truth["tokens"][rows], truth["scores"][rows], rows,
                       tolerances.score_limit(dtype, own),
                       len(source) - len(rows))


def least_score(scores):
    """The L2 norm of as many scores of 1, which smaller ones are held against.

    A score is a logarithm: its absolute error is a probability's relative one.
    And near 0 it is what is left of a logit and a log of a sum.
    """
    return float(np.sqrt(scores.size))


def searched(engine, model, source, settings, batch):
    """All sources' tokens [B W N] and scores [B W], ``batch`` at a time.

    The last batch is as large as the others: it has some sources again.
    """
    tokens, scores = [], []
    for start in range(0, len(source), batch):
        rows = np.arange(len(source))[start:][:batch]
        full = np.arange(len(source))[-batch:] if len(rows) < batch else rows
        sources = source[full]
        part = arrays_by_name(
            engine.generate(model, sources, settings, rows=full.copy()))
        if not np.array_equal(sources, source[full]):
            raise InputsChanged("it wrote into its sources")
        for name, array in part.items():
            if len(array) != len(full):
                raise ValueError(
                    f"it returned {len(array)} {name} of {len(full)} sources")
        tokens.append(part["tokens"][-len(rows):])
        scores.append(part["scores"][-len(rows):])
    return np.concatenate(tokens), np.concatenate(scores)


def runs(runner, source, settings, batches):
    """What a runner's model answers, uncached and cached, in every batch size.

    {cached: [(tokens, scores)]}.
    """
    return {cached: [
        searched(runner.engine, runner.model, source,
                 settings.replace(cached=cached), batch) for batch in batches]
        for cached in (False, True)}


def answers(bench, model, *search):
    """What a port's model answers, as ``runs``."""
    return runs(bench.runner(model), *search)


def compared(engine, model, source, settings, truth, batches):
    """{step name: Difference} of one implementation's search."""
    return judged(runs(types.SimpleNamespace(engine=engine, model=model),
                       source, settings, batches), settings, truth)


def judged(runs_by_cache, settings, truth):
    """{step name: Difference} of what ``runs`` found.

    Each step holds every batch size, one after the other. What structure
    shows of a divergence's cause stands in its reason.
    """
    differences = {}
    for cached, runs in runs_by_cache.items():
        tokens, scores = (
            np.concatenate([np.asarray(run[i])[truth.rows] for run in runs])
            for i in (0, 1))
        expected = [np.concatenate([array] * len(runs))
                    for array in (truth.tokens, truth.scores)]
        way = "cached" if cached else "uncached"
        differences[f"tokens, {way}"] = compare(tokens, expected[0], 0.0)
        # Where tokens part, scores are another hypothesis'.
        differences[f"scores, {way}"] = compare(
            scores, expected[1], truth.limit, "float64",
            least=least_score(expected[1]))
        if differences[f"tokens, {way}"].verdict == DIVERGENCE:
            words = cause(runs, truth, settings, differences, way)
            differences[f"tokens, {way}"] = dataclasses.replace(
                differences[f"tokens, {way}"], reason=words)
    return differences


def cause(runs, truth, settings, differences, way):
    """In a few words, what the tokens themselves say of why they differ."""
    first = differences[f"tokens, {way}"].reason
    if any(tokens.shape[1:] != truth.tokens.shape[1:] for tokens, _ in runs):
        return first
    alone = way == "cached" and (
        differences["tokens, uncached"].verdict != DIVERGENCE)
    return next((name for name, shows in SHOWN.items()
                 if shows(runs, truth, settings, alone)), first)


def goes_on(tokens, eos_ids):
    """Whether anything but one filler stands behind an end: tokens [B W N]."""
    ends = np.isin(tokens, eos_ids)
    ended = np.cumsum(ends, axis=-1) > 0
    behind = tokens[..., 1:][ended[..., :-1]]
    return behind.size > 0 and np.unique(behind).size > 1 or bool(
        (np.sum(ends, axis=-1) > 1).any())


def twice(tokens, scores):
    """Whether a row has two equal hypotheses with a finite score."""
    return any(
        len(np.unique(row[np.isfinite(score)], axis=0))
        < np.isfinite(score).sum() for row, score in zip(tokens, scores))


def depends(runs, truth):
    """Whether a row is right in a batch of one size and wrong in another."""
    right = [np.array_equal(tokens[truth.rows], truth.tokens)
             for tokens, _ in runs]
    return any(right) and not all(right)


#: A cause -> whether runs of several batch sizes show it, given whether they
#: are wrong with the cache alone; the first that shows is told.
SHOWN = {
    "a target goes on after its end":
        lambda runs, truth, settings, alone: any(
            goes_on(tokens, settings.eos_ids) for tokens, _ in runs),
    "one hypothesis stands twice":
        lambda runs, truth, settings, alone: any(
            twice(*run) for run in runs),
    "a row depends on its batch":
        lambda runs, truth, settings, alone: depends(runs, truth),
    "only with the cache: keys and values are not those of the hypothesis":
        lambda runs, truth, settings, alone: alone and (
            settings.method == "beam" and settings.beam > 1),
}


def failed(truth, words):
    """Every step as a divergence, of an implementation that cannot search."""
    return {f"{what}, {way}": Difference(None, limit, DIVERGENCE, words)
            for way in ("uncached", "cached")
            for what, limit in (("tokens", 0.0), ("scores", truth.limit))}
