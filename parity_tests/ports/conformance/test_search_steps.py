"""What a search asks of its model, how often, and what it makes of it."""

import functools
import importlib

import numpy as np
import pytest

from transformer_contract.generation import GenerationConfig
from transformer_contract.trace import recording
from transformer_contract.weights import initial_weights
from parity import ports
from parity.check import search_runs
from parity_tests.support.conformance import equal, quick

pytestmark = pytest.mark.long


class SearchSteps:
    """Hears what a search shows on its way, and how much its model reads.

    Attributes:
        steps: [(name, array)] of the search.
        lengths: how many tokens the decoder was given, each time.
    """

    def __init__(self, engine):
        self.engine, self.steps, self.lengths = engine, [], []

    def record(self, module, name, value):
        """Note a step, and hand it on."""
        if hasattr(module, "settings"):
            self.steps.append((name, self.engine.to_numpy(value)))
        elif name == "decoded":
            self.lengths.append(value.shape[1])
        return value

    @property
    def kinds(self):
        """What tells one search from another but for its numbers."""
        return [(name, array.shape, array.dtype.name if
                 array.dtype.kind == "f" else "")
                for name, array in self.steps]


def followed():
    """{what: (config, weights, dtype, source, settings)} of searches."""
    found = {}
    babbling, tied = search_runs.babbling(), search_runs.tied()
    for model, method, changes in (
            (babbling, "greedy", {}), (babbling, "beam", {"beam": 3}),
            (babbling, "sample", {"top_k": 5}), (tied, "greedy", {"eos_id": 0}),
            (tied, "beam", {"length_rule": "none"})):
        settings = model.searches[0].settings.replace(
            method=method, max_tokens=8, **changes)
        given = model.config, model.weights, "float64", model.source[:4]
        for cached in (False, True):
            found[f"{model.name}, {method}, {cached}"] = (
                *given, settings.replace(cached=cached))
    given, few = found["babbling, greedy, True"], {"max_tokens": 3}
    found["float32"] = (*given[:2], "float32", given[3],
                        given[4].replace(**few))
    one = babbling.config.replace(n_decoder_layers=1)
    alone = one.replace(stacks="decoder")
    found["one layer, prompted"] = (
        alone, initial_weights(alone, 1), *given[2:4],
        given[4].replace(**few))
    found["one layer"] = (one, initial_weights(one, 1), *given[2:4],
                          given[4].replace(**few))
    return found


def steps_of(engine, config, weights, dtype, source, settings):
    """The SearchSteps of a search."""
    model = engine.build("transformer", config, weights, dtype)
    with recording(SearchSteps(engine)) as heard:
        engine.generate(model, source, settings)
    return heard


@functools.cache
def followed_by_reference():
    """{what: SearchSteps} of the reference."""
    return {what: steps_of(ports.engine("numpy"), *given)
            for what, given in followed().items()}


def test_steps_of_searches(subject):
    truths = followed_by_reference()
    for what, given in followed().items():
        found, truth = steps_of(subject, *given), truths[what]
        equal(f"kinds of steps, {what}", found.kinds, truth.kinds)
        equal(f"tokens read, {what}", set(found.lengths), {
            1 if given[-1].cached else given[-1].max_tokens})
        if given[2] == "float64":
            for (name, array), (_, other) in zip(found.steps, truth.steps):
                np.testing.assert_allclose(
                    array, other, 1e-9, 1e-12, err_msg=f"{what}: {name}")


@quick("keras")
def test_what_a_draw_chooses(subject):
    """On a border, and where a sum is rounded."""
    engine = subject
    kind = importlib.import_module(f"{engine.__package__}.sample").Sample
    even = [-np.inf, 0, 0, 0, 0]
    for what, log_p, draws, changes, expected in (
            ("border of a token", [even], [0.5], {}, [3]),
            ("border of top_p", [even], [0.999], {"top_p": 0.5}, [2]),
            ("a border of a twentieth", [[-np.inf, *[0] * 10]], [0.999],
             {"top_p": 0.05}, [1]),
            ("the whole sum", [even, [-9, -9, -9, -9, 0]], [1, 1],
             {"top_p": 0.5}, [2, 4]),
            ("top_p of top_k", [even], [0.999],
             {"top_k": 2, "top_p": 0.5, "top_p_of_top_k": True}, [1]),
            ("tiny p", [[-3002, -np.inf, -3001, -3009, -3000]], [0.9], {},
             [2]),
            ("nothing that may follow", [[-np.inf] * 5], [0.5], {}, [0])):
        search = object.__new__(kind)
        search.settings = GenerationConfig(method="sample", **changes)
        search.draws = engine.to_native(
            np.array([[0.0, u] for u in draws]), "cpu")
        found = search.choose(
            engine.to_native(np.array(log_p, float), "cpu"), 1)
        equal(what, engine.to_numpy(found).tolist(), expected)
