# %% [markdown]
# # Backward, by hand
#
# PyTorch, Keras and JAX find gradients by themselves. To trust them, and to
# find what is wrong where they disagree, one has to have done it once by hand.
# It is one rule, used again and again: what goes into a step on the way back is
# what came out of it, times how much the output moves with the input.
#
# *60 minutes. You need lessons 3 and 6, and the chain rule.*

# %%
from importlib import import_module

import numpy as np

from parity.course.lesson import assert_parity, cases, figures, lessons, ports

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
numpy = engines["numpy"]
reference = import_module(f"{ports.package('numpy')}.attention")
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## Notation
#
# L is the loss, one number. For every array y that led to it, dy is the array
# of the same shape that says how L moves with each number of y. If we know dy
# and how y was made from x, we can find dx. Three steps make nearly all of a
# Transformer:
#
#     y = x + z          dx = dy                dz = dy
#     y = x · s          dx = dy · s            ds = dy · x
#     y = x W            dx = dy Wᵀ             dW = xᵀ dy
#
# The shapes alone settle the third: dW must be [in out], and of x [rows in] and
# dy [rows out] there is one product that gives it. The sum over rows is right
# as well: each row met the same W, and their contributions add up.

# %%
draw = np.random.default_rng(8)
x, kernel = draw.normal(size=(5, 3)), draw.normal(size=(3, 4))
dy = draw.normal(size=(5, 4))  # from a loss L = Σ dy · y


def by_differences(f, x, h=1e-5):
    """The gradient of f at x, a number at a time."""
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        gradient[place] = (f(x + step) - f(x - step)) / (2 * h)
    return gradient


dx, dkernel = dy @ kernel.T, x.T @ dy
for name, ours, theirs in (
        ("dx", dx, by_differences(lambda x: (dy * (x @ kernel)).sum(), x)),
        ("dW", dkernel, by_differences(lambda w: (dy * (x @ w)).sum(),
                                       kernel))):
    gap = np.abs(ours - theirs).max()
    print(f"{name} by hand and by differences: at most {gap:.1e} apart")
    assert gap < 1e-8

# %% [markdown]
# ## How good are differences?
#
# They need nothing but the function, so they are the judge of every formula
# here. But they are not exact. A large step h bends, by h²; a small one
# subtracts two numbers that are nearly equal, and their last digits are
# rounding, by 1e-16/h. Between lies the best h, near the cube root of 1e-16.

# %%
sizes = np.logspace(-12, 0, 40)
errors = [abs((np.exp(1 + h) - np.exp(1 - h)) / (2 * h) / np.exp(1) - 1)
          for h in sizes]
best = sizes[int(np.argmin(errors))]
print(f"best h about {best:.0e}, error {min(errors):.0e}")
assert 1e-7 < best < 1e-4 and min(errors) < 1e-9
figure, axis = figures.subplots(height=2.8)
axis.loglog(sizes, np.maximum(errors, 1e-17), "o-", markersize=3,
            color=figures.COLOURS[0])
axis.set(xlabel="step h", ylabel="relative error of a derivative")
lessons.picture(figure, "The error of a central difference against its step, a "
                "valley: rounding on the left, bending on the right")

# %% [markdown]
# ## Softmax
#
#     w_i = exp(s_i) / Σ exp(s_j)
#     ∂w_i/∂s_j = w_i (1 if i = j, else 0) - w_i w_j
#
# Put it into the chain rule and collect:
#
#     ds_j = Σ_i dw_i ∂w_i/∂s_j = w_j (dw_j - Σ_i w_i dw_i)
#
# In words: a score should grow if its own weight is wanted more than weights
# are on average. A masked weight is 0, so its score's gradient is 0. And the
# gradients of a row add up to 0, since adding one number to all scores changes
# nothing.

# %%
scores, dweights = draw.normal(size=(2, 4)), draw.normal(size=(2, 4))
weights = reference.softmax(scores)
dscores = weights * (dweights - (weights * dweights).sum(-1, keepdims=True))
check = by_differences(
    lambda s: (dweights * reference.softmax(s)).sum(), scores)
print(dscores)
print("sums of the rows:", dscores.sum(axis=-1))
assert np.abs(dscores - check).max() < 1e-8
assert np.abs(dscores.sum(axis=-1)).max() < 1e-15

# %% [markdown]
# ## A whole head
#
# Backward is forward read from below. The reference has both side by side: step
# [6] on the way there is step [6'] on the way back. Read `SingleHeadAttention`
# in `reference_numpy/single_head.py` now; here it runs.

# %%
d = 4
config = cases.test_size("notebook").replace(d_model=d, n_heads=1)
part = {f"{name}.kernel": draw.normal(size=(d, d))
        for name in ("query", "key", "value")}
x = draw.normal(size=(3, d))
dcontext = draw.normal(size=(3, d))
head = numpy.build("single_head_attention", config, part)
context, cache = head.forward(x)
dx, g = head.backward(dcontext, cache)


def loss_of(x):
    """L = Σ dcontext · context."""
    return float((dcontext * head.forward(x)[0]).sum())


gap = np.abs(dx - by_differences(loss_of, x)).max()
print(f"dx of the head, against differences: {gap:.1e}")
print("three ways lead from x: query, key and value, and dx is their sum")
assert gap < 1e-8
lessons.at_the_spot({"numpy": numpy}, "single_head.py", "SingleHeadAttention",
                    "scores", backward=True)

# %% [markdown]
# ## The forgotten path
#
# The commonest mistake in a backward pass is a path that was not counted. In a
# layer norm x acts as itself, through the mean and through the variance. Forget
# the last two, and the formula still looks reasonable:

# %%
rows, dout = draw.normal(size=(2, 6)), draw.normal(size=(2, 6))


def normalised(x):
    """A layer norm, ε 1e-5."""
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt(
        (centered**2).mean(axis=-1, keepdims=True) + 1e-5)


root = np.sqrt(rows.var(axis=-1, keepdims=True) + 1e-5)
y = normalised(rows)
itself = dout / root
mean_too = itself - itself.mean(axis=-1, keepdims=True)
all_three = mean_too - y * (dout * y).mean(axis=-1, keepdims=True) / root
truth = by_differences(lambda x: (dout * normalised(x)).sum(), rows)
for name, guess in (("as itself", itself), ("and the mean", mean_too),
                    ("and the variance", all_three)):
    gap = np.linalg.norm(guess - truth) / np.linalg.norm(truth)
    print(f"{name:17} relative error {gap:.1e}")
assert np.abs(all_three - truth).max() < 1e-7
assert np.abs(mean_too - truth).max() > 1e-2

# %% [markdown]
# ## Four gradients
#
# A whole model now, its loss and the gradient of every weight. Three frameworks
# differentiate by themselves; the reference does it by hand, step after step.
# One vector of all weights is compared, with the limit 1e-12.

# %%
small = cases.test_size("notebook").replace(
    n_encoder_layers=1, n_decoder_layers=1)
from parity.course.lesson import probe_weights

given = probe_weights(small)
batch = cases.padded_batch(small)
labels = np.roll(batch.target, -1, axis=1)
truth = None
for name, engine in engines.items():
    model = engine.build("transformer", small, given)
    loss, found = engine.gradients(model, *batch, labels)
    whole = np.concatenate([found[weight].ravel() for weight in given])
    truth = whole if truth is None else truth
    error = assert_parity(whole, truth)[0].error
    print(f"{name:6} loss {float(loss):.12f}, {whole.size:,} gradients, "
          f"error {error:.1e}")
by_name = {name: np.linalg.norm(found[name]) for name in given}
assert max(by_name.values()) > 1e-6

# %% [markdown]
# ## A gradient that is nothing
#
# One kind of weight has no gradient at all: the bias of the keys. It adds the
# same number to all scores of a row, and the softmax does not feel it. What a
# framework computes there is rounding around 0, and comparing it by its
# relative error would be comparing noise. A check has to know such things (the
# project calls it a zero by mathematics).

# %%
key_bias = max((name for name in given if name.endswith("attention.key.bias")),
               key=by_name.get)
value_bias = key_bias.replace("key", "value")
print(f"the largest of a key's biases {by_name[key_bias]:.1e}, the value's "
      f"beside it {by_name[value_bias]:.1e}")
assert by_name[key_bias] < 1e-12 < 1e-6 < by_name[value_bias]

# %% [markdown]
# ## Exercises
#
# - **8.1** Backward through a softmax, in one line.
# - **8.2** Backward through a layer norm, with all three paths.
# - **8.3** A gradient by differences, to one part in ten million.
#
# In the code: every `backward` of `reference_numpy`; `parity check --gradients`
# compares them all.
