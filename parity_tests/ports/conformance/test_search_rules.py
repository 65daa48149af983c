"""Searches of a stub model: rules alone, in no time.

What comes next in a target follows from its source and from every token that
was read, and is computed here by NumPy, the same for every engine. So a search
costs what its own statements cost, and every rule can be asked for, with a
cache and without. What the caches keep are the tokens that were read.
"""

import functools
import types

import numpy as np
import pytest

from transformer_contract.generation import CHOICES, GenerationConfig
from transformer_contract.trace import recording
from parity import ports
from parity.check import cases, drawn, search_runs
from parity.check.generation import SearchCase
from parity_tests.support.conformance import equal

pytestmark = pytest.mark.long

#: How many values stand for a token, and how far apart its scores are.
WIDTH, SPREAD = 9, 3.0

#: Rows are drawn for by these numbers.
FIRST_ROW = 10

#: How many draws have their search asked, and how many a test asks.
DRAWN, TOGETHER = 240, 20


class StubModel:
    """What a search sees of a model.

    Args:
        engine: whose arrays it gives and takes.
        config: a TransformerConfig, of which vocabularies and padding count.
        even: whether all tokens are equal to it.

    Attributes:
        read: how many tokens it was given to read, each time.
    """

    home = "cpu"

    def __init__(self, engine, config, even=False):
        self.engine, self.read = engine, set()
        self.config = config.replace(d_model=2, n_heads=2)
        self.decoder = types.SimpleNamespace(layers=[None])
        kept = engine.to_native(np.zeros(1), "cpu")
        table = types.SimpleNamespace(
            weight=kept, embedding=kept, embeddings=kept, dtype=kept.dtype)
        self.target_embedding = types.SimpleNamespace(table=table)
        self.sources, self.targets, self.places, self.scores = (
            cases.values(name, rows, WIDTH) for name, rows in (
                ("formula source", config.source_vocab),
                ("formula target", config.target_vocab),
                ("formula place", 1 + config.max_length),
                ("formula score", config.target_vocab)))
        self.scores = (0 if even else SPREAD) * self.scores.T

    @staticmethod
    def modules():
        """It has none, so that none is in training, and no parameters."""
        return []

    parameters = modules

    @staticmethod
    def eval():
        """Nothing is dropped."""

    def given(self, array):
        """As the engine has it; the reference has a backward beside it."""
        array = self.engine.to_native(array, "cpu")
        return (array, None) if self.engine.NAME == "numpy" else array

    def encode(self, source, source_mask):
        """The memory [B S 9] of sources [B S]."""
        return self.given(self.sources[self.engine.to_numpy(source)])

    def decode(self, target, memory, source_mask, target_mask, caches):
        """What follows each target [R T], as far as masks show it: [R T 9]."""
        tokens, memory, source_mask, target_mask = map(
            self.engine.to_numpy, (target, memory, source_mask, target_mask))
        rows, length = tokens.shape
        if target_mask.shape[:3] != (rows, 1, length):  # some layers refuse it
            raise ValueError("it gives a mask that is not of every row and "
                             "token, or not of all heads at once")
        self.read.add(tokens.shape[1])
        if caches is not None:
            written = self.engine.to_native(
                tokens[:, None, :, None].astype(float), "cpu")
            keys, values = map(self.engine.to_numpy, caches[0].extend(
                written, written))
            tokens = ((keys + values) / 2)[:, 0, :, 0].astype(int)
        read = self.targets[tokens] * self.places[:tokens.shape[1]]
        source = np.where(source_mask[:, 0, 0, :, None], memory, 0)
        return self.given(np.sin(
            target_mask[:, 0].astype(float) @ read
            + source.sum(axis=1)[:, None]))

    def project(self, decoded):
        """A score for every token, [R T V], of what decode returned."""
        return self.given(self.engine.to_numpy(decoded) @ self.scores)


class HeardSteps:
    """The steps of a search, in their order."""

    def __init__(self, engine):
        self.engine, self.steps = engine, []

    def record(self, search, name, value):
        """Note a step, and hand it on."""
        self.steps.append((name, self.engine.to_numpy(value)))
        return value


def heard(engine, searched, settings):
    """[(name, array)] of a search's steps, and then of what it answers.

    Raises:
        ValueError: it reads all tokens again and again, or the last alone.
    """
    stub = StubModel(engine, searched.config, searched.exact)
    rows = FIRST_ROW + np.arange(len(searched.source))
    with recording(HeardSteps(engine)) as steps:
        answer = engine.generate(
            stub, searched.source.copy(), settings, rows)
    if stub.read != {1 if settings.cached else settings.max_tokens}:
        raise ValueError(f"it reads {sorted(stub.read)} tokens at a time")
    return [*steps.steps, *answer.items()]


@functools.cache
def truth(name, settings):
    """What the reference hears of a SearchedModel's search, uncached."""
    return heard(ports.engine("numpy"), models()[name], settings)


@functools.cache
def models():
    """The SearchedModels of which a stub stands for the model, by name."""
    return {model.name: model for model in (
        search_runs.babbling(), search_runs.narrow(), search_runs.tied(),
        far(), crowd(), lexicon())}


def large(name, rows, length, tokens, vocab):
    """A SearchedModel of one size that no real one here has: every method.

    Args:
        rows, length: of its sources.
        tokens: how many an answer may have.
        vocab: how many words there are.
    """
    config = search_runs.babbling().config.replace(
        source_vocab=37, target_vocab=vocab, max_length=max(length, tokens))
    greedy = GenerationConfig(bos_id=7, eos_id=5, max_tokens=tokens)
    return search_runs.SearchedModel(
        name, config, {}, cases.ids(f"{name} source", rows, length, 37),
        tuple(SearchCase(method, greedy.replace(method=method))
              for method in CHOICES["method"]))


def far():
    """One source, longer than a block, and an answer beyond 7 bits."""
    return large("far", 1, 70, 130, 23)


def crowd():
    """As many rows as 8 bits do not count."""
    return large("crowd", 90, 5, 3, 23)


def lexicon():
    """More words than 16 bits count."""
    return large("lexicon", 2, 5, 3, 70_000)


def rules(model, method):
    """{GenerationConfig: name} of a SearchedModel's searches by a method.

    Of those that differ by α alone one is kept, and quick ones are the first.
    """
    found = {search.settings.replace(alpha=1.0): search.name
             for search in model.searches if search.settings.method == method}
    return dict(sorted(found.items(), key=lambda one: one[0].max_tokens))


def same(place, found, expected):
    """Fail unless two searches took the same steps to the same answer."""
    equal(f"{place}: steps", *([(name, array.shape, array.dtype.kind)
                                for name, array in steps]
                               for steps in (found, expected)))
    for (name, array), (_, other) in zip(found, expected):
        np.testing.assert_allclose(
            array, other, 1e-12, 1e-13, err_msg=f"{place}: {name}")


def every_rule(engine, method):
    """Fail where an engine's searches are not the reference's, uncached."""
    for model in models().values():
        for number, (settings, name) in enumerate(
                rules(model, method).items()):
            # reading all again is the same whatever the rule
            for cached in (True,) if number else (False, True):
                same(f"{model.name}: {name}, {cached}", heard(
                    engine, model, settings.replace(cached=cached)),
                    truth(model.name, settings.replace(cached=False)))


@pytest.mark.parametrize("method", CHOICES["method"])
def test_every_rule_of_a_search(subject, method):
    """With a stub model that follows from source and target alone."""
    every_rule(subject, method)


@pytest.mark.parametrize("first", range(0, DRAWN, TOGETHER))
def test_drawn_searches(subject, first):
    """Whatever settings are drawn, and every hypothesis."""
    for number in range(first, first + TOGETHER):
        model = drawn_model(number)
        for search in model.searches if model else ():
            for cached in False, True:
                same(f"{model.name}, {cached}", heard(
                    subject, model, search.settings.replace(cached=cached)),
                    drawn_truth(number))


@functools.cache
def drawn_model(number):
    """A SearchedModel of the search of a draw; None of one without."""
    model = drawn.drawn(0, number)
    if model.search is None or model.far:
        return None
    sizes = {"source_vocab": model.config.source_ids} | {
        name: getattr(model.config, name)
        for name in ("target_vocab", "pad_id", "max_length")}
    return search_runs.SearchedModel(
        model.name, search_runs.babbling().config.replace(**sizes), {},
        np.ascontiguousarray(model.batch.source, int), (model.search,))


@functools.cache
def drawn_truth(number):
    """What the reference hears of the search of a draw, uncached."""
    model = drawn_model(number)
    return heard(ports.engine("numpy"), model,
                 model.searches[0].settings.replace(cached=False))


@pytest.mark.parametrize("method", CHOICES["method"])
def test_a_cache_changes_nothing_in_the_reference(method):
    every_rule(ports.engine("numpy"), method)


def test_the_stub_model_reads_what_masks_show():
    """The source and every token, and none that a mask hides."""
    model = models()["babbling"]
    stub = StubModel(ports.engine("numpy"), model.config)
    source, target = model.source[:3], cases.ids("target", 3, 4, 23)
    seen = (source != 3)[:, None, None]
    causal = np.tile(np.tri(4, dtype=bool), (3, 1, 1, 1))

    def scores(source, target, seen=seen, causal=causal):
        memory = stub.encode(source, seen)[0]
        return stub.project(stub.decode(
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
