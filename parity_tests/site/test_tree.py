"""A beam search as a tree: nothing is shown that the search did not do."""


import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.generation import GenerationConfig
from parity import ports
from parity.reading import articles, pages, tree, values
from parity.reading.shipped_model import MAPS
from parity_tests.support.page_reader import PageReader


@pytest.fixture(scope="module")
def found():
    """A run of the reference alone."""
    return values.Values(())


TEXTS = (MAPS[0], articles.VAGUE, "tomorrow")


def settings_of(found, **changes):
    """A beam of four, with some changes."""
    return GenerationConfig(
        bos_id=found.tokenizer.bos_id, eos_id=found.tokenizer.eos_id,
        method="beam", beam=4, max_tokens=15).replace(**changes)


def searched(found, text, **changes):
    """The SearchTree of a text, and what the engine answers by itself."""
    engine, model = found.engines["numpy"], found.models["numpy"]
    source = found.tokenizer.pad([found.tokenizer.encode(text)])
    settings = settings_of(found, **changes)
    return (tree.search(engine, model, source, settings),
            engine.generate(model, source, settings), settings)


@pytest.mark.parametrize("changes", [
    {}, {"beam": 1}, {"beam": 2, "max_tokens": 4}, {"length_rule": "none"},
    {"length_rule": "hf_true"}, {"cached": False}], ids=str)
@pytest.mark.parametrize("text", TEXTS)
def test_answers_are_the_engines(found, text, changes):
    search, answer, settings = searched(found, text, **changes)
    finite = np.isfinite(answer["scores"][0])
    assert len(search.answers) == finite.sum()
    for one, tokens, score in zip(
            search.answers, answer["tokens"][0], answer["scores"][0]):
        assert one.tokens == tree.clipped(tokens[1:], settings)
        assert one.divided == score
    assert [one.place for one in search.answers] == list(
        range(1, len(search.answers) + 1))


@pytest.mark.parametrize("text", TEXTS)
def test_every_score_is_that_of_its_tokens(found, text):
    """Each hypothesis is read anew, as while training."""
    search, _, settings = searched(found, text)
    engine, model = found.engines["numpy"], found.models["numpy"]
    every = [one for step in search.steps for one in step]
    assert len(every) > 40
    source = np.array([found.tokenizer.encode(text)])
    for one in every[::5]:
        target = np.array([[settings.bos_id, *one.tokens[:-1]]])
        output = engine.forward(model, *Batch.of_ids(
            source, target, found.config.pad_id))["output"][0]
        log_p = output - np.log(np.exp(output).sum(axis=-1, keepdims=True))
        total = log_p[np.arange(len(one.tokens)), one.tokens].sum()
        assert abs(total - one.score) < 1e-10


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_kept_is_the_best_that_goes_on(found, text):
    search, _, settings = searched(found, text)
    for step in search.steps:
        scores = [one.score for one in step]
        assert scores == sorted(scores, reverse=True)
        going = [one for one in step if one.token != settings.eos_id]
        kept = [one for one in step if one.fate in (tree.KEPT, tree.STOPPED)]
        assert kept == going[:settings.beam]
        for one in step:
            assert one.parent is None or one.parent.fate == tree.KEPT
            assert (one.token == settings.eos_id) == (
                one.fate in (tree.ENDED, tree.LOST))
    won = [one for step in search.steps for one in step if one.won]
    assert [one.token for one in won] == search.answers[0].tokens


def test_nothing_stays_changed(found):
    beam = ports.module_of("numpy", "search").Beam
    before = beam.top, beam.best
    searched(found, "tomorrow")
    assert (beam.top, beam.best) == before
    assert ports.engine("numpy") is found.engines["numpy"]


def test_a_beam_finds_what_greedy_search_misses(found):
    shown = tree.tree_of(found, articles.VAGUE)
    assert shown["greedy"]["text"] != shown["best"]["text"]
    number = {name: float(shown[name]["score"].replace("−", "-"))
              for name in ("greedy", "best")}
    assert number["best"] > number["greedy"]


def test_page_says_in_words_what_lines_show(found):
    site = pages.Site(found)
    text = site.render("attention-maps.html", "attention-maps.html", "Maps",
                       **articles.of_maps(site))
    assert text.count('<svg class="tree"') == len(MAPS) + 1
    shown = tree.tree_of(found, MAPS[0])
    words = PageReader(shown["svg"]).texts
    assert words.count("answer 1") == 1 and "dropped" in words
    drawn = [word for word in words if word.startswith("log p ")]
    assert len(drawn) == shown["count"] == len(shown["rows"])
    assert [word.removeprefix("log p ") for word in drawn] == [
        row[3] for row in shown["rows"]]


def test_texts_are_escaped(found):
    shown = tree.tree_of(found, "<b>1</b> & <script>")
    assert "<b>" not in shown["svg"] and "<script" not in shown["svg"]
    assert "&lt;/s&gt;" in shown["svg"]
