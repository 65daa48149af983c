# %% [markdown]
# # One head of attention, by hand
#
# Attention lets each word of a sentence look at all the others and take from
# each what it needs. We follow four words through it with NumPy alone, write
# the same five lines in PyTorch, Keras and JAX, and check them against the
# model of this project. In the end you have equation 1 of the paper:
#
#     Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V
#
# *45 minutes. You need lesson 1 and matrix products.*

# %%
import math

import numpy as np

np.set_printoptions(precision=2, suppress=True, linewidth=76)
words = ["the", "cat", "drank", "milk"]
print("the sentence:", " ".join(words))

# %% [markdown]
# ## Four words
#
# A word is a row of numbers. In a trained model nobody can say what each number
# means. So that we can, these rows are made by hand: six features, and a 1
# where a word has it. Change them, and see what becomes of all that follows.
# Where an `assert` then fails, it says what held of the words as they were.

# %%
features = ["article", "noun", "verb", "animal", "food", "past"]
x = np.array([[1, 0, 0, 0, 0, 0],   # the
              [0, 1, 0, 1, 0, 0],   # cat
              [0, 0, 1, 0, 0, 1],   # drank
              [0, 1, 0, 0, 1, 0]], float)  # milk
for word, row in zip(words, x):
    print(f"{word:6} {row}", *(
        name for name, number in zip(features, row) if number))
assert x.shape == (4, 6)

# %% [markdown]
# ## Query, key and value
#
# Each word is turned into three vectors: a **query**, what it looks for; a
# **key**, what it can be found by; and a **value**, what it gives. Each is one
# product with a matrix. How many numbers a query has is called d_k; here it is
# 6, and a key has as many. Training finds these matrices; here they are ours. A
# word is found by what it is, and gives what it is: two matrices are 1 on the
# diagonal. The third says what is looked for. An article looks for a noun, a
# noun for its verb, and a verb asks who did it, an animal, and what it was
# done to, a food.

# %%
w_q, w_k, w_v = np.zeros((6, 6)), np.eye(6), np.eye(6)
for asks, wants, much in (("article", "noun", 4), ("noun", "verb", 4),
                          ("verb", "animal", 6), ("verb", "food", 3)):
    w_q[features.index(asks), features.index(wants)] = much
query, key, value = x @ w_q, x @ w_k, x @ w_v
for word, row in zip(words, query):
    print(f"{word:6} looks for", ", ".join(
        f"{name} {number:.0f}" for name, number in zip(features, row)
        if number))
assert query[2].tolist() == [0, 0, 0, 6, 3, 0]

# %% [markdown]
# ## How well a query fits a key
#
# The dot product of a query and a key is large where both point the same way.
# Row i, column j below: how well the query of word i fits the key of word j.
# The verb's row has 6 at *cat* and 3 at *milk*.

# %%
raw = query @ key.T
print("       ", *(f"{word:>6}" for word in words))
for word, row in zip(words, raw):
    print(f"{word:7}", *(f"{number:6.2f}" for number in row))
assert raw[2].tolist() == [0, 6, 0, 3]
assert raw[2, 1] == sum(query[2] * key[1])

# %% [markdown]
# ## Why the root of d_k
#
# A dot product adds d_k products. If the numbers have standard deviation 1, the
# sum has √d_k: 8 in a head of the paper, where d_k is 64, and 22.6 if one head
# had all of its 512. Divided by √d_k it is 1 at every width.
#
# A **softmax** makes such scores weights: each score's exponential, divided by
# the sum of all in its row. They are positive and add up to 1. Where scores are
# large it gives nearly everything to one word. The others then get almost no
# gradient, for a weight's own is w (1 - w). See the two columns on the right:
# of ten words, the largest weight. The scores are drawn at random, so that the
# deviations are about √d_k, not exactly.

# %%
def softmax(scores):
    # the largest is subtracted only so that exp stays finite: see the end
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


draw = np.random.RandomState(0)
print("       deviation  over √d_k   largest weight  over √d_k")
for width in (6, 64, 512):
    q, k = draw.randn(2, 20000, width)
    dots = (q * k).sum(axis=1)
    std, ten = dots.std(), dots.reshape(-1, 10)
    large, small = (softmax(one).max(axis=-1).mean()
                    for one in (ten, ten / width**0.5))
    print(f"d_k {width:3} {std:8.2f} {std / width**0.5:10.2f} {large:16.2f} "
          f"{small:10.2f}")
    assert abs(std / width**0.5 - 1) < 0.03 and small < 0.4
assert large > 0.9
scores = raw / math.sqrt(query.shape[-1])
print("the verb's scores:", scores[2])

# %% [markdown]
# ## Weights that add up to 1
#
# The softmax of each row: *drank* gives most of its attention to *cat* and some
# to *milk*. A score of 0 is no weight of 0, for the exponential of 0 is 1; only
# a mask hides a word, in lesson 4. The output of a word, its **context**, is
# the mean of all values with these weights: *drank* now knows that an animal
# drank, and a food was drunk. Only features above 0.1 are printed. That it is a
# verb is nearly gone: a whole model adds the word's own row again, in lesson 6.

# %%
from parity.course.lesson import figures, lessons

weights = softmax(scores)
context = weights @ value
print("drank looks at:", ", ".join(
    f"{word} {weight:.0%}" for word, weight in zip(words, weights[2])))
print("drank becomes: ", ", ".join(
    f"{name} {number:.2f}" for name, number in zip(features, context[2])
    if number > 0.1))
figure, axes = figures.subplots(2, 2.8)
figures.heat(axes[0], scores, "scores: Q Kᵀ / √d_k", words, words,
             numbers=True)
figures.heat(axes[1], weights, "weights: their softmax", words, words,
             numbers=True, low=0, high=1)
axes[0].set(ylabel="query", xlabel="key")
axes[1].set(xlabel="key")
lessons.picture(figure, "Two maps of four words by four, the scores and the "
                "weights that a softmax makes of them: drank looks at cat "
                "most, the at cat and milk, and both of these at drank")
assert np.allclose(weights.sum(axis=-1), 1, atol=1e-15)
assert weights[2].argmax() == words.index("cat")
assert context[2, 3] == weights[2, 1]  # only the cat is an animal

# %% [markdown]
# ## The same in PyTorch, Keras and JAX
#
# Here are the same lines in the three, to read beside each other and to change.
# What differs: `dim` or `axis`, and how a matrix is transposed.

# %%
engines = lessons.engines_here()
print("frameworks:", ", ".join(engines))

# %%
found = {"numpy": context}
if "torch" in engines:
    import torch

    tx, tq, tk, tv = map(torch.from_numpy, (x, w_q, w_k, w_v))
    t_scores = (tx @ tq) @ (tx @ tk).mT / math.sqrt(6)
    t_weights = torch.softmax(t_scores, dim=-1)
    found["torch"] = (t_weights @ (tx @ tv)).numpy()
if "keras" in engines:
    from keras import ops

    kx, kq, kk, kv = map(ops.convert_to_tensor, (x, w_q, w_k, w_v))
    k_scores = (kx @ kq) @ ops.transpose(kx @ kk) / math.sqrt(6)
    k_weights = ops.softmax(k_scores, axis=-1)
    found["keras"] = ops.convert_to_numpy(k_weights @ (kx @ kv))
if "jax" in engines:
    import jax
    import jax.numpy as jnp

    jx, jq, jk, jv = map(jnp.asarray, (x, w_q, w_k, w_v))
    j_scores = (jx @ jq) @ (jx @ jk).mT / math.sqrt(6)
    j_weights = jax.nn.softmax(j_scores, axis=-1)
    found["jax"] = np.asarray(j_weights @ (jx @ jv))
for name, one in found.items():
    print(f"{name:6} {one[2]}")
    assert np.allclose(one, context, rtol=0, atol=1e-14)

# %% [markdown]
# ## Is it the project's head?
#
# What is compared from here on is the code that you find in `reference_numpy`
# and the `impl_` folders: a class with a name for each step, given our three
# matrices. Float64 has some sixteen digits, so two correct programs differ by
# about 1e-16 of a number. Over many steps it becomes more; the limit is 1e-12.
# `assert_parity` compares as strictly as the project itself: shape, dtype, NaN,
# the whole array and its worst row.

# %%
from parity.course.lesson import assert_parity, Vector, VECTORS

# a head of this size, with others' inputs, matrices and results: see below
printed = Vector(VECTORS / "notebook_single_head.safetensors")
ours = {"query.kernel": w_q, "key.kernel": w_k, "value.kernel": w_v}
by_hand = {"scores": scores, "weights": weights, "context": context}
for name, engine in engines.items():
    head = engine.build("single_head_attention", printed.config, ours)
    steps = engine.run(head, x)
    errors = [assert_parity(steps[step], answer)[0].error
              for step, answer in by_hand.items()]
    print(f"{name:6}" + "".join(
        f"  {step} {error:.1e}" for step, error in zip(by_hand, errors)))
    assert max(errors) < 1e-12

# %% [markdown]
# Somebody else's numbers are a better witness than our own. A notebook that
# others wrote on this head prints what it computes, for random words and
# matrices. They are in the project's files, to sixteen digits, and all four get
# them too. 0.1903 is the first number of its first word's output.

# %%
theirs = {"scores": "scaled_scores", "weights": "weights",
          "context": "output"}
for name, engine in engines.items():
    head = engine.build("single_head_attention", printed.config,
                        printed.weights)
    steps = engine.run(head, printed.input_arrays["x"])
    errors = [assert_parity(steps[step], printed.answers[answer])[0].error
              for step, answer in theirs.items()]
    print(f"{name:6} the output begins with {steps['context'][0, 0]:.4f}, "
          f"error {max(errors):.1e}")
    assert max(errors) < 1e-12
    assert round(float(steps["context"][0, 0]), 4) == 0.1903

# %% [markdown]
# The line that makes the weights, in each of the four. `c["weights"] =` and
# `tap` keep what the step computed under its name, and change nothing: so a
# check finds it. The names and the places are the same in all four files.

# %%
lessons.at_the_spot(engines, "single_head.py", "SingleHeadAttention", "weights")

# %% [markdown]
# ## Too large for exp
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
# `parity exercise 3.1` writes a file to begin with, and `parity exercise 3.1
# exercise_3_1.py` checks your answer. Both take `--in torch`, `--in keras` and
# `--in jax`.
#
# - **3.1** Equation 1, for any number of queries and keys.
# - **3.2** A softmax that does not overflow.
# - **3.3** Repair a head: it runs, its shapes are right, and two mistakes are
#   in it.
#
# In the code: `SingleHeadAttention` in `reference_numpy/single_head.py`.
