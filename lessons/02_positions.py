# %% [markdown]
# # Positions
#
# Attention is a mean, and a mean does not know order: "dog bites man" and "man
# bites dog" would be one sentence. So each vector is told where it stands. We
# see that the model is blind without this, draw the paper's sines, find out why
# it chose them, and turn to the rotations that later models use.
#
# *45 minutes. You need lesson 1, sines and cosines.*

# %%
from importlib import import_module

import numpy as np

from parity.course.lesson import (
    angles, assert_parity, Batch, cases, figures, halves_table,
    interleaved_table, lessons, ports, probe_weights)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
numpy = engines["numpy"]
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## Blind to order
#
# Take an encoder without positions and give it a sentence, then the same words
# in reverse. Each word gets the same vector as before, only in another place:
# the encoder cannot tell the two sentences apart.

# %%
blind = cases.test_size("notebook").replace(positions="none")
weights = probe_weights(blind)
model = numpy.build("transformer", blind, weights)
words = np.array([[5, 9, 2, 7]])
target = np.array([[1, 3]])


def memory(model, words):
    """What the encoder makes of a sentence."""
    return numpy.forward(model, *Batch.of_ids(words, target))["memory"][0]


forward, backward = memory(model, words), memory(model, words[:, ::-1])
error = assert_parity(np.ascontiguousarray(backward[::-1]), forward)[0].error
print(f"without positions: the same vectors in reverse, error {error:.1e}")
sighted = numpy.build("transformer", blind.replace(positions="interleaved"),
                      weights)
gap = np.abs(memory(sighted, words)
             - memory(sighted, words[:, ::-1])[::-1]).max()
print(f"with positions: they differ by up to {gap:.2f}")
assert gap > 0.1

# %% [markdown]
# ## The paper's table
#
# One number for the place, 0, 1, 2, …, would grow with the sentence and drown
# the words. So a place is written as a clock writes the time: by several hands,
# a fast one for seconds, a slow one for hours. A hand is a pair of features,
# the sine and the cosine of its angle:
#
#     PE[pos, 2i]     = sin(pos / 10000^(2i / D))
#     PE[pos, 2i + 1] = cos(pos / 10000^(2i / D))
#
# The first hand turns by 1 radian a word, the last one by nearly 1/10000.

# %%
length, width = 60, 64
table = interleaved_table(length, width)
turns = angles(2, width)[1]
print("radians a word: the first pair", turns[0], "the last", turns[-1])
print("position 0:", table[0, :6])
print("position 1:", table[1, :6])
assert np.array_equal(table[0, :4], [0, 1, 0, 1])
assert table[1, 0] == np.sin(1) and table[1, 1] == np.cos(1)
figure, axes = figures.subplots(2, 3.6, width_ratios=(3, 2))
figures.heat(axes[0], table, "the table", low=-1, high=1, colours="RdBu_r")
axes[0].set(xlabel="feature", ylabel="position")
for pair, style, colour in zip((0, 4, 10), ("-", "--", ":"),
                               figures.COLOURS):
    axes[1].plot(table[:, 2 * pair], style, color=colour,
                 label=f"feature {2 * pair}")
axes[1].set(xlabel="position", ylim=(-1.1, 1.9))
axes[1].legend(frameon=False, loc="upper right", fontsize=9)
lessons.picture(figure, "The table of positions as a map: quick waves on the "
                "left, columns that hardly change on the right; beside it "
                "three of its columns, sines of ever longer wavelength")

# %% [markdown]
# ## Why sines
#
# "We hypothesized it would allow the model to easily learn to attend by
# relative positions", says section 3.5 of the paper. Here is what that means.
# A step of k words turns each hand by a fixed angle, wherever it stands. So
# there is **one matrix for each distance** that moves every position by it, and
# the product of two positions depends on their distance alone:

# %%
products = table @ table.T
for distance in (0, 1, 5, 20):
    along = np.diag(products, distance)
    print(f"distance {distance:2}: products from {along.min():.10f} to "
          f"{along.max():.10f}")
    assert np.ptp(along) < 1e-12
figure, axes = figures.subplots(2, 3.2)
figures.heat(axes[0], products, "product of two positions")
axes[0].set(xlabel="position", ylabel="position")
axes[1].plot(np.arange(length), products[0], color=figures.COLOURS[0])
axes[1].set(xlabel="distance", title="the same for every position")
lessons.picture(figure, "The products of all pairs of positions, equal along "
                "each diagonal; beside it the product against the distance, "
                "which falls quickly, then slowly, and wavers")

# %% [markdown]
# ## The same step four times
#
# The table is a constant, not something to compute in each framework: this
# project makes it once, in float64, and rounds it where it is used. That is
# R7, and it has a reason. Computed in float32, the angle itself is rounded, and
# far from the start the sine is a sine of something else:

# %%
exact = interleaved_table(5000, 512)
with np.errstate(all="ignore"):
    place = np.arange(5000, dtype=np.float32)[:, None]
    power = np.float32(10000) ** (
        np.arange(0, 512, 2, dtype=np.float32) / np.float32(512))
    wrong = np.sin(place / power) - exact[:, ::2]
late = np.abs(wrong).max(axis=1)
for row in (10, 100, 1000, 4999):
    print(f"up to position {row:4}: off by {late[:row + 1].max():.1e}")
assert late[:11].max() < 1e-5 < 1e-4 < late.max()
lessons.at_the_spot(engines, "positional.py", "PositionalEncoding",
                    "positioned")

# %%
config = cases.test_size("notebook")
x = cases.values("lesson 2", 2, 7, config.d_model)
ids = np.ones((2, 7), np.int64)
truth = x + interleaved_table(7, config.d_model)
for name, engine in engines.items():
    module = engine.build("positional_encoding", config, {})
    found = engine.run(module, x, ids, start=0)["positioned"]
    print(f"{name:6} error {assert_parity(found, truth)[0].error:.1e}")

# %% [markdown]
# ## What ports get wrong
#
# Tensor2Tensor, Marian and Flax's examples put all sines first, then all
# cosines: the same numbers, in other columns. And T2T divides i by D/2 - 1, not
# D/2, so that its slowest hand has the wavelength 10000 · 2π exactly. The first
# is a permutation, which a model trained with it does not notice; the second is
# another table. Weights that were trained with one fail with the other, a
# little:

# %%
ours = interleaved_table(50, 64)
columns = np.concatenate([ours[:, ::2], ours[:, 1::2]], axis=1)
print("halves are ours with columns moved:",
      np.array_equal(columns, halves_table(50, 64)))
assert np.array_equal(columns, halves_table(50, 64))
theirs = halves_table(50, 64, "half_less_one")
gap = np.abs(columns - theirs).max()
print(f"another divisor: up to {gap:.2f} off within 50 positions")
assert gap > 0.1

# %% [markdown]
# ## Rotary positions
#
# If only distances matter, they can be put where distances are measured: into
# the product of query and key. Turn each pair of a query's features by its
# place's angle, and each key's likewise. A product of two points does not
# change when both turn together, so what is left is the *difference* of their
# angles (Su et al. 2021). Nothing is added to the words, and nothing is
# learned.

# %%
rotary = import_module(f"{ports.package('numpy')}.dialects.rotary")
turner = rotary.RotaryInterleaved(
    config.replace(positions="rotary_interleaved"))
query, key = cases.values("lesson 2 qk", 2, config.d_k)


def score(query_place, key_place):
    """The product of the query and the key, each at its place."""
    return (turner.forward(query[None, None, None], query_place)[0]
            @ turner.forward(key[None, None, None], key_place)[0].mT).item()


for pair in ((3, 1), (9, 7), (8, 3)):
    print(f"query at {pair[0]}, key at {pair[1]}: {score(*pair):.12f}")
assert abs(score(3, 1) - score(9, 7)) < 1e-12
assert abs(score(3, 1) - score(8, 3)) > 1e-3

# %% [markdown]
# ## Exercises
#
# - **2.1** The table of positions. Seven wrong ones are known by name.
# - **2.2** The matrix that leads k words further, the same everywhere.
# - **2.3** Rotary positions.
#
# In the code: `transformer_contract/sinusoids.py`,
# `reference_numpy/positional.py` and `reference_numpy/dialects/rotary.py`; R6,
# R7, R10, R44 and R47 in RULINGS.md say what others do.
