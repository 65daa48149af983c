"""What is told where two names, or two places, are the same in numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from parity.causes.casts import lowered
from parity.causes.cause import PRECISION
from parity.comparison.result import FLOAT32
from parity.numerics.comparator import DIVERGENCE
from parity.tracing.trace import trace
from parity_tests.support.explaining import by_operations, compared

torch = pytest.importorskip("torch")
nn = torch.nn

W, H = 16, 4
X = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, W)))


class Layer(nn.Module):
    """One of an encoder, its norms after the sums."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(W), nn.LayerNorm(W)
        self.query, self.key, self.value, self.output = (
            nn.Linear(W, W) for _ in range(4))
        self.inner, self.outer = nn.Linear(W, 32), nn.Linear(32, W)
        self.scale, self.num_heads = (W // H)**-0.5, H

    def attend(self, x):
        q, k, v = (part(x).reshape(*x.shape[:2], H, -1).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        y = (q @ k.mT * self.scale).softmax(-1) @ v
        return self.output(y.transpose(1, 2).reshape(x.shape))

    def forward(self, x):
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.outer(self.inner(x).relu()))


def layer(kind=Layer, seed=1):
    made = kind().double().eval()
    draw = np.random.default_rng(seed)
    with torch.no_grad():
        for array in made.parameters():
            array.copy_(torch.from_numpy(draw.normal(
                array.ndim < 2, 0.3, array.shape)))
    return made


def test_a_number_with_two_names_has_both():
    """1/√16 is 1/4."""
    wrong = layer()
    wrong.scale /= 2
    each, = compared(layer(), wrong, X).explanations
    assert (each.cause, each.in_a, each.in_b) == (
        "scale", "1/√d_k", "1/√d_model or 1/d_k")


def test_float32_that_is_handed_on_is_told():
    """As Keras' attention on JAX hands on to a map in float64."""
    class Wide(nn.Linear):
        def forward(self, x):
            return super().forward(x.double())

    class Two(nn.Module):
        def __init__(self, low):
            super().__init__()
            self.output, self.low = Wide(W, W), low

        def forward(self, x):
            return self.output(x.float() if self.low else x)

    a, b = (trace(Two(low).double().eval(), X) for low in (False, True))
    name, = a.step("output").inputs
    row = SimpleNamespace(a="output", b="output", a_name=name, b_name=name)
    told = lowered(row, a, b)
    assert (told.cause, told.in_a, told.in_b) == (
        "dtype", "float64", "float32")
    assert lowered(row, a, a) is None
    assert lowered(row, b, a) is None


class Pre(Layer):
    """Its norms before the sub-layers."""

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.outer(self.inner(self.norm2(x)).relu())


@pytest.mark.parametrize("kind", [Layer, Pre])
def test_exchanged_norms_are_told_by_their_parameters(kind):
    """Both models have a norm1, and b's is a's norm2."""
    a, wrong = layer(kind), layer(kind)
    wrong.norm1, wrong.norm2 = wrong.norm2, wrong.norm1
    told = by_operations(a, wrong, X)
    assert {cause for cause, *_ in told} == {"parameters"}
    assert told[-1][1:] == ("norm2.weight and norm2.bias",
                            "norm1.weight and norm1.bias")


@pytest.mark.parametrize("kind", [Layer, Pre])
def test_a_module_that_is_left_out(kind):
    """It is called, and hands on what it is given."""
    right, wrong = layer(kind), layer(kind)
    wrong.norm2.forward = lambda x: x
    (cause, _, in_b), = by_operations(right, wrong, X)
    assert (cause, in_b) == ("norm", "none")
    (cause, in_a, _), = by_operations(wrong, right, X)
    assert (cause, in_a) == ("norm", "none")


class Holder(nn.Module):
    """A sum and its norm, which the other model does not box."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x, y):
        return self.norm(x + y)


class Boxed(Layer):
    """The same layer; b's second sum takes what the layer was given."""

    def __init__(self):
        super().__init__()
        self.box = Holder(self.norm1)
        del self.norm1

    def forward(self, x):
        x = self.box(x, self.attend(x))
        return self.norm2(x + self.outer(self.inner(x).relu()))


class Past(Layer):
    """Its second residual connection goes past the first norm."""

    def forward(self, x):
        y = self.norm1(x + self.attend(x))
        return self.norm2(x + self.outer(self.inner(y).relu()))


def test_a_residual_from_elsewhere_leaves_no_module_out():
    a, b = layer(Boxed), layer(Past)
    b.load_state_dict({name.replace("box.norm", "norm1"): array
                       for name, array in a.state_dict().items()})
    each, = compared(a, b, X).explanations
    assert each.cause == "input"


@pytest.mark.parametrize("factor, word", [
    (1 / 0.7, "1.42857"), (0.5, "0.5"), (-1, "-1")])
def test_a_layers_output_times_a_number(factor, word):
    """As logits that are divided by a temperature."""
    wrong = layer()
    wrong.outer.register_forward_hook(lambda module, given, y: factor * y)
    each, = compared(layer(), wrong, X).explanations
    assert (each.cause, each.a, each.in_b) == ("factor", "outer", word)


class ScaledOutput(Layer):
    """Its first sum has multiples of its summands."""

    factors = 1, 1

    def forward(self, x):
        one, two = self.factors
        x = self.norm1(one * x + two * self.attend(x))
        return self.norm2(x + self.outer(self.inner(x).relu()))


@pytest.mark.parametrize("factors, word", [
    ((2, 1), "2"), ((1, 0.7), "0.7"), ((1, -1), "-1")])
def test_a_summand_times_a_number(factors, word):
    """As a residual connection that is added twice, or subtracted."""
    wrong = layer(ScaledOutput)
    wrong.factors = factors
    each, = compared(layer(ScaledOutput), wrong, X).explanations
    assert (each.cause, each.a, each.in_a, each.in_b) == (
        "factor", "norm1", "1", word)


def test_a_bias_that_is_added_twice():
    wrong = layer()
    wrong.outer.register_forward_hook(lambda module, given, y: y + module.bias)
    each, = compared(layer(), wrong, X).explanations
    assert (each.cause, each.a, each.in_b) == ("bias", "outer", "added twice")


class Given(nn.Module):
    """An embedding of ids, and a module that is given a mask."""

    def __init__(self, ids=lambda ids: ids, mask=lambda mask: mask):
        super().__init__()
        self.table, self.shown = nn.Embedding(20, W), Shown()
        self.ids, self.mask = ids, mask

    def forward(self, ids, mask):
        return self.shown(self.table(self.ids(ids)), mask=self.mask(mask))


class Shown(nn.Module):
    """What is not hidden."""

    def forward(self, x, mask):
        return x * mask[..., None]


@pytest.mark.parametrize("wrong, told", [
    ({"ids": lambda ids: ids.roll(1, 1)}, ("table", "ids", "one place later")),
    ({"ids": lambda ids: ids.roll(-1, 1)},
     ("table", "ids", "one place earlier")),
    ({"mask": lambda mask: mask * 0 + 1}, ("shown", "mask", "ignored in b")),
    ({"mask": lambda mask: mask * (torch.arange(5) > 0)},
     ("shown", "mask", "another at 2 of 10 places"))])
def test_ids_and_masks_of_integers(wrong, told):
    torch.manual_seed(0)
    a, b = Given().double(), Given(**wrong).double()
    b.load_state_dict(a.state_dict())
    ids = torch.tensor([[3, 1, 4, 15, 9], [2, 6, 5, 3, 5]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    first, *_ = compared(a, b, ids, mask).explanations
    assert (first.a, first.cause, first.in_b) == told


def test_an_embedding_that_differs():
    """It has no floating input that a norm's reading would need."""
    a = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 4)).double()
    wrong = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 4)).double()
    wrong.load_state_dict(a.state_dict())
    wrong[0].register_forward_hook(lambda module, given, y: y * 8**0.5)
    each, = compared(a, wrong, torch.arange(10).reshape(2, 5)).explanations
    assert (each.cause, each.in_b) == ("factor", "2.82843")


class Rows(nn.Module):
    """Positions of a table by their numbers, added to tokens."""

    def __init__(self, first=0, cut=False):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(20, W), nn.Embedding(9, W)
        self.norm, self.cut, self.first = nn.LayerNorm(W), cut, first

    def rows(self, ids):
        places = torch.arange(ids.shape[1]) + self.first
        return self.positions(places)[None]

    def forward(self, ids):
        return self.norm(self.tokens(ids) + self.rows(ids))


class Cut(nn.Module):
    """A table that is cut, for a whole batch."""

    def __init__(self, first):
        super().__init__()
        self.weight, self.first = nn.Parameter(torch.zeros(9, W)), first

    def forward(self, x):
        rows = self.weight[self.first:self.first + x.shape[1]]
        return rows.expand(x.shape)


class CutRows(Rows):
    """The same of a table that a layer cuts."""

    def __init__(self, first=0):
        super().__init__(first)
        self.positions = Cut(first)

    def forward(self, ids):
        tokens = self.tokens(ids)
        return self.norm(tokens + self.positions(tokens))


@pytest.mark.parametrize("first", [1, 2])
def test_positions_of_a_table_that_is_cut(first):
    """One model looks rows up, the other cuts them for every row."""
    a, b = Rows().double().eval(), CutRows(first).double().eval()
    b.load_state_dict(a.state_dict())
    comparison = compared(a, b, torch.tensor([[3, 9, 4], [7, 1, 1]]))
    told = comparison.explanations
    assert [(each.cause, each.in_a, each.in_b) for each in told] == [
        ("first position", "0", str(first))]


class InFloat32(nn.LayerNorm):
    """As Keras has it on PyTorch, or in the order that it has on JAX."""

    folded, wrong = False, 0.0

    def forward(self, x):
        x, scale, bias = (each.float() for each in (
            x, self.weight, self.bias))
        if not self.folded:
            y = nn.functional.layer_norm(x, x.shape[-1:], scale, bias,
                                         self.eps)
        else:
            mean = x.mean(-1, keepdim=True)
            factor = scale * (x.var(-1, correction=0, keepdim=True)
                              + self.eps).rsqrt()
            y = x * factor + (bias - mean * factor)
        return (y * (1 + self.wrong) if self.wrong else y).double()


def norms(kind=nn.LayerNorm, **settings):
    """Two norms, and a layer between them."""
    made = nn.Sequential(kind(W), nn.Linear(W, W), kind(W)).double().eval()
    draw = np.random.default_rng(2)
    with torch.no_grad():
        for array in made.parameters():
            array.copy_(torch.from_numpy(draw.normal(
                array.ndim < 2, 0.3, array.shape)))
    for norm in (made[0], made[2]):
        for name, value in settings.items():
            setattr(norm, name, value)
    return made


@pytest.mark.parametrize("folded", [False, True])
def test_a_norm_wholly_in_float32(folded):
    """Input, scale and bias are rounded, so that float32 numbers come out."""
    comparison = compared(norms(), norms(InFloat32, folded=folded), X)
    assert comparison.verdict == FLOAT32
    each, = comparison.explanations
    assert (each.cause, each.in_b) == (PRECISION, "in float32")


@pytest.mark.long(4)
@pytest.mark.parametrize("folded", [False, True])
def test_an_epsilon_behind_float32(folded):
    comparison = compared(norms(), norms(InFloat32, folded=folded, eps=1e-6),
                           X)
    assert comparison.verdict == DIVERGENCE
    first = comparison.explanations[0]
    assert (first.cause, first.in_a, first.in_b) == (
        "epsilon", "1e-05", "1e-06")


@pytest.mark.long(4)
@pytest.mark.parametrize("wrong, folded", [
    (3e-7, False), (1e-6, True), (1e-5, False)])
def test_a_small_fault_behind_float32_is_no_rounding(folded, wrong):
    """A few units in every number, and all to one side."""
    comparison = compared(
        norms(), norms(InFloat32, folded=folded, wrong=wrong), X)
    assert comparison.verdict == DIVERGENCE
