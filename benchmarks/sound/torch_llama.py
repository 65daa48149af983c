"""A port of Llama's family to PyTorch, as small as people write it."""

import torch
from torch import nn

fn = nn.functional


class Root(nn.Module):
    """RMS norm in the dtype that it is given.

    Args:
        width: of its scale.
        more: what is added to the scale: 1 in Gemma.
    """

    def __init__(self, width, eps, more=0.0):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.eps, self.more = eps, more

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps) * (
            self.more + self.scale)


def turned(x, base, width):
    """Rotary by halves of the first ``width`` columns of x [B H T K]."""
    x, rest = x[..., :width], x[..., width:]
    rate = base ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angle = torch.outer(torch.arange(x.shape[2], dtype=x.dtype), rate)
    one, two = x.chunk(2, -1)
    return torch.cat([one * angle.cos() - two * angle.sin(),
                      two * angle.cos() + one * angle.sin(), rest], -1)


class Attending(nn.Module):
    """Causal attention with rotary.

    Args:
        c: the config, as Hugging Face's.
        normed: of queries and keys: "head", "flat" or "".
        bias: of the projections.
    """

    def __init__(self, c, normed="", bias=False):
        super().__init__()
        self.h, self.g = c.num_attention_heads, c.num_key_value_heads
        self.k = getattr(c, "head_dim", None) or c.hidden_size // self.h
        self.base = c.rope_parameters["rope_theta"]
        self.window = getattr(c, "sliding_window", None)
        wide, narrow = self.h * self.k, self.g * self.k
        self.wq = nn.Linear(c.hidden_size, wide, bias)
        self.wk = nn.Linear(c.hidden_size, narrow, bias)
        self.wv = nn.Linear(c.hidden_size, narrow, bias)
        self.wo = nn.Linear(wide, c.hidden_size, False)
        self.normed = normed
        if normed:
            self.nq, self.nk = (
                Root(self.k if normed == "head" else width, c.rms_norm_eps)
                for width in (wide, narrow))

    def forward(self, x):
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        if self.normed == "flat":
            q, k = self.nq(q), self.nk(k)
        q, k, v = (y.unflatten(-1, (-1, self.k)).transpose(1, 2)
                   for y in (q, k, v))
        if self.normed == "head":
            q, k = self.nq(q), self.nk(k)
        q, k = (turned(y, self.base, self.k) for y in (q, k))
        k, v = (y.repeat_interleave(self.h // self.g, 1) for y in (k, v))
        place = torch.arange(x.shape[1])
        gap = place[:, None] - place
        seen = (gap >= 0) & (gap < (self.window or len(place)))
        y = fn.scaled_dot_product_attention(q, k, v, seen)
        return self.wo(y.transpose(1, 2).flatten(2))


class Gated(nn.Module):
    """down(act(gate) · up)."""

    def __init__(self, c, act):
        super().__init__()
        self.w1 = nn.Linear(c.hidden_size, c.intermediate_size, False)
        self.w3 = nn.Linear(c.hidden_size, c.intermediate_size, False)
        self.w2 = nn.Linear(c.intermediate_size, c.hidden_size, False)
        self.act = act

    def forward(self, x):
        return self.w2(self.act(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    """A block: norms before, or, as OLMo 2, behind."""

    def __init__(self, c, act, post, more, **attention):
        super().__init__()
        self.att, self.ffn = Attending(c, **attention), Gated(c, act)
        self.n1, self.n2 = (Root(c.hidden_size, c.rms_norm_eps, more)
                            for _ in "12")
        self.post = post

    def forward(self, x):
        if self.post:
            x = x + self.n1(self.att(x))
            return x + self.n2(self.ffn(x))
        x = x + self.att(self.n1(x))
        return x + self.ffn(self.n2(x))


class Llama(nn.Module):
    """Llama, Mistral, Qwen 2 and 3, OLMo 2 and Gemma: ids -> logits.

    Args:
        c: the config, as Hugging Face's.
        act: the gate's function.
        post: whether norms stand behind.
        more: what is added to norms' scales.
        scaled: whether embeddings are multiplied by √d.
    """

    def __init__(self, c, act=fn.silu, post=False, more=0.0, scaled=False,
                 **attention):
        super().__init__()
        self.tok = nn.Embedding(c.vocab_size, c.hidden_size)
        self.blocks = nn.ModuleList(
            Layer(c, act, post, more, **attention)
            for _ in range(c.num_hidden_layers))
        self.final = Root(c.hidden_size, c.rms_norm_eps, more)
        self.out = nn.Linear(c.hidden_size, c.vocab_size, False)
        self.scale = c.hidden_size ** 0.5 if scaled else 1.0

    def forward(self, ids):
        x = self.tok(ids) * self.scale
        for block in self.blocks:
            x = block(x)
        return self.out(self.final(x))
