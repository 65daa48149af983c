# %% [markdown]
# # Training
#
# A gradient says which way; an optimiser decides how far. Adam has two moments,
# two corrections, an ε and a learning rate that first rises: six places where
# two programs may differ, and none of them raises an error. We take one step by
# hand, then twenty in four frameworks.
#
# *50 minutes. You need lesson 8.*

# %%
import numpy as np

from parity.course.lesson import (
    assert_parity, Batch, figures, golden, initial_weights, lessons,
    TrainingConfig, TransformerConfig)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
numpy = engines["numpy"]
_, _, tokenizer, pairs = golden.trained()
print("frameworks:", ", ".join(engines))
assert len(pairs) >= 8

# %% [markdown]
# ## Adam
#
#     m = β₁ m + (1 - β₁) g            a mean of gradients
#     v = β₂ v + (1 - β₂) g²           a mean of their squares
#     m̂ = m / (1 - β₁ᵗ)                both begin at 0, and are too small
#     v̂ = v / (1 - β₂ᵗ)                at first: this corrects them
#     weight = weight - learning rate · m̂ / (√v̂ + ε)
#
# The quotient has no unit: a weight with gradients of a millionth moves as far
# as one with gradients of a million. The first step of every weight is just the
# learning rate, up or down, whatever the gradient:

# %%
gradient = np.array([1e3, 1.0, 1e-3, -1e-6])
m = 0.1 * gradient
v = 0.02 * gradient**2
direction = (m / (1 - 0.9)) / (np.sqrt(v / (1 - 0.98)) + 1e-9)
print("gradients:", gradient.tolist())
print("first step, in learning rates:", direction)
assert np.allclose(np.abs(direction), 1, atol=2e-3)

# %% [markdown]
# ## Where ε stands
#
# The paper of Adam adds ε to √v̂, after the correction, and so do PyTorch and
# Optax. Keras adds it to √v, before the correction, and multiplies afterwards;
# its ε is in effect divided by √(1 - β₂ᵗ), and shrinks from step to step. For
# weights with large gradients nobody sees it. For small ones:

# %%
steps = np.arange(1, 201)
figure, axis = figures.subplots(height=2.8)
g, eps = 1e-7, 1e-7
for number, (name, corrected) in enumerate((("Kingma and Ba", True),
                                            ("Keras", False))):
    m = v = 0.0
    moves = []
    for t in steps:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        one, two = 1 - 0.9**t, 1 - 0.999**t
        moves.append(m / one / (np.sqrt(v / two) + eps) if corrected else
                     m / one * np.sqrt(two) / (np.sqrt(v) + eps))
    axis.plot(steps, moves, ("-", "--")[number],
              color=figures.COLOURS[number], label=name)
    print(f"{name:14} step 1 moves by {moves[0]:.3f} learning rates, step 200 "
          f"by {moves[-1]:.3f}")
axis.set(xlabel="step", ylabel="learning rates moved", ylim=(0, 0.55))
axis.legend(frameon=False)
lessons.picture(figure, "How far a weight with a gradient of 1e-7 moves in "
                "each step: half a learning rate always, and with Keras' "
                "formula almost nothing at first")
assert moves[0] < 0.05 < 0.15 < moves[-1]

# %% [markdown]
# ## Warm-up
#
# At first v̂ rests on few gradients and may be far too small, so that steps are
# too long. The paper lets the learning rate rise in a line, and then fall with
# the root of the step (equation 3):
#
#     d_model^-½ · min(step^-½, step · warmup^-1.5)

# %%
step = np.arange(1, 20_001)
figure, axis = figures.subplots(height=2.6)
for number, (width, warmup) in enumerate(((512, 4000), (512, 8000),
                                          (256, 4000))):
    rate = width**-0.5 * np.minimum(step**-0.5, step * warmup**-1.5)
    axis.plot(step, rate, ("-", "--", ":")[number],
              color=figures.COLOURS[number],
              label=f"d_model {width}, warm-up {warmup}")
    print(f"d_model {width}, warm-up {warmup}: highest {rate.max():.2e} at "
          f"step {step[rate.argmax()]}")
    assert step[rate.argmax()] == warmup
axis.set(xlabel="step", ylabel="learning rate")
axis.legend(frameon=False)
lessons.picture(figure, "Three learning rates against the step: each rises in "
                "a line to the end of its warm-up, and falls more and more "
                "slowly")

# %% [markdown]
# ## The same step four times
#
# None of the four uses its framework's own Adam, for those differ, and this is
# the step in which they do.

# %%
lessons.at_the_spot(engines, "optimizer.py", "Adam", "direction")
at_first = 1e-7 / (1 - 0.999)**0.5
print(f"Keras' ε of 1e-7 acts in the first step like {at_first:.1e}")
assert 3.1e-6 < at_first < 3.2e-6

# %% [markdown]
# ## The same gradient in all four
#
# A new, tiny model with the same first weights in each framework. Which way
# should each weight move? PyTorch, Keras and JAX find the gradient by their own
# autodiff, NumPy's is written out by hand, and they agree to the last digits.

# %%
tiny = TransformerConfig(
    source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size,
    d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1,
    max_length=64, dropout=0.0, tied="none", label_smoothing=0.0)
start = initial_weights(tiny)
few = Batch.of_text(*zip(*pairs[:8]), tokenizer)
few_sources, few_targets = (
    np.pad(array, ((0, 0), (0, width - array.shape[1])))
    for array, width in ((few.source, 24), (few.target, 25)))
inputs = Batch.of_ids(few_sources, few_targets[:, :-1], tiny.pad_id)
truth = None
for name, engine in engines.items():
    loss, gradients = engine.gradients(
        engine.build("transformer", tiny, start), *inputs, few_targets[:, 1:])
    whole = np.concatenate([gradients[weight].ravel() for weight in start])
    truth = whole if truth is None else truth
    error = assert_parity(whole, truth)[0].error
    print(f"{name:6} loss {float(loss):.12f}, gradient of {whole.size:,} "
          f"weights, norm {np.linalg.norm(whole):.6f}, error {error:.1e}")

# %% [markdown]
# Adam moves each weight against its gradient, and the loss falls. It starts
# near ln 1000 = 6.91, the loss of a guess among 1000 pieces.

# %%
trainer = numpy.trainer(numpy.build("transformer", tiny, start),
                        TrainingConfig(schedule="constant", learning_rate=0.01))
losses = [float(numpy.train_step(
    trainer, few_sources[None], few_targets[None])["loss"]) for _ in range(20)]
print("  ".join(f"{loss:.3f}" for loss in losses[::4]))
assert abs(losses[0] - np.log(1000)) < 0.2 and losses[-1] < losses[0] - 2

# %% [markdown]
# ## In lockstep
#
# Do the four stay together? Five steps each, from the same weights, on the same
# batch, in float64. One difference in a moment, a correction or the clipping
# would show here, and grow.

# %%
setting = TrainingConfig(schedule="inverse_sqrt", warmup_steps=3,
                         clip_norm=1.0)
truth = None
for name, engine in engines.items():
    if name in ("keras", "jax"):
        count = 2  # these compile for a while; two steps tell as much
    else:
        count = 5
    trainer = engine.trainer(engine.build("transformer", tiny, start), setting)
    run = np.array([float(engine.train_step(
        trainer, few_sources[None], few_targets[None])["loss"])
        for _ in range(count)])
    truth = run if truth is None else truth
    error = np.abs(run / truth[:count] - 1).max()
    print(f"{name:6} {run}, error {error:.1e}")
    assert error < 1e-12

# %% [markdown]
# ## Exercises
#
# - **9.1** One step of Adam. Four other algorithms are known by name.
# - **9.2** The learning rate of the paper.
# - **9.3** Clip gradients by their global norm.
#
# In the code: `reference_numpy/optimizer.py` and `reference_numpy/train.py`;
# R26 to R29 in RULINGS.md. `parity check --train 100` runs a hundred steps.
