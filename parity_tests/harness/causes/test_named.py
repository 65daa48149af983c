"""What a difference found by operations is called, beside tests of a bench."""

import itertools

import pytest

torch = pytest.importorskip(
    "torch", reason="not asked: torch is not installed")

from parity.causes import naming  # noqa: E402
from parity.causes.diff import diff, exact  # noqa: E402
from parity.comparison.result import FLOAT32  # noqa: E402
from parity.operations import roles  # noqa: E402
from parity.operations.program import Program, Value  # noqa: E402
from parity.operations.align import Alignment  # noqa: E402
from parity.operations.expressions import Names  # noqa: E402
from parity.operations.skeleton import Skeleton  # noqa: E402
from parity_tests.support.explaining import by_operations as told  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402


def drawn(model, seed=0):
    """A model in float64, its parameters and averages drawn."""
    torch.manual_seed(seed)
    model = model.double().eval()
    with torch.no_grad():
        for array in model.parameters():
            array.copy_(torch.randn(array.shape) / 2)
        for name, array in model.named_buffers():
            if array.is_floating_point():
                array.copy_(torch.rand(array.shape) + ("var" in name) / 2)
    return model


X = torch.randn(3, 5, 6, dtype=torch.float64,
                generator=torch.Generator().manual_seed(1))
PICTURES = torch.randn(2, 3, 6, 6, dtype=torch.float64,
                       generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("acts, words", [
    ((nn.LeakyReLU(), nn.GELU()), ("leaky relu, 0.01", "gelu")),
    ((nn.ELU(0.7), nn.LeakyReLU()), ("elu", "leaky relu")),
    ((nn.ReLU(), nn.Tanh()), ("relu", "tanh"))])
def test_activations_by_their_names_and_no_factor(acts, words):
    models = [drawn(nn.Sequential(nn.Linear(6, 8), act, nn.Linear(8, 4)))
              for act in acts]
    for turn in 1, -1:
        assert told(*models[::turn], X) == [("activation", *words[::turn])]


class Spelled(nn.Module):
    """A layer, a function of what it gives, and a layer."""

    def __init__(self, function):
        super().__init__()
        self.one, self.two = nn.Linear(6, 8), nn.Linear(8, 4)
        self.function = function

    def forward(self, x):
        return self.two(self.function(self.one(x)))


#: Activations as ports write them: a word, what it is, what to write in torch.
SPELLED = [
    ("silu", functional.silu, "silu(x)"),
    ("gelu", lambda x: 0.5 * x * torch.special.erfc(-x * 0.5 ** 0.5),
     "gelu(x)"),
    ("gelu by tanh", lambda x: x * (0.5 * (1 + torch.tanh(
        0.7978845608028654 * (x + 0.044715 * x ** 3)))),
     'gelu(x, approximate="tanh")'),
    ("gelu by sigmoid", lambda x: x * torch.sigmoid(1.702 * x),
     "sigmoid(1.702 * x)"),
    ("relu", lambda x: torch.maximum(x, torch.zeros(())), "relu(x)")]


@pytest.mark.parametrize("a, b", [
    pytest.param(a, b, id=f"{a[0]}, {b[0]}")
    for a, b in itertools.permutations(SPELLED, 2)
    if {a[0], b[0]} != {"silu", "gelu by sigmoid"}])
def test_both_activations_are_named_and_a_s_is_written(a, b):
    (one, function, line), (two, other, _) = a, b
    each, = diff(drawn(Spelled(function)), drawn(Spelled(other)),
                 X).explanations
    assert (each.cause, each.in_a, each.in_b) == ("activation", one, two)
    assert each.write.endswith(f".{line}")


class Mixed(nn.Module):
    """Attention's weights along some axis."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        q, k, v = (each(x) for each in (self.q, self.k, self.v))
        return x + (q @ k.mT / 6 ** 0.5).softmax(self.axis) @ v


def test_the_axis_of_a_softmax_alone():
    found = diff(drawn(Mixed(-1)), drawn(Mixed(1)), X)
    each, = found.explanations
    assert each.cause == "axis of the softmax"
    assert each.proof.startswith("With this corrected in b")


class Hiding(nn.Module):
    """A product with what is no padding, before or behind the layer."""

    def __init__(self, hides):
        super().__init__()
        self.layer, self.hides = nn.Linear(6, 6), hides

    def forward(self, x, ids):
        return self.layer(x * (ids != 0)[..., None] if self.hides else x)


def test_a_product_with_booleans_is_a_mask():
    ids = torch.tensor([[3, 1, 2, 0, 0]] * 3)
    (cause, in_a, _), = told(drawn(Hiding(False)), drawn(Hiding(True)), X, ids)
    assert (cause, in_a) == ("mask", "none")


class Folded(nn.Module):
    """A convolution and a norm, or both in one."""

    def __init__(self, epsilon=None, mean=True, short=False):
        super().__init__()
        norm = drawn(nn.BatchNorm2d(4), 3)
        self.conv = drawn(nn.Conv2d(3, 4, 3))
        self.norm = norm if epsilon is None else nn.Identity()
        if epsilon is not None:
            factor = norm.weight / (norm.running_var + epsilon).sqrt()
            with torch.no_grad():
                self.conv.weight.mul_(factor[:, None, None, None])
                self.conv.bias.copy_((self.conv.bias - (
                    norm.running_mean if mean else 0)) * factor + norm.bias)
        if short:
            self.conv.float().double()

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


def test_a_norm_in_the_kernel_before_it():
    plain = Folded().eval()
    sound = diff(plain, Folded(1e-5).eval(), PICTURES)
    assert sound.status == 0 and not sound.explanations
    sound = diff(plain, Folded(1e-5, short=True).eval(), PICTURES)
    assert sound.verdict == FLOAT32 and not sound.explanations
    assert told(plain, Folded(1e-3).eval(), PICTURES) == [
        ("epsilon of the folded norm", "1e-05", "0.001")]
    (cause, in_a, _), = told(plain, Folded(1e-5, False).eval(), PICTURES)
    assert cause == "folded norm" and in_a.startswith("conv.bias")


def test_a_variance_over_n():
    models = [drawn(nn.BatchNorm2d(3)) for _ in range(2)]
    with torch.no_grad():
        models[1].running_var.copy_(
            0.9 + (models[0].running_var - 0.9) * 29 / 30)
    assert told(*models, PICTURES) == [
        ("running variance", "over n − 1 = 29", "over n = 30 numbers")]


def test_the_axes_of_a_weight_norm():
    model = nn.Conv1d(6, 4, 5)
    nn.utils.parametrizations.weight_norm(model, dim=2)
    model, plain = drawn(model), nn.Conv1d(6, 4, 5).double()
    g, v = (getattr(model.parametrizations.weight, f"original{i}")
            for i in range(2))
    with torch.no_grad():
        plain.weight.copy_(g * v / v.norm(dim=(1, 2), keepdim=True))
        plain.bias.copy_(model.bias)
    assert told(model, plain, X.mT) == [
        ("axes of the weight norm", "one norm over 4 × 6 numbers",
         "one norm over 6 × 5 numbers")]


class Unshuffled(nn.Module):
    """Places become channels, in one of two orders."""

    def __init__(self, channels_first):
        super().__init__()
        self.first, self.layer = channels_first, nn.Linear(12, 5)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.reshape(b, c, h // 2, 2, w // 2, 2)
        x = x.permute(0, 2, 4, *((1, 3, 5) if self.first else (3, 5, 1)))
        return self.layer(x.reshape(b, -1, 4 * c))


def test_the_order_of_channels_in_their_sizes():
    (cause, _, in_b), = told(
        drawn(Unshuffled(True)), drawn(Unshuffled(False)), PICTURES)
    assert cause == "order"
    assert in_b.endswith(" is [3 4] in a and [4 3] in b")


def test_the_row_of_a_table_that_differs():
    models = [drawn(nn.Embedding(9, 4)) for _ in range(2)]
    with torch.no_grad():
        models[1].weight[2] = 0
    (cause, _, in_b), = told(*models, torch.tensor([[1, 2, 3]]))
    assert cause == "parameter" and in_b.endswith("all at 2 of axis 0")


def test_no_letter_is_a_name_of_the_model():
    """An input x beside a letter x would be two things of one name."""
    program = Program("torch", True)
    program.values = [Value(0, "input", "x", (1,), "float64"),
                      Value(1, "parameter", "z.y", (1,), "float64")]
    names = Names.__new__(Names)
    alignment = Alignment.__new__(Alignment)
    alignment.a = alignment.b = program
    names.__init__(alignment)
    assert names.free[0] == "z" and not {"x", "y"} & {*names.free}


class TurnedPairs(nn.Module):
    """Pairs of numbers, turned."""

    def __init__(self, halves):
        super().__init__()
        self.query, self.key = nn.Linear(6, 6), nn.Linear(6, 6)
        self.halves = halves

    def turned(self, x):
        angle = torch.arange(5, dtype=x.dtype)[:, None] * 0.3 ** torch.arange(
            3, dtype=x.dtype)
        one, two = (x.chunk(2, -1) if self.halves else
                    (x[..., 0::2], x[..., 1::2]))
        return torch.cat([one * angle.cos() - two * angle.sin(),
                          two * angle.cos() + one * angle.sin()], -1)

    def forward(self, x):
        scores = self.turned(self.query(x)) @ self.turned(self.key(x)).mT
        return torch.softmax(scores, -1) @ x


def test_pairs_of_halves_are_parts_not_an_axis():
    """Axis -1 of three is axis 2."""
    for cause, in_a, in_b in told(
            drawn(TurnedPairs(False)), drawn(TurnedPairs(True)), X):
        assert cause == "order of the parts"
        assert "every 2. number from 0" in in_a and "0 to 2" in in_b


class Convolved(nn.Module):
    """A picture made larger, its kernel from either end of its places."""

    def __init__(self, axes=()):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(3, 4, 3, 3))
        self.axes = axes

    def forward(self, x):
        return nn.functional.conv_transpose2d(
            x, self.kernel.flip(self.axes), stride=2).tanh()


@pytest.mark.parametrize("axes, words", [
    ((2, 3), "2, 3"), ((3,), "3")])
def test_a_kernel_from_its_other_end_is_no_stride(axes, words):
    (cause, _, in_b), = told(
        drawn(Convolved()), drawn(Convolved(axes)), PICTURES)
    assert cause == "order"
    assert in_b == f"the same numbers: turned round along axis {words}"


class Mixture(nn.Module):
    """A norm of three parts' sum, added to what they are of."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])

    def forward(self, x):
        y = x + torch.stack([part(x) for part in self.parts], -2).sum(-2)
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)


def test_a_norm_is_over_what_its_own_mean_is_over():
    """And not over the parts that were summed before it."""
    program = exact(drawn(Mixture()), X).program
    skeleton = Skeleton(program)
    (output,) = program.outputs.values()
    steps = roles.between(skeleton, output, ())
    assert {"sum", "mean"} <= {each.name for each in steps}
    assert roles.summed(skeleton, steps) == 6


def test_a_padding_said_in_pairs_is_no_other():
    assert not naming._differing(
        {"padding": (1, 1)}, {"padding": ((1, 1), (1, 1))})
    name, *_ = naming._differing(
        {"padding": (1, 1)}, {"padding": ((0, 1), (0, 1))})
    assert name == "padding of the convolution"
    assert naming._differing({"strides": (1, 2)}, {"strides": (2, 1)})
