"""Modules cut elsewhere, and named and nested otherwise."""

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, Block, D, F, H, Mlp, Model, Port, V, merge, split)
from benchmarks.sound.weights import arrays, both, drawn, give, tokens, twins


class Residual(nn.Module):
    """A norm, a layer and the sum, all in one module."""

    def __init__(self, layer):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.fn = layer

    def forward(self, x):
        return self.fn(self.norm(x)) + x


@sound
def residual_inside():
    """The block adds in a; each sublayer itself adds in b."""
    return twins(Model(Block(), Block()), Port(*(
        nn.Sequential(Residual(Attention()), Residual(Mlp()))
        for _ in range(2))), tokens(2, 7))


class Normed(Attention):
    """Attention that norms what it is given."""

    def __init__(self):
        nn.Module.__init__(self)
        self.norm = nn.LayerNorm(D)
        self.to_q, self.to_k, self.to_v, self.to_out = (
            nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        x = self.norm(x)
        return self.to_out(merge(self.attend(*(
            split(layer(x)) for layer in (
                self.to_q, self.to_k, self.to_v)))))


@sound
def norm_inside_attention():
    """The norm is the block's in a, attention's and the MLP's in b."""
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Normed()
            self.ff = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, F),
                                    nn.GELU(), nn.Linear(F, D))

        def forward(self, x):
            x = x + self.attention(x)
            return x + self.ff(x)
    return twins(Model(Block()), Port(Plain()), tokens(2, 7))


class Scaled(nn.Embedding):
    """An embedding that scales its rows, as BART's."""

    def forward(self, ids):
        return super().forward(ids) * D ** 0.5


class Scaling(nn.Module):
    """A model whose embedding is scaled here, inside it or in its table."""

    def __init__(self, where):
        super().__init__()
        self.where = where
        self.embed = (Scaled if where == "inside" else nn.Embedding)(V, D)
        self.block = Block()
        self.head = nn.Linear(D, V)

    def forward(self, ids):
        x = self.embed(ids)
        if self.where == "here":
            x = x * D ** 0.5
        return self.head(self.block(x))


@sound
def embedding_scaled_inside():
    """√d is multiplied in the model in a, in the embedding's module in b."""
    return twins(Scaling("here"), Scaling("inside"), tokens(2, 7))


@sound
def embedding_scaled_in_table():
    """√d is multiplied into b's table."""
    a, b = drawn(Scaling("here")), drawn(Scaling("table"))
    give(b.embed, arrays(b.embed)[0] * D ** 0.5)
    return both(a, b, tokens(2, 7))


class Bare(Attention):
    """Attention without its projection."""

    def __init__(self):
        nn.Module.__init__(self)
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        return merge(self.attend(*(split(layer(x)) for layer in (
            self.query, self.key, self.value))))


class BertLayer(nn.Module):
    """A block in BERT's cut: self, output, intermediate, output."""

    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(D)
        self.self = Bare()
        self.dense = nn.Linear(D, D)
        self.after = nn.LayerNorm(D)
        self.intermediate = nn.Sequential(nn.Linear(D, F), nn.GELU())
        self.output = nn.Linear(F, D)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.dropout(self.dense(self.self(self.before(x))))
        return x + self.dropout(self.output(self.intermediate(self.after(x))))


@sound
def projection_outside():
    """Attention's output is projected inside in a, by the block in b."""
    return twins(Model(Block()), Port(BertLayer()), tokens(2, 7))


@sound
def dropout_as_module():
    """b has dropouts, which do nothing in evaluation; a has none."""
    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attn = nn.LayerNorm(D), Attention()
            self.drop1, self.norm2 = nn.Dropout(0.5), nn.LayerNorm(D)
            self.mlp = nn.Sequential(
                nn.Linear(D, F), nn.GELU(), nn.Dropout(0.1), nn.Linear(F, D),
                nn.Dropout(0.1))

        def forward(self, x):
            x = x + self.drop1(self.attn(self.norm1(x)))
            return x + nn.functional.dropout(
                self.mlp(self.norm2(x)), 0.3, self.training)
    return twins(Model(Block()), Port(Dropped()), tokens(2, 7))


@sound
def norm_moved_to_next_block():
    """The norm before a block is the previous block's last module in b."""
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.first = nn.Embedding(V, D), nn.LayerNorm(D)
            self.attention, self.second = Attention(), nn.LayerNorm(D)
            self.mlp, self.last = Mlp(), nn.LayerNorm(D)
            self.out = nn.Linear(D, V, bias=False)

        def forward(self, ids):
            residual = self.emb(ids)
            x = self.first(residual)
            x, residual = self.joined(self.second, self.attention(x), residual)
            x, _ = self.joined(self.last, self.mlp(x), residual)
            return self.out(x)

        def joined(self, norm, x, residual):
            residual = residual + x
            return norm(residual), residual
    return twins(Model(Block()), Shifted(), tokens(2, 7))


@sound
def sequential_or_attributes():
    """One flat Sequential in b."""
    class Sum(nn.Module):
        def __init__(self, *layers):
            super().__init__()
            self.layers = nn.Sequential(*layers)

        def forward(self, x):
            return x + self.layers(x)
    return twins(Model(Block()), nn.Sequential(
        nn.Embedding(V, D), Sum(nn.LayerNorm(D), Attention()),
        Sum(nn.LayerNorm(D), nn.Linear(D, F), nn.GELU(), nn.Linear(F, D)),
        nn.LayerNorm(D), nn.Linear(D, V, bias=False)), tokens(2, 7))


@sound
def one_module_of_parameters():
    """b is one module, with functions and its own parameters alone."""
    class Functional(nn.Module):
        def __init__(self, model):
            super().__init__()
            for name, value in model.named_parameters():
                self.register_parameter(
                    name.replace(".", "_"), nn.Parameter(value.detach()))

        def forward(self, ids):
            p, fn = dict(self.named_parameters()), nn.functional
            x = fn.embedding(ids, p["embed_tokens_weight"])

            def linear(name, x):
                return fn.linear(x, p[f"{name}_weight"], p.get(f"{name}_bias"))

            def norm(name, x):
                return fn.layer_norm(
                    x, (D,), p[f"{name}_weight"], p[f"{name}_bias"])
            for layer in ("layers_0", "layers_1"):
                y = norm(f"{layer}_ln_1", x)
                q, k, v = (split(linear(f"{layer}_attn_{name}_proj", y))
                           for name in "qkv")
                y = fn.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + linear(f"{layer}_attn_o_proj", merge(y))
                y = fn.gelu(linear(f"{layer}_mlp_fc1", norm(
                    f"{layer}_ln_2", x)))
                x = x + linear(f"{layer}_mlp_fc2", y)
            return linear("lm_head", norm("norm", x))
    a = drawn(Model(Block(), Block()))
    return both(a, Functional(a).eval(), tokens(2, 7))


@sound
def tied_or_copied():
    """The head is the embedding's table in a, a copy of it in b."""
    class Tied(nn.Module):
        def __init__(self, tied):
            super().__init__()
            self.embed, self.block = nn.Embedding(V, D), Block()
            self.head = nn.Linear(D, V, bias=False)
            if tied:
                self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.block(self.embed(ids)))
    a, b = drawn(Tied(True)), drawn(Tied(False))
    give(b.embed, *arrays(a.embed))
    give(b.block, *arrays(a.block))
    give(b.head, arrays(a.embed)[0].T)
    return both(a, b, tokens(2, 7))


@sound
def one_layer_twice():
    """ALBERT's shared block is run twice in a, copied in b."""
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.head = Block(), nn.Linear(D, 3)
            self.embed = nn.Embedding(V, D)

        def forward(self, ids):
            return self.head(self.block(self.block(self.embed(ids))))

    class Copied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(V, D)
            self.first, self.second = Block(), Block()
            self.out = nn.Linear(D, 3)

        def forward(self, ids):
            return self.out(self.second(self.first(self.table(ids))))
    a, b = drawn(Shared()), drawn(Copied())
    for layer in (b.first, b.second):
        give(layer, *arrays(a.block))
    give(b.table, *arrays(a.embed))
    give(b.out, *arrays(a.head))
    return both(a, b, tokens(2, 7))


@sound
def more_returned_inside():
    """b's attention also returns its weights, which nobody uses."""
    class Telling(Attention):
        def forward(self, x):
            q, k, v = (split(layer(x)) for layer in (
                self.q_proj, self.k_proj, self.v_proj))
            weights = (q @ k.mT / (D // H) ** 0.5 + torch.full(
                (x.shape[1],) * 2, -torch.inf).triu(1)).softmax(-1)
            return self.o_proj(merge(weights @ v)), weights

    class Wide(Block):
        def forward(self, x):
            made, _ = self.attn(self.ln_1(x))
            x = x + made
            return x + self.mlp(self.ln_2(x))
    return twins(Model(Block()), Port(Wide(Telling())), tokens(2, 7))


@sound
def parameters_unused():
    """b has a pooler and a position table that nothing reads."""
    class More(Port):
        def __init__(self):
            super().__init__(Block())
            self.pooler = nn.Linear(D, D)
            self.position_embeddings = nn.Embedding(32, D)
            self.register_buffer("position_ids", torch.arange(32)[None])
    return twins(Model(Block()), More(), tokens(2, 7))


@sound
def module_run_and_dropped():
    """b runs a second head, whose output it does not return."""
    class Dropping(Port):
        def __init__(self):
            super().__init__(Block())
            self.value_head = nn.Linear(D, 1)

        def forward(self, ids):
            x = self.transformer(ids)
            self.value_head(x)
            return self.head(x)
    return twins(Model(Block()), Dropping(), tokens(2, 7))
