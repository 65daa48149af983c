"""What a model says of how sure it is of an answer."""

import json

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.generation import GenerationConfig
from parity.check import golden
from parity.runs import doubt, evaluation, tasks, translation
from parity_tests.support.commands import invoke

SHIPPED = golden.FOLDER / "dates.safetensors"

#: No dates, in any of the forms that the model has seen.
FOREIGN = (
    "hello world", "good morning everyone", "the quick brown fox", "abc",
    "call me at 5", "yesterday", "next Friday", "Monday", "42", "a",
    "import numpy as np", "Bonjour tout le monde", "今日は良い天気",
    "Привет мир", "🙂", "lorem ipsum dolor",
)


def run(*arguments):
    return invoke("translate", *arguments)


@pytest.fixture(scope="module")
def translator():
    return translation.Translator("numpy", translation.Model.load(SHIPPED))


def test_text_that_is_no_date_is_doubtful():
    found = run(*FOREIGN, "20 November 2026")
    assert found.exit_code == 0
    for number in range(1, len(FOREIGN) + 1):
        assert f"the answer to text {number} is doubtful" in found.stderr
    assert found.stderr.count("doubtful") == len(FOREIGN)
    assert found.stdout.splitlines()[-1] == "2026-11-20"


def test_strict_gives_no_doubtful_answer():
    found = run("--strict", "hello world", "20 November 2026")
    assert found.exit_code == 2
    assert found.stdout == "\n2026-11-20\n"
    assert "It is not given." in found.stderr


def test_a_day_that_the_calendar_lacks_is_doubtful():
    found = run("31 février 2026", "28 février 2026", "")
    assert found.exit_code == 0
    assert found.stdout == "2026-02-31\n2026-02-28\n\n"
    assert found.stderr.splitlines() == [
        "parity: the answer to text 1 is doubtful: the calendar has no such "
        "day.", "parity: text 3 is empty, and so is its answer."]
    assert run("--strict", "31 février 2026").stdout == "\n"


def test_json():
    found = run("--json", "-", "hello world", "20 November 2026", "")
    first, second, empty = json.loads(found.stdout)["answers"]
    assert first["doubtful"] and first["ports"]["numpy"]["hypotheses"]
    assert first["least_probability"] < 0.87 < second["least_probability"]
    assert not second["doubtful"] and not empty["doubtful"]
    found = run("--strict", "--json", "-", "hello world")
    assert json.loads(found.stdout)["answers"][0]["ports"] == {
        "numpy": {"hypotheses": []}}


def test_weights_whose_doubt_was_not_measured(tmp_path):
    arrays, metadata = weights.load(SHIPPED)
    description = weights.described(metadata)
    del description["crc32"], description["doubtful_below"]
    path = tmp_path / "dates.safetensors"
    weights.save(path, arrays, **description)
    tokenizer = str(golden.FOLDER / "dates.tokenizer.json")
    words = ("--weights", str(path), "--tokenizer", tokenizer, "hello world")
    found = run(*words)
    assert found.exit_code == 0 and not found.stderr
    found = run("--strict", *words)
    assert found.exit_code == 2
    assert "does not say how sure right answers are" in found.stderr


@pytest.mark.parametrize("border", [float("nan"), 2.0, -1, True, "0.9"])
def test_a_border_that_is_no_probability_is_refused(tmp_path, border):
    arrays, metadata = weights.load(SHIPPED)
    description = weights.described(metadata)
    del description["crc32"]
    path = tmp_path / "dates.safetensors"
    weights.save(path, arrays, **description | {"doubtful_below": border})
    found = run("--weights", str(path), "--tokenizer",
                str(golden.FOLDER / "dates.tokenizer.json"), "hello world")
    assert found.exit_code == 2
    assert "no probability" in found.stderr


def test_the_probability_is_that_of_the_token(translator):
    """Asked one token at a time, and padded beside a longer text."""
    engine, model = translator.engine, translator.native_model
    tokenizer = translator.model.tokenizer
    sources = [tokenizer.encode(text) for text in (
        "20 November 2026", "vendredi 20 novembre 2026")]
    answers = [[tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id]
               for text in ("2026-11-20", "2026")]
    found = doubt.least_probability(
        engine, model, tokenizer, sources, answers)
    for source, answer, least in zip(sources, answers, found):
        probabilities = []
        for i in range(1, len(answer)):
            source_ids, read = np.array([source]), np.array([answer[:i]])
            logits = engine.predict(model, source_ids, read, **engine.masks(
                source_ids, read, 0))[0, -1]
            share = np.exp(logits - logits.max())
            probabilities.append(share[answer[i]] / share.sum())
        assert least == pytest.approx(min(probabilities), rel=1e-12)


def test_the_shipped_border_is_what_right_answers_have(translator):
    """Of the first pair of each language and form of the test set."""
    pairs = tasks.task("dates").test()[::100]
    answers = evaluation.translate(
        translator.engine, translator.native_model,
        translator.model.tokenizer, [source for source, _, _ in pairs], 16)
    right = [(source, target) for (source, target, _), answer
             in zip(pairs, answers) if answer == target]
    assert doubt.border(None, None, None, right) is None, "too few to tell"
    tokenizer = translator.model.tokenizer
    least = doubt.least_probability(
        translator.engine, translator.native_model, tokenizer,
        [tokenizer.encode(source) for source, _ in right],
        [[tokenizer.bos_id, *tokenizer.encode(target), tokenizer.eos_id]
         for _, target in right])
    assert (least < translator.model.doubtful_below).mean() < 0.05


def test_an_answer_that_was_cut_is_weighed(translator):
    """It has no end to count."""
    tokenizer = translator.model.tokenizer
    settings = GenerationConfig(
        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, max_tokens=3)
    answers = translator.answer(
        [translation.read(translator.model, "20 November 2026", "it")],
        settings)
    translator.weigh(answers, settings)
    assert 0 < answers[0].least < 1


def test_a_strict_answer_has_an_end():
    found = run("--strict", "--max-tokens", "6", "20 November 2026")
    assert found.exit_code == 2 and found.stdout.strip() == ""
    assert "is cut there" in found.stderr and "not given" in found.stderr
    found = run("--max-tokens", "6", "--json", "-", "20 November 2026")
    assert json.loads(found.stdout)["answers"][0]["cut"]


def test_an_answer_that_is_not_given_is_not_drawn(tmp_path):
    found = run("--strict", "--attention", str(tmp_path / "a.html"),
                "hello world")
    assert found.exit_code == 2
    assert not list(tmp_path.iterdir())
