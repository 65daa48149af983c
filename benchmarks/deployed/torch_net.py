"""A small encoder of images and tokens, whose settings can be others."""

import torch
from torch import nn

D, H = 16, 4


class NormedBlock(nn.Module):
    """Attention and a feed-forward layer, each behind a norm."""

    def __init__(self, s):
        super().__init__()
        self.s = s
        self.norm1, self.norm2 = (nn.LayerNorm(D, eps=s["epsilon"])
                                  for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
        self.inner, self.outer = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        s, h = self.s, self.norm1(x)
        q, k, v = (f(h).reshape(*h.shape[:2], H, -1).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) * s["scale"]
        if s["causal"]:
            scores = scores + torch.full(
                scores.shape[-2:], -1e9, dtype=x.dtype).triu(s["causal"])
        y = (scores.softmax(s["axis"]) @ v).transpose(1, 2).reshape(x.shape)
        x = x + self.o(y) if s["residual"] else self.o(y)
        h = self.inner(self.norm2(x))
        h = {"gelu": nn.functional.gelu, "relu": torch.relu,
             "silu": nn.functional.silu, "tanh": lambda x: nn.functional.gelu(
                 x, approximate="tanh"), "leaky": lambda x: (
                 nn.functional.leaky_relu(x, s["slope"]))}[
                     s["activation"]](h)
        return x + self.outer(h) * s["factor"]


class ImageAndText(nn.Module):
    """A patch convolution or an embedding, a block, and a head."""

    def __init__(self, s):
        super().__init__()
        self.s = s
        self.patch = nn.Conv2d(3, D, 2, 2)
        self.embed = nn.Embedding(20, D)
        self.bn = nn.BatchNorm2d(D, eps=s["bn_epsilon"])
        self.block, self.head = NormedBlock(s), nn.Linear(D, 5)

    def forward(self, image, ids):
        s = self.s
        x = self.bn(self.patch(image))
        if s["resize"]:
            x = nn.functional.interpolate(
                x, scale_factor=2, mode=s["resize"],
                align_corners=s["corners"] if s["resize"] == "bilinear"
                else None)
        if s["pool"]:
            x = nn.functional.avg_pool2d(
                x, 3, 1, 1, count_include_pad=s["pool"] == "pad")
        x = x.flatten(2).transpose(1, 2)
        e = self.embed(ids)
        if s["swap"]:
            x, e = e, x
        x = torch.cat([x, e], 1)
        x = self.block(x)
        x = x[:, 0] if s["first"] else x.mean(1)
        x = nn.functional.log_softmax(self.head(x), -1) if s["log"] else (
            self.head(x))
        return x.clamp(-s["bound"], s["bound"])


#: What is right.
USUAL = {"epsilon": 1e-5, "bn_epsilon": 1e-5, "scale": 0.5, "causal": 0,
         "axis": -1, "residual": True, "activation": "gelu", "slope": 0.01,
         "factor": 1.0, "resize": "", "corners": False, "pool": "",
         "swap": False, "first": False, "log": False, "bound": 9.0}

#: Faults: what is otherwise, and the words of the cause.
FAULTS = {
    "epsilon of a norm": ({"epsilon": 1e-3}, "epsilon"),
    "epsilon of a batch norm": ({"bn_epsilon": 1e-2}, "epsilon"),
    "scale": ({"scale": 0.25}, "scale|factor"),
    "no scale": ({"scale": 1.0}, "scale|factor"),
    "causal": ({"causal": 1}, "mask|summand|added|bias of the scores|causal"),
    "softmax over queries": ({"axis": -2}, "softmax|axis|order|max"),
    "softmax over heads": ({"axis": 1}, "softmax|axis|order|max"),
    "no residual": ({"residual": False}, "residual"),
    "gelu by tanh": ({"activation": "tanh"}, "gelu"),
    "relu": ({"activation": "relu"}, "relu|activation"),
    "silu": ({"activation": "silu"}, "silu|activation"),
    "leaky": ({"activation": "leaky"}, "leaky|activation|where"),
    "a factor": ({"factor": 0.5}, "factor|scale|multiply|constant|·"),
    "resized": ({"resize": "nearest"}, "resize|upsample|repeat|another"),
    "pooled": ({"pool": "pad"}, "pool"),
    "the first token": ({"first": True}, "first|slice|mean|another"),
    "log softmax": ({"log": True}, "log|softmax"),
    "bound": ({"bound": 0.1}, "bound|clip|maximum|minimum|constant")}

#: Sound ways to set it.
SOUND = {
    "usual": {}, "relu": {"activation": "relu"}, "silu": {
        "activation": "silu"}, "tanh": {"activation": "tanh"},
    "leaky": {"activation": "leaky", "slope": 0.2}, "causal": {"causal": 1},
    "epsilon": {"epsilon": 1e-3}, "batch norm": {"bn_epsilon": 1e-3},
    "scale": {"scale": 0.3}, "log": {"log": True}, "first": {"first": True},
    "swap": {"swap": True}, "no residual": {"residual": False},
    "factor": {"factor": 2.0}, "nearest": {"resize": "nearest"},
    "bilinear": {"resize": "bilinear"},
    "corners": {"resize": "bilinear", "corners": True},
    "pool": {"pool": "pad"}, "pool alone": {"pool": "alone"},
    "bound": {"bound": 0.3}, "relu, first": {
        "activation": "relu", "first": True},
    "causal, log": {"causal": 1, "log": True},
    "silu, nearest": {"activation": "silu", "resize": "nearest"},
    "tanh, pool": {"activation": "tanh", "pool": "pad"},
    "causal, swap": {"causal": 1, "swap": True},
    "relu, log": {"activation": "relu", "log": True}}


def net(**s):
    """The model."""
    torch.manual_seed(0)
    model = ImageAndText(USUAL | s).eval()
    for each in model.parameters():
        if each.ndim > 1:
            nn.init.normal_(each, std=0.3)
    model.bn.running_var.uniform_(0.5, 2)
    model.bn.running_mean.normal_()
    return model


def inputs(**s):
    """An image and tokens."""
    torch.manual_seed(1)
    return torch.randn(2, 3, 6, 6), torch.randint(0, 20, (2, 9))
