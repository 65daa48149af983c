"""Log-probabilities of two models, under a contract that is named."""

import math

import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity.assertions.nats import Probabilities
from parity_tests.support.engines import usable

LOGITS = np.log([[[0.5, 0.3, 0.15, 0.05]] * 3])
IDS = np.array([[0, 1, 2]])


@pytest.mark.parametrize("contract, expected, words", [
    ({}, [0.5, 0.3, 0.15], "logits"),
    ({"top_k": 2}, [0.625, 0.375, 0], "the 2 most likely, normalised again"),
    ({"top_k": 2, "renormalised": False}, [0.5, 0.3, 0],
     "normalised over all tokens"),
    ({"top_p": 0.8}, [0.625, 0.375, 0], "with p 0.8"),
    ({"top_p": 0.81}, [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95], "with p 0.81"),
    ({"temperature": 0.5}, np.square([0.5, 0.3, 0.15]) / 0.365,
     "logits / 0.5")])
def test_each_contract(contract, expected, words):
    found = parity.nats(LOGITS, LOGITS, IDS, **contract)
    np.testing.assert_allclose(np.exp(found.a[0]), expected, rtol=1e-12)
    assert found.error == 0 and words in str(found)


def test_the_largest_difference_is_in_nats_and_has_a_place():
    other = LOGITS.copy()
    other[0, 1] = np.log([0.5, 0.2, 0.25, 0.05])
    found = parity.nats(LOGITS, other, IDS)
    assert found.place == (0, 1)
    assert found.error == pytest.approx(math.log(1.5))
    assert parity.nats(LOGITS, other, IDS, [[1, 0, 1]]).error == 0
    assert "they differ most at row 0, place 1, by 0.41 nats" in str(found)
    excluded = parity.nats(LOGITS, other, IDS, top_k=2)
    assert excluded.error == math.inf


def test_large_logits_and_shifted_ones_are_the_same():
    found = parity.nats(LOGITS + 1e4, LOGITS, IDS)
    assert found.error < 1e-11
    assert np.isfinite(parity.nats(LOGITS * 1e4, LOGITS * 1e4, IDS).a).all()


def test_top_p_is_of_all_tokens():
    """Over the two most likely, the first has 0.625 and would be enough."""
    found = parity.nats(LOGITS, LOGITS, IDS, top_k=2, top_p=0.6)
    np.testing.assert_allclose(np.exp(found.a[0]), [0.625, 0.375, 0])
    assert "with p 0.6 of all tokens'" in str(found)


@pytest.mark.parametrize("logit", [math.nan, math.inf, -math.inf])
def test_a_logit_that_is_no_number(logit):
    other = LOGITS.copy()
    other[0, 2, 3] = logit
    assert parity.nats(LOGITS, other, IDS, [[1, 1, 0]]).error == 0
    if logit < 0:  # a token that may not come
        assert parity.nats(LOGITS, other, IDS).error == pytest.approx(
            -math.log(0.95))
        return
    with pytest.raises(InputError, match=(
            f"largest logit of b at row 0, place 2 is {logit}")):
        parity.nats(LOGITS, other, IDS)


@pytest.mark.parametrize("given, words", [
    ((LOGITS, LOGITS[:, :2], IDS), "do not belong together"),
    ((LOGITS, LOGITS, IDS + 2), "an id is none of 4"),
    ((LOGITS, LOGITS, IDS * 1.0), "an id is none of 4"),
    ((LOGITS, LOGITS, IDS, [[0, 0, 0]]), "no place counts"),
    ((LOGITS, LOGITS, IDS, [1, 0, 1]), r"counted has shape \[3\]"),
    ((LOGITS, LOGITS, IDS, np.full(np.shape(IDS), np.nan)), "beside 0 and 1"),
    ((LOGITS, LOGITS, "the"), "ids is of type str"),
    ((LOGITS, LOGITS, [[0], [1, 2]]), "rows of several lengths")])
def test_what_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        parity.nats(*given)
    for wrong in ({"temperature": 0}, {"top_k": -1}, {"top_p": 0},
                  {"temperature": math.nan}, {"temperature": "1"},
                  {"temperature": math.inf},
                  {"top_k": 2.5}, {"renormalised": "no"}):
        with pytest.raises(InputError, match="is no way to choose"):
            Probabilities(**wrong)


def test_a_word_that_the_contract_lacks():
    with pytest.raises(InputError, match="'temp' is unknown.*temperature"):
        parity.nats(LOGITS, LOGITS, IDS, temp=1)


def test_tokens_that_both_exclude_are_told():
    both = parity.nats(LOGITS, LOGITS, IDS, top_k=1)
    assert both.error == 0
    assert str(both).endswith("Of 2 tokens both say that they cannot come.")


def test_tensors_of_a_framework():
    usable("torch")
    import torch
    logits = torch.from_numpy(LOGITS).requires_grad_()
    assert parity.nats(logits, LOGITS, torch.from_numpy(IDS)).error == 0
