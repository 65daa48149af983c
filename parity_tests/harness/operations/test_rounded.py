"""What float32 explains is no cause, beside a fault that is one."""

import pytest

import parity

pytestmark = pytest.mark.usefixtures("torch")


def convolutions(folded, slope):
    """A convolution and a transposed one with weight norm, or with kernels
    into which it was folded in float32, the second's turned round."""
    import torch
    from torch import nn
    from torch.nn.functional import conv1d, leaky_relu, pad
    from torch.nn.utils.parametrizations import weight_norm
    torch.manual_seed(3)
    one = weight_norm(nn.Conv1d(4, 6, 3))
    two = weight_norm(nn.ConvTranspose1d(6, 4, 3))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            if folded:
                self.one = nn.Parameter(one.weight.detach().clone())
                self.two = nn.Parameter(two.weight.detach().transpose(
                    0, 1).flip(-1).clone())
                self.biases = nn.ParameterList([one.bias, two.bias])
            else:
                self.one, self.two = one, two

        def forward(self, x):
            h = conv1d(x, self.one, self.biases[0]) if folded else (
                self.one(x))
            h = leaky_relu(h, slope)
            return conv1d(pad(h, (2, 2)), self.two, self.biases[1]
                          ) if folded else self.two(h)
    return Net().eval(), torch.randn(2, 4, 9)


def test_a_folded_kernel_is_no_cause():
    cause, = parity.diff(lambda: convolutions(False, 0.1),
                         lambda: convolutions(True, 0.2)).explanations
    assert ("0.1", "0.2") == tuple(each.rpartition(" ")[2] for each in (
        cause.in_a, cause.in_b))


def grid(stored, factor):
    """Distances from places on a grid, which is a buffer or computed."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            if stored:
                self.register_buffer("grid", torch.arange(8) * 0.3 - 1)

        def forward(self, x):
            if stored:
                wide = self.grid[1:] - self.grid[:-1]
                y = (x[:, None] - self.grid[:-1]) / wide
            else:
                places = torch.arange(8, dtype=x.dtype) * 0.3 - 1
                y = (x[:, None] - places[:-1]) / 0.3
            return (y * factor).sin()
    torch.manual_seed(4)
    return Net().eval(), torch.randn(16)


def test_what_is_made_of_a_grid_in_float32_is_no_cause():
    assert parity.diff(lambda: grid(True, 2.0),
                       lambda: grid(False, 2.0), exact=True).status == 0
    cause, = parity.diff(lambda: grid(True, 2.0),
                         lambda: grid(False, 2.5)).explanations
    assert "2.5" in cause.in_b
