"""What a mutant is asked: all that the check can ask of one port.

A question is a name and a function of a Examinee that answers {step:
Difference}. Truths are the reference's, computed once and kept.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from parity.check import (
    cases, generation, golden, lockstep, search_runs, seeds, training_runs,
    wide, workers)
from parity.check.run import SHORT
from parity.check.runners import EngineRunner, Reference, compare_steps
from parity.numerics import rounding
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference

#: Two presets that differ in most; the wide models have the other variants.
PRESETS = ("lesson", "vaswani2017_base")

#: Wider ones of the wide models are left out: they take most of the time.
WIDEST = 100

#: Models are checked in these as well.
LOW = ("float32", "bfloat16", "float16")

#: How the names of those begin that are many and kill few: wide models, and
#: models that are searched in every way.
LAST = "wide ", *(f"{name}: " for name in ("babbling", "narrow", "tied"))

#: How many steps are trained.
STEPS = 3


@dataclasses.dataclass(frozen=True)
class Question:
    """One thing that is asked.

    Attributes:
        name: what it is called in reports.
        ask: Examinee -> {step: Difference}.
    """

    name: str
    ask: Callable


class Examinee:
    """An engine and the models that were built with it."""

    def __init__(self, engine):
        self.engine, self._runners = engine, {}

    def runner(self, model, dtype="float64"):
        """The EngineRunner of a ModelTruth, built once."""
        if (model.name, dtype) not in self._runners:
            self._runners[model.name, dtype] = EngineRunner(
                self.engine, model.config,
                copy.deepcopy(model.reference(dtype).arrays), dtype)
        return self._runners[model.name, dtype]


class ModelTruth:
    """A model of which ports are asked, with what is true of it.

    Args:
        name: tells it from others.
        config: a TransformerConfig.
        weights: what makes its float64 arrays by name.
    """

    def __init__(self, name, config, weights):
        self.name, self.config = name, config
        self.reference = functools.cache(
            lambda dtype: Reference(config, weights(), dtype))

    def case(self, case, dtype="float64"):
        """The question of a Case."""
        truth = functools.cache(lambda: self.reference(dtype).truth(case))

        def ask(examinee):
            inputs = [rounding.rounded(x, dtype) for x in case.inputs]
            return compare_steps(examinee.runner(self, dtype).steps(
                case, inputs), truth(), dtype)

        return Question(f"{self.name} {dtype}: {case.name}", ask)

    def search(self, search, source, batches, ties=False):
        """The question of a search, cached and not; ``ties`` are decided."""
        @functools.cache
        def truth():
            exact = self.reference("float64").exact
            return generation.truth_of(
                (exact.engine, exact.model), None, source, search.settings,
                "float64", ties)

        def ask(examinee):
            given = np.array(source)
            found = generation.compared(
                examinee.engine, examinee.runner(self).model, given,
                search.settings, truth(), batches)
            return {**found, "source": right(
                np.array_equal(given, source), "it was changed")}

        return Question(f"{self.name}: {search.name}", ask)


def training(run, arrays):
    """The question of a TrainingRun; arrays as compared_run takes them."""
    def ask(examinee):
        rows = lockstep.compared_run(
            run, arrays and copy.deepcopy(arrays()),
            {"port": workers.Here(examinee.engine)})
        return {f"step {step} {kind}": found["port"]
                for step, kind, _, _, found in rows}

    return Question(run.name, ask)


def right(fits, words):
    """A Difference of what is as it should be, or is not."""
    return Difference(None, 0.0, MATCH if fits else DIVERGENCE,
                      "" if fits else words)


@functools.cache
def questions():
    """Every Question, by name; those of which there are most are the last.

    Of these, gradients, which look at everything, come before the others.
    """
    every = []
    for preset in PRESETS:
        every += of_preset(preset)
    for seed in range(len(seeds.variants())):
        every += of_seed(seed)
    every += [training(run, None) for run in training_runs.varied_few()]
    for searched in search_runs.searched_models():
        model = ModelTruth(searched.name, searched.config,
                           functools.partial(dict, searched.weights))
        every += [
            model.search(search, searched.source, search_runs.BATCHES,
                         searched.exact) for search in searched.searches]
    models = [(ModelTruth(varied.name, varied.config, varied.weights), varied)
              for varied in wide.models()
              if varied.config.d_model <= WIDEST]
    every += [model.case(case) for model, case in sorted(
        ((model, case) for model, varied in models
         for case in varied.cases()), key=lambda pair: (
            pair[1].kind != "gradients", pair[1].component != "transformer"))]
    return {one.name: one for one in every}


def of_seed(seed):
    """The questions of a small model; between them the seeds have all words.
    """
    config, weights, (forward, gradients) = seeds.drawn(seed)
    model = ModelTruth(f"seed {seed}", config, lambda: weights)
    return model.case(gradients), model.case(forward, "float32")


def of_preset(preset):
    """The questions of a preset."""
    config = cases.test_size(preset)
    model = ModelTruth(
        preset, config, functools.partial(golden.shipped, preset))
    batch = cases.padded_batch(config)
    whole = cases.model_case(batch)
    for case in (*cases.component_cases(config), whole):
        yield model.case(case)
    for dtype in LOW:
        yield model.case(whole, dtype)
    yield model.case(cases.gradients_case(batch, config.pad_id))
    run = training_runs.usual(config, STEPS)
    yield training(dataclasses.replace(run, name=f"{preset}: {run.name}"),
                   functools.partial(golden.shipped, preset))
    for search in generation.some_searches(1, 2, SHORT):
        yield model.search(search, batch.source, (cases.BATCH,))
