"""The phrases: what is drawn, what is held out, and the shipped model."""

import json

import numpy as np
import pytest

from parity import ports
from parity.check import golden
from parity.runs import dates, phrases, quality, translation
from parity_tests.support.commands import invoke
from parity_tests.support.runs import answers_of

PAIRS = list(zip(*golden.read_pairs(golden.FOLDER / "phrases.tsv")))


def test_no_answer_that_is_tested_is_trained_on():
    kept, drawn = answers_of(phrases, 2, 20, 30)
    assert len(kept) > 800 and len(drawn) > 1500
    assert not kept & drawn


def test_a_set_has_every_kind_in_every_language():
    found = phrases.pairs("validation", 2)
    assert len(found) == 2 * len(phrases.KINDS) * len(phrases.LOCALES)
    assert len(set(found)) == len(found)
    assert found == phrases.pairs.__wrapped__("validation", 2)
    for step in (1, 3000):
        assert list(map(len, phrases.batch(step, 64))) == [64, 64]


@pytest.mark.parametrize("locale", [*phrases.LOCALES, phrases.ANSWER])
def test_babel_has_every_unit(locale):
    """It gives a unit's code where a language has no name for it."""
    texts = [phrases.said("measure", (unit, 3), locale)
             for unit in phrases.MEASURES]
    texts += [phrases.said("duration", ((unit, 3),), locale)
              for unit in phrases.PARTS]
    codes = {*phrases.MEASURES, *(f"duration-{u}" for u in phrases.PARTS)}
    assert not any(code in text for text in texts for code in codes)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("kind,meaning,texts", [
    ("ago", ("day", -3), (
        "vor 3 Tagen", "hace 3 días", "il y a 3 jours", "3 dni temu",
        "3 gün önce", "3 days ago")),
    ("money", ("name", "CHF", 12.5), (
        "12,50 Schweizer Franken", "12,50 francos suizos",
        "12,50 francs suisses", "12,50 franka szwajcarskiego",
        "12,50 İsviçre frangı", "12.50 Swiss francs")),
    ("languages", ("de", "AT"), (
        "Deutsch (Österreich)", "alemán (Austria)", "allemand (Autriche)",
        "niemiecki (Austria)", "Almanca (Avusturya)", "German (Austria)")),
])
def test_a_meaning_in_every_language(kind, meaning, texts):
    assert tuple(phrases.said(kind, meaning, locale) for locale in (
        *phrases.LOCALES, phrases.ANSWER)) == texts


def test_the_shipped_model_answers():
    asked, right = zip(*PAIRS)
    assert len(PAIRS) == len(phrases.KINDS) * len(phrases.LOCALES)
    found = invoke("translate", "--task", "phrases", *asked)
    assert found.exit_code == 0
    answers = found.stdout.splitlines()
    assert np.mean([a == b for a, b in zip(answers, right)]) >= 0.9


def test_what_it_never_saw_is_doubtful():
    found = quality.measure("phrases", ["numpy"], 1)
    assert np.mean([one.right for one in found.asked]) >= 0.85
    doubtful = sum(found.doubtful(found.unseen))
    assert doubtful / len(found.unseen) > 0.5
    right = [one for one in found.asked if one.right]
    assert found.doubtful(right)[0] <= 0.05 * len(right)


@pytest.mark.parametrize("text", [
    "hello world", "foo bar baz", "asdf qwerty", "lorem ipsum dolor",
    "3 bananas verdes", "Kwijibo"])
def test_what_is_no_phrase_is_doubtful(text):
    found = invoke("translate", "--task", "phrases", text)
    assert "the answer to text 1 is doubtful" in found.stderr
    refused = invoke("translate", "--task", "phrases", "--strict", text)
    assert refused.exit_code == 2 and not refused.stdout.strip()


@pytest.mark.long
def test_all_answer_the_same():
    names = ["numpy", *ports.known_ports()]
    found = quality.measure("phrases", names, 2)
    assert not found.difference and found.worst < 1e-12
    assert len(found.ports) + len(found.not_checked) == len(names)


def test_quality_is_told(tmp_path):
    file, page = tmp_path / "q.json", tmp_path / "q.md"
    found = invoke("train", "quality", "dates", "--each", 1, "--json", file,
                   "--markdown", page)
    model, = json.loads(file.read_text("utf-8"))["models"]
    assert sum(of for *_, of in model["ranges"]) == 102
    assert found.exit_code == 0 and (
        f"exact: {102 - len(model['wrong'])} of 102" in found.output)
    assert model["groups"]["fr"] == [3, 3] and len(model["wrong"]) < 4
    assert f"{dates.UNSEEN}: " in found.output
    assert "## Dates" in page.read_text("utf-8")


def test_a_difference_of_two_ports_is_told(monkeypatch):
    monkeypatch.setattr(translation, "agree", lambda *a: (1.0, "torch errs"))
    found = invoke("train", "quality", "dates", "--each", 1)
    assert found.exit_code == 1


@pytest.mark.parametrize("words", [
    ("quality", "cats"), ("quality", "--port", "mxnet"),
    ("translate", "--task", "cats", "a"),
    ("translate", "--task", "dates", "--weights", "x", "a")])
def test_what_is_refused(words):
    found = invoke(*words)
    assert found.exit_code == 2 and found.stderr.count("\n") == 1
