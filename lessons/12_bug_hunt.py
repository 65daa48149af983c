# %% [markdown]
# # Precision, then a bug hunt
#
# Somebody writes a model again in another framework, loads the old weights, and
# the numbers are nearly right. Is that rounding, or a mistake? First we learn
# what rounding looks like. Then we port one encoder layer to plain PyTorch,
# make two common mistakes, and find them: **where** the two diverge, and
# **why**.
#
# *60 minutes. You need lessons 3 to 7.*

# %%
import ml_dtypes
import numpy as np

import parity
from parity.course.lesson import (
    cases, catalogue, figures, InputError, lessons, probe_weights, select)

engines = lessons.engines_here()
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## Four formats
#
# A number in a computer has a sign, an exponent and a fraction. The fraction's
# bits say how fine it is: ε is the distance from 1 to the next number.
#
#     format      bits of fraction     ε          largest
#     float64           52           2.2e-16      1.8e308
#     float32           23           1.2e-7       3.4e38
#     float16           10           9.8e-4       65504
#     bfloat16           7           7.8e-3       3.4e38
#
# bfloat16 counts 256 and then 258. A position of 257 does not exist in it.

# %%
for name in ("float64", "float32", "float16", "bfloat16"):
    info = ml_dtypes.finfo(name)
    print(f"{name:9} ε {float(info.eps):.1e}, largest {float(info.max):.1e}")
print("257 in bfloat16:", float(ml_dtypes.bfloat16(257)))
assert float(ml_dtypes.bfloat16(257)) == 256
assert 0.1 + 0.2 != 0.3

# %% [markdown]
# ## How large is a mistake?
#
# We put known faults into one attention, one at a time. We measure the error at
# the first step where each shows: the **relative L2 error**, the norm of the
# difference over the norm of what is right. First comes rounding alone: one
# product of the attention, of numbers rounded to a format, in another order.
#
# The dashed lines are what `parity check` allows of a port in each format:
# 1e-12, four times the ε of float32, and twice that of bfloat16. In the last
# two NumPy rounds as well, and what it is off is allowed besides.

# %%
attention = cases.test_size("complete")
given = select(probe_weights(attention), "encoder.layers.0.self_attention.")
seen = cases.values("lesson 12", 2, 6, attention.d_model)
causal = np.tri(6, dtype=bool)[None, None]


def steps_of_attention():
    """The steps of the reference as it is now."""
    numpy = engines["numpy"]
    module = numpy.build("multi_head_attention", attention, given)
    return numpy.run(module, seen, seen, causal, cache=None)


sound = steps_of_attention()
names = ("attention without its mask", "scores over √d_model",
         "output kernel transposed", "query's bias missing",
         "a hidden score is only 10 lower", "softmax in bfloat16",
         "softmax in float32")
exact, rounding, errors = seen @ given["query.kernel"], {}, {}
for name in ("float64", "float32", "bfloat16"):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    low, kernel = (each.astype(dtype).astype(np.float64)
                   for each in (seen, given["query.kernel"]))
    found = low[..., ::-1] @ kernel[::-1]
    rounding[f"rounding in {name}"] = (
        np.linalg.norm(found - exact) / np.linalg.norm(exact))
for name, error in rounding.items():
    print(f"{error:.1e} at query    {name}")
for name in names:
    with catalogue.by_name(name).put("numpy"):
        faulty = steps_of_attention()
    each = {step: np.linalg.norm(faulty[step] - sound[step])
            / np.linalg.norm(sound[step]) for step in sound}
    first = next(step for step, error in each.items() if error > 1e-12)
    errors[name] = each[first]
    print(f"{each[first]:.1e} at {first:8} {name}")
figure, axis = figures.subplots(height=3.8)
axis.barh([*rounding], [*rounding.values()], color=figures.COLOURS[4])
axis.barh(names, [errors[name] for name in names], color=figures.COLOURS[0])
axis.set_xscale("log")
axis.set(xlim=(1e-17, 10), xlabel="relative L2 error at the first step")
axis.invert_yaxis()
for number, (name, bound) in enumerate((
        ("float64", 1e-12), ("float32", 4 * 2**-23), ("bfloat16", 2 * 2**-7))):
    axis.axvline(bound, color=figures.COLOURS[number + 1], linestyle="--")
    axis.text(bound, -0.7, name, ha="center", fontsize=9)
lessons.picture(figure, "Bars on a logarithmic axis: rounding in three "
                "formats, from 1e-16 to 1e-3, and seven faults, from 1e-8 to "
                "above 0.1, with the limits of float64, float32 and bfloat16: "
                "all faults are far above float64's, some below the others")
assert rounding["rounding in float64"] < 1e-15
assert min(errors.values()) > 1e-9 and max(errors.values()) > 0.1

# %% [markdown]
# In float64 rounding is far below the limit, and the smallest fault, 4e-8,
# forty thousand times above it: the two do not mix. In bfloat16 some of these
# faults are smaller than rounding, and no test could see them. That is why a
# port is proved in float64, whatever it will run in.

# %% [markdown]
# ## A layer to port
#
# Here is one encoder layer of the project, its weights by name.

# %%
torch_here = "torch" in engines
config = cases.test_size("notebook")
weights = probe_weights(config)
layer = select(weights, "encoder.layers.0.")
for name, array in layer.items():
    print(f"{name:44} {array.shape}")

# %% [markdown]
# ## The port
#
# The original is this project's encoder layer, post-norm, with LayerNorm's ε of
# 1e-5. Below is a port as one might write it in an afternoon. It runs, its
# shapes are right, and it has two mistakes. Can you see them?

# %%
if torch_here:
    import torch
    from torch import nn

    class Port(nn.Module):
        def __init__(self, config, eps=1e-6):
            super().__init__()
            d, self.heads = config.d_model, config.n_heads
            self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)
            self.value, self.output = nn.Linear(d, d), nn.Linear(d, d)
            self.inner = nn.Linear(d, config.d_ff)
            self.outer = nn.Linear(config.d_ff, d)
            self.norm1 = nn.LayerNorm(d, eps=eps)
            self.norm2 = nn.LayerNorm(d, eps=eps)

        def heads_of(self, x):
            return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        def forward(self, x, mask):
            q, k, v = (self.heads_of(f(x)) for f in (
                self.query, self.key, self.value))
            scores = q @ k.mT / q.shape[-1]**0.5
            attention = scores.masked_fill(~mask, -1e9).softmax(-1)
            context = (attention @ v).transpose(1, 2).flatten(2)
            x = self.norm1(x + self.output(context))
            return self.norm2(x + self.outer(self.inner(x).relu()))

    def load(port, layer, transposed=("query", "key", "value", "inner",
                                  "outer")):
        """Give the port the original's weights: torch stores [out, in]."""
        places = {"query": "self_attention.query",
                  "key": "self_attention.key",
                  "value": "self_attention.value",
                  "output": "self_attention.output",
                  "inner": "feed_forward.inner",
                  "outer": "feed_forward.outer"}
        with torch.no_grad():
            for ours, theirs in places.items():
                kernel = torch.from_numpy(layer[f"{theirs}.kernel"])
                module = getattr(port, ours)
                module.weight.copy_(kernel.T if ours in transposed else kernel)
                module.bias.copy_(torch.from_numpy(layer[f"{theirs}.bias"]))
            for ours, theirs in (
                    ("norm1", "self_attention_residual.norm"),
                    ("norm2", "feed_forward_residual.norm")):
                getattr(port, ours).weight.copy_(
                    torch.from_numpy(layer[f"{theirs}.scale"]))
                getattr(port, ours).bias.copy_(
                    torch.from_numpy(layer[f"{theirs}.bias"]))
        return port.eval()

    port = load(Port(config).double(), layer)
    print(f"{sum(p.numel() for p in port.parameters()):,} parameters")
else:
    print("not checked: torch is not installed")

# %% [markdown]
# ## Is it right?
#
# Compare in float64. In float32 a small mistake hides among rounding errors; in
# float64 two correct programs agree to about 1e-15, and anything above 1e-12 is
# a bug. `assert_parity` is made for such tests: it fails with a table. The
# number that it shows stands in the row with the largest *relative* error. So
# it need not be the one with the largest difference.

# %%
if torch_here:
    original = engines["torch"].build(
        "encoder_layer", config, layer, "float64")
    x = torch.from_numpy(cases.values("x", 2, 7, config.d_model))
    mask = torch.ones(1, 1, 1, 7, dtype=torch.bool)
    with torch.no_grad():
        right, wrong = original(x, mask), port(x, mask)
    print(f"largest difference {float((right - wrong).abs().max()):.3f}, "
          f"of numbers up to {float(right.abs().max()):.3f}")
    try:
        parity.assert_parity(wrong, right, name="output")
    except AssertionError as failure:
        print(failure)
    else:
        raise AssertionError("the mistakes were not noticed")
else:
    print("not checked")

# %% [markdown]
# ## Where: the first step that differs
#
# The output is wrong, but where does it start? `parity.trace` runs a model once
# and keeps the inputs and outputs of each part, without a changed line.
# `parity.compare` pairs the parts of two models, whatever their names, and
# names the first that differs. A difference that starts in a part is called
# new, one that comes only from its input inherited, and one of a part inside it
# within.

# %%
def step_by_step(port):
    """Trace both, compare them, and print the parts that were paired."""
    a, b = (parity.trace(model, x, mask) for model in (original, port))
    comparison = parity.compare(a, b)
    for row in comparison.rows:
        if row.part == "output":
            print(f"{row.a:32} {row.b:8} {row.error:.1e} {row.verdict} "
                  f"{row.origin}")
    print(comparison.sentence())
    return a, b, comparison


if torch_here:
    a, b, comparison = step_by_step(port)
    assert comparison.verdict == "divergence"
    first = comparison.first
    assert first.b == "output" and first.origin == "new"
else:
    print("not checked")

# %% [markdown]
# ## Why: a cause that is proved
#
# `parity.explain` computes the step again with each mistake that it knows, and
# names one only if it gives the port's numbers to the last digits. The first is
# the kernel of the output projection: torch's Linear stores [out, in], and this
# one was loaded as it is in the file, [in, out]. It is square, so nothing
# failed. The second is an ε that is ten times too small.

# %%
def reasons(a, b, comparison):
    """Print and return the causes that were proved."""
    explanations = parity.explain(comparison, a, b)
    for one in explanations:
        print(one.text())
    return {(one.b, one.cause) for one in explanations}


if torch_here:
    assert reasons(a, b, comparison) == {("output", "kernel"),
                                    ("norm1", "epsilon")}
else:
    print("not checked")

# %% [markdown]
# ## Correct it, and compare again
#
# With the kernel transposed the error falls from about 1 to about 3e-6. In
# float32 such a model would pass many tests; in float64 it is still three
# million times above the limit.

# %%
if torch_here:
    load(port, layer, transposed=("query", "key", "value", "output", "inner",
                              "outer"))
    a, b, comparison = step_by_step(port)
    first = comparison.first
    assert first.b == "norm1" and 1e-6 < first.error < 1e-5
    assert reasons(a, b, comparison) == {("norm1", "epsilon")}
else:
    print("not checked")

# %% [markdown]
# With ε corrected too everything matches: this is the same layer.

# %%
if torch_here:
    port = load(Port(config, eps=1e-5).double(), layer,
                transposed=("query", "key", "value", "output", "inner",
                            "outer"))
    _, _, comparison = step_by_step(port)
    assert comparison.verdict == "match"
    with torch.no_grad():
        parity.assert_parity(port(x, mask), original(x, mask))
else:
    print("not checked")

# %% [markdown]
# ## A test is only as good as what it catches
#
# A check that says *match* may miss mistakes. So this project keeps a catalogue
# of faults and puts each into each port: every one must be caught at its own
# step and named. Here is one of them: the port has its norm after the sum, and
# the original before the sub-layer.

# %%
from parity.diagnosis import proof

fault = catalogue.by_name("post-norm, not pre-norm")
print(f"{len(catalogue.faults())} faults; this one shows first in the case "
      f"{fault.case!r}, step {fault.step!r}")
for name in engines:
    if name == "numpy":
        continue
    result = proof.proof(fault, engines[name])
    print(f"{name:6} {result.in_words}: {result.findings[0].cause}")
    assert result.right

# %% [markdown]
# ## What the diagnosis does
#
# `parity.explain` takes any two models. For its own ports the project has a
# stricter tool, for they have the reference's steps. It runs the reference with
# each known fault in it, and calls a fault the cause only if every step then
# equals the port's, on two inputs. Without a fault it names none, and it does
# not guess.

# %%
from parity.diagnosis.diagnose import Diagnosis

lesson = cases.test_size("lesson")
diagnosis = Diagnosis(lesson, probe_weights(lesson))
name = next((name for name in engines if name != "numpy"), None)
if name:
    findings = diagnosis.findings(engines[name])
    print(f"{name} as it is: {len(findings)} findings")
    assert findings == []
    twice = [catalogue.by_name(one) for one in (
        "post-norm, not pre-norm", "logits, not log-probabilities")]
    with twice[0].put(name), twice[1].put(name):
        findings = diagnosis.findings(engines[name])
    for one in findings:
        print(f"{one.case}, {one.step}: {one.cause}")
    assert {one.cause for one in findings} == {one.name for one in twice}
else:
    print("not checked: no port is here")

# %% [markdown]
# ## What not to compare
#
# Two runs are comparable only with the same inputs. A comparison of different
# inputs would prove nothing, so it is refused.

# %%
if torch_here:
    a = parity.trace(original, x, mask)
    b = parity.trace(port, x + 1, mask)
    try:
        parity.compare(a, b)
    except InputError as refusal:
        print(refusal)
    else:
        raise AssertionError("two different inputs were compared")
else:
    print("not checked")

# %% [markdown]
# ## Exercises
#
# - **12.1** Round to bfloat16, with nothing but bits.
# - **12.2** Where two models diverge: the first step, not the worst.
# - **12.3** Your port has one of seven faults: find it.
#
# Then put a mistake of your own into `Port`: GELU for ReLU, the norm before the
# sum, a bias left out. Run the cells from *Is it right?* again: is it found,
# and called by its name? With two models in files of yours, each with a
# function `make`, `parity compare a.py:make b.py:make --html report.html` makes
# a page of it. `parity check faults` goes through the whole catalogue.
