"""Faults planted into source files of many families: bench and judge."""

import pytest

from benchmarks.families import checking, judging
from benchmarks.families.fault import BIAS, BenchPair, either, number
from benchmarks.families.judging import RIGHT, SILENT, has, outcome_of
from benchmarks.families.planting import port
from parity.causes.explanation import Explanation
from parity_tests.support.engines import usable


@pytest.fixture(scope="module", autouse=True)
def libraries():
    for library in ("transformers", "flax", "keras"):
        pytest.importorskip(
            library, reason=f"not checked: {library} is not installed")
    usable("torch")


def every():
    """All pairs; none where a library is missing."""
    try:
        from benchmarks.families.every import pairs
        return pairs()
    except (ImportError, AttributeError):
        return []


ALL = every()
NAMED = {(pair.family, pair.name): pair for pair in ALL}


def of(pair):
    return f"{pair.family}: {pair.name}{' across' * pair.across}"


def test_each_family_has_faults_and_sound_pairs():
    for family in {pair.family for pair in ALL}:
        here = [pair for pair in ALL if pair.family == family]
        assert sum(pair.sound for pair in here) >= 2, family
        assert sum(not pair.sound for pair in here) >= 8, family
    for pair in ALL:
        assert pair.sound or pair.where or pair.at, of(pair)


@pytest.mark.parametrize("name, right", [
    ("the values' adapter not merged", RIGHT), ("sound: A B first", SILENT)])
def test_two_are_judged(name, right):
    outcome = outcome_of(NAMED["lora", name])
    assert outcome.verdict == right, outcome.told


@pytest.mark.long
@pytest.mark.parametrize("pair", {
    (pair.family, pair.sound): pair for pair in ALL}.values(), ids=of)
def test_a_fault_changes_outputs_and_a_sound_pair_none(pair):
    """One of each family: ``benchmarks.families --check`` asks all."""
    error = checking.difference(pair)
    if pair.sound:
        assert error < checking.SOUND
    else:
        assert error > (checking.SOUND if pair.across else checking.CHANGED)


def test_an_edit_has_its_lines():
    source = port("lora_torch", ("return self.base(x) + self.scaling * low",
                                 "low = 2 * low\n        return low"))
    lines = source.text.splitlines()
    assert [lines[n - 1].strip() for n in source.lines] == [
        "low = 2 * low", "return low"]
    with pytest.raises(ValueError, match="not once"):
        assert port("lora_torch", ("self", "this")).text


@pytest.mark.parametrize("value, written", [
    (1e-5, "1e-05"), (1e-5, "1e-5"), (1e-5, "0.00001"), (0.25, "0.25"),
    (24**-0.5, "0.204124145"), (1e6, "1000000"), (8.0, "8"), (8.0, "8.0")])
def test_numbers_as_they_are_written(value, written):
    each = Explanation("x", "x", "y", sentence=f"It is {written} in b.")
    assert has(number(value), each)
    assert not has(number(3 * value), each)


def test_words_are_not_looked_for_in_paths_nor_operators_in_sentences():
    told = Explanation("h.0.bias_norm", "h.0.bias_norm", "input",
                       sentence="In h.0.bias_norm, input: x + y.",
                       expression_a="x + y", expression_b="x + y")
    assert not has(BIAS, told)
    assert has("@bias", told)
    told.expression_b = "x"
    assert has(BIAS, told)
    assert has(either("none", BIAS), told)


@pytest.mark.parametrize("place, right", [
    ("port.py:3", True), ("port.py:5", True), ("port.py:9", True),
    ("port.py:7", False), ("other.py:3", False), ("", False)])
def test_the_line_near_it_or_one_that_uses_what_it_sets(place, right):
    source = "\n" * 2 + "self.eps = 1\n" + "\n" * 5 + "x + self.eps\n"
    pair = BenchPair("f", "n", None, None, where=(("port.py", 3),),
                     source=source)
    assert judging.on_line(pair, place) == right
