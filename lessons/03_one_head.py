# %% [markdown]
# # Attention, from one head to many
#
# Attention lets each word of a sentence look at all the others and take from
# each what it needs. We follow four words of six numbers through it, see the
# numbers that a well-known notebook prints, and find the same ones in NumPy,
# PyTorch, Keras and JAX.
#
# Nothing here is a copy: the code that runs is that of `reference_numpy` and
# the `impl_` folders, and we look at its steps by their names.

# %%
import numpy as np

from contract.shipped import VECTORS
from contract.steps import read_steps
from parity import assert_parity, ports
from parity.check.vectors import Vector
from parity.reading import lessons

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
for name in engines:
    file = ports.folder(name) / "attention.py"
    step = next(step for step in read_steps(file)
                if step.owner == "SingleHeadAttention"
                and step.name == "weights" and not step.backward)
    print(f"{name:6} {' '.join(step.code.split())}")

# %% [markdown]
# ## From one head to many
#
# One head weights the words in one way, three heads in three: the model's
# twelve numbers are cut into three times four, each head attends by itself, and
# their outputs are concatenated and mixed by one more matrix. The shapes are
# [batch, head, word, number].

# %%
many = Vector(VECTORS / "notebook_numpy_multi_head.safetensors")
module = reference.build("multi_head_attention", many.config, many.weights)
steps = reference.run(module, *many.inputs(), cache=None)
for name, value in steps.items():
    print(f"{name:8} {value.shape}")
assert steps["query"].shape == (1, 3, 4, 4)
assert steps["output"].shape == (1, 4, 12)
assert_parity(steps["context"][0], many.answers["heads"])

# %% [markdown]
# The notebook's first output is 7.7930, its last 11.4000. Its heads are three
# small matrices, ours are the columns of one large one; both hold the same
# numbers, and all four frameworks give the same output.

# %%
for name, engine in engines.items():
    module = engine.build("multi_head_attention", many.config, many.weights)
    output = engine.run(
        module, *many.inputs(), cache=None)["output"][0]
    error = assert_parity(output, many.answers["output"])[0].error
    print(f"{name:6} {output[0, 0]:.4f} … {output[-1, -1]:.4f}, "
          f"error {error:.1e}")
    assert (round(output[0, 0], 4), round(output[-1, -1], 4)) == (7.793, 11.4)

# %% [markdown]
# ## Masks
#
# A **mask** is true where a query may attend to a key. A causal mask hides
# later words, as a decoder must. The last row here is fully masked: its weights
# are 0 and not a quarter each, and so is its output. Frameworks disagree about
# such a row; in this project it is the same in all four.

# %%
y, _, _ = many.inputs()
causal = np.tril(np.ones((4, 4), bool))
causal[3] = False
for name, engine in engines.items():
    module = engine.build("multi_head_attention", many.config, many.weights)
    weights = engine.run(
        module, y, y, causal[None, None], cache=None)["weights"]
    if name == "numpy":
        print("head 1:")
        print(weights[0, 0])
        truth = weights
    assert_parity(weights, truth)
    assert not weights[0, :, ~causal].any()
    assert np.allclose(weights.sum(axis=-1), [1, 1, 1, 0])
    print(f"{name:6} sums of its rows:", weights[0, 0].sum(axis=-1))

# %% [markdown]
# ## What heads learn
#
# Random weights attend to random words. The shipped model was trained to write
# dates as 2047-04-19; when it writes the month, where do the heads of its last
# layer look?

# %%
from contract.batch import Batch
from parity.check import golden

config, weights, tokenizer, _ = golden.trained()
weights = {name: array.astype(np.float64) for name, array in weights.items()}
source, target = "vendredi 19 avril 2047", "2047-04-19"
batch = Batch.of_text([source], [target], tokenizer)
words = tokenizer.tokens(batch.source[0])
written = tokenizer.tokens(batch.target[0])
place = written.index("-") + 1  # having read the 0 of the month: next is 4
step = "decoder.layers.1.cross_attention.weights"
attended = {}
for name, engine in engines.items():
    model = engine.build("transformer", config, weights)
    attended[name] = engine.forward(model, *batch)[step]
    assert_parity(attended[name], attended["numpy"])
print("the source:", " | ".join(words))
print("read so far:", "".join(written[1:place + 1]))
for number, shares in enumerate(attended["numpy"][0, :, place], start=1):
    best = np.argsort(-shares)[:3]
    print(f"head {number}: " + ", ".join(
        f"{words[i]!r} {shares[i]:.2f}" for i in best))
month = [i for i, word in enumerate(words) if word in (" a", "v", "ril")]
share = attended["numpy"][0, :, place][:, month].sum(axis=-1)
print("of each head's attention, to the month:", share)
assert share.max() > 0.5

# %% [markdown]
# ## Try it
#
# Make the sentence five words long, or mask one more key, and say what will
# change before you run it. Then read `reference_numpy/attention.py`, the code
# that ran above.
