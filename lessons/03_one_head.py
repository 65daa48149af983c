# %% [markdown]
# # One head of attention, by hand
#
# Attention lets each word of a sentence look at all the others and take from
# each what it needs. We follow four words of six numbers through it, see the
# numbers that a well-known notebook prints, and find the same ones in NumPy,
# PyTorch, Keras and JAX.
#
# *45 minutes. You need lesson 1 and matrix products.*
#
# Nothing here is a copy: the code that runs is that of `reference_numpy` and
# the `impl_` folders, and we look at its steps by their names.

# %%
import numpy as np

from transformer_contract.shipped import VECTORS
from parity import assert_parity
from parity.check.vectors import Vector
from parity.reading import lessons
from parity.render import figures

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## Four words
#
# A word is a row of numbers. These are drawn with NumPy's old generator and
# seed 42, as in the notebook; its results are in the file of vectors, to
# sixteen digits. The first number of the first word is 0.4967.

# %%
printed = Vector(VECTORS / "notebook_single_head.safetensors")
x = np.random.RandomState(42).randn(4, 6)
print(x)
assert np.array_equal(x, printed.input_arrays["x"])
assert round(x[0, 0], 4) == 0.4967

# %% [markdown]
# ## Query, key and value
#
# Each word is turned into three vectors: a **query**, what it looks for; a
# **key**, what it can be found by; and a **value**, what it gives. Each is one
# product with a matrix: query = x W_Q, and so on. We build that head from the
# project's own class and ask it for every step.

# %%
reference = engines["numpy"]
head = reference.build("single_head_attention", printed.config,
                       printed.weights)
steps = reference.run(head, x)
for name, value in steps.items():
    print(f"{name:11} {value.shape}")
assert np.allclose(steps["query"], x @ printed.weights["query.kernel"])

# %% [markdown]
# ## How well a query fits a key
#
# The dot product of a query and a key is large where both point the same way.
# Row i, column j below: how well the query of word i matches the key of word j.
# The notebook's first number is 2.5189, and the smallest is -59.0346.

# %%
print(steps["raw_scores"])
assert round(steps["raw_scores"][0, 0], 4) == 2.5189
assert round(steps["raw_scores"].min(), 4) == -59.0346
assert_parity(steps["raw_scores"], printed.answers["raw_scores"])

# %% [markdown]
# ## Why the root of d_k
#
# A dot product adds d_k products. If the numbers have standard deviation 1, the
# sum has √d_k. At the paper's width of 512 in one head that is about 22.6, and
# a softmax of such numbers gives nearly all weight to one word and almost no
# gradient to the others. Divided by √d_k it is 1 at every width.

# %%
draw = np.random.RandomState(0)
for width in (6, 64, 512):
    q, k = draw.randn(2, 20000, width)
    std = (q * k).sum(axis=1).std()
    print(f"d_k {width:3}: standard deviation {std:6.2f}, divided by √d_k "
          f"{std / width**0.5:.2f}")
    assert abs(std / width**0.5 - 1) < 0.03

# %% [markdown]
# ## Weights that add up to 1
#
# A softmax turns scores into weights: all positive, each row with the sum 1.
# The second word gives 0.9991 of its attention to the third. The output of a
# word is the mean of all values with these weights.

# %%
print(steps["weights"])
print("sums of the rows:", steps["weights"].sum(axis=-1))
assert round(steps["weights"][1, 2], 4) == 0.9991
assert np.allclose(steps["weights"].sum(axis=-1), 1, atol=1e-15)
assert np.allclose(steps["context"], steps["weights"] @ steps["value"])
print("the first word's output:", steps["context"][0])
figure, axes = figures.subplots(2, 2.8)
labels = [f"word {number}" for number in range(1, 5)]
figures.heat(axes[0], steps["scores"], "scores: Q Kᵀ / √d_k", labels, labels,
             numbers=True)
figures.heat(axes[1], steps["weights"], "weights: their softmax", labels,
             labels, numbers=True, low=0, high=1)
axes[0].set(ylabel="query", xlabel="key")
axes[1].set(xlabel="key")
lessons.picture(figure, "Two maps of four words by four: scores between about "
                "-24 and 12, and the weights that a softmax makes of them, "
                "each row with the sum 1")
assert round(steps["context"][0, 0], 4) == 0.1903

# %% [markdown]
# ## The same in all four
#
# Now each framework builds the same head from the same weights. Float64 has
# some sixteen digits, so two correct programs differ by about 1e-16 of a
# number; the limit is 1e-12. `assert_parity` compares as strictly as the
# project itself: shape, dtype, NaN, the whole array and its worst row.

# %%
theirs = {"scores": "scaled_scores", "weights": "weights",
          "context": "output"}
for name, engine in engines.items():
    module = engine.build("single_head_attention", printed.config,
                          printed.weights)
    outputs = engine.run(module, x)
    errors = [assert_parity(outputs[ours], printed.answers[answer])[0].error
              for ours, answer in theirs.items()]
    print(f"{name:6}" + "".join(f"  {ours} {error:.1e}"
          for ours, error in zip(theirs, errors)))
    assert max(errors) < 1e-12

# %% [markdown]
# The line that does it, in each of the four. The marker, the name and the place
# are the same, so the whole project can be read side by side.

# %%
lessons.at_the_spot(engines, "single_head.py", "SingleHeadAttention", "weights")

# %% [markdown]
# ## One word too many
#
# A softmax divides by a sum of exponentials, and exp(710) is infinite in
# float64. Nothing forbids such scores. But a softmax does not change if one
# number is subtracted from all scores of a row, since it multiplies numerator
# and denominator alike; so every implementation subtracts the largest first.

# %%
large = np.array([[1000.0, 999.0, 0.0]])
with np.errstate(all="ignore"):
    naive = np.exp(large) / np.exp(large).sum()
shifted = np.exp(large - large.max())
print("as the formula stands:", naive[0])
print("the largest subtracted:", (shifted / shifted.sum())[0])
assert np.isnan(naive[0, 0])
assert np.isclose((shifted / shifted.sum())[0, 0], 1 / (1 + np.exp(-1)))

# %% [markdown]
# ## Exercises
#
# `parity lesson 3.1` writes a file to begin with, and `parity lesson 3.1
# exercise_3_1.py` checks your answer.
#
# - **3.1** Equation 1, for any number of queries and keys.
# - **3.2** A softmax that does not overflow.
# - **3.3** Repair a head: it runs, its shapes are right, and two mistakes are
#   in it.
#
# In the code: `SingleHeadAttention` in `reference_numpy/single_head.py`.
