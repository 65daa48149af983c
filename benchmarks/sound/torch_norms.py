"""Norms, written in other ways."""

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, Block, D, H, Model, Port, Seeing, Vision)
from benchmarks.sound.weights import (
    arrays, both, drawn, give, normal, tokens, twins)

fn = nn.functional


class Norm(nn.Module):
    """A norm with a scale, and maybe a bias, by a function (x, eps)."""

    def __init__(self, function, bias=True, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        if bias:
            self.bias = nn.Parameter(torch.zeros(D))
        self.eps, self.function = eps, function

    def forward(self, x):
        x = self.function(x, self.eps) * self.weight
        return x + self.bias if hasattr(self, "bias") else x


def block(norm):
    """A block with this norm."""
    return Block(norm=lambda _: norm())


def layer_norm(function):
    """nn.LayerNorm in a, this function in b."""
    return twins(Model(block(lambda: nn.LayerNorm(D))),
                 Port(block(lambda: Norm(function))), tokens(2, 7))


@sound
def layer_norm_centred():
    """(x - μ) / √(σ² + ε) by hand in b."""
    def function(x, eps):
        x = x - x.mean(-1, keepdim=True)
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return layer_norm(function)


@sound
def layer_norm_of_squares():
    """Mean of squares less the square of the mean in b."""
    def function(x, eps):
        mean = x.mean(-1, keepdim=True)
        variance = x.pow(2).mean(-1, keepdim=True) - mean.pow(2)
        return (x - mean) * torch.rsqrt(variance + eps)
    return layer_norm(function)


@sound
def layer_norm_as_one_product():
    """x · s + (b - μ · s), as compilers write it."""
    class Product(Norm):
        def forward(self, x):
            variance, mean = torch.var_mean(
                x, -1, correction=0, keepdim=True)
            scale = self.weight * (variance + self.eps).rsqrt()
            return x * scale + (self.bias - mean * scale)
    return twins(Model(block(lambda: nn.LayerNorm(D))),
                 Port(block(lambda: Product(None))), tokens(2, 7))


@sound
def layer_norm_over_channels():
    """[B C T]: transposed around nn.LayerNorm in a, on axis 1 in b."""
    class Turned(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.mT).mT

    class Channels(Norm):
        def forward(self, x):
            mean = x.mean(1, keepdim=True)
            variance = (x - mean).square().mean(1, keepdim=True)
            x = (x - mean) / torch.sqrt(variance + self.eps)
            return self.weight[:, None] * x + self.bias[:, None]

    def model(norm):
        return nn.Sequential(nn.Conv1d(4, D, 3), norm, nn.ReLU(),
                             nn.Conv1d(D, 5, 3))
    return twins(model(Turned(D)), model(Channels(None)), normal(2, 4, 11))


def root(x, eps):
    """x / √(mean of squares + ε)."""
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def rms(one, two):
    """Two models with RMS norms."""
    return twins(Model(block(one)), Port(block(two)), tokens(2, 7))


@sound
def rms_root_or_rsqrt():
    """Divided by a root in a, multiplied by rsqrt in b."""
    return rms(lambda: Norm(root, False), lambda: Norm(
        lambda x, eps: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps),
        False))


@sound
def rms_module_or_hand():
    """nn.RMSNorm in a."""
    return rms(lambda: nn.RMSNorm(D, eps=1e-5), lambda: Norm(root, False))


@sound
def rms_by_length():
    """√d x / ‖x‖ in b: both without ε."""
    return rms(lambda: Norm(root, False, 0.0), lambda: Norm(
        lambda x, _: fn.normalize(x, dim=-1, eps=1e-30) * D ** 0.5, False))


@sound
def rms_one_added_to_scale():
    """Gemma's 1 + w in a, the sum stored in b."""
    class Added(Norm):
        def forward(self, x):
            return root(x, self.eps) * (1.0 + self.weight)
    a = drawn(Model(block(lambda: Added(None, False))))
    b = drawn(Port(block(lambda: Norm(root, False))))
    layer = b.transformer.h[0]
    for norm in (layer.ln_1, layer.ln_2):
        give(norm, arrays(norm)[0] + 1)
    return both(a, b, tokens(2, 7))


@sound
def scale_folded_into_projections():
    """b's RMS norm has no scale: it is in the kernels behind it."""
    class Bare(nn.Module):
        def forward(self, x):
            return root(x, 1e-5)
    a = drawn(Model(block(lambda: Norm(root, False))))
    b = drawn(Port(block(Bare)))
    mine, port = a.layers[0], b.transformer.h[0]
    give(port.attn, *arrays(mine.attn))
    give(port.mlp, *arrays(mine.mlp))
    for norm, layers in ((mine.ln_1, (port.attn.q_proj, port.attn.k_proj,
                                      port.attn.v_proj)),
                         (mine.ln_2, (port.mlp.fc1,))):
        scale = arrays(norm)[0][:, None]
        for layer in layers:
            kernel, bias = arrays(layer)
            give(layer, kernel * scale, bias)
    give(b.transformer.wte, *arrays(a.embed_tokens))
    give(b.transformer.ln_f, *arrays(a.norm))
    give(b.head, *arrays(a.lm_head))
    return both(a, b, tokens(2, 7))


class HeadNorms(Attention):
    """Queries and keys are normed a head, by modules or a function."""

    def __init__(self, modules):
        super().__init__()
        self.modules_ = modules
        if modules:
            self.q_norm = nn.RMSNorm(D // H, eps=1e-6)
            self.k_norm = nn.RMSNorm(D // H, eps=1e-6)
        else:
            self.q_scale = nn.Parameter(torch.ones(D // H))
            self.k_scale = nn.Parameter(torch.ones(D // H))

    def attend(self, q, k, v):
        if self.modules_:
            return super().attend(self.q_norm(q), self.k_norm(k), v)
        return super().attend(root(q, 1e-6) * self.q_scale,
                              root(k, 1e-6) * self.k_scale, v)


@sound
def head_norms_as_modules():
    """Norms of queries and keys: modules in a, parameters in b."""
    a, b = (drawn(Model(Block(HeadNorms(modules))))
            for modules in (True, False))
    one, two = a.layers[0].attn, b.layers[0].attn
    for name in "qkvo":
        give(getattr(two, f"{name}_proj"), *arrays(
            getattr(one, f"{name}_proj")))
    for part in "qk":
        norm = getattr(one, f"{part}_norm")
        getattr(two, f"{part}_scale").data = norm.weight.detach().clone()
    for name in ("ln_1", "ln_2", "mlp"):
        give(getattr(b.layers[0], name), *arrays(getattr(a.layers[0], name)))
    for name in ("embed_tokens", "norm", "lm_head"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    return both(a, b, tokens(2, 7))


class Conv(nn.Module):
    """A convolution and a batch norm."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 12, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(12)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


@sound
def batch_norm_folded():
    """Batch norm in a; in b it is in the convolution's weights."""
    a = drawn(Vision(Conv(), 12))
    b = drawn(Vision(nn.Sequential(nn.Conv2d(8, 12, 3, padding=1),
                                   nn.ReLU()), 12))
    kernel, = arrays(a.core.conv)
    scale, bias, mean, variance = arrays(a.core.bn)
    factor = scale / (variance + 1e-5) ** 0.5
    give(b.core[0], kernel * factor, bias - mean * factor)
    give(b.stem, *arrays(a.stem))
    give(b.head, *arrays(a.head))
    return both(a, b, normal(2, 3, 8, 8))


class Frozen(nn.Module):
    """A batch norm of constants, as detection models have."""

    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x):
        scale = self.weight * (self.running_var + 1e-5).rsqrt()
        bias = self.bias - self.running_mean * scale
        return x * scale.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


@sound
def batch_norm_frozen():
    """nn.BatchNorm2d in a, torchvision's frozen one in b."""
    b = Conv()
    b.bn = Frozen(12)
    return twins(Vision(Conv(), 12), Seeing(b, 12), normal(2, 3, 8, 8))


class Grouped(nn.Module):
    """A group norm by reshape."""

    def __init__(self, groups, channels):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.groups = groups

    def forward(self, x):
        shape = x.shape
        x = x.reshape(shape[0], self.groups, -1)
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return x.view(shape) * self.gamma.view(1, -1, 1, 1) + (
            self.beta.view(1, -1, 1, 1))


@sound
def group_norm_by_reshape():
    """nn.GroupNorm in a."""
    return twins(Vision(nn.GroupNorm(4, 8)), Seeing(Grouped(4, 8)),
                 normal(2, 3, 6, 6))


@sound
def instance_norm_as_groups():
    """nn.InstanceNorm2d in a, a group a channel in b."""
    return twins(Vision(nn.InstanceNorm2d(8, affine=True)),
                 Seeing(nn.GroupNorm(8, 8)), normal(2, 3, 6, 6))


@sound
def one_group_or_layer_norm():
    """One group in a, layer_norm over all but the batch in b."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))
            self.bias = nn.Parameter(torch.zeros(8))

        def forward(self, x):
            x = fn.layer_norm(x, x.shape[1:])
            return x * self.weight[:, None, None] + self.bias[:, None, None]
    return twins(Vision(nn.GroupNorm(1, 8)), Seeing(Layer()),
                 normal(2, 3, 6, 6))


@sound
def weight_norm_baked():
    """torch's weight norm in a, its product as plain weight in b."""
    def model(wrap):
        return nn.Sequential(wrap(nn.Conv1d(4, 8, 3)), nn.ReLU(),
                             wrap(nn.Conv1d(8, 5, 3)))
    a = model(nn.utils.parametrizations.weight_norm)
    torch.manual_seed(0)
    for parameter in a.parameters():
        nn.init.normal_(parameter)
    a.double().eval()
    b = drawn(model(lambda layer: layer))
    for at in (0, 2):
        b[at].weight.data = a[at].weight.detach().clone()
        b[at].bias.data = a[at].bias.detach().clone()
    return both(a, b, normal(2, 4, 11))
