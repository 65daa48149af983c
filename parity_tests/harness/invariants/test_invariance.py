"""``parity.invariance``: a row alone, in other batches, and padded."""

import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity.comparison.result import INCOMPLETE, NOTHING
from parity.invariants.arguments import Call, shown
from parity.invariants.alignment import aligned
from parity.invariants.batches import Way
from parity.invariants.responses import (
    BITWISE, FLOAT32, ROUNDING, WRONG, judged)
from parity.tracing.trace import WHOLE
from parity_tests.support.causal import causal, ids, ours
from parity_tests.support.engines import usable

GOOD = {BITWISE, ROUNDING}
SIDES = ["right", "left"]


def asked(model, ways, inputs=None, keywords=None):
    """{way: Response} of a model."""
    given, named = ids() if inputs is None else (inputs, keywords or {})
    return {each.way: each for each in parity.invariance(
        model, *given, ways=ways, **named).responses}


def test_a_sound_model_gives_the_same():
    responses = parity.invariance(causal(), *ids()[0], ways=[
        "twice", "alone", "permuted", "larger", "right"], **ids()[1])
    assert len(responses.responses) == 6 and responses.status == 0
    assert {each.verdict for each in responses.responses} <= GOOD
    assert responses.responses[0].verdict == BITWISE
    assert responses.as_json()["verdict"] == responses.verdict


def test_places_counted_from_the_left_are_named():
    response, = asked(causal(), ["left"]).values()
    assert (response.verdict, response.step) == (WRONG, "places")
    assert "counted from the left end" in response.known[0]


@pytest.mark.parametrize("way", ["alone", "permuted", "larger"])
def test_a_row_that_depends_on_the_batch(way):
    leak = causal(mixed=lambda x: x - 1e-9 * x[-1:])
    for response in asked(leak, [way]).values():
        if response.way == "row 1 alone":  # the one that the others get
            assert response.verdict in GOOD
        else:
            assert (response.verdict, response.step) == (WRONG, "attention.o")


@pytest.mark.parametrize("rows", [1, 3])
def test_equal_rows_that_depend_on_each_other(rows):
    (tokens,), keywords = ids()
    keywords = {name: x[1:].repeat(rows, 1) for name, x in keywords.items()}
    leak = causal(mixed=lambda x: x + 1e-9 * (x.sum(0) - x))
    for response in asked(leak, ["beside"], [tokens[1:].repeat(rows, 1)],
                          keywords).values():
        assert (response.verdict, response.step) == (WRONG, "attention.o")


def test_a_row_whose_bits_depend_on_others_is_told():
    leak = causal(mixed=lambda x: x + 1e-15 * x.flip(0))
    for response in asked(leak, ["beside"]).values():
        assert response.verdict == ROUNDING
        assert "attention.o gives other bits" in response.known[0]


def test_no_other_values_can_be_drawn():
    import torch
    model = torch.nn.Embedding(1, 3).double()
    responses = parity.invariance(model, torch.zeros(2, 4, dtype=int),
                                  ways=["beside"])
    assert "no argument has numbers or several ids" in responses.notes[-1]


def test_padding_that_is_seen():
    unmasked = causal(mask=lambda mask: 0 * mask + 1)
    response, = asked(unmasked, ["right"]).values()
    assert response.verdict in GOOD  # it is causal: none looks there
    seen = causal(mask=lambda mask: 0 * mask + 1,
                  places=lambda first, end: 0 * usable_arange(first, end))
    response, = asked(seen, ["left"]).values()
    assert (response.verdict, response.step) == (WRONG, "attention.o")


def usable_arange(first, end):
    import torch
    return torch.arange(first, end)


def test_a_model_that_draws():
    draws = iter(range(100))
    model = causal(mixed=lambda x: x * (1 + next(draws)))
    response, = asked(model, ["twice"]).values()
    assert (response.verdict, response.step) == (WRONG, "attention.o")


def test_nan_of_padding_is_told():
    import torch
    model = causal(places=lambda first, end: 0 * usable_arange(first, end))
    old = model.tokens.forward
    model.tokens.forward = lambda x: torch.where(
        (x == 0)[..., None], torch.tensor(torch.nan), old(x))
    (tokens,), named = ids()
    tokens = tokens.clamp(min=1)
    response = asked(model, ["left"], (tokens,), named)["padded left"]
    assert response.verdict == WRONG
    assert "NaN arises in tokens, in row 0, 1." in response.known


def test_positions_are_given_where_a_model_takes_them():
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = causal()
            self.places = nn.Embedding(16, 8).double()

        def forward(self, input_ids, attention_mask=None, position_ids=None):
            if position_ids is None:
                position_ids = torch.arange(input_ids.shape[1])[None]
            return self.inner.tokens(input_ids) + self.places(position_ids)
    response, = asked(Model(), ["left"]).values()
    assert response.verdict in GOOD and "position_ids" in response.known[0]


def test_what_cannot_be_asked_is_said():
    import torch
    layer = torch.nn.Linear(3, 3).double()  # in training mode, a note
    responses = parity.invariance(layer, torch.ones(1, 2, 3).double())
    assert {each.way for each in responses.responses} == {
        "run twice", "row 0 beside others", "in a larger batch"}
    assert len(responses.notes) == 6 and responses.status == 0
    with pytest.raises(InputError, match="an array of a batch"):
        parity.invariance(layer, torch.ones(3).double())
    with pytest.raises(InputError, match="the batch has no rows"):
        parity.invariance(layer, torch.ones(0, 2, 3).double())
    with pytest.raises(InputError, match="way 'sideways' is unknown"):
        parity.invariance(layer, torch.ones(2, 3), ways=["sideways"])


def test_rows_beyond_the_eighth_are_not_asked_alone():
    import torch
    layer = torch.nn.Linear(3, 3).double().eval()
    responses = parity.invariance(
        layer, torch.ones(10, 2, 3).double(), ways=["alone"])
    assert len(responses.responses) == 8
    assert responses.notes == ["asked alone were the first 8 rows of 10."]
    assert responses.as_json()["model"]["framework"] == "torch"
    assert not parity.invariance(
        layer, torch.ones(8, 2, 3).double(), ways=["alone"]).notes


def test_a_model_that_refuses_other_batches():
    import torch

    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.reshape(2, 3, 4) * 2
    x = torch.ones(2, 3, 4).double()
    responses = parity.invariance(Fixed(), x, ways=["larger"])
    response, = responses.responses
    assert responses.verdict == response.verdict == NOTHING
    assert "could not be asked: RuntimeError" in response.known[0]
    assert responses.status == 4
    responses = parity.invariance(Fixed(), x, ways=["twice", "larger"])
    assert (responses.verdict, responses.status) == (INCOMPLETE, 4)
    wrong = responses.responses[0]
    wrong.verdict = WRONG
    assert (responses.verdict, responses.status) == (WRONG, 1)


def test_an_output_that_cannot_be_compared():
    import torch

    class Pairs(torch.nn.Module):
        def forward(self, x):
            return x, x.new_ones(len(x) ** 2)
    responses = parity.invariance(
        Pairs(), torch.ones(2, 3).double(), ways=["twice", "larger"])
    assert [each.left_out for each in responses.responses] == [
        [], ["output.1"]]
    assert (responses.verdict, responses.status) == (INCOMPLETE, 4)
    assert "not compared: output.1" in str(responses)


def test_vectors_with_a_inverted_mask():
    """torch.nn's own: true is hidden, in the mask and in the padding."""
    usable("torch")
    import torch
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, batch_first=True).double().eval()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, 8)))
    hidden = torch.zeros(2, 5, dtype=torch.bool)
    hidden[1, 3:] = True
    responses = asked(layer, SIDES, (x,), {"src_key_padding_mask": hidden})
    assert {each.verdict for each in responses.values()} <= GOOD
    assert not Call(layer, (x,), {"src_key_padding_mask": hidden}).sequences[
        "source"].visible[1, 4]


def pooled(factor):
    """A model that sums what its mask shows of vectors [B T D].

    Args:
        factor: a function of a mask, [B T] to [B T].
    """
    import torch

    class Pooled(torch.nn.Module):
        def forward(self, x, mask):
            return (x * factor(mask)[..., None]).sum(1)
    return Pooled()


@pytest.mark.parametrize("hides", [False, True])
def test_masks_of_floats(hides):
    """One that is added to scores, and one of zeros and ones."""
    usable("torch")
    import torch
    x = torch.ones(2, 5, 3).double()
    seen = torch.ones(2, 5).double()
    if hides:
        seen[1, 3:] = 0
    sound = {pooled(torch.exp): torch.where(seen > 0, 0.0, -1e9).double(),
             pooled(lambda mask: mask): seen}
    for model, mask in sound.items():
        for response in asked(model, SIDES, (x, mask)).values():
            assert response.verdict in GOOD
            assert response.step == ""
        assert (shown(mask.numpy()) == (seen > 0).numpy()).all()
    deaf = pooled(lambda mask: 0 * mask + 1)
    for mask in sound.values():
        assert {each.verdict for each in asked(
            deaf, SIDES, (x, mask)).values()} == {WRONG}


@pytest.mark.parametrize("port", [
    "torch", pytest.param("keras", marks=pytest.mark.long),
    pytest.param("jax", marks=pytest.mark.long)])
def test_our_own(port):
    model, batch = ours(port, 4, padding=True)
    responses = parity.invariance(model, *batch, ways=["alone", "right"])
    assert {each.verdict for each in responses.responses} <= GOOD
    assert len(responses.responses) == 3


@pytest.mark.parametrize("number", [0.0, np.nan])
def test_what_proves_nothing(number):
    import torch

    class Constant(torch.nn.Module):
        def forward(self, x):
            return x * 0 + number
    responses = parity.invariance(Constant(), torch.ones(2, 3, 4).double(),
                                  ways=["twice", "alone"])
    assert responses.verdict == NOTHING and responses.status == 4


def pair(first, second):
    return [(WHOLE, "output", np.asarray(first), np.asarray(second))]


@pytest.mark.parametrize("mine, other, expected", [
    ((2, 6, 3), (2, 9, 3), (2, 1, 6, 3)), ((12, 3), (18, 3), (2, 1, 6, 3)),
    ((2, 6, 6), (2, 9, 9), (2, 1, 6, 6)), ((8, 6), (8, 9), (2, 4, 6)),
    ((6, 3), (9, 3), (1, 6, 3)), ((2, 5), (2, 8), None), ((3,), (3,), (1, 3)),
    ((2, 0), (2, 0), (2, 1, 0)), ((), (), ()), ((), (1,), None),
    ((2, 6), (2, 9, 1), None)])
def test_what_padding_leaves_is_cut_out(mine, other, expected):
    (tokens,), named = ids()  # [2 6], of which the last of row 0 is hidden
    call = Call(causal(), (tokens,), named)
    way = Way("", (0, 1), {"source": (2, 1)}, {})
    mine, other = (1 + np.arange(np.prod(shape)).reshape(shape)
                   for shape in (mine, other))
    both = aligned(call, way, mine, other)
    if expected is None:
        assert both is None
        return
    assert both[0].shape == both[1].shape == expected
    assert both[2] == (expected[:1] == (2,))
    if mine.shape == (2, 6, 3):
        assert (both[1][1, 0] == other[1, 2:8]).all()
        assert not both[1][0, 0, -1].any() and both[1][0, 0, :-1].all()


@pytest.mark.parametrize("gap, verdict", [
    (0.0, BITWISE), (1e-15, ROUNDING), (1e-11, WRONG)])
def test_the_border_of_rounding(gap, verdict):
    one = np.random.default_rng(0).normal(size=(2, 9))
    response, first = judged("", pair(one, one * (1 + gap)))
    assert response.verdict == verdict and bool(first) == (verdict != BITWISE)


def test_float32_inside_is_told_only_where_it_shows():
    one = np.random.default_rng(0).normal(size=(2, 9))
    weights = np.float64(np.float32(np.exp(one) / np.exp(one).sum(
        -1, keepdims=True)))
    inner = [("attention", "output.0", one, one * (1 + 1e-8)),
             ("attention", "output.1", weights, weights)]
    ends = pair(one, one * (1 + 1e-8))
    assert judged("", [*inner, *ends])[0].verdict == FLOAT32
    assert judged("", [inner[0], *ends])[0].verdict == WRONG
    larger = pair(one, one * (1 + 1e-4))
    assert judged("", [*inner, *larger])[0].verdict == WRONG


def test_equal_sizes_of_batch_and_time_are_no_alarm():
    (tokens,), named = ids(6)
    responses = asked(causal(), ["permuted", "alone"], (tokens,), named)
    assert {each.verdict for each in responses.values()} <= GOOD


def test_arguments_are_given_as_they_were():
    (tokens,), named = ids()
    call = Call(causal(), (tokens,), named)
    assert call.rows == 2 and call.sequences["source"].length == 6
    padded = call.padded({"source": (2, 1)}, 7)
    assert padded["input_ids"].shape == (2, 9)
    assert (padded["input_ids"][:, :2] == 7).all()
    assert not padded["attention_mask"][:, [0, 1, -1]].any()


def test_as_many_heads_as_places():
    import torch
    (tokens,), named = ids()
    named["attention_mask"] = torch.ones(2, 6, 6, 6, dtype=torch.bool)
    padded = Call(causal(), (tokens,), named).padded({"source": (2, 1)})
    assert padded["attention_mask"].shape == (2, 6, 9, 9)
