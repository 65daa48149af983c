"""Other ways to run and to build, with JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.sound.nnx_parts import (
    Block, D, F, Mlp, Model, Port, V, causal, embedding, gelu, linear, merge,
    norm, param, split)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import (
    arrays, both, drawn, give, normal, tokens, twins)


@sound
def nnx_jit_parts():
    """b's MLP runs a compiled function of its arrays."""
    @jax.jit
    def run(x, w1, b1, w2, b2):
        return gelu(x @ w1 + b1) @ w2 + b2

    class Compiled(Mlp):
        def __call__(self, x):
            return run(x, self.fc1.kernel[...], self.fc1.bias[...],
                       self.fc2.kernel[...], self.fc2.bias[...])
    return twins(Model(Block()), Port(Block(mlp=Compiled())), tokens(2, 7))


@sound
def nnx_jit_block():
    """b's block is run under nnx.jit."""
    class Jitted(nnx.Module):
        def __init__(self):
            self.inner = Block()

        def __call__(self, x):
            return nnx.jit(lambda block, x: block(x))(self.inner, x)
    return twins(Model(Block(), Block()), Port(Jitted(), Jitted()),
                 tokens(2, 7))


@sound
def nnx_remat_block():
    """b's block is run under nnx.remat."""
    class Saving(nnx.Module):
        def __init__(self):
            self.inner = Block()

        def __call__(self, x):
            return nnx.remat(lambda block, x: block(x))(self.inner, x)
    return twins(Model(Block()), Port(Saving()), tokens(2, 7))


class Scanned(nnx.Module):
    """Two blocks with stacked weights, run by a scan."""

    def __init__(self):
        self.embed = embedding()

        @nnx.vmap(in_axes=0)
        def made(_):
            return Block()
        self.layers = made(jnp.arange(2))
        self.final_norm, self.head = norm(), linear(D, V, False)

    def __call__(self, ids):
        x = self.embed(ids)

        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def run(x, layer):
            return layer(x)
        return self.head(self.final_norm(run(x, self.layers)))


def stacked(a, b):
    """Give b's stacked block the weights of a's two."""
    give(b.embed, *arrays(a.embed))
    nnx.update(b.layers, jax.tree.map(
        lambda *each: jnp.stack(each), *map(nnx.state, a.blocks)))
    give(b.final_norm, *arrays(a.final_norm))
    give(b.head, *arrays(a.head))
    return b


@sound
def nnx_scan_over_layers():
    """A loop over two blocks in a, nnx.scan in b."""
    a = drawn(Model(Block(), Block()))
    return both(a, stacked(a, Scanned()), tokens(2, 7))


@sound
def nnx_scan_by_lax():
    """A loop over two blocks in a; lax.scan over arrays in b."""
    class Lax(nnx.Module):
        def __init__(self, blocks):
            self.embed, self.final_norm = embedding(), norm()
            self.head = linear(D, V, False)
            for name in ("scale_1", "bias_1", "q", "qb", "k", "kb", "v", "vb",
                         "o", "ob", "scale_2", "bias_2", "up", "upb", "down",
                         "downb"):
                setattr(self, name, nnx.Param(jnp.zeros(1)))
            for name, *each in zip([*vars(self)][-16:], *map(arrays, blocks)):
                getattr(self, name).set_value(jnp.asarray(np.stack(each)))

        def __call__(self, ids):
            def normed(x, scale, bias):
                mean = x.mean(-1, keepdims=True)
                x = (x - mean) * jax.lax.rsqrt(
                    x.var(-1, keepdims=True) + 1e-5)
                return x * scale + bias

            def step(x, w):
                (s1, b1, q, qb, k, kb, v, vb, o, ob, s2, b2, up, upb, down,
                 downb) = w
                y = normed(x, s1, b1)
                q, k, v = (split(y @ m + n) for m, n in (
                    (q, qb), (k, kb), (v, vb)))
                scores = q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5
                weights = jax.nn.softmax(jnp.where(
                    causal(x.shape[1]), scores, -jnp.inf))
                x = x + merge(weights @ v) @ o + ob
                return x + gelu(normed(x, s2, b2) @ up + upb) @ down + downb, 0
            names = [*vars(self)][-16:]
            x, _ = jax.lax.scan(step, self.embed(ids), tuple(
                getattr(self, name)[...] for name in names))
            return self.head(self.final_norm(x))
    a = drawn(Model(Block(), Block()))
    b = Lax([*a.blocks])
    for name in ("embed", "final_norm", "head"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    return both(a, b, tokens(2, 7))


@sound
def nnx_mapped_rows():
    """A batch at once in a; jax.vmap over its rows in b."""
    class Rows(Mlp):
        def __call__(self, x):
            return jax.vmap(super().__call__)(x)
    return twins(Model(Block()), Port(Block(mlp=Rows())), tokens(3, 7))


@sound
def nnx_loop_by_fori():
    """A recurrence in a Python loop in a, in lax.fori_loop in b."""
    class Decay(nnx.Module):
        def __init__(self, looped):
            self.rate, self.out, self.looped = linear(D, D), linear(D, 3), (
                looped)

        def __call__(self, x):
            a = jax.nn.sigmoid(self.rate(x))
            h = jnp.zeros_like(x[:, 0])
            if self.looped:
                h = jax.lax.fori_loop(
                    0, x.shape[1], lambda t, h: a[:, t] * h + x[:, t], h)
            else:
                for t in range(x.shape[1]):
                    h = a[:, t] * h + x[:, t]
            return self.out(h)
    return twins(Decay(False), Decay(True), normal(2, 6, D))


@sound
def nnx_associative_scan():
    """A Python loop in a, jax.lax.associative_scan in b."""
    class Decay(nnx.Module):
        def __init__(self, parallel):
            self.norm, self.rate = norm(), linear(D, F)
            self.given, self.out = linear(D, F), linear(F, 3)
            self.parallel = parallel

        def __call__(self, x):
            x = self.norm(x)
            a, y = jax.nn.sigmoid(self.rate(x)), self.given(x)
            if self.parallel:
                def joined(one, two):
                    return one[0] * two[0], two[0] * one[1] + two[1]
                y = jax.lax.associative_scan(joined, (a, y), axis=1)[1]
                return self.out(y)
            h, made = jnp.zeros_like(y[:, 0]), []
            for t in range(x.shape[1]):
                h = a[:, t] * h + y[:, t]
                made.append(h)
            return self.out(jnp.stack(made, 1))
    return twins(Decay(False), Decay(True), normal(2, 6, D))


class Routed(nnx.Module):
    """A mixture of four experts: dense, or by ragged order."""

    def __init__(self, sorted_):
        self.router = linear(D, 4, False)
        self.up, self.down = param(4, D, F), param(4, F, D)
        self.sorted_ = sorted_

    def __call__(self, x):
        shape, x = x.shape, x.reshape(-1, D)
        weights, chosen = jax.lax.top_k(jax.nn.softmax(self.router(x)), 2)
        weights = weights / weights.sum(-1, keepdims=True)
        if self.sorted_:
            flat = chosen.reshape(-1)
            order = jnp.argsort(flat)
            row, expert = order // 2, flat[order]
            y = jnp.einsum("nd,ndf->nf", x[row], self.up[...][expert])
            y = jnp.einsum("nf,nfd->nd", jax.nn.silu(y),
                           self.down[...][expert])
            y = y * weights.reshape(-1)[order][:, None]
            return jnp.zeros_like(x).at[row].add(y).reshape(shape)
        every = (jax.nn.one_hot(chosen, 4, dtype=x.dtype)
                 * weights[..., None]).sum(1)
        y = jax.nn.silu(jnp.einsum("nd,edf->enf", x, self.up[...]))
        y = jnp.einsum("enf,efd->end", y, self.down[...])
        return jnp.einsum("ne,end->nd", every, y).reshape(shape)


@sound
def nnx_experts_dense_or_sorted():
    """All experts for all in a; rows sorted by expert in b."""
    return twins(Model(Block(mlp=Routed(False))),
                 Port(Block(mlp=Routed(True))), tokens(2, 7))


@sound
def nnx_messages_by_segments():
    """Messages: an adjacency matrix in a, segment_sum in b."""
    source, target = np.array([0, 1, 2, 3, 4, 0]), np.array([1, 2, 0, 4, 3, 3])

    class Graph(nnx.Module):
        def __init__(self, segments):
            self.message, self.update = linear(D, D), linear(2 * D, D)
            self.out, self.segments = linear(D, 3), segments

        def __call__(self, nodes):
            sent = self.message(nodes)
            if self.segments:
                got = jax.ops.segment_sum(sent[source], target, len(nodes))
            else:
                got = jnp.zeros((5, 5)).at[target, source].set(1) @ sent
            return self.out(jnp.tanh(self.update(
                jnp.concatenate([nodes, got], -1))))
    return twins(Graph(False), Graph(True), normal(5, D))


@sound
def nnx_tuple_or_dictionary():
    """The outputs are a tuple in a, a dictionary in b."""
    class Finished(nnx.Module):
        def __init__(self, named):
            self.inner, self.value, self.named = Model(Block()), linear(
                V, 2), named

        def __call__(self, ids):
            logits = self.inner(ids)
            value = self.value(logits)
            return ({"logits": logits, "value": value} if self.named
                    else (logits, value))
    return twins(Finished(False), Finished(True), tokens(2, 5))


@sound
def nnx_dropout_or_none():
    """b has dropouts, which are off in evaluation."""
    class Dropped(Block):
        def __init__(self):
            super().__init__()
            self.drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

        def __call__(self, x):
            x = x + self.drop(self.attn(self.ln_1(x)))
            return x + self.drop(self.mlp(self.ln_2(x)))
    return twins(Model(Block()), Port(Dropped()), tokens(2, 7))
