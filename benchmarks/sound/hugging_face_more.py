"""Hugging Face's other models, against small ports."""

import functools
import math

import torch
import transformers
from torch import nn

from benchmarks.sound.hugging_face import IDS, ported
from benchmarks.sound.pair import sound
from benchmarks.sound.torch_llama import Root, turned
from benchmarks.sound.weights import call, copied, drawn, normal

fn = nn.functional
inside = functools.partial(sound, dtype="float32 inside")
D, H, F = 24, 4, 40
K = D // H


def heads(x):
    """[B T D] -> [B H T K]."""
    return x.unflatten(-1, (H, -1)).transpose(1, 2)


def joined(x):
    """[B H T K] -> [B T D]."""
    return x.transpose(1, 2).flatten(2)


class Parallel(nn.Module):
    """A block of GPT-NeoX (two norms, packed) or Phi (one, apart)."""

    def __init__(self, packed):
        super().__init__()
        if packed:
            self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
            self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        else:
            self.q, self.k, self.v, self.out = (nn.Linear(D, D)
                                                for _ in range(4))
        self.up, self.down = nn.Linear(D, F), nn.Linear(F, D)
        if not packed:
            self.n1 = nn.LayerNorm(D)
        self.packed = packed

    def forward(self, x):
        y = self.n1(x)
        if self.packed:
            q, k, v = heads(self.qkv(y)).chunk(3, -1)
            act, z, width = fn.gelu, self.n2(x), 2
        else:
            q, k, v = (heads(f(y)) for f in (self.q, self.k, self.v))
            act, z, width = nn.GELU("tanh"), y, 4
        q, k = turned(q, 10000.0, width), turned(k, 10000.0, width)
        made = fn.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(joined(made)) + self.down(act(self.up(z)))


class Decoder(nn.Module):
    """Embedding, blocks, a norm and a head."""

    def __init__(self, c, block, bias=False, embedded=None):
        super().__init__()
        self.table = nn.Embedding(c.vocab_size, D)
        self.embedded = embedded() if embedded else nn.Identity()
        self.blocks = nn.Sequential(*(block() for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(
            D, c.vocab_size, bias)

    def forward(self, ids):
        x = self.embedded(self.table(ids))
        return self.head(self.norm(self.blocks(x)))


@inside
def gpt_neox_ported():
    """GPT-NeoX, packed by heads, and a port."""
    return ported("GPTNeoX", lambda c: Decoder(c, lambda: Parallel(True)))


@inside
def phi_ported():
    """Phi, parallel and rotary in part, and a port."""
    return ported("Phi", lambda c: Decoder(c, lambda: Parallel(False), True))


class Alibi(nn.Module):
    """A block of BLOOM."""

    def __init__(self):
        super().__init__()
        self.n1 = nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.n2 = nn.LayerNorm(D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (H, 3, K)).permute(
            3, 0, 2, 1, 4)
        place = torch.arange(x.shape[1])
        gap = place[:, None] - place
        slope = 2.0 ** (-2.0 * torch.arange(1, H + 1, dtype=x.dtype))
        bias = (-slope[:, None, None] * gap).masked_fill(gap < 0, -torch.inf)
        x = x + self.out(joined((q @ k.mT / K ** 0.5 + bias).softmax(-1) @ v))
        y = self.up(self.n2(x))  # BLOOM's own eight digits of √(2/π)
        return x + self.down(0.5 * y * (1 + torch.tanh(
            0.79788456 * y * (1 + 0.044715 * y * y))))


@inside
def bloom_ported():
    """BLOOM, whose biases are of keys' places, and a port by distances."""
    return ported("Bloom", lambda c: Decoder(
        c, Alibi, embedded=lambda: nn.LayerNorm(D)))


def of(model, port, *inputs, **keywords):
    """A model of Hugging Face's, and a port with its layers in one order."""
    a = drawn(model)
    b = copied(a, port.to(torch.float64).eval())
    return call(a, *inputs, **keywords), call(b, *inputs)


def buckets(t, count=32, most=128):
    """T5's buckets of both directions: [T T]."""
    place = torch.arange(t)
    gap = place[None] - place[:, None]
    half, exact = count // 2, count // 4
    far = exact + (torch.log(gap.abs().clamp(min=1) / exact) / math.log(
        most / exact) * (half - exact)).long()
    near = torch.where(gap.abs() < exact, gap.abs(), far.clamp(max=half - 1))
    return near + (gap > 0) * half


class T5Layer(nn.Module):
    """A block of T5's encoder."""

    def __init__(self, first):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, False)
                                          for _ in range(4))
        if first:
            self.bias = nn.Embedding(32, H)
        self.n1 = Root(D, 1e-6)
        self.gate, self.up = nn.Linear(D, F, False), nn.Linear(D, F, False)
        self.down, self.n2 = nn.Linear(F, D, False), Root(D, 1e-6)

    def forward(self, x, bias):
        y = self.n1(x)
        q, k, v = (heads(f(y)) for f in (self.q, self.k, self.v))
        x = x + self.o(joined((q @ k.mT + bias).softmax(-1) @ v))
        y = self.n2(x)
        return x + self.down(fn.gelu(self.gate(y), approximate="tanh")
                             * self.up(y))


class T5(nn.Module):
    """T5's encoder."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, D)
        self.layers = nn.ModuleList([T5Layer(True), T5Layer(False)])
        self.norm = Root(D, 1e-6)

    def forward(self, ids):
        x = self.table(ids)
        bias = self.layers[0].bias(buckets(ids.shape[1])).permute(2, 0, 1)
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x)


@inside
def t5_encoder_ported():
    """T5's encoder, with its buckets, and a port."""
    return of(transformers.T5EncoderModel(transformers.T5Config(
        vocab_size=32, d_model=D, d_kv=K, d_ff=F, num_layers=2, num_heads=H,
        feed_forward_proj="gated-gelu", dropout_rate=0.0)), T5(), IDS)


class Pre(nn.Module):
    """A pre-norm encoder's block, with layers in a library's order.

    Args:
        order: "whisper" or "vit".
    """

    def __init__(self, order, eps):
        super().__init__()
        if order == "whisper":
            self.k = nn.Linear(D, D, False)
            self.v, self.q = nn.Linear(D, D), nn.Linear(D, D)
        else:
            self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.o = nn.Linear(D, D)
        self.n1 = nn.LayerNorm(D, eps)
        if order == "vit":
            self.n2 = nn.LayerNorm(D, eps)
        self.up, self.down = nn.Linear(D, F), nn.Linear(F, D)
        if order == "whisper":
            self.n2 = nn.LayerNorm(D, eps)

    def forward(self, x):
        y = self.n1(x)
        q, k, v = (heads(f(y)) for f in (self.q, self.k, self.v))
        x = x + self.o(joined((q @ k.mT * K ** -0.5).softmax(-1) @ v))
        return x + self.down(fn.gelu(self.up(self.n2(x))))


class Hearing(nn.Module):
    """Whisper's encoder."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv1d(5, D, 3, padding=1)
        self.two = nn.Conv1d(D, D, 3, stride=2, padding=1)
        self.places = nn.Parameter(torch.zeros(6, D))
        self.blocks = nn.Sequential(*(Pre("whisper", 1e-5) for _ in "12"))
        self.norm = nn.LayerNorm(D)

    def forward(self, x):
        x = fn.gelu(self.two(fn.gelu(self.one(x)))).mT
        return self.norm(self.blocks(x + self.places))


@sound
def whisper_encoder_ported():
    """Whisper's encoder and a port."""
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = transformers.WhisperConfig(
        num_mel_bins=5, d_model=D, encoder_layers=2, dropout=0.0,
        encoder_attention_heads=H, encoder_ffn_dim=F, max_source_positions=6)
    config._attn_implementation = "eager"
    a, b = drawn(WhisperEncoder(config)), Hearing()
    theirs = a.embed_positions.weight
    with torch.no_grad():
        b.places.copy_(theirs)
    b = b.to(torch.float64).eval()
    mine = dict(a.named_parameters())
    del mine["embed_positions.weight"]
    port = {n: p for n, p in b.named_parameters() if n != "places"}
    for one, two in zip(mine.values(), port.values()):
        two.data = one.detach().clone()
    sounds = normal(2, 5, 12)
    return call(a, sounds), call(b, sounds)


class Seeing(nn.Module):
    """ViT without a pooler."""

    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, D))
        self.places = nn.Parameter(torch.zeros(1, 5, D))
        self.patches = nn.Linear(48, D)
        self.blocks = nn.Sequential(*(Pre("vit", 1e-12) for _ in "12"))
        self.norm = nn.LayerNorm(D, 1e-12)

    def forward(self, x):
        x = x.unflatten(3, (2, 4)).unflatten(2, (2, 4)).permute(
            0, 2, 4, 1, 3, 5).reshape(len(x), 4, 48)
        x = torch.cat([self.cls.expand(len(x), -1, -1), self.patches(x)], 1)
        return self.norm(self.blocks(x + self.places))


@sound
def vit_ported():
    """ViT and a port whose patches are a linear layer."""
    config = transformers.ViTConfig(
        hidden_size=D, num_hidden_layers=2, num_attention_heads=H,
        intermediate_size=F, image_size=8, patch_size=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    a = drawn(transformers.ViTModel(config, add_pooling_layer=False))
    b = Seeing().to(torch.float64).eval()
    port = dict(b.named_parameters())
    for one, two in zip(a.parameters(), port.values()):
        two.data = one.detach().reshape(two.shape).clone()
    image = normal(2, 3, 8, 8)
    return call(a, image), call(b, image)


@sound
def gpt2_cached_or_not():
    """GPT-2 that makes a cache of one step, and a port of its last logits."""
    class Last(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return self.model(ids, use_cache=False).logits[:, -1]

    class Stepwise(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.gpt = model

        def forward(self, ids):
            past = self.gpt(ids[:, :-1], use_cache=True).past_key_values
            return self.gpt(ids[:, -1:], past_key_values=past).logits[:, 0]
    from benchmarks.sound.hugging_face import model_of
    return (call(Last(model_of("GPT2")).eval(), IDS),
            call(Stepwise(model_of("GPT2")).eval(), IDS))
