"""A sample of the bench: faults, sound pairs, and what has no known cause."""

import pytest

from benchmarks.dumps.pair import RIGHT, outcome_of, pairs, table

#: A few of each topic and kind, quick ones.
SAMPLE = ("eps, printed", "theta, zipped", "final_norm, named",
          "right, last token alone", "columns", "numbered", "begin token",
          "another vocabulary", "special token in pieces", "system prompt",
          "begin and end", "truncated", "cased", "marks_in_pieces",
          "trimmed, ids", "slow and fast",
          "shuffled", "equal_ids", "not over 255", "CLIP's mean", "BGR",
          "channels_last", "16 bits' range", "padded", "other bytes",
          "channels")


@pytest.fixture(scope="module")
def every():
    for name in ("torch", "transformers", "PIL"):
        pytest.importorskip(name, reason=f"not asked: {name} is not installed")
    return {pair.name: pair for pair in pairs()}


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(every, name):
    made = outcome_of(every[name])
    assert made.fate == RIGHT, made.told


def test_table(every):
    outcomes = [outcome_of(every[name]) for name in ("padded", "channels")]
    assert [*table(outcomes)][-1] == (
        "| all | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |")


@pytest.mark.long
def test_all(every):
    wrong = {name: made.told for name, pair in every.items()
             if (made := outcome_of(pair)).fate != RIGHT}
    assert wrong == {}
