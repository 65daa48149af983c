"""Why a search diverges: which known fault searches just as the port did."""

import types

import numpy as np

from transformer_contract.config import PRESETS
from parity.causes.faults.generation import TOPIC
from parity.diagnosis.run_diagnosis import RunDiagnosis
from parity.check import cases, generation, golden, run, search_runs
from parity.check.search_runs import SearchedModel
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.tolerances import FLOAT64_LIMIT

#: In how many rows at a time sources are searched for, beside all at once.
FEW = 4


def searched_models():
    """{what tables call it: SearchedModel} of all that the check searches."""
    found = {f"{model.name} words": model
             for model in search_runs.searched_models()}
    for name in PRESETS:
        config = cases.test_size(name)
        found[name] = SearchedModel(
            name, config, golden.shipped(name),
            cases.padded_batch(config).source,
            tuple(generation.some_searches(1, 2, run.SHORT)))
    return found


def diagnosis_of(title, name):
    """The SearchDiagnosis of a model's search, or None if there is none."""
    model = searched_models().get(title.removesuffix(", fast"))
    return next((SearchDiagnosis(model, search)
                 for search in (model.searches if model else ())
                 if search.name == name), None)


class SearchDiagnosis(RunDiagnosis):
    """Looks for the causes of a search that diverges.

    Args:
        model: a SearchedModel.
        search: one of its Searches.
    """

    def __init__(self, model, search):
        super().__init__(
            search.name, "tokens, uncached", FLOAT64_LIMIT, (TOPIC,),
            (model.source, np.ascontiguousarray(model.source[::-1, ::-1])))
        self.model, self.search = model, search

    def answers(self, engine, probe):
        """Tokens and scores, uncached and cached, in batches of two sizes."""
        model = types.SimpleNamespace(engine=engine, model=engine.build(
            "transformer", self.model.config, dict(self.model.weights)))
        batches = len(probe), min(FEW, len(probe))
        return {
            f"{what}, {'cached' if cached else 'uncached'}":
            np.concatenate([found[i] for found in runs])
            for cached, runs in generation.runs(
                model, probe, self.search.settings, batches).items()
            for i, what in enumerate(("tokens", "scores"))}

    def first_divergence(self, actual, truth):
        """The first step in which two searches differ, and a Difference."""
        for name, expected in truth.items():
            if np.array_equal(actual[name], expected):
                continue
            difference = compare(
                actual[name], expected,
                0.0 if expected.dtype.kind in "iu" else FLOAT64_LIMIT)
            if difference.verdict == DIVERGENCE:
                return name, difference
        return None
