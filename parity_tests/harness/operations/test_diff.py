"""``parity.diff`` and ``parity.exact``: verdicts, causes, what is refused."""

import numpy as np
import pytest

import parity
from parity_io.errors import InputError
from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

X = np.random.default_rng(8).normal(size=(2, 5, 6))


class Scaling(nn.Module):
    """A root mean square norm, in float32 inside if ``short``."""

    def __init__(self, short, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 6).double())
        self.short, self.eps = short, eps

    def forward(self, x):
        h = x.float() if self.short else x
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


class Block(nn.Module):
    """A norm and a layer; the residual is added here, or in the layer."""

    def __init__(self, short=False, eps=1e-5, inside=False):
        super().__init__()
        torch.manual_seed(6)
        self.norm, self.layer = Scaling(short, eps), nn.Linear(6, 6).double()
        self.inside = inside
        self.wrapped = Added(self.layer) if inside else None

    def forward(self, x, scale=1.0):
        if self.inside:
            return self.wrapped(self.norm(x), x) * scale
        return (x + self.layer(self.norm(x))) * scale


class Added(nn.Module):
    """A layer and the residual around it."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, h, x):
        return x + self.layer(h)


def make(**options):
    """What makes a Block and its inputs."""
    return lambda: (Block(**options).eval(), torch.from_numpy(X))


def test_outputs_that_agree_are_a_match():
    found = parity.diff(make(), make(inside=True))
    assert (found.verdict, found.status) == ("match", 0)
    assert found.explanations == [] and found.divergences == []
    assert found.seconds > 0


def test_inner_pairs_that_differ_are_no_counterparts():
    class Elsewhere(nn.Module):
        """The same, but the second layer adds what the first one did."""

        def __init__(self, late):
            super().__init__()
            torch.manual_seed(7)
            self.late = late
            self.one, self.two = (nn.Linear(6, 6).double() for _ in range(2))
            if late:
                with torch.no_grad():
                    self.one.bias.add_(1)

        def forward(self, x):
            return self.two(self.one(x) - float(self.late))
    found = parity.diff(Elsewhere(False), Elsewhere(True), X)
    assert (found.verdict, found.status) == ("match", 0)
    unlike = [row for row in found.rows if row.diverges]
    assert {row.a for row in unlike} >= {"one"}
    assert found.divergences == [] and found.explanations == []
    note, = (note for note in found.notes if "no counterparts" in note)
    assert note.startswith(f"{len(unlike)} inner pair")


def test_a_run_equal_to_the_bit_is_a_match():
    model = Block()
    found = parity.diff(model, model, X)
    assert (found.verdict, found.status) == ("match", 0)
    assert not any("same" in note and "bit" in note for note in found.notes)


@pytest.mark.parametrize("turned", [False, True])
def test_equal_but_for_float32_inside_is_no_failure(turned):
    sides = make(short=True), make()
    found = parity.diff(*(sides[::-1] if turned else sides))
    assert found.verdict == "equal but for float32 inside"
    assert found.status == 0 and found.explanations == []
    assert found.corrected.startswith(
        "With nothing shorter than float64 inside, the outputs agree to ")
    short, other = "ba" if turned else "ab"
    (place, dtype, _), = found.roundings[short]
    assert place.startswith("test_diff.py:") and dtype == "float32"
    assert found.roundings[other] == []
    assert "equal but for float32 inside" in found.sentence()


def test_a_fault_below_float32_is_told_beside_it():
    """float32 inside hides it in the outputs as they are."""
    found = parity.diff(make(short=True), make(eps=1.1e-5))
    assert (found.verdict, found.status) == ("divergence", 1)
    each, = found.explanations
    assert (each.cause, each.in_b) == ("epsilon", "1.1e-05")
    assert found.corrected.startswith(
        "With it corrected in b, its outputs are a's to ")
    assert "epsilon" in str(found) and "test_diff.py:" in str(found)


def test_agreement_in_float32_is_asked_of_further_where_it_is_wished():
    models = Block().float(), Block(eps=1.3e-5).float()
    given = X.astype(np.float32)
    assert parity.diff(*models, given).verdict == "match"
    found = parity.diff(*models, given, exact=True)
    assert found.verdict == "divergence"
    assert [each.cause for each in found.explanations] == ["epsilon"]
    sound = parity.diff(Block().float(), Block().float(), given, exact=True)
    assert sound.verdict == "match"
    assert sound.corrected.startswith("With nothing shorter than float64")


def test_models_are_left_as_they_were():
    models = Block(short=True), Block(eps=1e-3)
    before = [{name: value.clone() for name, value in
               model.state_dict().items()} for model in models]
    state, given = torch.get_rng_state(), X.copy()
    parity.diff(*models, given)
    assert np.array_equal(given, X)
    assert torch.equal(state, torch.get_rng_state())
    for model, values in zip(models, before):
        assert not model._forward_hooks and model.training
        assert all(torch.equal(value, values[name])
                   for name, value in model.state_dict().items())


def test_inputs_and_keywords_as_arrays_of_anybody():
    model, x = Block(), torch.from_numpy(X)
    for given in X, x:
        assert parity.diff(model, Block(), given, scale=2.0).verdict == "match"
    found = parity.diff(lambda: (Block(), (x,), {"scale": 2.0}),
                        lambda: (Block(), [x], {"scale": 3.0}))
    assert found.verdict == "divergence"


def test_a_model_beside_what_makes_one():
    assert parity.diff(Block(), make(), X).verdict == "match"


def test_outputs_of_other_sizes_are_compared_by_modules_alone():
    class Cut(Block):
        def forward(self, x):
            return super().forward(x)[..., :4]
    found = parity.diff(Block(), Cut(), X)
    assert found.verdict not in ("match", "equal but for float32 inside")
    assert "a returns output " in found.sentence()


class Refusing(Block):
    """A port that fails."""

    def forward(self, x):
        return super().forward(x) @ torch.ones(3, 3)


def test_an_error_says_whose_it_is():
    with pytest.raises(InputError, match=(
            r"model b cannot be run on float64 \[.*\] at test_diff.py:")):
        parity.diff(Block(), Refusing(), X)
    with pytest.raises(InputError, match="must match the size") as said:
        parity.diff(Block(), Block(), X[..., :5])
    assert isinstance(said.value.__cause__, RuntimeError)


class Scattering(Block):
    """A model that draws numbers when it answers, too."""

    def forward(self, x):
        return super().forward(x + torch.randn_like(x))


def test_numbers_that_both_draw_are_told():
    torch.manual_seed(0)
    found = parity.diff(Scattering(), Scattering(), X)
    assert any("draws random numbers" in note for note in found.notes)
    assert not any("draws random numbers" in note for note in parity.diff(
        Block(), Block(), X).notes)


def test_a_port_in_sixteen_bits_is_asked_for_by_its_dtype():
    x = torch.from_numpy(X).float()
    def short(dtype):
        return lambda: (Block().to(dtype), (x.to(dtype),))
    with pytest.raises(InputError, match="dtype"):
        parity.diff(short(torch.float32), short(torch.bfloat16))
    found = parity.diff(short(torch.float32), short(torch.bfloat16),
                        dtype="bfloat16")
    assert found.status == 0


def test_gradients_are_asked_of_where_a_loss_is_given():
    found = parity.diff(Block(), Block(), X, gradients=torch.sum)
    assert found.verdict == "match"
    assert any(row.part == "gradient" for row in found.rows)


def nothing():
    """Returns nothing."""


def one_thing():
    return Block()


def five_things():
    return Block(), X, {}, {}, 5


@pytest.mark.parametrize("ask", [
    lambda a: parity.diff(a, Block(), X), lambda a: parity.diff(Block(), a, X),
    parity.exact])
@pytest.mark.parametrize("given, words", [
    (Block, "Block'> is neither a model nor a function"),
    (3, "3 is neither a model nor a function"),
    (nothing, r"nothing must return \(model, inputs\) .* returned a NoneType"),
    (one_thing, r"one_thing must return .* returned a Block"),
    (five_things, r"five_things must return .* returned a tuple")])
def test_what_is_no_model_is_refused(ask, given, words):
    with pytest.raises(InputError, match=words):
        ask(given)


def test_a_model_without_inputs_is_refused():
    for ask in (lambda: parity.diff(Block(), Block()),
                lambda: parity.exact(Block())):
        with pytest.raises(InputError, match="a model needs its inputs"):
            ask()


def test_a_function_that_returns_no_model_is_refused():
    with pytest.raises(InputError, match="a list is not a model"):
        parity.diff(lambda: ([1], X), make())
    with pytest.raises(InputError, match="a list is not a model"):
        parity.exact(lambda: ([1], X))


def test_an_exact_run():
    short, given = Block(short=True), X.copy()
    run = parity.exact(short, given)
    truth = Block()(torch.from_numpy(X)).detach().numpy()
    assert np.abs(run.outputs["output"] - truth).max() < 1e-15
    assert run.outputs["output"].dtype == np.float64
    (place, dtype, count), = run.roundings
    assert (dtype, count) == ("float32", 60)
    assert f"{place} rounds 60 numbers to float32" in repr(run)
    assert repr(run).startswith(
        f"Exact run of {len(run.program.operations)} operations: "
        "output [2, 5, 6]")
    named = parity.exact(lambda: (short, torch.from_numpy(X), {"scale": 2.0}))
    assert np.allclose(named.outputs["output"], 2 * truth, rtol=1e-14)


class Noisy(torch.nn.Linear):
    """A layer that draws numbers, from torch's own generator."""

    def forward(self, x):
        return super().forward(x) + 0.1 * torch.randn_like(x)


def test_random_numbers_of_one_side_are_named():
    plain, noisy = torch.nn.Linear(4, 4), Noisy(4, 4)
    noisy.load_state_dict(plain.state_dict())
    found = parity.diff(plain, noisy, torch.linspace(-1, 1, 8).reshape(2, 4))
    cause, = found.explanations
    assert (cause.cause, cause.in_a) == ("random numbers", "none")
    assert "random" in cause.in_b


class Ends(nn.Module):
    """A layer that gives its output and what ``more`` makes of it."""

    def __init__(self, more):
        super().__init__()
        self.layer, self.more = nn.Linear(4, 4), more

    def forward(self, x):
        y = self.layer(x)
        return y, self.more(y)


@pytest.mark.parametrize("more, verdict", [
    (lambda y: y[:, :3] * 2, "divergence"), (lambda y: None, "incomplete")])
def test_outputs_that_do_not_fit_are_no_match(more, verdict):
    """An output without a partner is not left out of the verdict."""
    models = [Ends(lambda y: y * 2), Ends(more)]
    models[1].load_state_dict(models[0].state_dict())
    found = parity.diff(*models, torch.ones(2, 4))
    assert found.verdict == verdict


def test_a_convolution_with_a_bias_is_run_exactly():
    """torch refuses an input that is shorter than a bias."""
    def make(act):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3), act()), torch.ones(1, 3, 6, 6)
    found = parity.diff(lambda: make(nn.ReLU), lambda: make(nn.GELU))
    assert found.verdict == "divergence" and len(found.explanations) == 1


class Scores(nn.Module):
    """Attention's weights, with a slope for each head, and a causal mask."""

    def __init__(self, slopes, in_table):
        super().__init__()
        self.in_table, place = in_table, torch.arange(5)
        self.register_buffer("slopes", slopes)
        hidden = torch.full((5, 5), torch.finfo(torch.float32).min).triu(1)
        self.register_buffer(
            "table", slopes[:, None, None] * place + hidden)

    def forward(self, q, k):
        scores, place = q @ k.mT / 2, torch.arange(5)
        if self.in_table:
            return (scores + self.table).softmax(-1)
        distance = place[None] - place[:, None]
        scores = scores + self.slopes[:, None, None] * distance
        return scores.masked_fill(distance > 0, -torch.inf).softmax(-1)


def test_a_mask_that_is_there_is_not_told_as_missing():
    """It lies in a table that has another fault as well."""
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    found = parity.diff(Scores(torch.tensor([0.5, 0.25, 0.125]), False),
                        Scores(torch.tensor([1.0, 0.5, 0.25]), True), q, k)
    assert found.verdict == "divergence" and found.explanations
    for each in found.explanations:
        assert each.in_b != "none" and "table" in (
            each.in_b + each.expression_b)


def test_a_kernel_is_told_as_transposed_and_not_what_it_meets():
    """Height, width and channels are all of one size."""
    class Convolved(nn.Module):
        def __init__(self, turned):
            super().__init__()
            torch.manual_seed(3)
            self.one, self.two = (nn.Conv2d(
                8, 8, 3, padding=1, groups=groups).double()
                for groups in (8, 1))
            if turned:
                with torch.no_grad():
                    self.one.weight.copy_(self.one.weight.mT.clone())

        def forward(self, x):
            return self.two(torch.tanh(self.one(x)))
    x = np.random.default_rng(0).normal(size=(2, 8, 8, 8))
    found = parity.diff(Convolved(False), Convolved(True), x)
    each, = found.explanations
    assert (each.b, each.cause, each.in_a) == ("one", "order", "one.weight")


def test_a_scale_that_stands_elsewhere_is_told_by_its_number():
    class Scores(nn.Module):
        def __init__(self, before):
            super().__init__()
            torch.manual_seed(3)
            self.inner, self.before = nn.Linear(6, 12).double(), before

        def forward(self, x):
            q, k = self.inner(x).chunk(2, -1)
            scores = (torch.tanh(q) * 0.35 @ k.mT if self.before else
                      torch.tanh(q) @ k.mT * 0.25)
            return torch.softmax(scores, -1) @ x
    found = parity.diff(Scores(False), Scores(True), X)
    each, = found.explanations
    assert (each.cause, each.in_a[:4], each.in_b[:4]) == (
        "attention scale", "0.25", "0.35")
