# %% [markdown]
# # Loss and smoothing
#
# A loss is one number for how wrong a model is. It looks too simple for
# mistakes, and it has the quietest of all: averaged over padding, over rows, or
# with another kind of smoothing, training still works, only worse, and two
# papers' losses cannot be compared.
#
# *45 minutes. You need lesson 1 and logarithms.*

# %%
import numpy as np

from parity.course.lesson import assert_parity, Batch, figures, golden, lessons

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
numpy = engines["numpy"]
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## From logits to a loss
#
# The model gives each of V tokens a number, its logit. A softmax makes
# probabilities p of them, and the loss of one place is -log p of the right
# token: 0 if the model was sure and right, large if it was sure and wrong.
#
#     loss = mean over the labels that count of  -log p(right token)
#
# A model that knows nothing gives each of V tokens 1/V, and has the loss
# log V. Remember that number for your V: a first loss far above it means that
# something is wrong before training has begun.

# %%
for vocab in (10, 1000, 37_000):
    print(f"V {vocab:6}: log V = {np.log(vocab):.3f}")
p = np.linspace(0.002, 1, 300)
figure, axes = figures.subplots(2, 2.8)
axes[0].plot(p, -np.log(p), color=figures.COLOURS[0])
axes[0].set(xlabel="p of the right token", ylabel="loss", ylim=(0, 6.3))
logit = np.linspace(-4, 8, 100)
share = np.exp(logit) / (np.exp(logit) + 9)
axes[1].plot(logit, share - 1, color=figures.COLOURS[1],
             label="of the right token")
axes[1].plot(logit, (1 - share) / 9, "--", color=figures.COLOURS[2],
             label="of each of 9 others")
axes[1].set(xlabel="the right token's logit", ylabel="gradient")
axes[1].legend(frameon=False)
lessons.picture(figure, "The loss against the probability of the right token, "
                "which falls to 0 at 1; and the gradients of logits, which go "
                "to 0 as the right one grows")
assert abs(np.log(1000) - 6.908) < 1e-3

# %% [markdown]
# ## Log of a softmax
#
# exp of a large logit overflows, and log of a probability that was rounded to 0
# is -∞. Neither is needed: log p = x - log Σ exp(x), with the largest x taken
# away first.

# %%
x = np.array([1000.0, 0.0, -1000.0])
with np.errstate(all="ignore"):
    naive = np.log(np.exp(x) / np.exp(x).sum())
shifted = x - x.max()
log_p = shifted - np.log(np.exp(shifted).sum())
print("first softmax, then log:", naive)
print("log softmax at once:    ", log_p)
assert np.isnan(naive[0]) and np.array_equal(log_p, [0, -1000, -2000])

# %% [markdown]
# ## Padding does not count
#
# Sentences of a batch have different lengths, and what fills them up is not to
# be learned. There are four ways to average, and one is right. Here a batch of
# two sentences, one long and hard, one short and easy:

# %%
loss_of_place = np.array([[2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
                          [0.5, 0.5, 9.9, 9.9, 9.9, 9.9]])
kept = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], bool)
rows = (loss_of_place * kept).sum(axis=1) / kept.sum(axis=1)
ways = {
    "over the labels that count": loss_of_place[kept].mean(),
    "padding counted too": loss_of_place.mean(),
    "divided by all places": (loss_of_place * kept).mean(),
    "row by row, then over rows": rows.mean()}
for name, value in ways.items():
    print(f"{name:27} {value:.4f}")
assert round(ways["over the labels that count"], 4) == 1.625
assert len({round(value, 4) for value in ways.values()}) == 4

# %% [markdown]
# The third is the treacherous one: it is right up to a factor, so the gradients
# point the right way, and the factor changes from batch to batch with the
# padding. It acts like a learning rate that somebody shakes. The same happens
# when gradients of several batches are added up and each was divided by its own
# count: divide by the sum of the counts instead.
#
# ## The same step four times

# %%
lessons.at_the_spot(engines, "loss.py", "cross_entropy", "loss")
config, weights, tokenizer, pairs = golden.trained()
weights = {name: array.astype(np.float64) for name, array in weights.items()}
batch = Batch.of_text(*zip(*pairs[:12]), tokenizer)
read, labels = batch.target[:, :-1], batch.target[:, 1:]
inputs = Batch.of_ids(batch.source, read, config.pad_id)
logits = numpy.predict(
    numpy.build("transformer", config, weights), *inputs)
truth = None
for name, engine in engines.items():
    value = np.asarray(engine.loss(logits, labels, config.pad_id, 0.0,
                                   "uniform"))
    truth = value if truth is None else truth
    print(f"{name:6} {float(value):.15f}, error "
          f"{assert_parity(value, truth)[0].error:.1e}")

# %% [markdown]
# ## Label smoothing
#
# "During training, we employed label smoothing of value ε = 0.1. This hurts
# perplexity, as the model learns to be more unsure, but improves accuracy and
# BLEU score" (section 5.4 of the paper). The target is no longer 1 for the
# right token and 0 for all others: a share ε is moved to the others. But to
# which? Three answers are in use (R22):
#
#     uniform   ε/V to each of all V, the right one too     torch, optax, Keras
#     others    ε/(V - 1) to each but the right one         T2T, flax's examples
#     kl        ε/(V - 2) to each but the right one and     The Annotated
#               padding; the entropy of q is taken off      Transformer
#
# T2T and Flax's examples take the entropy off as well. On one and the same
# output the three give different numbers, and none is a bug:

# %%
found = {}
for smoothing in ("uniform", "others", "kl"):
    values = [float(engine.loss(logits, labels, config.pad_id, 0.1, smoothing))
              for engine in engines.values()]
    found[smoothing] = values[0]
    print(f"{smoothing:8} {values[0]:.6f}, largest difference between "
          f"frameworks {np.ptp(values):.1e}")
    assert np.ptp(values) < 1e-12
print(f"none     {float(truth):.6f}")
assert found["kl"] < found["uniform"] and found["others"] > float(truth)

# %% [markdown]
# With smoothing a perfect model does not reach 0: to say 0.9 where 0.9 is right
# still costs the entropy of the target, and the loss of the first two ends
# there. The third takes it off and ends at 0. So a curve that stops at 1.0 may
# be a model that has learned everything.

# %%
vocab, eps = 1000, 0.1
q_right, q_other = 1 - eps, eps / (vocab - 1)
least = -(q_right * np.log(q_right)
          + (vocab - 1) * q_other * np.log(q_other))
print(f"the least loss of “others”, V 1000, ε 0.1: {least:.4f}")
assert abs(least - 1.0157) < 1e-3
certainty = np.linspace(0.5, 0.9999, 400)
figure, axis = figures.subplots(height=2.8)
for number, eps in enumerate((0.0, 0.05, 0.1)):
    other = (1 - certainty) / (vocab - 1)
    loss = -(1 - eps) * np.log(certainty) - eps * np.log(other)
    axis.plot(certainty, loss, ("-", "--", ":")[number],
              color=figures.COLOURS[number], label=f"ε = {eps:g}")
axis.set(xlabel="what the model says of the right token", ylabel="loss")
axis.legend(frameon=False)
lessons.picture(figure, "The loss against the probability of the right token "
                "for three shares of smoothing: without, it falls to the end; "
                "with 0.05 and 0.1 it is least at 0.95 and at 0.9, and rises "
                "towards certainty")

# %% [markdown]
# ## The gradient
#
#     dlogits = (p - q) / labels that count
#
# What the model says, less what is right. That is all; the exponentials and the
# logarithm have gone. It is why softmax and cross-entropy are written as one
# function, and why nothing overflows on the way back.

# %%
draw = np.random.default_rng(10)
small, right = draw.normal(size=(1, 1, 5)), np.array([[3]])


def loss_at(x):
    """The loss of one place."""
    return float(numpy.loss(x, right, 0, 0.0, "uniform"))


p = np.exp(small) / np.exp(small).sum()
by_hand = p - np.eye(5)[right]
numbers = np.zeros_like(small)
for place in range(5):
    step = np.zeros_like(small)
    step[0, 0, place] = 1e-5
    numbers[0, 0, place] = (
        loss_at(small + step) - loss_at(small - step)) / 2e-5
print("by hand       ", by_hand[0, 0])
print("by differences", numbers[0, 0])
assert np.abs(by_hand - numbers).max() < 1e-9

# %% [markdown]
# ## Exercises
#
# - **10.1** The loss. Four other averages are known by name.
# - **10.2** Label smoothing, uniform.
# - **10.3** Its gradient, with padding.
#
# In the code: `reference_numpy/loss.py` and
# `transformer_contract/smoothing.py`; R22 and R23 in RULINGS.md. `parity
# check differences` shows what each framework does.
