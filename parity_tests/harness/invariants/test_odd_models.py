"""``parity.invariance`` of models and arguments of many kinds.

Those that are right must be called right, and the others wrong.
"""

import numpy as np
import pytest

import parity
from parity.comparison.result import INCOMPLETE
from parity.invariants.responses import BITWISE, ROUNDING, WRONG

T, D = 5, 8
GOOD = {BITWISE, ROUNDING}

pytestmark = pytest.mark.usefixtures("torch")


def model(function, **parts):
    """A module that computes ``function(self, …)``, in float64."""
    import torch
    kind = type("Model", (torch.nn.Module,), {"forward": function})()
    for name, part in parts.items():
        setattr(kind, name, part)
    return kind.double().eval()


def vectors(rows=3):
    import torch
    return torch.from_numpy(
        np.random.default_rng(0).normal(size=(rows, T, D)))


def seen(rows=3):
    """Bool [B T]: row 1 ends in two places of padding."""
    import torch
    mask = torch.ones(rows, T, dtype=torch.bool)
    mask[1, 3:] = False
    return mask


def attention():
    import torch
    return torch.nn.MultiheadAttention(D, 2, batch_first=True)


def attends(self, x, mask):
    """Attention by a mask [B 1 1 T], or by one [T T]."""
    import torch
    return torch.nn.functional.scaled_dot_product_attention(
        x[:, None], x[:, None], x[:, None], attn_mask=mask)[:, 0]


def deaf(self, x, mask):
    return attends(self, x, None)


def told(*given, **keywords):
    return parity.invariance(*given, **keywords).verdict


def causal():
    return np.tri(T, dtype=bool)


@pytest.mark.parametrize("kind", ["bool", "float64", "bfloat16"])
def test_a_mask_with_an_axis_of_heads(torch, kind):
    mask = seen()[:, None, None]
    x = vectors()
    if kind != "bool":
        dtype = getattr(torch, kind)
        x, mask = x.to(dtype), torch.where(
            mask, 0.0, -1e30).to(dtype)
    assert told(model(attends), x, mask) in GOOD
    assert told(model(deaf), x, mask) == WRONG


@pytest.mark.parametrize("padding", [False, True])
def test_an_inverted_mask_of_any_name(padding):
    """Read as what is seen, it hides all of a row."""
    hidden = ~seen() if padding else seen() & False

    def masked(self, x, padding_mask):
        return self.attention(x, x, x, key_padding_mask=padding_mask)[0]

    def unmasked(self, x, padding_mask):
        return self.attention(x, x, x)[0]
    assert told(model(masked, attention=attention()), vectors(),
                hidden) in GOOD
    assert told(model(unmasked, attention=attention()), vectors(),
                hidden) == WRONG


@pytest.mark.parametrize("rows", [3, T])
def test_a_causal_mask_is_of_no_row(torch, rows):
    """Beside one of padding it grows with that."""
    mask = torch.from_numpy(causal())
    assert told(model(attends), vectors(rows), mask) in GOOD
    layer = torch.nn.TransformerEncoderLayer(
        D, 2, 12, 0.0, batch_first=True).double().eval()
    assert told(layer, vectors(rows), src_mask=~mask,
                src_key_padding_mask=~seen(rows)) in GOOD


@pytest.mark.parametrize("rows", [3, T])
def test_positions_and_masks_of_all_rows(torch, rows):
    """One row that is for all grows with padding."""
    def placed(self, x, mask, causal_mask, position_ids):
        x = x + self.places(position_ids)
        return attends(self, x, mask[:, None, None] & causal_mask)
    layer = model(placed, places=torch.nn.Embedding(T, D))
    future = torch.from_numpy(causal())
    for positions in (torch.arange(T), torch.arange(T)[None]):
        assert told(
            layer, vectors(rows), torch.ones(rows, T) > 0, position_ids=(
                positions), causal_mask=future[None, None]) in GOOD


def test_lengths_are_of_rows(torch):
    def pooled(self, x, lengths):
        mask = torch.arange(x.shape[1]) < lengths[:, None]
        return (x * mask[..., None]).sum(1)
    assert told(model(pooled), vectors(), torch.tensor([5, 3, 5])) in GOOD


def test_rows_second():
    def swapped(self, x):
        return x.transpose(0, 1)

    def leaking(self, x):
        return (x - x.mean(0)).transpose(0, 1)
    assert told(model(swapped), vectors()) == BITWISE
    assert told(model(leaking), vectors()) == WRONG


def test_a_model_that_takes_rows_second(torch):
    layer = torch.nn.TransformerEncoderLayer(D, 2, 12, 0.0).double().eval()
    response, = parity.invariance(
        layer, vectors(), ways=["larger"]).responses
    assert response.verdict == WRONG
    assert "self_attn has batch_first False" in response.known[0]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_states_of_layers(torch, layers):
    """h_n [layers B H] has rows second, as many of both or not."""
    cell = torch.nn.GRU(D, 3, layers, batch_first=True).double().eval()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, D)))
    responses = parity.invariance(cell, x)
    assert responses.status == 0
    assert not any(each.left_out for each in responses.responses)


@pytest.mark.parametrize("takes, padded", [
    (lambda mask: mask.where(mask, False), True),
    (lambda mask: mask * 1.0, True), (lambda mask: mask.no_mask, False)])
def test_a_mask_is_made_as_a_model_takes_it(torch, takes, padded):
    """Of booleans, of numbers, or none, so that padding cannot be asked."""
    def pooled(self, ids, attention_mask=None):
        if attention_mask is None:
            return self.table(ids).mean(1)
        seen = takes(attention_mask)[..., None]
        return (self.table(ids) * seen).sum(1) / seen.sum(1)
    layer = model(pooled, table=torch.nn.Embedding(9, D).double())
    responses = parity.invariance(layer, torch.arange(8).reshape(2, 4))
    assert responses.status == 0
    ways = {each.way for each in responses.responses}
    assert ("padded right" in ways) == padded


def test_an_output_of_the_whole_batch():
    """A loss is compared where the rows are; what has no rows is left out."""
    def loss(self, x, mask):
        return x.pow(2).mean(), x

    def picked(self, x, mask):
        return x[mask]
    responses = parity.invariance(
        model(loss), vectors(), seen(), ways=["twice", "permuted", "larger"])
    assert [each.left_out for each in responses.responses] == [
        [], [], ["output.0"]]
    assert responses.verdict == INCOMPLETE
    assert told(model(picked), vectors(), seen(), ways=[
        "twice", "permuted", "alone"]) == INCOMPLETE


@pytest.mark.parametrize("rows", [2, 4])
def test_an_output_of_no_row(torch, rows):
    """Places are as many as rows, or twice as many, and of none of them."""
    def placed(self, x):
        return x * 2, torch.arange(4), torch.arange(8.0)
    assert told(model(placed), vectors(rows)) in GOOD

    def first(self, x):
        return x * 2, torch.arange(len(x))
    assert told(model(first), vectors(rows)) == WRONG


@pytest.mark.parametrize("function, verdict", [
    (lambda self, x: (x > 0), BITWISE),
    (lambda self, x: (x > x.mean(0)), WRONG),
    (lambda self, x: x.argmax(-1), BITWISE),
    (lambda self, x: (x - x.mean(0)).argmax(-1), WRONG),
    (lambda self, x: {"none": None, "x": x}, BITWISE)])
def test_outputs_of_other_kinds(function, verdict):
    assert told(model(function), vectors(), ways=[
        "twice", "alone"]) == verdict


@pytest.mark.parametrize("gap, verdict", [(0.0, BITWISE), (0.05, WRONG)])
def test_float16(gap, verdict):
    def near(self, x):
        return x - gap * x.mean(0)
    assert told(model(near), vectors().half(), ways=["alone"]) == verdict


def test_training_mode(torch):
    norm = torch.nn.BatchNorm1d(D).double()
    layer = model(lambda self, x: self.norm(x.mT).mT, norm=norm)
    assert told(layer, vectors()) in GOOD
    responses = parity.invariance(layer.train(), vectors())
    assert responses.verdict == WRONG
    assert "training mode" in responses.notes[0]
    drop = model(lambda self, x: self.drop(x), drop=torch.nn.Dropout(0.1))
    assert told(drop, vectors()) == BITWISE
    assert told(drop.train(), vectors()) == WRONG
