"""``parity.invariance`` with a cache, as people use one."""

import re

import pytest

import parity
from parity_io.errors import InputError
from parity.comparison.result import INCOMPLETE
from parity.invariants.asking import USUAL
from parity.invariants.responses import BITWISE, ROUNDING, WRONG
from parity.invariants.shown_masks import difference
from parity_tests.support.causal import causal, ids


def asked(model, *ways, **more):
    """The Responses of a model in some ways."""
    given, named = ids()
    return parity.invariance(model, *given, ways=ways, **named, **more)


def wrong(responses):
    """The first Response that is wrong."""
    return next(each for each in responses.responses if each.verdict == WRONG)


def test_every_use_of_a_sound_model():
    responses = asked(causal(), "cache")
    assert {each.verdict for each in responses.responses} <= {
        BITWISE, ROUNDING}
    words = " ".join(each.way for each in responses.responses)
    for part in ("one token", "chunks of", "a prompt", "another request",
                 "padded left", "beams", "share"):
        assert part in words, part


def test_a_mask_without_the_offset():
    import torch
    model = causal(mask=lambda mask: mask)
    inner = torch.Tensor.tril

    def tril(self, diagonal=0):
        return inner(self, 0 if self.shape[0] > 1 else diagonal)
    torch.Tensor.tril = tril
    try:
        each = wrong(asked(model, "tokens", "chunks"))
    finally:
        torch.Tensor.tril = inner
    assert each.way == "in chunks of 2" and each.place == "places 2 to 3"
    assert "has not the offset" in each.cause
    assert each.source.startswith("test_uses.py:")


def test_positions_that_are_not_shifted():
    import torch
    each = wrong(asked(causal(
        places=lambda first, end: torch.arange(end - first)), "tokens"))
    assert each.place == "place 1"
    assert "positions are not shifted" in each.cause
    assert any("anew at 0 with each read, and not at 1." in sentence
               for sentence in each.known)


def test_positions_that_are_one_too_small():
    import torch
    each = wrong(asked(causal(places=lambda first, end: torch.arange(
        max(first - 1, 0), end - 1 if first else end)), "tokens"))
    assert each.cause == "positions are 1 too small"


def test_rows_that_are_not_reordered():
    model = causal()
    model.reorder_cache = lambda past, order: past
    each = wrong(asked(model, "tokens", "beams"))
    assert "rows of what is kept are not reordered" in each.cause
    model.reorder_cache = lambda past, order: (
        past[0].index_select(0, order), past[1])
    each = wrong(asked(model, "beams"))
    assert "not in 1" in each.cause


def test_a_model_without_a_cache():
    import torch
    x = torch.ones(2, 3, 4)
    x[1] *= 2
    responses = parity.invariance(torch.nn.Linear(4, 4), x)
    assert responses.status == 0
    assert "not asked with a cache: Linear takes no" in responses.notes[-1]
    with pytest.raises(InputError, match="takes no past_key_values"):
        parity.invariance(torch.nn.Linear(4, 4), x, ways=["cache"])


def test_what_is_named_and_cannot_be_asked():
    """It is not all that was named; what was not named stands behind the
    verdict."""
    import torch
    x = torch.ones(2, 3, 4)
    x[1] *= 2
    for ways, verdict, status in (
            (["twice", "right"], INCOMPLETE, 4), (["twice"], BITWISE, 0),
            (USUAL, INCOMPLETE, 4), (None, BITWISE, 0)):
        responses = parity.invariance(torch.nn.Linear(4, 4), x, ways=ways)
        assert (responses.verdict, responses.status) == (verdict, status)
    assert responses.not_asked == ["right", "left", "cache"]
    assert str(responses).endswith(
        "verdict: bitwise; not asked: right, left, cache")


@pytest.mark.parametrize("settings", [
    {"pad_id": wrong} for wrong in (
        "x", object(), float("nan"), 2.0, True, -1, 10**23)] + [{"ways": []}])
def test_settings_that_are_none(settings):
    with pytest.raises(InputError):
        parity.invariance(causal(), *ids()[0], **settings)


def test_what_is_wrong_with_a_mask():
    import numpy as np
    whole = np.tri(6, dtype=bool)[2:4, :4]
    other = whole.copy()
    other[0, 0] = False
    assert difference(other, whole, 2, 4)[1].startswith(
        "The token at place 2 does not see place 0")
    assert "those behind them" in difference(
        np.ones((2, 4), bool), whole, 2, 4)[0]
    window = np.tri(6, dtype=bool) & ~np.tri(6, k=-3, dtype=bool)
    wider = np.tri(6, dtype=bool) & ~np.tri(6, k=-4, dtype=bool)
    assert difference(wider[5:, :], window[5:, :], 5, 6)[0] == (
        "the window is off by one")


@pytest.mark.long
def test_a_cache_that_all_requests_have():
    from benchmarks.deployed.decoder import made
    model, keywords = made(wrong="g_global", cache="object")
    wrong = [each for each in parity.invariance(
        model, ways=["tokens", "reused"], **keywords).responses
        if each.verdict == WRONG]
    assert [each.way for each in wrong] == ["after another request"]
    assert wrong[0].cause.startswith(
        "what is kept of one request is read by another")


def decoder(wrong=False):
    """A decoder that hands on a static cache, and no mask beside one if that
    is wrong."""
    import torch

    class Static(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.place = (
                torch.nn.Embedding(size, 8) for size in (20, 16))
            self.qkv, self.out = (
                torch.nn.Linear(8, size) for size in (24, 20))

        def forward(self, input_ids, past_key_values=None, use_cache=True):
            count = input_ids.shape[1]
            kept = past_key_values or (torch.zeros(
                2, len(input_ids), 16, 8).double(), 0)
            store, first = kept[0].clone(), kept[1]
            x = self.embed(input_ids) + self.place(
                torch.arange(first, first + count))
            q, *new = self.qkv(x).chunk(3, -1)
            store[:, :, first:first + count] = torch.stack(new)
            scores = q @ store[0][:, :first + count].mT
            seen = torch.ones(count, first + count).tril(first) > 0
            if not wrong or not first:
                scores = scores.masked_fill(~seen, float("-inf"))
            y = scores.softmax(-1) @ store[1][:, :first + count]
            return {"logits": self.out(x + y),
                    "past_key_values": (store, first + count)}
    return Static().double().eval()


TOKENS = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]


def test_a_static_cache_by_a_step_of_ones_own():
    """What the model keeps is no answer, though it gives it all at once."""
    import torch

    def step(model, place, state, ids):
        made = model(ids[:, place:place + 1], state)
        return made["logits"], made["past_key_values"]

    def late(model, place, state, ids):
        answer, (store, first) = step(model, place, state, ids)
        return answer, (torch.roll(store, 1, 2), first)
    ids = torch.tensor(TOKENS)
    sound = parity.invariance(decoder(), ids, ways=["tokens"], step=step)
    assert (sound.status, sound.left) == (0, [])
    assert not any(each.left_out for each in sound.responses)
    assert parity.invariance(decoder(), ids, ways=["tokens"],
                             step=late).status == 1


def test_a_mask_that_is_missing_beside_a_cache():
    import torch
    each = wrong(parity.invariance(
        decoder(wrong=True), input_ids=torch.tensor(TOKENS),
        ways=["chunks"]))
    assert "those behind them" in each.cause
    assert any(sentence.startswith("Cause: ") for sentence in each.known)


@pytest.mark.parametrize("name, way, words", [
    ("p_pad", "cached-left", "padding is counted as positions"),
    ("m_pad", "cached-left", "the mask does not hide padding"),
    ("m_chunk", "chunks", "see those behind them"),
    ("k_lost", "tokens", "too few places"),
    ("k_zero", "tokens", "is not what was computed"),
    ("s_scale", "tokens", "a scale that the whole has not: divide by 2")])
def test_the_line_that_makes_a_read_wrong(name, way, words):
    """It may be long before the one that shows it, and in an earlier read."""
    from benchmarks.deployed.caches import FAULTS, lines
    from benchmarks.deployed.decoder import made
    model, keywords = made(wrong=name, **FAULTS[name][0])
    each = wrong(parity.invariance(model, ways=[way], **keywords))
    assert words in each.cause and re.search(lines(name), each.source)
