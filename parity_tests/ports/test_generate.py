"""Searches: equal in all four, and right by what is not a search.

Beam search is held against the enumeration of every target, scores against
the model's own scoring of the finished target, and each row against itself
among other neighbours.
"""

import contextlib
import importlib.util
import itertools
import math
import re
from unittest import mock

import numpy as np
import pytest

from transformer_contract import random
from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.generation import CHOICES, GenerationConfig
from transformer_contract.trace import recording
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases, generation, golden
from parity.check.runners import EngineRunner
from parity.numerics.comparator import MATCH
from parity_tests.support.processes import printed

#: What a search promises is asked of the reference. That ports search as it
#: does is asked of every rule, in readable forms by
#: conformance/test_search_rules.py, and in fast ones by parity check --wide.
REFERENCE = pytest.mark.parametrize("engine", ["numpy"], indirect=True)

RULES = CHOICES["length_rule"]
MOST, END = 8, 16


def disturbed():
    """The trained model with noise half as large again as its weights.

    It babbles: what it says depends on the source and on all that it said, so
    that hypotheses of different lengths compete, and rules choose otherwise.
    """
    config, weights, tokenizer, pairs = golden.trained()
    key, found = random.key(7), {}
    for name, array in weights.items():
        unit = random.uniform(
            random.fold_in(key, name), array.shape, -1.0, 1.0)
        found[name] = array + 1.5 * array.std() * 3**0.5 * unit
    source = Batch.of_text(*zip(*pairs[::26]), tokenizer).source
    return config, found, source


CONFIG, WEIGHTS, SOURCE = disturbed()
BATCHES = (1, 3)


def built(engine, config=CONFIG, weights=WEIGHTS, dtype="float64"):
    """A model of these weights."""
    return engine.build("transformer", config, {
        name: array.astype(dtype) for name, array in weights.items()}, dtype)


def truth(settings, source=SOURCE):
    """The reference's, in float64 and uncached."""
    reference = ports.engine("numpy")
    return generation.truth_of(
        (reference, built(reference)), None, source, settings, "float64")


SEARCHES = list(generation.every_search(1, END, MOST))


def test_the_searches_differ():
    """What ends, what does not, and rules that choose otherwise all occur."""
    found = {search.name: truth(search.settings) for search in SEARCHES}
    ends = [(t.tokens == END).any(axis=-1) for t in found.values()]
    assert any(map(np.any, ends)) and not all(map(np.all, ends))
    tokens = [t.tokens[:, :1].tobytes() for t in found.values()]
    assert len(set(tokens)) >= 10
    assert all(t.close == 0 for t in found.values())


def test_a_reference_asked_once_answers_alike():
    """What has a cache is computed anew, and so is what has other numbers."""
    runner = EngineRunner(ports.engine("numpy"), CONFIG, WEIGHTS, "float64")
    once = generation.RunnerAskedOnce(runner)
    for search in SEARCHES[1], SEARCHES[2], SEARCHES[1]:
        for batch in SOURCE, SOURCE[::-1]:
            found, plain = (generation.runs(
                one, batch, search.settings, BATCHES)
                for one in (once, runner))
            for cached in False, True:
                for ours, theirs in zip(found[cached], plain[cached]):
                    assert all(map(np.array_equal, ours, theirs))


@pytest.mark.long
@pytest.mark.parametrize("search", generation.some_searches(1, END, MOST),
                         ids=lambda s: s.name)
def test_some_searches_are_the_references(engine_of_each_form, search):
    """Tokens equal, scores to 1e-12; cached and not, alone and in a batch.

    Every search of the fast forms is compared by parity check --wide.
    """
    found = generation.compared(
        engine_of_each_form, _kept(engine_of_each_form), SOURCE,
        search.settings, truth(search.settings), BATCHES)
    assert {d.verdict for d in found.values()} == {MATCH}, found


_models = {}


def _kept(engine):
    """One model an engine: what it compiled is used again."""
    if engine.__name__ not in _models:
        _models[engine.__name__] = built(engine)
    return _models[engine.__name__]


@REFERENCE
@pytest.mark.parametrize("rule, bos", [
    *((rule, 1) for rule in RULES), ("paper", END)])
def test_beam_1_is_greedy(engine, rule, bos):
    """The same tokens; the score, divided by the rule's penalty."""
    greedy = GenerationConfig(bos_id=bos, eos_id=END, max_tokens=MOST)
    beam = greedy.replace(method="beam", beam=1, length_rule=rule)
    one, other = (engine.generate(_kept(engine), SOURCE, settings)
                  for settings in (greedy, beam))
    np.testing.assert_array_equal(one["tokens"], other["tokens"])
    lengths = (one["tokens"] != 0).sum(axis=-1) - 1
    penalties = np.vectorize(beam.penalty)(lengths)
    np.testing.assert_allclose(
        one["scores"] / penalties, other["scores"], rtol=1e-12)


@REFERENCE
@pytest.mark.parametrize("name", [s.name for s in generation.some_searches(
    1, END, MOST)])
def test_scores_are_the_models_own(engine, name):
    """The sum of log p, as forward has it of the finished target."""
    settings = {s.name: s for s in SEARCHES}[name].settings
    model = _kept(engine)
    found = engine.generate(model, SOURCE, settings)
    for hypothesis in range(found["tokens"].shape[1]):
        target = found["tokens"][:, hypothesis]
        masks = engine.masks(SOURCE, target[:, :-1], 0)
        output = engine.predict(model, SOURCE, target[:, :-1], **masks)

        log_probs = output - np.log(np.exp(
            output - output.max(-1, keepdims=True)).sum(-1, keepdims=True)
        ) - output.max(-1, keepdims=True)
        chosen = np.take_along_axis(
            log_probs, target[:, 1:, None], axis=-1)[..., 0]
        total = np.where(target[:, 1:] == 0, 0, chosen).sum(axis=-1)
        lengths = (target != 0).sum(axis=-1) - 1
        penalty = (np.vectorize(settings.penalty)(lengths)
                   if settings.method == "beam" else 1)
        np.testing.assert_allclose(
            total / penalty, found["scores"][:, hypothesis], rtol=1e-12)


TINY = cases.test_size("complete").replace(
    source_vocab=6, target_vocab=6, n_encoder_layers=1, n_decoder_layers=1)
TINY_WEIGHTS = probe_weights(TINY, 5)


def every_target(settings, vocab):
    """All targets that can be written: ended, or of the greatest length."""
    words = [i for i in range(1, vocab) if i != settings.eos_id]
    most = settings.max_tokens
    for length in range(1, most + 1):
        for body in itertools.product(words, repeat=length - 1):
            yield [*body, settings.eos_id]
    yield from map(list, itertools.product(words, repeat=most))


def enumerated(settings, source):
    """Each target's score by the reference, the best first: [(score, ids)]."""
    engine = ports.engine("numpy")
    model = built(engine, TINY, TINY_WEIGHTS)
    every = list(every_target(settings, TINY.target_vocab))
    target = np.zeros((len(every), 1 + settings.max_tokens), np.int64)
    for row, ids in zip(target, every):
        row[0], row[1:1 + len(ids)] = settings.bos_id, ids
    sources = np.repeat(source[None], len(every), axis=0)
    masks = engine.masks(sources, target[:, :-1], 0)
    output = engine.predict(model, sources, target[:, :-1], **masks)
    log_probs = output - np.log(np.exp(output).sum(-1, keepdims=True))
    chosen = np.take_along_axis(
        log_probs, target[:, 1:, None], axis=-1)[..., 0]
    total = np.where(target[:, 1:] == 0, 0, chosen).sum(axis=-1)
    scores = [score / settings.penalty(len(ids))
              for score, ids in zip(total, every)]
    return sorted(zip(scores, every), reverse=True)


@REFERENCE
@pytest.mark.parametrize("rule", [r for r in RULES if r != "hf_true"])
def test_a_beam_wide_enough_finds_the_best_of_all(engine, rule):
    """Every target of up to three tokens is enumerated.

    "hf_true" stops at the W-th target that has ended, so it promises less.
    """
    settings = GenerationConfig(
        method="beam", beam=64, max_tokens=3, length_rule=rule, alpha=0.8)
    model = built(engine, TINY, TINY_WEIGHTS)
    source = np.array([[3, 5, 1, 4]])
    found = engine.generate(model, source, settings)
    expected = enumerated(settings, source[0])[:20]
    for i, (score, ids) in enumerate(expected):
        tokens = found["tokens"][0, i]
        assert tokens[tokens != 0].tolist() == [1, *ids]
        assert found["scores"][0, i] == pytest.approx(score, rel=1e-12)


@pytest.mark.long(12)
def test_fewer_targets_than_the_beam_is_wide(engine):
    """What is left over has a score of -∞."""
    settings = GenerationConfig(method="beam", beam=30, max_tokens=1,
                                length_rule="none")
    found = engine.generate(
        built(engine, TINY, TINY_WEIGHTS), np.array([[3, 4]]), settings)
    finite = np.isfinite(found["scores"][0])
    assert finite.tolist() == [True] * 5 + [False] * 25
    assert sorted(found["tokens"][0, :5, 1]) == [1, 2, 3, 4, 5]


@pytest.mark.long(8)
@pytest.mark.parametrize("vocab", [7, 20000])
@pytest.mark.parametrize("count", [1, 7])
def test_top_is_a_stable_sort(engine_of_each_form, vocab, count):
    """Also among many equals, and where all but a few are impossible."""
    engine = engine_of_each_form
    draws = random.uniform(random.key(vocab), (3, vocab), 0.0, 1.0)
    scores = np.stack([
        draws[0], np.round(draws[1] * 4), np.where(
            draws[2] < 3 / vocab, draws[2], -np.inf)])
    own = f"{engine.__package__}.search"
    top = (importlib.import_module(own) if importlib.util.find_spec(own)
           else ports.module_of(engine.NAME, "search")).Search.top
    found, places = map(np.asarray, top(engine.to_native(scores, "cpu"), count))
    truth = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    np.testing.assert_array_equal(places, truth)
    np.testing.assert_array_equal(
        found, np.take_along_axis(scores, truth, axis=-1))


@REFERENCE
def test_of_equals_the_lowest(engine):
    """A projection of zeros makes every token equally likely."""
    weights = {name: np.zeros_like(array) if name.startswith("projection")
               else array for name, array in TINY_WEIGHTS.items()}
    config, source = TINY, np.array([[3, 4], [5, 3]])
    assert "projection.kernel" in weights
    model = built(engine, config, weights)
    greedy = GenerationConfig(eos_id=5, max_tokens=3)
    found = engine.generate(model, source, greedy)
    assert found["tokens"].tolist() == [[[1, 1, 1, 1]]] * 2
    beam = greedy.replace(method="beam", beam=3, length_rule="none")
    found = engine.generate(model, source, beam)
    # The target that ends at once is the likeliest: the others are longer.
    assert found["tokens"][0].tolist() == found["tokens"][1].tolist()
    np.testing.assert_allclose(
        found["scores"][0, 0], -np.log(6), rtol=1e-12)


@REFERENCE
def test_padding_of_the_source_changes_nothing(engine):
    """Nor which side it stands on does, apart from positions."""
    settings = {s.name: s for s in SEARCHES}["beam 4, paper"].settings
    model = _kept(engine)
    narrow = SOURCE[:1]
    wide = np.concatenate([narrow, np.zeros((1, 4), np.int64)], axis=1)
    one, other = (engine.generate(model, source, settings)
                  for source in (narrow, wide))
    np.testing.assert_array_equal(one["tokens"], other["tokens"])
    np.testing.assert_allclose(one["scores"], other["scores"], rtol=1e-12)


@REFERENCE
def test_samples_follow_from_the_row_not_the_place(engine):
    settings = GenerationConfig(
        method="sample", eos_id=END, max_tokens=MOST, seed=9)
    model = _kept(engine)
    rows = np.array([7, 2, 11])
    found = engine.generate(model, SOURCE, settings, rows)
    turned = engine.generate(model, SOURCE[::-1], settings, rows[::-1])
    np.testing.assert_array_equal(
        found["tokens"], turned["tokens"][::-1])
    other = engine.generate(model, SOURCE, settings)
    assert (found["tokens"] != other["tokens"]).any()


@pytest.mark.long(4)
def test_samples_are_drawn_by_their_probability():
    """1000 draws of one token, against the model's own distribution."""
    engine = ports.engine("numpy")
    model, draws = _kept(engine), 1000
    settings = GenerationConfig(method="sample", max_tokens=1, seed=3)
    found = engine.generate(
        model, np.repeat(SOURCE[:1], draws, axis=0), settings)
    scores = found["scores"][:, 0]
    counted = np.bincount(found["tokens"][:, 0, 1],
                          minlength=CONFIG.target_vocab)
    for token in np.flatnonzero(counted > 30):
        p = np.exp(scores[found["tokens"][:, 0, 1] == token][0])
        deviation = (draws * p * (1 - p))**0.5
        assert abs(counted[token] - draws * p) < 4 * deviation
    assert (counted > 30).sum() >= 3


@REFERENCE
@pytest.mark.parametrize("changes, most", [
    ({"top_k": 1}, 1), ({"top_k": 3}, 3), ({"top_p": 1e-9}, 1),
    ({"temperature": 1e-3}, 1)])
def test_what_is_left_out_is_never_drawn(engine, changes, most):
    settings = GenerationConfig(
        method="sample", max_tokens=1, seed=1, **changes)
    found = engine.generate(
        _kept(engine), np.repeat(SOURCE[:1], 40, axis=0), settings)
    drawn = set(found["tokens"][:, 0, 1].tolist())
    assert len(drawn) <= most
    best = engine.generate(_kept(engine), SOURCE[:1], GenerationConfig(
        max_tokens=1))["tokens"][0, 0, 1]
    assert best in drawn


#: Models whose caches differ, beside a preset's.
CACHED = {
    "complete": ("complete", {}),
    "heads that share a key": ("practical", {"n_kv_heads": 3, "d_head": 10}),
    "rotary positions": ("practical", {
        "positions": "rotary_halves", "n_kv_heads": 3}),
    "relative positions": ("practical", {
        "positions": "relative", "relative_buckets": 8,
        "relative_distance": 10}),
    "learned positions from 2, zeros first": ("complete", {
        "positions": "learned", "position_start": 2, "begin": "zero"}),
    "learned positions, output tied": ("practical", {
        "positions": "learned", "tied": "output", "output_scale": "root",
        "output_bias": True, "embedding_scale": "none"}),
    "halves from 2 without padding, normalised": ("practical", {
        "positions": "halves", "position_start": 2, "position_padding": True,
        "embedding_norm": True}),
    "no positions": ("lesson", {"positions": "none"}),
}


@pytest.mark.long
@pytest.mark.parametrize("variant", CACHED)
def test_a_cache_changes_nothing(engine_of_each_form, variant):
    port, (preset, changes) = engine_of_each_form, CACHED[variant]
    config = cases.test_size(preset).replace(**changes)
    weights = probe_weights(config, 2)
    source = cases.padded_batch(config).source
    model = built(port, config, weights)
    reference = ports.engine("numpy")
    for cached in (False, True):
        settings = GenerationConfig(
            method="beam", beam=2, max_tokens=3, cached=cached)
        found = port.generate(model, source, settings)
        expected = reference.generate(
            built(reference, config, weights), source,
            settings.replace(cached=False))
        np.testing.assert_array_equal(found["tokens"], expected["tokens"])
        np.testing.assert_allclose(
            found["scores"], expected["scores"], rtol=1e-12)


# The rules of others: who may finish, what is forced, what is read.

@contextlib.contextmanager
def told(engine, *chances):
    """Let a search hear of {token: p}, at each place, whatever it wrote."""
    search = importlib.import_module(f"{engine.__package__}.search")

    def next_log_probs(self, tokens, written):
        p = np.full(TINY.target_vocab, 1e-9)
        for token, chance in chances[min(written, len(chances)) - 1].items():
            p[token] = chance
        return engine.to_native(
            np.tile(np.log(p), (len(tokens), 1)), self.model.home)

    with mock.patch.object(search.Search, "next", next_log_probs):
        yield built(engine, TINY, TINY_WEIGHTS)


def answers(engine, model, **changes):
    """[(tokens behind the bos, score)] of a source, the best first."""
    found = engine.generate(model, np.array([[3, 4]]), GenerationConfig(**{
        "method": "beam", "beam": 2, "max_tokens": 3, "alpha": 1.0,
        "length_rule": "hf_never", **changes}))
    return [(row[1:].tolist(), float(score)) for row, score in zip(
        found["tokens"][0], found["scores"][0])]


@REFERENCE
def test_only_the_first_w_may_finish(engine):
    """An eos in third place of a beam of two, and one at the last place."""
    with told(engine, {3: 0.5, 4: 0.3, 2: 0.2}, {3: 0.6, 2: 0.4}) as model:
        everyone = answers(engine, model)
        best = answers(engine, model, finishing="top")
    assert [tokens for tokens, _ in everyone] == [[3, 3, 3], [3, 3, 2]]
    assert [tokens for tokens, _ in best] == [[3, 3, 3], [3, 3, 2]]
    with told(engine, {3: 0.5, 4: 0.3, 2: 0.2}, {3: 0.1, 4: 0.1}) as model:
        everyone = answers(engine, model, alpha=0.0)
        best = answers(engine, model, alpha=0.0, finishing="top")
    assert everyone[0] == ([2, 0, 0], pytest.approx(math.log(0.2)))
    assert best[0][0] == [3, 3, 3]


@REFERENCE
def test_the_first_that_finish_stay(engine):
    """One place is left, and two end that are better than the first one."""
    with told(engine, {3: 0.5, 2: 0.3, 4: 0.2}, {2: 0.9, 3: 0.1}) as model:
        best, first = ([tokens for tokens, _ in answers(
            engine, model, length_rule="hf_true", finishing=word)]
            for word in ("top", "first"))
    assert best == [[3, 2, 0], [4, 2, 0]]
    assert first == [[3, 2, 0], [2, 0, 0]]


@REFERENCE
def test_each_that_finishes_makes_the_beam_narrower(engine):
    """Once one of two has finished, only the best goes on, or finishes."""
    with told(engine, {3: 0.5, 2: 0.3, 4: 0.2}, {3: 0.6, 2: 0.4}) as model:
        first, narrowing = (answers(
            engine, model, length_rule="hf_true", finishing=word)
            for word in ("first", "narrowing"))
    assert [tokens for tokens, _ in first] == [[3, 2, 0], [2, 0, 0]]
    assert narrowing == [
        ([3, 3, 3], pytest.approx(math.log(0.5 * 0.6**2) / 3)),
        ([2, 0, 0], pytest.approx(math.log(0.3)))]


@REFERENCE
def test_the_unfinished_stand_in_where_nothing_finished(engine):
    """Undivided; and where something has finished, they are no answer."""
    with told(engine, {3: 0.6, 4: 0.4}) as model:
        compete = answers(engine, model)
        fallback = answers(engine, model, unfinished="fallback")
    assert [tokens for tokens, _ in compete] == [
        tokens for tokens, _ in fallback]
    np.testing.assert_allclose(
        [3 * score for _, score in compete], [s for _, s in fallback])
    with told(engine, {3: 0.6, 2: 0.1}, {3: 1.0}) as model:
        compete = answers(engine, model)
        fallback = answers(engine, model, unfinished="fallback")
    assert compete[0][0] == [3, 3, 3]
    assert fallback[0] == ([2, 0, 0], pytest.approx(math.log(0.1)))


@REFERENCE
@pytest.mark.parametrize("method", CHOICES["method"])
def test_forced_and_suppressed_tokens(engine, method):
    """None is renormalised, and what is forced adds nothing."""
    settings = GenerationConfig(
        method=method, eos_id=END, max_tokens=MOST, length_rule="none",
        forced_bos_id=9, forced_eos_id=END, min_tokens=4)
    first = engine.generate(_kept(engine), SOURCE, settings)["tokens"][:, 0]
    never = [i for i in np.unique(first[:, 2:-1]) if i not in (0, 9, END)]
    settings = settings.replace(
        suppress_tokens=never, begin_suppress_tokens=[9])
    found = engine.generate(_kept(engine), SOURCE, settings)
    for tokens in found["tokens"][:, 0]:
        ids = tokens[1:][:1 + tokens[1:].tolist().index(END)]
        assert ids[0] == 9 and len(ids) >= 4 and not set(ids) & set(never)
    tokens = found["tokens"][:, 0]
    log_p = np.take_along_axis(
        read_so_far(engine, SOURCE, tokens), tokens[:, 1:, None], -1)[..., 0]
    place = np.arange(1, 1 + MOST)
    written = np.cumsum(tokens[:, :-1] == END, axis=-1) == 0
    log_p = np.where(written & (place > 1) & (place < MOST), log_p, 0)
    np.testing.assert_allclose(
        found["scores"][:, 0], log_p.sum(axis=-1), rtol=1e-12)


def read_so_far(engine, source, target):
    """log p [B T V] of each next token, every token before it being read."""
    count, length = target[:, :-1].shape
    earlier = np.tile(np.tri(length, dtype=bool), (count, 1, 1, 1))
    output = engine.forward(
        _kept(engine), source, np.ascontiguousarray(target[:, :-1]),
        (source != 0)[:, None, None], earlier)["output"]
    highest = output.max(-1, keepdims=True)
    return output - highest - np.log(
        np.exp(output - highest).sum(-1, keepdims=True))


def test_w_candidates_stay_whatever_ends():
    """(1 + the number of ends) · W: each may end in every way (R56)."""
    for more, count in (((), 8), ((5,), 12), ((5, 7, 5, 6), 16)):
        assert GenerationConfig(
            beam=4, eos_id=6, more_eos_ids=more).candidates == count


@REFERENCE
@pytest.mark.parametrize("method", CHOICES["method"])
def test_any_of_several_ids_ends(engine, method):
    """Padding stands behind the first, and none comes too soon."""
    settings = GenerationConfig(
        method=method, eos_id=END, max_tokens=MOST, min_tokens=3, seed=4)
    one = engine.generate(_kept(engine), SOURCE, settings)["tokens"]
    written = [i for i in np.unique(one[:, 0, 3:]) if i not in (0, END)]
    ends = (END, *written[:3])
    found = engine.generate(_kept(engine), SOURCE, settings.replace(
        more_eos_ids=(*ends, END)))["tokens"]
    met = set()
    for row in found.reshape(-1, found.shape[-1])[:, 1:].tolist():
        places = [i for i, each in enumerate(row) if each in ends]
        if places:
            assert places[0] >= 2 and not any(row[places[0] + 1:])
            met.add(row[places[0]])
    assert met - {END}


class Alive:
    """Hears how many hypotheses of each row go on after the first step."""

    def __init__(self, engine):
        self.engine, self.counts = engine, []

    def record(self, search, name, value):
        if name == "candidates":
            scores = self.engine.to_numpy(value)
            scores = scores.reshape(len(scores), search.settings.beam, -1)
            self.counts.append(np.isfinite(scores).any(axis=-1).sum(axis=-1))
        return value


@REFERENCE
def test_w_hypotheses_go_on_where_most_words_end(engine):
    """2W candidates would leave fewer (R56)."""
    settings = GenerationConfig(
        method="beam", beam=4, eos_id=END, max_tokens=3,
        length_rule="hf_never", alpha=3.0,
        more_eos_ids=tuple(range(5, CONFIG.target_vocab)))
    with recording(Alive(engine)) as heard:
        engine.generate(_kept(engine), SOURCE, settings)
    assert [set(counts.tolist()) for counts in heard.counts] == [
        {1}, {4}, {4}]


@pytest.mark.long(24)
@pytest.mark.parametrize("method", ("greedy", "sample"))
def test_the_first_is_taken_where_none_is_left(engine_of_each_form, method):
    found = engine_of_each_form.generate(
        _kept(engine_of_each_form), SOURCE, GenerationConfig(
            method=method, bos_id=3, eos_id=6, max_tokens=5,
            suppress_tokens=tuple(range(CONFIG.target_vocab))))
    assert not found["tokens"][..., 1:].any()
    assert np.isneginf(found["scores"]).all()


@REFERENCE
@pytest.mark.parametrize("cached", (False, True))
@pytest.mark.parametrize("n", (1, 2))
def test_no_tokens_stand_twice_in_a_beam(engine, n, cached):
    """Nothing else is suppressed, so that no other rule calls for it."""
    tokens = engine.generate(
        _kept(engine), SOURCE, GenerationConfig(
            method="beam", beam=4, bos_id=3, eos_id=6, max_tokens=MOST,
            no_repeat_ngram=n, cached=cached))["tokens"]
    for row in tokens.reshape(-1, tokens.shape[-1]).tolist():
        written = row[:row.index(6) + 1] if 6 in row else row
        parts = [tuple(written[i:i + n]) for i in range(len(written) - n + 1)]
        assert len(set(parts)) == len(parts)


@REFERENCE
@pytest.mark.parametrize("cached", (False, True))
@pytest.mark.parametrize("n", (1, 2, 3))
def test_no_tokens_stand_twice(engine, n, cached):
    """The likeliest is taken of those that end none which is there already."""
    words = list(range(7, CONFIG.target_vocab))
    tokens = engine.generate(_kept(engine), SOURCE, GenerationConfig(
        bos_id=3, eos_id=6, max_tokens=MOST, no_repeat_ngram=n, cached=cached,
        suppress_tokens=words))["tokens"][:, 0]
    log_p = read_so_far(engine, SOURCE, tokens)
    log_p[..., [0, *words]] = -np.inf
    wanted = met = 0
    for row, scores in zip(tokens.tolist(), log_p):
        for place in range(1, len(row)):
            before = row[:place]
            if 6 in before:
                break
            there = {tuple(before[i:i + n]) for i in range(place - n + 1)}
            banned = [each for each in range(CONFIG.target_vocab) if (
                *before[place - n + 1:], each) in there and place >= n]
            wanted += int(scores[place - 1].argmax()) in banned
            scores[place - 1, banned] = -np.inf
            met += 1
            if np.isfinite(scores[place - 1]).any():
                assert row[place] == scores[place - 1].argmax()
    assert wanted and met > len(tokens)


@REFERENCE
@pytest.mark.parametrize("cached", (False, True))
def test_a_begin_that_is_padding_is_read(engine, cached):
    tokens = engine.generate(_kept(engine), SOURCE, GenerationConfig(
        bos_id=0, eos_id=END, max_tokens=MOST, cached=cached))["tokens"][:, 0]
    log_p = read_so_far(engine, SOURCE, tokens)
    log_p[..., 0] = -np.inf
    written = np.cumsum(tokens[:, :-1] == END, axis=-1) == 0
    assert (np.where(written, log_p.argmax(-1), 0) == tokens[:, 1:]).all()


@REFERENCE
@pytest.mark.parametrize("cached", (False, True))
def test_padding_that_may_be_generated_is_read(engine, cached):
    """Of few tokens that are left, padding is often the likeliest."""
    others = [i for i in range(CONFIG.target_vocab) if i not in (0, 4, END)]
    tokens = engine.generate(_kept(engine), SOURCE, GenerationConfig(
        eos_id=4, max_tokens=MOST, cached=cached, allow_padding=True,
        suppress_tokens=others))["tokens"][:, 0]
    log_p = read_so_far(engine, SOURCE, tokens)
    log_p[..., others] = -np.inf
    written = np.cumsum(tokens[:, :-1] == 4, axis=-1) == 0
    assert (np.where(written, log_p.argmax(-1), 0) == tokens[:, 1:]).all()
    inside = tokens[:, 1:-1] == 0
    assert (inside & (tokens[:, 2:] != 0)).any()


def test_one_token_is_read_a_step():
    """With the cache, the work of a step does not grow with what is written."""
    engine = ports.engine("numpy")
    lengths, model = [], _kept(engine)
    old = model.decode

    def watched(target, *given):
        lengths.append(target.shape)
        return old(target, *given)

    with mock.patch.object(model, "decode", watched):
        engine.generate(model, SOURCE, GenerationConfig(
            max_tokens=MOST, eos_id=5))
    assert set(lengths) == {(3, 1)}
    assert len(lengths) == MOST


@pytest.mark.long(8)
@pytest.mark.parametrize("engine", ["jax"], indirect=True)
def test_jax_scores_are_float64_whatever_its_switch(engine):
    """A float32 model's scores too, where JAX would have none of float64."""
    import jax
    model = built(engine, dtype="float32")
    settings = GenerationConfig(eos_id=END, max_tokens=MOST)
    wide = engine.generate(model, SOURCE, settings)
    with jax.enable_x64(False):
        narrow = engine.generate(model, SOURCE, settings)
    assert narrow["scores"].dtype == np.float64
    np.testing.assert_array_equal(narrow["tokens"], wide["tokens"])
    np.testing.assert_array_equal(narrow["scores"], wide["scores"])


ELSEWHERE = """
from parity_tests.ports.test_generate import *
from parity_tests.ports.test_generate import _kept
engine = ports.engine("keras")
engine.set_precision()
for search in generation.some_searches(1, END, MOST):
    found = generation.compared(
        engine, _kept(engine), SOURCE, search.settings,
        truth(search.settings), (3,))
    for step, difference in found.items():
        print(step.split(",")[0], difference.verdict, sep="\\t")
"""


@pytest.mark.long
@pytest.mark.parametrize("engine", ["keras"], indirect=True)
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras_searches_on_other_backends(engine, backend):
    """The same tokens and scores, whatever Keras runs on."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"not checked: {backend} is not installed")
    found = printed("-c", ELSEWHERE, KERAS_BACKEND=backend)
    assert set(found.splitlines()) == {"tokens\tmatch", "scores\tmatch"}


@pytest.mark.long(12)
@pytest.mark.parametrize("engine", ["jax"], indirect=True)
@pytest.mark.parametrize("method, rows", [
    ("greedy", 1), ("greedy", 3), ("beam", 1)])
def test_jax_copies_no_keys_for_a_token(engine, method, rows):
    """Compiled, they are written where they stand, and read from there.

    XLA can decide otherwise for some shapes; then a token costs the more, the
    longer the target may be.
    """
    from impl_jax.fast import layout, search
    from impl_jax.fast.split import split
    length = 160
    settings, numbers = search._split(GenerationConfig(
        method=method, max_tokens=length - 1), CONFIG.target_vocab)
    model, source = _kept(engine), SOURCE[:rows]
    encoded = search._encoded(*split(model), source)
    graph, arrays, options = layout.laid_out(model, length)
    given = graph, arrays, source, encoded, settings, numbers
    compiled = (
        search._compiled(search._beam_search, options).lower(*given)
        if method == "beam" else
        search._compiled(search._one_by_one, options).lower(
            *given, np.zeros((rows, length)))).compile()
    loops, _, _ = compiled.as_text().partition("\nENTRY ")
    width = settings.beam if method == "beam" else 1
    size = rows * width * length * CONFIG.d_model
    made = [(math.prod(map(int, shape.split(","))), how) for shape, how
            in re.findall(r"= f64\[([\d,]+)\]\S* ([\w-]+)\(", loops)]
    assert (size, "dynamic-update-slice") in made
    assert not {(size, "copy"), (size, "transpose")} & set(made)


@pytest.mark.parametrize("changes, words", [
    ({"method": "best"}, "method 'best' is unknown"),
    ({"length_rule": "wu"}, "length_rule 'wu' is unknown"),
    ({"beam": 0}, "beam is 0"), ({"beam": 2.5}, "beam is 2.5"),
    ({"max_tokens": 0}, "max_tokens is 0"), ({"top_k": -1}, "top_k is -1"),
    ({"top_p": 0}, "top_p is 0"), ({"top_p": 1.5}, "top_p is 1.5"),
    ({"temperature": 0}, "temperature is 0"),
    ({"temperature": float("nan")}, "temperature is nan"),
    ({"alpha": float("inf")}, "alpha is inf"), ({"alpha": -1}, "alpha is -1"),
    ({"seed": True}, "seed is True"), ({"min_tokens": 0}, "min_tokens is 0"),
    ({"finishing": "some"}, "finishing 'some' is unknown"),
    ({"unfinished": "win"}, "unfinished 'win' is unknown"),
    ({"forced_bos_id": -1}, "forced_bos_id is -1"),
    ({"forced_eos_id": 1.5}, "forced_eos_id is 1.5"),
    ({"suppress_tokens": 3}, "suppress_tokens is 3"),
    ({"begin_suppress_tokens": ("a",)}, "begin_suppress_tokens is 'a'"),
    ({"allow_padding": 1}, "allow_padding is 1"),
    ({"more_eos_ids": 3}, "more_eos_ids is 3"),
    ({"more_eos_ids": (-3,)}, "more_eos_ids is -3"),
    ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1"),
])
def test_settings_that_cannot_be(changes, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        GenerationConfig(**changes)


@pytest.mark.parametrize("changes, words", [
    ({"max_tokens": CONFIG.max_length + 1}, "max_tokens is"),
    ({"bos_id": 1000}, "bos_id 1000"), ({"eos_id": 1000}, "eos_id 1000"),
    ({"more_eos_ids": (0,)}, "eos_id 0"),
    ({"eos_id": 0}, "eos_id 0"), ({"forced_bos_id": 1000}, "forced_bos_id"),
    ({"forced_eos_id": 1000}, "forced_eos_id 1000"),
    ({"suppress_tokens": [3, 1000]}, "suppress_tokens 1000"),
    ({"begin_suppress_tokens": (1000,)}, "begin_suppress_tokens 1000"),
    ({"more_eos_ids": tuple(range(CONFIG.target_vocab)),
      "allow_padding": True},
     "every word of the vocabulary is an eos_id"),
])
def test_settings_that_a_model_cannot_do(engine, changes, words):
    with pytest.raises(InputError, match=words):
        engine.generate(_kept(engine), SOURCE, GenerationConfig(**{
            "max_tokens": 3, **changes}))


@pytest.mark.parametrize("source, rows, words", [
    (np.array([[1000]]), None, "1000"),
    (np.zeros((1, 3)), None, "float64"),
    (np.array([[3, 4]]), np.array([1, 2]), "rows are int64"),
    (np.array([[3, 4]]), np.array([0.5]), "rows are float64"),
])
def test_sources_that_cannot_be_searched_for(engine, source, rows, words):
    with pytest.raises(InputError, match=words):
        engine.generate(_kept(engine), source,
                        GenerationConfig(max_tokens=3), rows)
