"""DiT, a diffusion transformer with adaptive norms."""

import numpy as np

from benchmarks.families.fault import ORDER, SCALE, either, number
from benchmarks.families.hugging import OurPort, OwnOriginal

CONFIG = {"width": 24, "size": 6}


def noisy():
    """Latents of 6 by 6, times and labels."""
    rng = np.random.default_rng(3)
    return {"x": rng.normal(size=(2, 4, 6, 6)),
            "time": np.array([3, 410], np.int64),
            "label": np.array([7, 10], np.int64)}


DIT = OwnOriginal("dit", "dit_torch", "Model", CONFIG, noisy)
NNX = OurPort("dit", "dit_nnx", DIT.plain, lambda: [
    np.moveaxis(noisy()["x"], 1, -1), noisy()["time"], noisy()["label"]],
    CONFIG)

PARTS = r"exchang|swap|order|shift|scale|gate§chunk|split|\["


def originals():
    """Faults in copies of the original."""
    of = DIT.fault
    yield of("gate forgotten", (r"gate|factor|times|unused§\*",), (
        "x = x + gate1 * self.attend", "x = x + self.attend"))
    yield of("scale before shift", (PARTS,), (
        "shift1, scale1, gate1, shift2", "scale1, shift1, gate1, shift2"))
    yield of("parts of attention and of the network exchanged", (PARTS,), (
        "shift1, scale1, gate1, shift2, scale2, gate2 =",
        "shift2, scale2, gate2, shift1, scale1, gate1 ="))
    yield of("scale without 1 +", (r"\b1\b",), (
        "y = norm(x) * (1 + scale2) + shift2",
        "y = norm(x) * scale2 + shift2"))
    yield of("rows before columns", (
        r"rows|columns|order|exchang|swap|transpos|position|table",), (
        "[one(columns), one(rows)], 1", "[one(rows), one(columns)], 1"))
    yield of("unpatched with rows and columns exchanged", (ORDER,), (
        '"nhwpqc->nchpwq"', '"nhwpqc->nchqwp"'))
    yield of("patches' numbers by channel first", (ORDER,), (
        "x = x.reshape(-1, grid, grid, 2, 2, 4)",
        "x = x.reshape(-1, grid, grid, 4, 2, 2).permute(0, 1, 2, 4, 5, 3)"))
    yield of("silu before the adaptive layer forgotten", (
        r"silu|swish|activation|sigmoid",), (
        "self.ada(\n            functional.silu(c))",
        "self.ada(\n            c)"))
    yield of("label forgotten", (r"@label|summand|added|unused§\+",), (
        "c = time + self.label(label)", "c = time"))
    yield of("norm ε 1e-5", (number(1e-6), number(1e-5)), (
        "x.shape[-1:], eps=1e-6)", "x.shape[-1:])"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("sines before cosines of time", (
        r"\bsin|\bcos|order|exchang|swap|halves",), (
        "omega, jnp.cos, jnp.sin)", "omega, jnp.sin, jnp.cos)"), at="time1")
    yield of("gelu by erf", ("gelu|tanh", "tanh|erf|exact|approx"), (
        "self.norm2(x, scale2, shift2)))",
        "self.norm2(x, scale2, shift2)), approximate=False)"))
    yield of("scale before shift", (PARTS,), (
        "shift1, scale1, gate1, shift2", "scale1, shift1, gate1, shift2"))
    yield of("variance by n - 1", (
        r"varian|n ?- ?1|unbiased|corrected|ddof|\b23\b|\b24\b|1\.04\d*",), (
        "x.var(-1, keepdims=True)", "x.var(-1, keepdims=True, ddof=1)"))
    yield of("columns and rows exchanged", (
        r"rows|columns|order|exchang|swap|transpos|position|table",), (
        "for place in (columns, rows)]", "for place in (rows, columns)]"),
        at="blocks.0")
    yield of("unpatched without exchange", (ORDER,), (
        "x = x.reshape(rows, grid, grid, 2, 2, 4).swapaxes(2, 3)",
        "x = x.reshape(rows, grid, grid, 2, 2, 4)"))
    yield of("packed as heads, then three", (ORDER,), (
        "packed = self.qkv(x).reshape(*x.shape[:2], 3, self.heads, -1)\n"
        "        q, k, v = jnp.moveaxis(packed, 2, 0)",
        "packed = self.qkv(x).reshape(*x.shape[:2], self.heads, 3, -1)\n"
        "        q, k, v = jnp.moveaxis(packed, 3, 0)"))
    yield of("scores over √width", (SCALE, number(24**-0.5, 24**0.5)
                                    + "|√|width"), (
        "q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"))
    yield of("gate on the sum", (
        either(SCALE, "gate|residual"),), (
        "return x + gate2 * self.fc2(y)", "return gate2 * (x + self.fc2(y))"))
    yield of("last norm not shifted", (r"shift|summand|added§\+",), (
        "self.last(self.norm(x, scale, shift))",
        "self.last(self.norm(x, scale, 0 * shift))"), within=True)
    yield of("norm ε 1e-5", (number(1e-6), number(1e-5)), (
        "keepdims=True) + 1e-6)", "keepdims=True) + 1e-5)"), within=True)


def pairs():
    """All of them."""
    other = DIT.fault("sound: the scaled part added", (), (
        "y = norm(x) * (1 + scale2) + shift2",
        "y = norm(x) + norm(x) * scale2 + shift2"))
    return [DIT.sound(), other, NNX.sound(), *originals(), *ports()]
