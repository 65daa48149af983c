"""What a mutant is asked: all that the check can ask of one port.

A question is a name and a function of a Subject that answers {step:
Difference}. Truths are the reference's, computed once and kept.
"""

import copy
import dataclasses
import functools
import importlib.metadata
from collections.abc import Callable

import numpy as np

from contract.config import PRESETS
from parity.check import cases, generation, golden, lockstep, workers
from parity.check.run import SHORT
from parity.check.runners import Reference, Runner, compare_steps
from parity.numerics import canary, rounding
from parity.numerics.comparator import (
    DIVERGENCE, MATCH, Difference, compare)
from parity.numerics.tolerances import FLOAT64_LIMIT

#: Models are checked in these as well, of the presets that differ most.
LOW = ("float32", "bfloat16", "float16")
LOW_PRESETS = ("lesson", "vaswani2017_base")


@dataclasses.dataclass(frozen=True)
class Question:
    """One thing that is asked.

    Attributes:
        name: what it is called in reports.
        ask: Subject -> {step: Difference}.
    """

    name: str
    ask: Callable


class Subject:
    """An engine and the models that were built with it."""

    def __init__(self, engine):
        self.engine, self._runners = engine, {}

    def runner(self, preset, dtype):
        """The Runner of a preset's model, built once."""
        if (preset, dtype) not in self._runners:
            self._runners[preset, dtype] = Runner(
                self.engine, *copy.deepcopy(model(preset, dtype)), dtype)
        return self._runners[preset, dtype]


@functools.cache
def reference(preset, dtype):
    """The Reference of a preset at test size."""
    return Reference(cases.test_size(preset), golden.shipped(preset), dtype)


def model(preset, dtype):
    """A preset's config and weights, as ports are given them."""
    return cases.test_size(preset), reference(preset, dtype).stored


@functools.cache
def questions():
    """Every Question, by name, the quick ones first."""
    found = [Question("starting", starting)]
    for preset in PRESETS:
        found += of_preset(preset)
    return {one.name: one for one in found}


def of_preset(preset):
    """The questions of a preset."""
    config = cases.test_size(preset)
    batch = cases.padded_batch(config)
    whole = cases.model_case(batch)
    for case in (*cases.component_cases(config), whole):
        yield of_case(preset, case, "float64")
    if preset in LOW_PRESETS:
        for dtype in LOW:
            yield of_case(preset, whole, dtype)
    yield outputs(preset)
    yield gradients(preset)
    yield training(preset)
    for search in generation.some_searches(1, 2, SHORT):
        yield searched(preset, search)


def of_case(preset, case, dtype):
    """The question of a case."""
    truth = truth_of(preset, case, dtype)

    def ask(bench):
        given = [rounding.rounded(x, dtype) for x in case.inputs]
        inputs = [np.array(x) for x in given]
        steps = bench.runner(preset, dtype).steps(case, inputs)
        return {**compare_steps(steps, truth(), dtype),
                **unchanged(given, inputs)}

    return Question(f"{preset} {dtype}: {case.name}", ask)


def truth_of(preset, case, dtype="float64"):
    """What computes the Truth of a case, once."""
    return functools.cache(lambda: reference(preset, dtype).truth(case))


def unchanged(before, after):
    """Whether a port left its inputs as they were."""
    return {f"input {i}": right(np.array_equal(new, old), "it was changed")
            for i, (old, new) in enumerate(zip(before, after))}


def right(fits, words):
    """A Difference of what is as it should be, or is not."""
    return Difference(None, 0.0, MATCH if fits else DIVERGENCE,
                      "" if fits else words)


def outputs(preset):
    """The question of the output alone, and of the weights read back."""
    batch = cases.padded_batch(cases.test_size(preset))
    truth = truth_of(preset, cases.model_case(batch))

    def ask(bench):
        runner = bench.runner(preset, "float64")
        exported = bench.engine.export(runner.model)
        stored = model(preset, "float64")[1]
        return {
            "predict": compare(
                bench.engine.predict(runner.model, *map(np.array, batch)),
                truth().steps["output"], FLOAT64_LIMIT),
            "names": right(list(exported) == list(stored) or exported.keys()
                           == stored.keys(), "other names"),
            **{name: right(
                name in exported and np.array_equal(exported[name], array)
                and exported[name].dtype == array.dtype, "another array")
               for name, array in stored.items()}}

    return Question(f"{preset}: output and weights", ask)


def gradients(preset):
    """The question of gradients, on weights that are not near a kink."""
    config = cases.test_size(preset)
    case = cases.gradients_case(cases.padded_batch(config), config.pad_id)
    return of_case(preset, case, "float64")


def training(preset, steps=3):
    """The question of some steps of training."""
    def ask(bench):
        rows = lockstep.compared(
            *copy.deepcopy(model(preset, "float64")),
            {"port": workers.Here(bench.engine)}, steps)
        return {f"step {step} {kind}": differences["port"]
                for step, kind, _, differences in rows}

    return Question(f"{preset}: {steps} steps of training", ask)


def searched(preset, search):
    """The question of a search, cached and not."""
    source = cases.padded_batch(cases.test_size(preset)).source

    @functools.cache
    def truth():
        exact = reference(preset, "float64").exact
        return generation.truth_of(
            (exact.engine, exact.model), None, source, search.settings,
            "float64")

    def ask(bench):
        given = np.array(source)
        found = generation.compared(
            bench.engine, bench.runner(preset, "float64").model, given,
            search.settings, truth(), (cases.BATCH,))
        return {**found, **unchanged([source], [given])}

    return Question(f"{preset}: {search.name}", ask)


def starting(bench):
    """What an engine says of itself."""
    engine, canary_limit = bench.engine, canary.CANARY_LIMIT
    engine.set_precision()
    return {
        "versions": right(all(
            importlib.metadata.version(name) == version
            for name, version in engine.versions().items()), "another"),
        "devices": right("cpu" in engine.devices(), "no cpu"),
        "product": right(
            canary.canary(engine, "cpu") <= canary_limit, "imprecise"),
    }
