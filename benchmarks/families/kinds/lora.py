"""Adapters of low rank (LoRA), beside the weights or merged into them."""

import numpy as np

from benchmarks.families.fault import SCALE, either, number
from benchmarks.families.hugging import OurPort, OwnOriginal

CONFIG = {"width": 12}


def rows():
    """Rows of two texts."""
    return {"x": np.random.default_rng(5).normal(size=(2, 7, 12))}


LORA = OwnOriginal("lora", "lora_torch", "Model", CONFIG, rows)
MERGED = OurPort("lora", "lora_merged_torch", LORA.plain,
                 lambda: rows().values(), CONFIG, "torch")

SUMMAND = r"summand|added|missing|adapter|unused§\+"
KERNEL = r"different|kernel|matrix|factor|times|summand§\+|@"


def originals():
    """Faults in copies of the original."""
    of = LORA.fault
    yield of("alpha / rank forgotten", (either(SCALE, "alpha"), number(
        4, 2) + r"|factor|scaling|\*"), (
        "return self.base(x) + self.scaling * low",
        "return self.base(x) + low"))
    yield of("rank-stabilised", (either(SCALE, "alpha|scaling"),), (
        "self.scaling = alpha / rank", "self.scaling = alpha / rank**0.5"))
    yield of("adapter forgotten", (SUMMAND,), (
        "return self.base(x) + self.scaling * low", "return self.base(x)"))
    yield of("adapter on what the layer gives", (
        r"input|order|base|before|after",), (
        "low = functional.linear(functional.linear(x, self.a), self.b)",
        "low = functional.linear(functional.linear("
        "self.base(x)[..., :x.shape[-1]], self.a), self.b)"))
    yield of("norm before the sum", (r"@norm|residual|before|order|input",), (
        "x = self.norm(x + self.o(scores.softmax(-1) @ v))",
        "x = x + self.norm(self.o(scores.softmax(-1) @ v))"))
    yield of("scores not scaled", (SCALE,), (
        "scores = q @ k.mT * q.shape[-1] ** -0.5", "scores = q @ k.mT"))


def merged():
    """Faults in the merged network; its weights alone are wrong."""
    of = MERGED.fault
    yield of("alpha forgotten when merged", (KERNEL,), (
        "alpha / len(a)) * (b @ a)", "1 / len(a)) * (b @ a)"),
        at=r"^(q|v|fc)$")
    yield of("merged twice", (KERNEL,), (
        "alpha / len(a)) * (b @ a)", "2 * alpha / len(a)) * (b @ a)"),
        at=r"^(q|v|fc)$")
    yield of("the values' adapter not merged", (KERNEL,), (
        '("v", 16), ', ""), at=r"^v$")
    yield of("adapters of queries and values exchanged", (KERNEL,), (
        'a, b = arrays[f"{name}.a"], arrays[f"{name}.b"]',
        'other = {"q": "v", "v": "q"}.get(name, name)\n'
        '        a, b = arrays[f"{other}.a"], arrays[f"{other}.b"]'),
        at=r"^(q|v)$")
    yield of("merged turned round", (either(KERNEL, "transpos|order"),), (
        "(b @ a)", "(b @ a).T if name != \"fc\" else 0 * (b @ a)"),
        at=r"^(q|v|fc)$")


def pairs():
    """All of them."""
    other = LORA.fault("sound: A B first", (), (
        "low = functional.linear(functional.linear(x, self.a), self.b)",
        "low = functional.linear(x, self.b @ self.a)"))
    return [LORA.sound(), other, MERGED.sound(), *originals(), *merged()]
