"""``parity.invariance``: token by token against all at once."""

import functools
import importlib

import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity.invariants.places import at_places
from parity.invariants.responses import BITWISE, ROUNDING, WRONG
from parity_tests.support.causal import causal, ids, ours
from parity_tests.support.engines import usable


def cached(model, *given, **named):
    """The Responses of a model that reads one token at a time."""
    return parity.invariance(model, *given, ways=["tokens"], **named)


def told(**wrong):
    """The Responses of a causal model with something wrong in its cache."""
    given, named = ids()
    return cached(causal(**wrong), *given, **named)


def first(responses):
    """The place, step and remarks of the first response that is wrong."""
    each = next(a for a in responses.responses if a.verdict == WRONG)
    return each.place, each.step, each.known


def test_a_sound_cache():
    responses = told()
    each, = responses.responses
    assert each.verdict in (BITWISE, ROUNDING) and responses.status == 0
    assert each.way == "one token at a time"


def test_a_model_that_gives_logits_alone_where_it_keeps_nothing():
    model, (given, named) = causal(), ids()
    forward = model.forward

    def alone(input_ids, attention_mask=None, past_key_values=None,
              use_cache=False):
        output = forward(input_ids, attention_mask, past_key_values, use_cache)
        return output if use_cache else output["logits"]
    model.forward = alone
    each, = cached(model, *given, **named).responses
    assert each.verdict in (BITWISE, ROUNDING) and not each.left_out


def test_positions_that_begin_anew():
    import torch
    responses = told(places=lambda first, end: torch.arange(end - first))
    place, step, known = first(responses)
    assert (place, step) == ("place 1", "places") and responses.status == 1
    assert "positions are not shifted by what the cache holds" in known[1]


def test_positions_that_are_one_late():
    import torch
    responses = told(places=lambda first, end: torch.arange(
        first, end) - int(first > 2))
    place, step, known = first(responses)
    assert (place, step) == ("place 3", "places")
    assert "positions are 1 too small" in known[1]


def test_a_key_that_is_lost():
    responses = told(keys=lambda keys: keys[:, :, -2:])
    assert first(responses)[:2] == ("place 3", "attention.o")
    responses = told(keys=lambda keys: 0 * keys)
    assert first(responses)[:2] == ("place 1", "attention.o")


def test_attention_at_another_place_says_nothing_of_positions():
    """Without its own token, the second place has what the first has."""
    responses = told(keys=lambda keys: keys[:, :, :1].repeat(
        1, 1, keys.shape[2], 1))
    assert responses.verdict == WRONG
    assert not any("positions" in sentence for each in responses.responses
                   for sentence in each.known)


@pytest.mark.parametrize("kind", [dict, tuple])
def test_a_cache_that_is_handed_on_otherwise(kind):
    import torch

    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = causal()

        def forward(self, ids, attention_mask=None, past_key_values=None,
                    use_cache=None):
            output = self.inner(ids, attention_mask, past_key_values,
                                use_cache)
            parts = output | {"past_key_values": output.past_key_values}
            return parts if kind is dict else tuple(parts.values())
    given, named = ids()
    assert cached(Other(), *given, **named).status == 0


def test_a_cache_that_is_not_handed_on():
    model, (given, named) = causal(), ids()
    forward = model.forward

    def alone(input_ids, attention_mask=None, past_key_values=None):
        return forward(input_ids, attention_mask)["logits"]
    model.forward = alone
    with pytest.raises(InputError, match="hands on none by that name"):
        cached(model, *given, **named)


def test_an_output_without_places():
    """One that a single token makes in another shape is not compared."""
    import torch

    class Squares(torch.nn.Module):
        def forward(self, x):
            return x, x.new_ones(x.shape[1] ** 2)
    responses = cached(
        Squares(), torch.ones(2, 3, 3).double(),
        step=lambda model, place, state, x: (
            model(x[:, place:place + 1]), None))
    each, = responses.responses
    assert (each.verdict, each.left_out) == (BITWISE, ["output.1"])
    assert responses.status == 4


def test_an_output_of_the_last_place():
    """A state, or the last token's logits, is of the last place alone."""
    import torch
    cell = torch.nn.GRU(3, 3, batch_first=True).double().eval()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 3)))

    def step(lost, model, place, state, x):
        output, state = model(x[:, place:place + 1], state)
        return (output, state), state * (1 - lost)
    sound = cached(cell, x, step=functools.partial(step, 0))
    assert {each.verdict for each in sound.responses} <= {BITWISE, ROUNDING}
    assert not any(each.left_out for each in sound.responses)
    lossy = cached(cell, x, step=functools.partial(step, 1e-8))
    assert [each.place for each in lossy.responses] == ["place 1"]
    assert lossy.verdict == WRONG

    class Last(torch.nn.Module):
        def forward(self, x):
            return x[:, -1]
    responses = cached(Last(), x, step=lambda model, place, state, x: (
        model(x[:, place:place + 1]), None))
    assert [each.verdict for each in responses.responses] == [BITWISE]
    wrong = cached(Last(), x, step=lambda model, place, state, x: (
        model(x[:, :1]), None))
    assert wrong.verdict == WRONG


def test_a_model_whose_cache_is_not_known():
    import torch
    layer = torch.nn.Linear(3, 3)
    with pytest.raises(InputError, match="takes no past_key_values"):
        cached(layer, torch.ones(2, 3, 3))
    with pytest.raises(InputError, match="must return an output and the new"):
        cached(layer, torch.ones(2, 3, 3),
                     step=lambda model, place, state, x: model(x))
    with pytest.raises(InputError, match=r"of all 3 places for place 0; hand "
                       r"the model input\[:, place:place \+ 1\] alone"):
        cached(layer, torch.ones(2, 3, 3),
                     step=lambda model, place, state, x: (model(x), None))


def test_a_step_that_reads_on_from_all_tokens():
    """It is refused at its first read, not where what it keeps overflows."""
    import torch

    class Counted(torch.nn.Module):
        def forward(self, x, first=0):
            if first:
                raise IndexError("index out of range in self")
            return x * 2

    def step(model, place, state, x):
        return model(x, state or 0), (state or 0) + x.shape[1]
    with pytest.raises(InputError, match="of all 3 places for place 0"):
        cached(Counted(), torch.ones(2, 3, 3), step=step)


@pytest.mark.parametrize("place, verdict", [(-1, ROUNDING), (0, WRONG)])
def test_an_answer_without_an_axis_of_places(place, verdict):
    """It is of the last place, as logits from which a token is drawn."""
    import torch
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 3)))
    responses = parity.invariance(
        torch.nn.Linear(3, 3).double(), x, ways=["chunks"],
        step=lambda model, places, state, x: (
            model(x[:, places])[:, place], None))
    assert responses.verdict in (verdict, BITWISE)
    assert not any(each.left_out for each in responses.responses)


def by_one(model, place, state, source, target, source_mask, target_mask):
    """One token of ours, with its cache."""
    cache = importlib.import_module(
        f"{type(model).__module__.partition('.')[0]}.cache")
    memory, caches = state or (
        model.encode(source, source_mask),
        cache.new_caches(model, len(source), target.shape[1]))
    here = slice(place, place + 1)
    decoded = model.decode(target[:, here], memory, source_mask,
                           target_mask[:, :, here], caches)
    return model.project(decoded), (memory, caches)


@pytest.mark.parametrize("port", [
    "torch", pytest.param("keras", marks=pytest.mark.long),
    pytest.param("jax", marks=pytest.mark.long)])
def test_our_own(port):
    model, batch = ours(port, 3)
    responses = cached(model, *batch, step=by_one)
    assert {each.verdict for each in responses.responses} <= {BITWISE, ROUNDING}


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_hugging_face(family):
    usable("torch")
    pytest.importorskip(
        "transformers", reason="not checked: transformers is not installed")
    from benchmarks.porting.hugging_face import inputs, made
    each, = cached(made(family), **inputs(family)).responses
    assert each.verdict == ROUNDING


@pytest.mark.parametrize("mine, other, place, expected", [
    ((2, 5, 3), (2, 1, 3), 4, (2, 1, 3)), ((2, 5, 5), (2, 1, 3), 2, (2, 1, 3)),
    ((2, 5, 5), (2, 1, 4), 2, None), ((2, 3), (2, 1, 3), 0, None),
    ((5, 5), (5, 5), 1, (5, 5))])
def test_what_belongs_to_a_place(mine, other, place, expected):
    both = at_places(np.zeros(mine), np.zeros(other), place, place + 1, 5)
    assert (both and both[0].shape) == expected
