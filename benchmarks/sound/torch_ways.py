"""Other ways to run, to build and to return, with PyTorch."""

import collections

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, Block, D, F, Mlp, Model, Port, V, causal)
from benchmarks.sound.weights import (
    arrays, both, drawn, give, normal, tokens, twins)

fn = nn.functional


def compiled(backend):
    """A model, and a port whose blocks are compiled."""
    a, b = drawn(Model(Block(), Block())), drawn(Port(Block(), Block()))
    for layer in b.transformer.h:
        layer.compile(backend=backend)
    return both(a, b, tokens(2, 7))


@sound
def compiled_blocks():
    """b's blocks are compiled, by the backend that runs them as they are."""
    return compiled("eager")


@sound
def compiled_blocks_aot():
    """b's blocks are compiled, and their operations decomposed."""
    return compiled("aot_eager_decomp_partition")


@sound
def compiled_same_names():
    """The same model twice; one block is compiled in b."""
    a, b = drawn(Model(Block())), drawn(Model(Block()))
    b.layers[0].mlp.compile(backend="eager")
    return both(a, b, tokens(2, 7))


@sound
def compiled_wrapped():
    """torch.compile's own module stands in b's list."""
    a, b = drawn(Model(Block())), drawn(Model(Block()))
    b.layers[0] = torch.compile(b.layers[0], backend="aot_eager")
    return both(a, b, tokens(2, 7))


@sound
def scripted_part():
    """b's MLP is a script of TorchScript."""
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(D, F), nn.Linear(F, D)

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(x)))
    a = drawn(Model(Block(mlp=Plain())))
    b = drawn(Port(Block(mlp=Plain())))
    b.transformer.h[0].mlp = torch.jit.trace(
        b.transformer.h[0].mlp, torch.zeros(2, 7, D, dtype=torch.float64))
    return both(a, b, tokens(2, 7))


@sound
def checkpointed():
    """b computes its blocks under activation checkpointing."""
    class Saving(Model):
        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return self.lm_head(self.norm(x))
    return twins(Model(Block(), Block()), Saving(Block(), Block()),
                 tokens(2, 7))


@sound
def in_place():
    """add_, mul_ and relu_ in b."""
    class InPlace(Block):
        def forward(self, x):
            x = x.clone()
            x.add_(self.attn(self.ln_1(x)))
            return x.add_(self.mlp(self.ln_2(x)))

    class Inner(Mlp):
        def forward(self, x):
            return self.fc2(self.fc1(x).relu_().mul_(0.5))
    return twins(Model(Block(mlp=Mlp(lambda x: torch.relu(x) / 2))),
                 Port(InPlace(mlp=Inner())), tokens(2, 7))


class Finished(nn.Module):
    """A model whose output is put into a container."""

    def __init__(self, wrap):
        super().__init__()
        self.model, self.value, self.wrap = Model(Block()), nn.Linear(V, 2), (
            wrap)

    def forward(self, ids):
        logits = self.model(ids)
        return self.wrap(logits, self.value(logits))


class Result(collections.namedtuple("Result", "logits value")):
    """Two outputs by name."""


@sound
def tuple_or_list():
    """The outputs are a tuple in a, a list in b."""
    return twins(Finished(lambda *made: made),
                 Finished(lambda *made: [*made]), tokens(2, 5))


@sound
def tuple_or_dictionary():
    """The outputs are a tuple in a, a dictionary in b."""
    return twins(Finished(lambda *made: made), Finished(
        lambda logits, value: {"logits": logits, "value": value}),
        tokens(2, 5))


@sound
def dictionary_or_named_tuple():
    """A dictionary in a, a named tuple in b."""
    return twins(Finished(lambda logits, value: {
        "logits": logits, "value": value}), Finished(Result), tokens(2, 5))


@sound
def one_output_or_tuple_of_one():
    """An array in a, a tuple with it in b, with None beside it."""
    return twins(Finished(lambda logits, value: value), Finished(
        lambda logits, value: (value, None)), tokens(2, 5))


@sound
def hook_adds_residual():
    """The residual is added by the block in a, by a hook in b."""
    class Bare(Block):
        def forward(self, x):
            return self.mlp(self.attn(x))
    def before(norm):
        def hook(layer, given):
            layer.kept = given[0]
            return (norm(given[0]),)
        return hook
    b = Bare()
    for layer, norm in ((b.attn, b.ln_1), (b.mlp, b.ln_2)):
        layer.register_forward_pre_hook(before(norm))
        layer.register_forward_hook(lambda m, given, made: made + m.kept)
    return twins(Model(Block()), Port(b), tokens(2, 7))


@sound
def functional_call():
    """b's block runs with stacked weights by torch.func."""
    class Stacked(nn.Module):
        def __init__(self, model):
            super().__init__()
            blocks = [*model.layers]
            self.embed, self.norm, self.head = (
                model.embed_tokens, model.norm, model.lm_head)
            self.skeleton = [Block()]
            self.weights = nn.ParameterDict({
                name.replace(".", "_"): torch.stack(
                    [dict(block.named_parameters())[name].detach()
                     for block in blocks])
                for name, _ in blocks[0].named_parameters()})

        def forward(self, ids):
            x = self.embed(ids)
            for i in range(2):
                x = torch.func.functional_call(self.skeleton[0], {
                    name: self.weights[name.replace(".", "_")][i]
                    for name, _ in self.skeleton[0].named_parameters()}, x)
            return self.head(self.norm(x))
    return both(drawn(Model(Block(), Block())),
                Stacked(drawn(Model(Block(), Block()))).eval(), tokens(2, 7))


@sound
def mapped_by_vmap():
    """b runs sequence by sequence, by torch.vmap."""
    class Mapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mlp()
            self.head = nn.Linear(D, 3)

        def forward(self, x):
            return torch.vmap(lambda row: self.head(
                torch.tanh(self.inner(row))))(x)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp, self.fc = Mlp(), nn.Linear(D, 3)

        def forward(self, x):
            return self.fc(torch.tanh(self.mlp(x)))
    return twins(Plain(), Mapped(), normal(3, 5, D))


@sound
def encoder_layer_or_hand():
    """nn.TransformerEncoderLayer in a, its parts by hand in b."""
    class Attending(Attention):
        def attend(self, q, k, v):
            return fn.scaled_dot_product_attention(q, k, v)

    class Hand(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn, self.mlp = Attending(), Mlp(fn.relu)
            self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)

        def forward(self, x):
            x = self.norm1(x + self.attn(x))
            return self.norm2(x + self.mlp(x))

    class Library(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(D, 4, F, batch_first=True)

        def forward(self, x):
            return self.layer(x)
    a, b = drawn(Library()), drawn(Hand())
    attention = a.layer.self_attn
    for at, name in enumerate("qkv"):
        give(getattr(b.attn, f"{name}_proj"), *(
            part.detach().chunk(3)[at].numpy().T for part in (
                attention.in_proj_weight, attention.in_proj_bias)))
    give(b.attn.o_proj, *arrays(attention.out_proj))
    give(b.mlp, *arrays(a.layer.linear1), *arrays(a.layer.linear2))
    for name in ("norm1", "norm2"):
        give(getattr(b, name), *arrays(getattr(a.layer, name)))
    return both(a, b, normal(2, 6, D))


@sound
def chunked_feed_forward():
    """The MLP sees all tokens in a, two at a time in b."""
    class Chunked(Mlp):
        def forward(self, x):
            return torch.cat([super(Chunked, self).forward(part)
                              for part in x.split(2, 1)], 1)
    return twins(Model(Block()), Port(Block(mlp=Chunked())), tokens(2, 7))


@sound
def token_by_token_with_cache():
    """All tokens at once in a; one after another, with a cache, in b."""
    class Cached(Attention):
        def forward(self, x):
            if x.shape[1] > 1:
                return torch.cat([self.forward(part) for part in (
                    self.reset(x)).split(1, 1)], 1)
            q, k, v = (layer(x).unflatten(-1, (4, -1)).transpose(1, 2)
                       for layer in (self.q_proj, self.k_proj, self.v_proj))
            self.keys.append(k)
            self.values.append(v)
            k, v = torch.cat(self.keys, 2), torch.cat(self.values, 2)
            y = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
            return self.o_proj(y.transpose(1, 2).flatten(2))

        def reset(self, x):
            self.keys, self.values = [], []
            return x
    return twins(Model(Block()), Port(Block(Cached())), tokens(2, 5))


@sound
def parallel_block_summed_otherwise():
    """x + attention + MLP: two orders of the sum."""
    class One(Block):
        def forward(self, x):
            return x + self.attn(self.ln_1(x)) + self.mlp(self.ln_2(x))

    class Two(Block):
        def forward(self, x):
            mlp = self.mlp(self.ln_2(x))
            return torch.stack([mlp, self.attn(self.ln_1(x)), x]).sum(0)
    return twins(Model(One()), Port(Two()), tokens(2, 7))


@sound
def steps_first():
    """b's core has time as its first axis."""
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.block = nn.Embedding(V, D), First.Core()
            self.norm, self.head = nn.LayerNorm(D), nn.Linear(
                D, V, bias=False)

        def forward(self, ids):
            x = self.block(self.embed(ids).transpose(0, 1))
            return self.head(self.norm(x)).transpose(0, 1)

        class Core(Block):
            def __init__(self):
                super().__init__(First.Attend())

        class Attend(Attention):
            def forward(self, x):
                t, b, _ = x.shape
                q, k, v = (layer(x).view(t, b * 4, -1).transpose(0, 1)
                           for layer in (self.q_proj, self.k_proj,
                                         self.v_proj))
                weights = torch.bmm(q * q.shape[-1] ** -0.5, k.mT)
                weights = weights.masked_fill(~causal(t), -torch.inf)
                y = weights.softmax(-1) @ v
                return self.o_proj(y.transpose(0, 1).reshape(t, b, D))
    return twins(Model(Block()), First(), tokens(2, 7))
