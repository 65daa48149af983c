"""OLMo 2 in plain torch: norms behind sub-layers, and over all heads."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        mean = x.square().mean(-1, keepdim=True)
        return self.weight * x / torch.sqrt(mean + 1e-5)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["hidden_size"]
        self.size = c["head_dim"]
        groups = c["num_key_value_heads"] * self.size
        self.wq = nn.Linear(width, width, bias=False)
        self.wk = nn.Linear(width, groups, bias=False)
        self.wv = nn.Linear(width, groups, bias=False)
        self.wo = nn.Linear(width, width, bias=False)
        self.q_norm = RMSNorm(width)
        self.k_norm = RMSNorm(groups)

    def forward(self, x, turns, bias):
        def heads(y):
            return y.unflatten(-1, (-1, self.size)).transpose(1, 2)

        def turned(y):
            pairs = torch.view_as_complex(
                y.unflatten(-1, (2, -1)).transpose(-1, -2).contiguous())
            return torch.view_as_real(
                pairs * turns).transpose(-1, -2).flatten(-2)
        q = turned(heads(self.q_norm(self.wq(x))))
        k = turned(heads(self.k_norm(self.wk(x))))
        v = heads(self.wv(x))
        k, v = (y.repeat_interleave(q.shape[1] // y.shape[1], 1)
                for y in (k, v))
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=bias)
        return self.wo(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        wide = c["hidden_size"], c["intermediate_size"]
        self.attention = Attention(c)
        self.attention_norm = RMSNorm(wide[0])
        self.w1 = nn.Linear(*wide, bias=False)
        self.w3 = nn.Linear(*wide, bias=False)
        self.w2 = nn.Linear(*wide[::-1], bias=False)
        self.ff_norm = RMSNorm(wide[0])

    def forward(self, x, turns, bias):
        x = x + self.attention_norm(self.attention(x, turns, bias))
        inner = nn.functional.silu(self.w1(x)) * self.w3(x)
        return x + self.ff_norm(self.w2(inner))


class Olmo2(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.blocks = nn.ModuleList(
            Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        self.size = c["head_dim"]

    def forward(self, ids, mask):
        length, half = ids.shape[1], self.size // 2
        powers = torch.arange(half, dtype=torch.float64) / half
        angles = torch.outer(
            torch.arange(length, dtype=torch.float64), 5e5 ** -powers)
        turns = torch.polar(torch.ones_like(angles), angles)
        kept = torch.ones(length, length).tril().bool()
        bias = kept & mask.bool()[:, None, None]
        x = self.tok(ids)
        for block in self.blocks:
            x = block(x, turns, bias)
        return self.head(self.norm(x))


#: The library's parts -> ours.
NAMES = (("model.layers", "blocks"), ("model.embed_tokens", "tok"),
         ("model.norm", "norm"), ("lm_head", "head"),
         ("post_attention_layernorm", "attention_norm"),
         ("post_feedforward_layernorm", "ff_norm"),
         ("self_attn.q_norm", "attention.q_norm"),
         ("self_attn.k_norm", "attention.k_norm"),
         (r"self_attn.(.)_proj", r"attention.w\1"), ("mlp.gate_proj", "w1"),
         ("mlp.up_proj", "w3"), ("mlp.down_proj", "w2"))


def build(arrays, config):
    """The model with the library's arrays."""
    from benchmarks.families.drawing import into_torch
    return into_torch(Olmo2(config), arrays, NAMES)
