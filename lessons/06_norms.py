# %% [markdown]
# # Norms: where, what, and ε
#
# A deep stack multiplies and adds until numbers run away. A norm pulls each
# vector back: mean 0, deviation 1. It seems to be the simplest part of all, and
# ports disagree about it more than about attention: which deviation, where ε
# stands, how large it is, and whether it comes before or after the sub-layer.
#
# *45 minutes. You need lesson 3, mean and standard deviation.*

# %%
import numpy as np

from parity.course.lesson import (
    assert_parity, cases, figures, lessons, probe_weights, select)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
numpy = engines["numpy"]
print("frameworks:", ", ".join(engines))
assert "numpy" in engines

# %% [markdown]
# ## The formula
#
#     mean       = Σ x / D
#     variance   = Σ (x - mean)² / D
#     normalized = (x - mean) / √(variance + ε)
#     output     = normalized · scale + bias
#
# Each position is normalised by itself, over its D features. So nothing depends
# on the batch or on the length, unlike batch normalisation, and a padded word
# cannot disturb its neighbour. Scale and bias are learned, D numbers each.

# %%
x = np.array([[3.0, 5.0, 1.0, 7.0]])
mean, eps = x.mean(), 1e-5
variance = ((x - mean)**2).mean()
normalized = (x - mean) / np.sqrt(variance + eps)
print("mean", mean, "variance", variance)
print("normalized", normalized[0])
assert (mean, variance) == (4, 5)
assert abs(normalized.mean()) < 1e-15 and abs(normalized.std() - 1) < 1e-5

# %% [markdown]
# ## Three norms that look alike
#
# Lessons and frameworks have at least three:
#
#     layer   (x - mean) / √(variance + ε)    divided by D inside the variance
#     std     (x - mean) / (std + ε)          divided by D - 1 inside the std
#     rms     x / √(mean of x² + ε)           no mean, no bias
#
# The second comes from `x.std()` in PyTorch, which divides by D - 1 by default,
# where NumPy's and JAX's divide by D. Against the first it is smaller by
# √((D - 1)/D): 13 % at D = 4, 0.1 % at D = 512. So a port that has it passes a
# test with a generous tolerance, if the model is wide.

# %%
draw = np.random.default_rng(6)
for width in (4, 64, 512):
    rows = draw.normal(size=(1000, width))
    centered = rows - rows.mean(axis=1, keepdims=True)
    layer = centered / rows.std(axis=1, keepdims=True)
    unbiased = centered / rows.std(axis=1, ddof=1, keepdims=True)
    ratio = np.linalg.norm(unbiased) / np.linalg.norm(layer)
    print(f"D {width:3}: ratio {ratio:.6f}, √((D-1)/D) "
          f"{((width - 1) / width)**0.5:.6f}")
    assert np.isclose(ratio, ((width - 1) / width)**0.5, atol=1e-12)

# %% [markdown]
# ## ε
#
# ε keeps a row of equal numbers from dividing 0 by 0. Its size is a convention,
# and every framework has its own default: 1e-5 in PyTorch, 1e-3 in Keras, 1e-6
# in Flax. With inputs of deviation 1 nobody sees it. But vectors between layers
# are often small, and then the largest ε shrinks them:

# %%
deviations = np.logspace(-4, 1, 60)
figure, axis = figures.subplots(height=3.0)
for number, eps in enumerate((1e-3, 1e-5, 1e-6)):
    inside = deviations / np.sqrt(deviations**2 + eps)
    axis.semilogx(deviations, inside, ("-", "--", ":")[number],
                  color=figures.COLOURS[number], label=f"ε = {eps:g}")
axis.semilogx(deviations, deviations / (deviations + 1e-6), "-.",
              color=figures.COLOURS[3], label="ε = 1e-06, outside the root")
axis.set(xlabel="deviation of the input", ylabel="deviation of the output")
axis.legend(frameon=False)
lessons.picture(figure, "The output's deviation against the input's. With an ε "
                "of 1e-3 it falls below 1 already at 0.1, with 1e-5 at 0.01; "
                "with 1e-6 outside the root hardly at all down to 1e-4")
for eps in (1e-3, 1e-5, 1e-6):
    out = 0.02 / np.sqrt(0.02**2 + eps)
    print(f"input of deviation 0.02, ε {eps:g}: output of deviation {out:.4f}")
assert 0.02 / np.sqrt(0.02**2 + 1e-3) < 0.55

# %% [markdown]
# Where ε stands matters as much: inside the root, 1e-6 acts below a deviation
# of √1e-6 = 0.001; outside, below 0.000001. The same number is a thousand times
# as strong in one place as in the other.
#
# ## The same step four times
#
# Each framework has a layer norm of its own, with an ε of its own; the ports
# write the formula out instead, and take ε from the config (R3).

# %%
lessons.at_the_spot(engines, "layer_norm.py", "LayerNorm", "normalized")
config = cases.test_size("vaswani2017_base")
width = config.d_model
weights = {"scale": 1 + 0.1 * draw.normal(size=width),
           "bias": draw.normal(size=width)}
small = draw.normal(size=(2, 3, width)) * 0.01 + 1
truth = numpy.run(numpy.build("norm", config, weights), small)["output"]
for name, engine in engines.items():
    found = engine.run(engine.build("norm", config, weights), small)["output"]
    print(f"{name:6} error {assert_parity(found, truth)[0].error:.1e}")

# %% [markdown]
# Why written out? One framework computes the variance as mean(x²) - mean(x)²
# by default. That saves a pass over the data, and loses every digit that the
# two terms share: where the mean is 10 000 deviations, nothing is left of it in
# float32.

# %%
for offset in (1, 100, 10_000):
    row = (draw.normal(size=4096) + offset).astype(np.float32)
    fast = (row * row).mean() - row.mean()**2
    slow = ((row - row.mean())**2).mean()
    exact = row.astype(np.float64).var()
    print(f"mean {offset:6}: exact {exact:.4f}, slow {slow:.4f}, "
          f"fast {fast:.4f}")
    assert abs(slow - exact) < 0.01
assert abs(fast - exact) > 0.1

# %% [markdown]
# ## Before or after?
#
#     post-norm (the paper)     x = norm(x + f(x))
#     pre-norm (most since)     x = x + f(norm(x))
#
# In the second, x itself is never normalised: there is a straight road from the
# last layer to the first, and the gradient comes back on it unchanged. In the
# first every layer stands in the road. We send a gradient of the same size into
# stacks of 12 layers and look at what arrives below each, before any training.

# %%
depth = 12
arrived = {}
for residual in ("post", "pre"):
    deep = cases.test_size("notebook").replace(
        residual=residual, n_encoder_layers=depth, final_norm=False)
    given = probe_weights(deep)
    inputs = draw.normal(size=(2, 5, deep.d_model))
    caches = []
    layers = [numpy.build("encoder_layer", deep, select(
        given, f"encoder.layers.{number}.")) for number in range(depth)]
    mask = np.ones((2, 1, 1, 5), bool)
    for layer in layers:
        inputs, cache = layer.forward(inputs, mask)
        caches.append(cache)
    gradient = draw.normal(size=inputs.shape)
    norms = [np.linalg.norm(gradient)]
    for layer, cache in zip(layers[::-1], caches[::-1]):
        gradient, _ = layer.backward(gradient, cache)
        norms.append(np.linalg.norm(gradient))
    arrived[residual] = np.array(norms) / norms[0]
    print(f"{residual}-norm: of a gradient of 1 there arrive "
          f"{arrived[residual][-1]:.2g} below {depth} layers")
figure, axis = figures.subplots(height=2.8)
for number, (residual, norms) in enumerate(arrived.items()):
    axis.semilogy(norms, ("o-", "s--")[number],
                  color=figures.COLOURS[number], label=f"{residual}-norm")
axis.set(xlabel="layers passed on the way back", ylabel="size of the gradient")
axis.legend(frameon=False)
lessons.picture(figure, "The size of a gradient on its way down through twelve "
                "layers, post-norm and pre-norm, on a logarithmic axis")
assert np.isfinite(arrived["pre"]).all() and arrived["pre"][-1] > 0

# %% [markdown]
# A pre-norm stack ends in a vector that nobody normalised, so it needs one norm
# more, at its end; a post-norm stack does not. `torch.nn.Transformer` has that
# final norm in both cases. With its first scale of 1 it changes nothing that
# you would see, and with trained scales everything: R11.

# %%
once = normalized
twice = (once - once.mean()) / np.sqrt(once.var() + 1e-5)
print(f"a norm of a norm, scale 1: off by {np.abs(twice - once).max():.1e}")
scale = np.array([0.5, 1.5, 1.0, 0.7])
scaled = once * scale
again = (scaled - scaled.mean()) / np.sqrt(scaled.var() + 1e-5) * scale
gap = np.abs(again - scaled).max()
print(f"with a scale that was trained: off by {gap:.2f}")
assert np.abs(twice - once).max() < 1e-5 < 0.1 < gap

# %% [markdown]
# ## Exercises
#
# - **6.1** A layer norm. Eight wrong ones are known by name.
# - **6.2** Which of three norms was it? Tell it by the numbers.
# - **6.3** Find the ε of a layer norm, from what it made of its input.
#
# In the code: `reference_numpy/layer_norm.py` and
# `reference_numpy/residual.py`; R3, R4, R5, R11 and R40 in RULINGS.md.
