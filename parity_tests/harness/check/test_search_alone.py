"""Searches of a formula: what a search does wrong, they tell."""

import numpy as np
import pytest

from transformer_contract.generation import CHOICES
from parity import ports
from parity.check import cases, search_alone
from parity_tests.support.engines import searching

REFERENCE = ports.engine("numpy")


def wrong(method):
    """What a method is asked in which the reference errs."""
    return [what for what, right in search_alone.ASKED[
        f"search alone, {method}"](REFERENCE) if not right]


@pytest.mark.parametrize("method", CHOICES["method"])
@pytest.mark.long(12)
def test_a_cache_changes_nothing(method):
    assert wrong(method) == []


@pytest.mark.long(24)
@pytest.mark.parametrize("old, new, told", [
    ("kept.reorder(parents)", "pass", {True}),
    ("read, last = tokens[:, :-1]", "read, last = 0 * tokens[:, :-1]",
     {False, True}),
    ("self.repeats(tokens, written)", "False", {True}),
    ("settings.penalty(written)", "settings.penalty(written + 1)",
     {False, True}),
    ("self.settings.candidates", "max(self.settings.candidates, 2)", {True}),
    ("if np.all(done):", "if False:", {False, True})])
def test_a_wrong_search_is_told(old, new, told):
    """With a cache alone where only that is wrong, or the rule asked so."""
    for name, model in search_alone.models().items():
        for settings in search_alone.rules(model, "beam"):
            search_alone.truth(name, settings.replace(cached=False))
    with searching(REFERENCE, old, new):
        found = wrong("beam")
    assert {what.endswith("True") for what in found} == told


def test_what_follows_depends_on_the_source_and_on_every_token():
    """And on none that a mask hides."""
    model = search_alone.models()["babbling"]
    formula = search_alone.Formula(REFERENCE, model.config)
    source, target = model.source[:3], cases.ids("target", 3, 4, 23)
    seen = (source != 3)[:, None, None]
    causal = np.tile(np.tri(4, dtype=bool), (3, 1, 1, 1))

    def scores(source, target, seen=seen, causal=causal):
        memory = formula.encode(source, seen)[0]
        return formula.project(formula.decode(
            target, memory, seen, causal, None)[0])[0]

    usual = scores(source, target)
    for place in range(4):
        other = target.copy()
        other[:, place] = (other[:, place] + 1) % 23
        changed = (scores(source, other) != usual).any(axis=(0, 2))
        np.testing.assert_array_equal(changed, np.arange(4) >= place)
    hidden = np.where(seen[:, 0, 0], source, 5)
    np.testing.assert_array_equal(scores(hidden, target), usual)
    assert (scores(source, target, seen=~seen) != usual).any()


@pytest.mark.parametrize("old, new, words", [
    ("np.tile(causal_mask(read.shape[1]), (len(read), 1, 1, 1))",
     "causal_mask(read.shape[1])", "not of every row"),
    ("if settings.cached else", "if False else", "reads"),
    ("if settings.cached else", "if True else", "reads")])
def test_what_is_read_is_told(old, new, words):
    """Though the answer is right."""
    with searching(REFERENCE, old, new), pytest.raises(ValueError, match=words):
        wrong("greedy")
