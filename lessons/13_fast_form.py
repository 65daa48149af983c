# %% [markdown]
# # From the formula to the fast form
#
# The files that you have read say what a Transformer computes. What trains and
# answers is in `fast/` beside them, and looks different. Here it is built step
# by step from the formula. Each step has a gain, measured on your machine as
# you run it, and a proof: the same numbers, up to the rounding of sums in
# another order.
#
# *50 minutes. You need lessons 3, 8 and 11.*

# %%
import statistics
import time
import tracemalloc
from importlib import import_module

import numpy as np

from parity.course.lesson import (
    cases, figures, GenerationConfig, lessons, ports, probe_weights)

engines = lessons.engines_here()
package = ports.package("numpy")
reference = import_module(f"{package}.attention")
fast_attention = import_module(f"{package}.fast.attention")
blocks = import_module(f"{package}.fast.blocks")
draw = np.random.default_rng(13)
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## First measure, and prove
#
# Two functions that should be equal are run in turn, so that whatever else the
# machine does slows both. The ratio of their medians is the gain; milliseconds
# are of no use to anybody with another machine. The proof comes first: a
# faster function that computes something else is no function at all.

# %%
gains = {}


def compare(name, plain, fast, turns=5):
    """Prove two functions equal, then tell how much quicker the second is."""
    expected, found = plain(), fast()
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error <= 1e-12, (name, error)
    times = {plain: [], fast: []}
    for _ in range(turns):
        for function, spent in times.items():
            start = time.perf_counter()
            function()
            spent.append(time.perf_counter() - start)
    before, after = map(statistics.median, times.values())
    gains[name] = before / after
    print(f"{name}: {gains[name]:.2f} times as quick, {error:.0e} apart")


rows, width = 4 * 64, 256
x = draw.normal(size=(4, 64, width))
kernels = [draw.normal(size=(width, width)) / 16 for _ in range(3)]
compare("the same twice", lambda: x @ kernels[0], lambda: x @ kernels[0])
assert 0.01 < gains["the same twice"] < 100

# %% [markdown]
# The gain of nothing is not 1.00, but it is near. What is no further from 1
# than this is noise.
#
# ## One product for a batch
#
# A linear map treats every token alike. The formula's `x @ W` of `x` [B T D] is
# B products of [T D] with W; as one matrix [B·T D] it is a single product,
# which a library can plan as a whole. `reference_numpy/fast/linear.py` is this
# line.

# %%
compare("flattened", lambda: x @ kernels[0],
        lambda: (x.reshape(-1, width) @ kernels[0]).reshape(x.shape))
flat = x.reshape(-1, width)
print("shapes:", x.shape, "and", flat.shape)
assert np.shares_memory(flat, x)  # nothing was copied

# %% [markdown]
# ## Three maps of one input
#
# Query, key and value are three maps of the same x. Put their kernels side by
# side, and they are one product; the three results are views of it. It pays
# most for a single token, where the time goes into reading weights.

# %%
together = np.concatenate(kernels, axis=1)
token = x[:1, 0]


def apart():
    """Three products."""
    return np.concatenate([token @ kernel for kernel in kernels], axis=1)


compare("query, key and value", apart, lambda: token @ together)
query, key, value = np.split(token @ together, 3, axis=1)
print("each of", query.shape)
assert np.allclose(key, token @ kernels[1], rtol=1e-12, atol=1e-12)

# %% [markdown]
# ## Nothing that is not needed
#
# Softmax by the formula makes a new array in every step: the masked scores, the
# differences, the exponentials, the quotients. Each is as large as the scores,
# and memory is slower than arithmetic. In place there is one.

# %%
scores = draw.normal(size=(8, 256, 256))
mask = np.tri(256, dtype=bool)
compare("softmax in place",
        lambda: reference.masked_softmax(scores, mask),
        lambda: fast_attention.masked_softmax(scores, mask))
for name, softmax in (("formula", reference.masked_softmax),
                      ("in place", fast_attention.masked_softmax)):
    tracemalloc.start()
    softmax(scores, mask)
    most = tracemalloc.get_traced_memory()[1] / scores.nbytes
    tracemalloc.stop()
    print(f"{name}: {most:.1f} times the scores' memory at most")
assert most < 2

# %% [markdown]
# ## The running maximum
#
# Attention over T tokens has T² scores. For 32 768 tokens these are 4 GiB for a
# single head in float32. But who needs them all at once? For one query, let m
# be the highest score so far and
#
#     total = Σ exp(s - m)          sums = Σ exp(s - m) · value
#
# over the keys that were seen. A new key with a higher score m' changes both by
# the same factor, exp(m - m'), as if m' had been there from the start. In the
# end the context is sums / total. This is all of "online softmax", and what
# FlashAttention is built on.

# %%
s, values = draw.normal(size=12) * 3, draw.normal(size=12)
m, total, sums = -np.inf, 0.0, 0.0
for score, value in zip(s, values):
    higher = max(m, score)
    shrink = np.exp(m - higher)
    total = total * shrink + np.exp(score - higher)
    sums = sums * shrink + np.exp(score - higher) * value
    m = higher
truth = reference.softmax(s) @ values
print(f"one by one {sums / total:.15f}, at once {truth:.15f}")
assert abs(sums / total - truth) < 1e-14 and m == s.max()

# %% [markdown]
# ## Blocks
#
# One by one is slow; blocks of 512 queries and 512 keys are products of
# matrices again. Read `reference_numpy/fast/blocks.py` now. It has one more
# idea: a feature that is -m in the query and 1 in the key lets the product
# subtract m, and a feature 1 of the value lets it sum the weights.

# %%
tokens = 1536
q, k, v = (draw.normal(size=(1, 2, tokens, 32)) for _ in range(3))
causal = np.tri(tokens, dtype=bool)[None, None]


def formula():
    """Equation 1, all scores at once."""
    weights = reference.masked_softmax(q @ k.mT / np.sqrt(32), causal)
    return weights @ v


def by_blocks():
    """The same, a block at a time; the mask is known by its rule."""
    return blocks.attend(q, k, v, np.ones((1, 1, 1, 1), bool), True,
                         np.sqrt(32))[0]


compare("attention over blocks", formula, by_blocks, turns=3)
peaks = {}
for name, function in (("formula", formula), ("blocks", by_blocks)):
    tracemalloc.start()
    function()
    peaks[name] = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(f"{name}: {peaks[name]:.0f} MiB")
assert peaks["blocks"] < peaks["formula"] / 2

# %% [markdown]
# Blocks above the diagonal are never computed: no query may read there. How
# much time that saves differs from machine to machine; the memory is saved on
# all of them.
#
# ## A mistake that a test on short inputs misses
#
# Forget to shrink the sums when the maximum rises. With one block there is
# nothing to shrink, so every short input is right.

# %%
def without_shrinking(s, values, size):
    """Online softmax with the mistake, over blocks of some size."""
    m, total, sums = -np.inf, 0.0, 0.0
    for start in range(0, len(s), size):
        part = slice(start, start + size)
        m = max(m, s[part].max())
        weights = np.exp(s[part] - m)
        total, sums = total + weights.sum(), sums + weights @ values[part]
    return sums / total


for size in (12, 6, 3):
    wrong = abs(without_shrinking(s, values, size) - truth)
    print(f"{len(s) // size} blocks: off by {wrong:.1e}")
    assert (wrong < 1e-14) == (size == 12)

# %% [markdown]
# So a fast form is tested at sizes at which its own branches are taken: several
# blocks, a last one that is not full, a row that may read nothing.
#
# ## Do not compute again
#
# The largest gain is no trick of the machine. Lesson 11's cache keeps what does
# not change, and each new token costs one row instead of all. Here is the whole
# search, in the reference's fast form.

# %%
config = cases.test_size("notebook").replace(dropout=0.0)
weights = probe_weights(config)
source = cases.padded_batch(config).source[:2]
settings = GenerationConfig(method="greedy", max_tokens=10)
fast_numpy = ports.engine("numpy", "fast")
model = fast_numpy.build("transformer", config, weights)


def searched(cached):
    """The log p of what a search finds."""
    return fast_numpy.generate(
        model, source, settings.replace(cached=cached))["scores"]


compare("a cache, 10 tokens", lambda: searched(False), lambda: searched(True))
tokens = [fast_numpy.generate(model, source, settings.replace(cached=cached))[
    "tokens"] for cached in (False, True)]
print(tokens[1][0, 0])
assert np.array_equal(*tokens)

# %% [markdown]
# ## All together, in all four
#
# Each framework has its own fast form, and each is held against the formula:
# same weights, same batch, float64. `parity check --form fast` does so step by
# step, with gradients, training runs and searches.

# %%
batch = cases.padded_batch(config)
truth = ports.engine("numpy").predict(
    ports.engine("numpy").build("transformer", config, weights), *batch)
for name in engines:
    engine = ports.engine(name, "fast")
    engine.set_precision()
    found = engine.predict(engine.build("transformer", config, weights),
                           *batch)
    error = np.linalg.norm(found - truth) / np.linalg.norm(truth)
    print(f"{name:6} fast form: {error:.1e} from the formula")
    assert error <= 1e-12

# %%
figure, axis = figures.subplots(height=2.8)
axis.barh(list(gains), list(gains.values()), color=figures.COLOURS[0])
axis.axvline(1, color="black", linewidth=1)
axis.invert_yaxis()
axis.set(xlabel="times as quick as the formula, here and now")
lessons.picture(figure, "The gain of each step as a bar, with a line at 1, "
                "where nothing is gained")
print(f"{len(gains)} steps, each proved first")
assert len(gains) == 6

# %% [markdown]
# ## What to take home
#
# - A fast form is a second program. It needs a first one that is plainly right.
# - Most gains are less memory: fewer arrays, read in longer rows, not kept.
# - Measure in turn, as a ratio; what is near 1 is noise. Keep only what pays.
# - `python -m benchmarks --profile` says where the time goes now.
#
# In the code: `fast/` in all four folders, and `benchmarks/README.md`.
