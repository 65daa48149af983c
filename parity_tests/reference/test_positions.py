"""Positions of other systems than the paper's, by values written out."""

import numpy as np
import pytest

from transformer_contract.config import PLAIN
from reference_numpy import engine

#: Position 3 of width 8: (layout, divisor) -> the row, to seven digits.
THIRD = {
    ("interleaved", "half"): (
        .14112, -.9899925, .2955202, .9553365, .0299955, .99955, .003,
        .9999955),
    ("halves", "half"): (
        .14112, .2955202, .0299955, .003, -.9899925, .9553365, .99955,
        .9999955),
    ("halves", "half_less_one"): (
        .14112, .1387981, .0064633, .0003, -.9899925, .9903207, .9999791, 1.),
}

#: Two rows, padded on the left and inside; 0 is padding.
TOKENS = np.array([[0, 0, 5, 6, 7], [5, 6, 0, 7, 0]])


def positions(start=0, tokens=TOKENS, table=None, **choices):
    """What is added to embeddings: [T 8], or [B T 8]."""
    config = PLAIN.replace(
        source_vocab=9, target_vocab=9, d_model=8, n_heads=2, max_length=20,
        **choices)
    weights = {} if table is None else {"table": table}
    module = engine.build("positional_encoding", config, weights)
    return engine.run(module, np.zeros((*tokens.shape, 8)), tokens,
                      start=start)["positions"]


@pytest.mark.parametrize("layout, divisor", THIRD)
def test_rows_of_other_systems(layout, divisor):
    """Hugging Face's Marian has halves and d/2; Marian, T2T, Flax d/2 - 1."""
    found = positions(positions=layout, position_divisor=divisor)
    np.testing.assert_allclose(
        found[3], THIRD[layout, divisor], rtol=0, atol=6e-8)


def test_the_narrowest_table():
    """d/2 - 1 is 0 for a width of 2; Tensor2Tensor then divides by 1."""
    config = PLAIN.replace(d_model=2, n_heads=1, max_length=4,
                           position_divisor="half_less_one")
    module = engine.build("positional_encoding", config, {})
    np.testing.assert_allclose(
        module.values()[3], [np.sin(3), np.cos(3)], rtol=0, atol=1e-16)


def test_a_first_row():
    """fairseq's first token has position 2, in OpenNMT-tf it has 1."""
    usual = positions(positions="halves")
    for start in (1, 2):
        np.testing.assert_array_equal(
            positions(positions="halves", position_start=start)[:-start],
            usual[start:])


def test_a_table_in_float32():
    """Once rounded, it is added as it is in any dtype."""
    found, exact = positions(position_rounding="float32"), positions()
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, exact.astype(np.float32))
    assert 1e-9 < np.abs(found - exact).max() < 1e-7


@pytest.mark.parametrize("learned", [False, True])
def test_padding_has_no_position(learned):
    """As in fairseq: what is not padding is counted, from the start on."""
    table = np.random.default_rng(0).normal(size=(22, 8)) if learned else None
    word = {"positions": "learned"} if learned else {}
    whole = positions(
        tokens=np.ones((1, 20), int), table=table, position_start=2, **word)
    found = positions(
        table=table, position_start=2, position_padding=True, **word)
    for row, expected in zip(found, ((None, None, 0, 1, 2),
                                     (0, 1, None, 2, None))):
        for position, place in zip(row, expected):
            np.testing.assert_array_equal(
                position, 0 if place is None else whole[place])
    later = positions(start=3, tokens=np.array([[4], [0]]), table=table,
                      position_start=2, position_padding=True, **word)
    np.testing.assert_array_equal(later[0, 0], whole[3])
    assert not later[1].any()


def test_a_learned_table_begins_at_its_start():
    """BART's first token reads row 2 of a table of N + 2 rows."""
    table = np.random.default_rng(0).normal(size=(22, 8))
    found = positions(table=table, positions="learned", position_start=2)
    np.testing.assert_array_equal(found, table[2:7])
