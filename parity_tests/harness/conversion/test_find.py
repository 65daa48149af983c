"""Which parameter is which: found by running, whatever their names."""

import numpy as np
import pytest
import torch
from torch import nn

from parity_io.errors import InputError
from transformer_contract.sinusoids import halves_table, interleaved_table
from parity.conversion.apply import apply
from parity.conversion.find import find
from parity.conversion.showing import GIVE
from parity.conversion.weights import Live, is_sinusoids
from parity_tests.harness.conversion.models import (
    FourLayers, Bare, Blocks, Multi, Packed, X, torch_model)


def agrees(a, b):
    """Find a mapping, apply it and its reverse; the Pairing."""
    before = Live(*a).names, Live(*b).names
    found = find(a, b)
    assert found.complete, (found.over_a, found.over_b, found.doubts,
                            str(found.comparison))
    for model, names in zip((a, b), before):
        now = Live(*model).names
        assert all(np.array_equal(names[name], now[name]) for name in names)
    applied = apply(found.mapping, Live(*a), Live(*b))
    assert applied.again and not applied.diverges
    back = apply(found.mapping, applied.arrays, reverse=True)
    assert all(np.array_equal(back.arrays[name], array)
               for name, array in before[0].items()
               if name not in found.mapping.left_a)
    return found


def turned():
    """Square projections, the query's and the output's names exchanged."""
    return FourLayers("ifge")


@pytest.mark.parametrize("one, other", [
    (FourLayers, turned), (FourLayers, Packed), (Packed, FourLayers),
    (FourLayers, Multi), (Multi, FourLayers)])
def test_attention_in_other_words(one, other):
    agrees(torch_model(one), torch_model(other, 1))


@pytest.mark.long(8)
def test_what_is_not_found_is_not_claimed():
    found = find(torch_model(FourLayers), torch_model(Bare, 1))
    assert not found.complete
    assert found.over_a or found.over_b or found.doubts or not found.agrees


def test_norms_that_are_all_ones_are_told_apart():
    found = agrees(torch_model(FourLayers), torch_model(FourLayers, 1))
    assert all(entry.b == entry.names[0] for entry in found.mapping.entries)


class Tables(nn.Module):
    """Words and places; with types as well, of which the first is added."""

    def __init__(self, types, offset=0, rows=9):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(rows, 8)
        self.norm, self.offset = nn.LayerNorm(8), offset
        if types:
            self.types = nn.Embedding(2, 8)
        self.double()

    def forward(self, ids):
        at = torch.arange(ids.shape[1]) + self.offset
        x = self.words(ids) + self.places(at)
        if hasattr(self, "types"):
            x = x + self.types(0 * ids)
        return self.norm(x)


IDS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])


def test_positions_and_types_that_are_one_table():
    a, b = (Tables(True), (IDS,), {}), (Tables(False), (IDS,), {})
    found = find(a, b)  # a sum is for a person to write
    assert not found.complete and "types.weight" in found.over_a


def test_rows_before_the_first_place():
    found = find((Tables(False, 2, 11), (IDS,), {}),
                 (Tables(False), (IDS,), {}))
    assert found.complete
    entry = next(e for e in found.mapping.entries if e.b == "places.weight")
    assert entry.pieces[0].layout == "slice 2 11 along 0"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [interleaved_table, halves_table])
def test_sines_are_told_from_what_is_learned(make, dtype):
    table = make(12, 8).astype(dtype)
    assert is_sinusoids(table) and not is_sinusoids(table[:3])
    drawn = np.random.default_rng(0).normal(size=table.shape)
    for other in (drawn, 0 * table, 0 * table + 1, table + 1e-3 * drawn):
        assert not is_sinusoids(other)


def test_a_padded_vocabulary_is_not_cut():
    a, b = Tables(False), Tables(False)
    a.words = nn.Embedding(16, 8).double()
    found = find((a, (IDS,), {}), (b, (IDS,), {}))
    assert not found.complete and "words.weight" in found.over_a


class Head(nn.Module):
    """A table and a projection, which may be one."""

    def __init__(self, tied):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 11, bias=False)
        if tied:
            self.head.weight = self.table.weight
        self.double()

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids)))


def test_tied_parameters():
    found = agrees((Head(True), (IDS,), {}), (Head(False), (IDS,), {}))
    assert {entry.names for entry in found.mapping.entries} == {
        ("table.weight",)}
    agrees((Head(True), (IDS,), {}), (Head(True), (IDS,), {}))
    untied = find((Head(False), (IDS,), {}), (Head(True), (IDS,), {}))
    assert not untied.complete and untied.over_a


def test_a_layer_that_is_used_twice():
    class Twice(nn.Module):
        def __init__(self, seed):
            super().__init__()
            torch.manual_seed(seed)
            self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)
            self.double()

        def forward(self, x):
            for _ in range(2):
                x = torch.tanh(self.two(torch.tanh(self.one(x))))
            return x
    x = torch.from_numpy(X)
    agrees((Twice(0), (x,), {}), (Twice(1), (x,), {}))


def test_what_has_no_partner_is_told():
    class Biased(Blocks):
        def __init__(self):
            super().__init__(FourLayers, 1)
            self.more = nn.Linear(8, 8).double()

        def forward(self, x):
            return super().forward(x) + 0 * self.more(x)
    a, b = torch_model(FourLayers), (Biased(), (torch.from_numpy(X),), {})
    assert {"more.weight", "more.bias"} <= find(a, b).over_b.keys()
    assert {"more.weight", "more.bias"} <= find(b, a).over_a.keys()
    named = find(a, b, ["more.weight", "more.bias"])
    assert named.complete
    with pytest.raises(InputError, match="neither model has"):
        find(a, b, ["mere.weight"])


def test_inputs_that_do_not_show_it():
    a, b = torch_model(FourLayers), torch_model(FourLayers, 1)
    one = torch.from_numpy(X[:, :1])  # one place: nothing to attend to
    found = find((a[0], (one,), {}), (b[0], (one,), {}))
    assert not found.complete and found.doubts
    assert all(GIVE in why for why in found.doubts.values())


def test_models_that_compute_something_else():
    class Other(Blocks):
        def forward(self, x):
            return super().forward(x) + 1e-3 * x
    other = Other(FourLayers, 1), (torch.from_numpy(X),), {}
    found = find(torch_model(FourLayers), other)
    assert not found.complete and not found.doubts
    assert found.error > 1e-4


def test_other_inputs_are_refused():
    a, b = torch_model(FourLayers), torch_model(FourLayers, 1)
    with pytest.raises(InputError, match="different inputs"):
        find(a, (b[0], (torch.from_numpy(X + 1),), {}))


def test_no_weights_are_refused():
    nothing = nn.Tanh(), (torch.from_numpy(X),), {}
    with pytest.raises(InputError, match="no parameters in floating point"):
        find(torch_model(FourLayers), nothing)
