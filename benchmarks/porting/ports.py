"""An encoder and a Llama as somebody may port them, into any framework.

Arrays are Hugging Face's or PyTorch's, by common names; ``wrong`` is what the
port has otherwise than it should.
"""

import numpy as np

from benchmarks.porting.hugging_face import G, H, W
from benchmarks.porting.kits import layer

D = W // H

#: What an encoder is unless something is wrong.
ENCODER = {
    "act": "relu", "eps": 1e-5, "eps0": 1e-12, "scale": D**-0.5, "first": 0,
    "factor": 1.0, "words": True, "over": -1, "residual": True,
    "pre": False, "grouping": "heads", "mask": lambda mask: mask,
    "causal": False}

#: And a Llama.
LLAMA = {
    "act": "silu", "eps": 1e-6, "theta": 10000.0, "first": 0, "factor": 1.0,
    "scale": D**-0.5, "plus": 0.0, "mean": False, "outside": False,
    "pairs": "halves", "sign": 1, "on": "qk", "over": -1,
    "order": [h * G // H for h in range(H)], "seen": lambda t, s: s <= t}


def attend(kit, q, k, v, s, kept):
    """softmax(q kᵀ scale) v of heads [B H T K]; kept may be None."""
    scores = q @ kit.transpose(k, 0, 1, 3, 2) * s["scale"]
    if kept is not None:
        scores = kit.where(kept, scores, kit.array(-1e30))
    return kit.softmax(scores, s["over"]) @ v


def encoder(kit, arrays, layers, wrong):
    """A model of (x or ids, mask or None).

    An argument called mask Keras would fill itself.

    Args:
        kit: of kits.
        arrays: {"0.q": (weight, bias), …, "tok": table, …}.
        layers: how many.
        wrong: fields of ENCODER.
    """
    s = ENCODER | wrong

    def split(x):
        rows, length = x.shape[0], x.shape[1]
        if s["grouping"] == "cut":
            return kit.reshape(x, rows, H, length, D)
        return kit.transpose(kit.reshape(x, rows, length, H, D), 0, 2, 1, 3)

    def make_attention(self, i):
        self.num_heads = H
        for name in "qkvo":
            setattr(self, f"{name}_proj", kit.linear(*arrays[f"{i}.{name}"]))

    def call_attention(self, x, seen=None):
        q, k, v = (split(part(x)) for part in (
            self.q_proj, self.k_proj, self.v_proj))
        length, kept = x.shape[1], None
        if seen is not None and s["mask"]:
            kept = s["mask"](seen)[:, None, None]
        if s["causal"]:
            kept = kit.array(np.tri(length, dtype=bool))[None, None]
        y = kit.transpose(attend(kit, q, k, v, s, kept), 0, 2, 1, 3)
        return self.o_proj(kit.reshape(y, x.shape[0], length, W))
    attention = layer(kit, "Attention", make_attention, call_attention)

    def make_layer(self, i):
        self.attention = attention(i)
        for name in ("norm1", "norm2"):
            setattr(self, name, kit.norm(*arrays[f"{i}.{name}"], s["eps"]))
        self.inner, self.outer = (
            kit.linear(*arrays[f"{i}.{name}"]) for name in ("inner", "outer"))

    def call_layer(self, x, seen=None):
        def network(x):
            return self.outer(kit.act[s["act"]](self.inner(x)))
        if s["pre"]:
            x = x + self.attention(self.norm1(x), seen)
            return x + network(self.norm2(x))
        y = self.attention(x, seen)
        x = self.norm1(x + y if s["residual"] else y)
        return self.norm2(x + network(x))
    block = layer(kit, "Layer", make_layer, call_layer)

    def make(self):
        if "tok" in arrays:
            self.tok, self.pos, self.seg = (
                kit.embedding(arrays[name]) for name in ("tok", "pos", "seg"))
            self.norm0 = kit.norm(*arrays["norm0"], s["eps0"])
        self.layers = kit.several([block(i) for i in range(layers)])

    def call(self, x, seen=None):
        if "tok" in arrays:
            places = np.arange(x.shape[1])[None] + s["first"]
            y = self.tok(x) * s["factor"]
            if s["words"]:
                y = y + self.seg(x * 0)
            x = self.norm0(y + self.pos(kit.array(places)))
        for each in self.layers:
            x = each(x, seen)
        return x
    return layer(kit, "Encoder", make, call)()


def llama(kit, arrays, layers, wrong):
    """A model of ids.

    Args:
        kit: of kits.
        arrays: Hugging Face's, by its names.
        layers: how many.
        wrong: fields of LLAMA.
    """
    s = LLAMA | wrong

    def make_norm(self, weight):
        self.weight = kit.number(weight)

    def call_norm(self, x):
        if s["mean"]:
            x = x - kit.sum(x) / W
        square = kit.sum(x * x) / W
        root = square**0.5 + s["eps"] if s["outside"] else (
            square + s["eps"])**0.5
        return x / root * (self.weight + s["plus"])
    norm = layer(kit, "RMSNorm", make_norm, call_norm)

    def make_attention(self, path):
        self.num_heads, self.num_key_value_heads = H, G
        for name in "qkvo":
            setattr(self, f"{name}_proj", kit.linear(
                arrays[f"{path}.self_attn.{name}_proj.weight"]))

    def turned(x):
        """[B H T K] by its positions."""
        half = D // 2
        angles = np.arange(s["first"], s["first"] + x.shape[2])[:, None] * (
            s["theta"]**(-np.arange(half) / half))
        cos, sin = (kit.array(f(angles)) for f in (np.cos, np.sin))
        sin = sin * s["sign"]
        if s["pairs"] == "halves":
            one, two = x[..., :half], x[..., half:]
            return kit.concatenate([one * cos - two * sin,
                                    two * cos + one * sin])
        one, two = x[..., ::2], x[..., 1::2]
        both = kit.concatenate([(one * cos - two * sin)[..., None],
                                (two * cos + one * sin)[..., None]])
        return kit.reshape(both, *x.shape)

    def call_attention(self, x):
        rows, length = x.shape[0], x.shape[1]
        q, k, v = (kit.transpose(
            kit.reshape(part(x), rows, length, -1, D), 0, 2, 1, 3)
            for part in (self.q_proj, self.k_proj, self.v_proj))
        q = turned(q) if "q" in s["on"] else q
        k = turned(k) if "k" in s["on"] else k
        k, v = (kit.heads(each, s["order"]) for each in (k, v))
        at = np.arange(length)
        kept = kit.array(s["seen"](at[:, None], at[None]))[None, None]
        y = kit.transpose(attend(kit, q, k, v, s, kept), 0, 2, 1, 3)
        return self.o_proj(kit.reshape(y, rows, length, W))
    attention = layer(kit, "Attention", make_attention, call_attention)

    def make_network(self, path):
        for name in ("gate_proj", "up_proj", "down_proj"):
            setattr(self, name, kit.linear(
                arrays[f"{path}.mlp.{name}.weight"]))

    def call_network(self, x):
        return self.down_proj(
            kit.act[s["act"]](self.gate_proj(x)) * self.up_proj(x))
    network = layer(kit, "MLP", make_network, call_network)

    def make_layer(self, path):
        self.norm1 = norm(arrays[f"{path}.input_layernorm.weight"])
        self.norm2 = norm(arrays[f"{path}.post_attention_layernorm.weight"])
        self.attention, self.mlp = attention(path), network(path)

    def call_layer(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
    block = layer(kit, "Layer", make_layer, call_layer)

    def make(self):
        self.tok = kit.embedding(arrays["model.embed_tokens.weight"])
        self.layers = kit.several([
            block(f"model.layers.{i}") for i in range(layers)])
        self.norm = norm(arrays["model.norm.weight"])
        self.head = kit.linear(arrays["lm_head.weight"])

    def call(self, x):
        x = self.tok(x) * s["factor"]
        for each in self.layers:
            x = each(x)
        return self.head(self.norm(x))
    return layer(kit, "Llama", make, call)()
