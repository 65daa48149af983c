"""Pairs of choices: every two words meet, also a word that is new."""

import dataclasses
import itertools

import pytest

from transformer_contract import config
from parity.check import covering, wide


def test_every_two_words_share_a_row():
    words = covering.choices()
    rows = covering.covering(words, covering.possible)
    assert all(map(covering.possible, rows))
    for (one, a), (two, b) in covering.pairs(words):
        if not covering.possible({one: a, two: b}):
            continue
        assert any(row[one] == a and row[two] == b for row in rows)
    assert all(row.keys() == words.keys() for row in rows)
    most = sorted(map(len, words.values()))[-2:]
    assert most[0] * most[1] <= len(rows) <= 2 * most[0] * most[1]


def test_two_choices_are_all_their_pairs():
    rows = covering.covering({"a": (1, 2, 3), "b": "xy"})
    assert [tuple(row.values()) for row in rows] == list(
        itertools.product((1, 2, 3), "xy"))


def test_a_new_word_is_covered_the_day_it_is_added(monkeypatch):
    monkeypatch.setitem(config.CHOICES, "activation", ("relu", "gelu", "new"))
    wide.models.cache_clear()
    try:
        models = wide.models()
    finally:
        wide.models.cache_clear()
    having = [model.config for model in models
              if model.config.activation == "new"]
    for field, words in covering.choices().items():
        if field != "activation":
            assert {getattr(one, field) for one in having} == set(words)


def test_choices_are_those_of_the_config():
    words = covering.choices()
    assert config.CHOICES.items() <= words.items()
    flags = {field.name for field in dataclasses.fields(
        config.TransformerConfig) if isinstance(field.default, bool)}
    assert flags == words.keys() - config.CHOICES.keys()


@pytest.mark.parametrize("model", wide.models(), ids=lambda model: model.name)
def test_no_two_sizes_of_a_model_are_equal(model):
    """But for the width of the only head, and a vocabulary that is shared."""
    c = model.config
    sizes = [*model.shapes[0], c.d_model, c.d_ff, c.n_heads,
             c.n_encoder_layers, c.n_decoder_layers, c.source_vocab]
    sizes += [] if c.n_heads == 1 else [c.d_k]
    one = c.embeddings_tied or c.stacks != "both"
    sizes += [] if one else [c.target_vocab]
    assert len(set(sizes)) == len(sizes)
    assert len({c.pad_id, model.bos_id, model.eos_id}) == 3
    assert c.norm_eps != c.final_norm_eps
    names = [case.name for case in model.cases()]
    assert len(set(names)) == len(names)
