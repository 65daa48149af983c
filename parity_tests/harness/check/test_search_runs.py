"""Searches that meet every condition: what they show, and that all agree."""

import numpy as np
import pytest

from transformer_contract.generation import CHOICES, GenerationConfig
from parity import ports
from parity.check import cases, covering, generation, golden, search_runs
from parity.check.run import SHORT
from parity.numerics.comparator import MATCH
from parity_tests.support.engines import searching

MODELS = {model.name: model for model in search_runs.searched_models()}
ALL = [(model.name, search.name) for model in MODELS.values()
       for search in model.searches]

_built, _truths = {}, {}


def built(engine, model):
    key = engine.__name__, model
    if key not in _built:
        _built[key] = engine.build(
            "transformer", MODELS[model].config, MODELS[model].weights)
    return _built[key]


def settings_of(model, search):
    return next(one.settings for one in MODELS[model].searches
                if one.name == search)


def truth(model, search):
    if (model, search) not in _truths:
        engine, about = ports.engine("numpy"), MODELS[model]
        _truths[model, search] = generation.truth_of(
            (engine, built(engine, model)), None, about.source,
            settings_of(model, search), "float64", about.exact)
    return _truths[model, search]


def ends(model, search):
    """How many tokens the best answers have, eos included; ∞ without one."""
    tokens = truth(model, search).tokens[:, 0, 1:]
    ended = tokens == settings_of(model, search).eos_id
    return np.where(ended.any(axis=-1), 1 + ended.argmax(axis=-1), np.inf)


@pytest.mark.long(8)
@pytest.mark.parametrize("model, search", ALL)
def test_no_row_is_near_a_tie(model, search):
    assert truth(model, search).close == 0


def test_answers_end_at_unequal_lengths():
    lengths = ends("babbling", "greedy, long")
    assert len(set(lengths)) > 3 and np.isinf(lengths).any()
    assert (lengths < 5).any()
    late = ends("babbling", "sample, late end")
    assert ((late > 32) & (late < np.inf)).any()


def test_every_choice_of_a_search_is_covered():
    """A new word and a new switch are searched for the day they are added."""
    settings = [one.settings for one in MODELS["babbling"].searches
                if one.name.startswith("covering")]
    words = search_runs.choices()
    assert words.keys() >= CHOICES.keys() | {"allow_padding"}
    for pair in covering.pairs(words):
        assert any(all(getattr(one, field) == word for field, word in pair)
                   for one in settings), pair


@pytest.mark.parametrize("field", search_runs.ASKED)
def test_what_is_asked_changes_an_answer(field):
    usual = truth("babbling", "beam 4, hf_false, α 1.0").tokens
    asked = truth(
        "babbling", f"beam 4, {field} {search_runs.ASKED[field][1]}").tokens
    assert (usual[:, :, 1:] != asked[:, :, 1:]).any()


def is_seen(engine, old, new, model, source, settings):
    """Whether a search answers otherwise with a piece of its file replaced."""
    settings = settings.replace(cached=False)
    right = engine.generate(model, source, settings)
    with searching(engine, old, new):
        wrong = engine.generate(model, source, settings)
    return any((right[name] != wrong[name]).any() for name in right)


ENDS, TWICE = "self.settings.eos_ids", "n = self.settings.no_repeat_ngram"


@pytest.mark.parametrize("old, new", [
    ("self.settings.candidates", "2 * self.settings.beam"),
    (ENDS, f"{ENDS}[:1]"), (ENDS, f"{ENDS}[-1:]"), (ENDS, f"{ENDS}[:2]"),
    (TWICE, "n = 0"), (TWICE, "n = 1"), (TWICE, "n = 3"),
    ("range(n - 1, written)", "range(n - 1, n)"),
    ("range(n - 1, written)", "range(written - 1, written)"),
    ("range(n - 1, written)", "range(n, written)"),
    ("same[:, None] &", "same[:1, None] &")])
def test_a_plain_check_sees_what_ends_and_what_stands_twice(old, new):
    """Without --wide, of one preset: some_searches is what it searches."""
    config = cases.test_size("lesson")
    engine, source = ports.engine("numpy"), cases.padded_batch(config).source
    model = engine.build("transformer", config, golden.shipped("lesson"))
    settings = next(one.settings for one in generation.some_searches(
        1, 2, SHORT) if one.name == generation.ENDS_AND_BIGRAMS)
    assert is_seen(engine, old, new, model, source, settings)


@pytest.mark.parametrize("old, new", [
    (TWICE, f"{TWICE} and 2"), (TWICE, f"{TWICE} and 3"),
    ("same = np.all(", "same = np.any("),
    ("tokens[:, end - n + 1:end]\n                == tokens[:, written - n",
     "tokens[:, end - 1:end]\n                == tokens[:, written - 2")])
def test_more_than_two_tokens_that_stand_twice_are_seen(old, new):
    engine = ports.engine("numpy")
    assert is_seen(engine, old, new, built(engine, "babbling"),
                   MODELS["babbling"].source,
                   settings_of("babbling", "greedy of few words, no 4 twice"))


def test_ids_differ_from_model_to_model():
    for field in ("pad_id", "source_vocab"):
        found = [getattr(model.config, field) for model in MODELS.values()]
        assert len(set(found)) == len(found)
    ids = [(model.config.pad_id, s.bos_id, s.eos_id)
           for model in MODELS.values()
           for s in (one.settings for one in model.searches)
           if s.bos_id != model.config.pad_id]  # which is searched on purpose
    assert all(len(set(one)) == 3 for one in ids)
    assert len(set(ids)) > 4


@pytest.mark.parametrize("model", MODELS)
def test_sources_are_padded_on_every_side(model):
    config, source = MODELS[model].config, MODELS[model].source
    padding = source == config.pad_id
    assert len(source) > 8 and padding.all(axis=1).any()
    assert (~padding).all(axis=1).any()
    some = padding & ~padding.all(axis=1, keepdims=True)
    assert some[:, 0].any() and some[:, -1].any()
    assert (some & ~some[:, :1] & ~some[:, -1:]).any()
    assert {0, config.source_vocab - 1} <= set(source.ravel())


class Counting:
    """A model that counts how often its decoder is asked."""

    def __init__(self, model):
        self.model, self.asked = model, 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def decode(self, *arrays):
        self.asked += 1
        return self.model.decode(*arrays)


def test_what_is_remembered_changes_no_truth():
    """Two rules ask the same of a model at first; other weights do not."""
    engine, about = ports.engine("numpy"), MODELS["babbling"]
    plain, counted = (Counting(built(engine, "babbling")) for _ in range(2))
    models = plain, generation.AskedOnce(counted)
    for rule in CHOICES["length_rule"]:
        settings = settings_of("babbling", f"beam 4, {rule}, α 1.0")
        one, two = (generation.truth_of(
            (engine, model), None, about.source, settings, "float64")
            for model in models)
        np.testing.assert_array_equal(one.tokens, two.tokens)
        np.testing.assert_array_equal(one.scores, two.scores)
        assert (one.limit, one.close) == (two.limit, two.close)
    assert 0 < counted.asked < 0.8 * plain.asked

    memory = models[1].encode(about.source, about.source[:, None, None] != 3)
    other = models[1].encode(about.source, about.source[:, None, None] == 3)
    assert not np.array_equal(memory[0], other[0])


@pytest.mark.long
@pytest.mark.parametrize("model, search", ALL)
def test_the_references_forms_agree(model, search):
    """The ports' own are compared by ``parity check --wide``."""
    engine, about = ports.engine("numpy", "fast"), MODELS[model]
    found = generation.compared(
        engine, built(engine, model), about.source,
        settings_of(model, search), truth(model, search), search_runs.BATCHES)
    assert {d.verdict for d in found.values()} == {MATCH}, found


@pytest.mark.parametrize("method, beam, named", [
    ("beam", 2, True), ("beam", 1, False), ("greedy", 2, False)])
def test_what_has_one_hypothesis_mixes_none(method, beam, named):
    """Wrong with the cache alone is a wrong order only where there is one."""
    tokens, scores = np.array([[[5, 6, 2]]]), np.zeros((1, 1))
    truth = generation.SearchOracle(tokens, scores, np.arange(1), 1e-12, 0)
    found = generation.judged(
        {False: [(tokens, scores)], True: [(tokens + 1, scores)]},
        GenerationConfig(method=method, beam=beam), truth)
    assert found["tokens, uncached"].verdict == MATCH
    assert ("hypothesis" in found["tokens, cached"].reason) == named
