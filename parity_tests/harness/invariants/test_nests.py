"""What a model keeps in objects of anybody's, and what is done to it."""

import dataclasses

import pytest

import parity
from parity_io.errors import InputError
from parity.invariants.kept import rebuilt
from parity.invariants.responses import WRONG
from parity.tracing.holders import held
from parity_tests.support.causal import causal, ids

torch = pytest.importorskip("torch", reason="not run: torch is not installed")


class Slots:
    __slots__ = "k", "v"

    def __init__(self, k, v):
        self.k, self.v = k, v


@dataclasses.dataclass
class Data:
    k: object
    v: object


class PrivateAttributes:
    def __init__(self, k, v):
        self._k, self._v = k, v
        self.k, self.v = None, None


KINDS = Slots, Data, PrivateAttributes


def stepping(kind):
    """A step that keeps a list of lists of an object."""
    def step(model, places, state, ids, **_):
        past = None if state is None else state[0][0]
        x = model.tokens(ids[:, places]) + model.places(
            torch.arange(places.start, places.stop))
        mixed, kept = model.attention(x, None, past and tuple(
            getattr(past, name) if getattr(past, name) is not None
            else getattr(past, f"_{name}") for name in "kv"))
        return {"logits": model.head(x + mixed)}, [[kind(*kept)]]
    return step


def asked(*ways, **more):
    """The Responses of a model in some ways."""
    return parity.invariance(causal(), ids()[0][0], ways=ways, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_beams_of_what_objects_hold(kind):
    responses = asked("beams", "shared", step=stepping(kind))
    assert len(responses.responses) > 1 and not responses.left
    assert responses.status == 0, str(responses)


def test_arrays_in_objects_are_replaced_in_copies():
    one, two = torch.zeros(2), torch.ones(3)
    first = [Slots(one, 1), {"d": Data(two, "x")}, PrivateAttributes(one, two)]
    first[2].k = first  # it holds itself
    assert {*held(first, "kept", torch.is_tensor, every=True)} == {
        "kept.0.k", "kept.1.d.k", "kept.2._k", "kept.2._v"}
    made = rebuilt(first[:2], "kept", lambda _, leaf: leaf + 1
                   if torch.is_tensor(leaf) else leaf)
    assert made[0].k.tolist() == [1, 1] and made[0].v == 1
    assert made[1]["d"].k.tolist() == [2] * 3
    assert one.tolist() == [0, 0] and first[0].k is one


class Kept:
    """Keys and values, with functions that are wrong in one word each."""

    def __init__(self, wrong):
        self.wrong, self.both = wrong, None

    def __bool__(self):
        return self.both is not None

    def reorder_cache(self, order):
        k, v = self.both
        self.both = k.index_select(0, order), (
            v if self.wrong == "values" else v.index_select(0, order))

    def crop(self, size):
        self.both = tuple(each[:, :, -size:] if self.wrong == "crop"
                          else each[:, :, :size] for each in self.both)


def decoder(wrong):
    """A model that keeps a Kept."""
    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = causal()

        def forward(self, input_ids, past_key_values=None, use_cache=False):
            kept = past_key_values
            if kept is None and use_cache:
                kept = Kept(wrong)
            made = self.inner(input_ids, None, kept.both if kept else None,
                              use_cache)
            if kept is not None:
                kept.both = made.past_key_values
            return made["logits"], kept
    return Decoder().eval()


def test_rows_that_do_not_fit():
    """A read that fails says which, and what was not as asked."""
    each = parity.invariance(decoder("values"), ids()[0][0], ways=[
        "shared"]).responses[0]
    assert each.verdict == WRONG and each.place == "place 3"
    assert each.known[0].startswith("Read 2 of 4, place 3, failed with ")
    assert each.cause == ("rows are not reordered in all that is kept: not in "
                          "both.1.")


def test_a_cache_that_is_cut_back_to_other_places():
    each = next(each for each in parity.invariance(
        decoder("crop"), ids()[0][0], ways=["reused"]).responses
        if each.verdict == WRONG)
    assert each.way == "with a cache that was cut back to 3"
    assert each.cause == ("what is kept is cut back to other places: to 3 to "
                          "5, and not to 0 to 2, in both.0.")
    assert parity.invariance(decoder(""), ids()[0][0], ways=[
        "reused", "shared", "beams"]).status == 0


def test_a_step_without_an_array():
    def words(model, places, state, ids, **_):
        return "hello", state
    with pytest.raises(InputError, match="its output is a str"):
        asked("tokens", step=words)
