# %% [markdown]
# # Search and cache
#
# A trained model gives probabilities; somebody has to choose. Greedy search
# takes the best next token, a beam keeps several hypotheses, and a cache makes
# both fast. All three have a rule about where a hypothesis ends and how its
# score is divided, and every library has another one.
#
# *50 minutes. You need lesson 7.*

# %%
from importlib import import_module

import numpy as np

from parity.course.lesson import (
    assert_parity, Batch, figures, GenerationConfig, golden, lessons, ports)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
config, weights, tokenizer, pairs = golden.trained()
weights = {name: array.astype(np.float64) for name, array in weights.items()}
models = {name: engine.build("transformer", config, weights)
          for name, engine in engines.items()}
numpy, model = engines["numpy"], models["numpy"]
print("frameworks:", ", ".join(engines))
assert config.stacks == "both"

# %% [markdown]
# ## Greedy search
#
#     token = argmax log p(token | source, tokens so far)
#
# The best token, append it, ask again, until the eos. The score of an answer is
# the sum of its log p. Here are the choices the model had: how likely was the
# best token, and how likely the second?

# %%
source = "2 april 1980"
ids = tokenizer.pad([tokenizer.encode(source)])
settings = GenerationConfig(
    bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, max_tokens=15)
greedy = numpy.generate(model, ids, settings)
answer = greedy["tokens"][0, 0]
length = int(np.argmax(answer == tokenizer.eos_id)) + 1
forced = Batch.of_ids(ids, answer[None, :length - 1], config.pad_id)
logits = numpy.predict(model, *forced)[0]
log_p = logits - logits.max(axis=-1, keepdims=True)
log_p -= np.log(np.exp(log_p).sum(axis=-1, keepdims=True))
shares = np.sort(np.exp(log_p), axis=-1)[:, ::-1]
print(source, "→", tokenizer.decode(answer))
for place in range(length - 1):
    token, = tokenizer.tokens([answer[place + 1]])
    print(f"{token!r:8} {shares[place, 0]:.4f}, the second best "
          f"{shares[place, 1]:.4f}")
total = log_p[np.arange(length - 1), answer[1:length]].sum()
print(f"sum of log p {total:.12f}, the search's score "
      f"{float(greedy['scores'][0, 0]):.12f}")
assert abs(total - greedy["scores"][0, 0]) < 1e-12
figure, axis = figures.subplots(height=2.6)
axis.bar(np.arange(length - 1) - 0.2, shares[:, 0], 0.4,
         color=figures.COLOURS[0], label="the best")
axis.bar(np.arange(length - 1) + 0.2, shares[:, 1], 0.4,
         color=figures.COLOURS[1], label="the second best")
axis.set_xticks(range(length - 1), [repr(token) for token in tokenizer.tokens(
    answer[1:length])])
axis.set(ylabel="probability", yscale="log", ylim=(1e-5, 1.5))
figure.legend(frameon=False, loc="outside upper center", ncols=2)
lessons.picture(figure, "How likely the best and the second best token were at "
                "each place of an answer, on a logarithmic axis: the best "
                "above 0.9, the second below 0.01")

# %% [markdown]
# ## Beam search
#
# The most likely next piece does not always lead to the most likely answer. A
# beam keeps the W best hypotheses alive. `4 July` has no year, so that many are
# about as likely. Greedy search takes the best digit, and then what can still
# follow it; a beam of four finds an answer that is 1.3 times as likely.

# %%
vague = tokenizer.pad([tokenizer.encode("4 July")], length=14)
wide = settings.replace(method="beam", beam=4, length_rule="none")
for name, engine in engines.items():
    greedy = engine.generate(models[name], vague, settings)
    beam = engine.generate(models[name], vague, wide)
    one, best = greedy["scores"][0, 0], beam["scores"][0, 0]
    print(f"{name:6} greedy {tokenizer.decode(greedy['tokens'][0, 0])} "
          f"{one:.4f}, beam {tokenizer.decode(beam['tokens'][0, 0])} "
          f"{best:.4f}: {np.exp(best - one):.1f} times as likely")
    assert round(float(np.exp(best - one)), 1) == 1.3
    if name == "numpy":
        truth = beam
    assert np.array_equal(beam["tokens"], truth["tokens"])
    assert_parity(beam["scores"], truth["scores"])

# %% [markdown]
# All four hypotheses of the beam, the best first. A longer one adds up more
# negative numbers; the paper divides by ((5 + length) / 6)^0.6, so that short
# ones are not preferred only because they are short.

# %%
fair = numpy.generate(model, vague, wide.replace(length_rule="paper"))
for rule, beam in (("no rule", truth), ("the paper's", fair)):
    print(f"{rule}:")
    for tokens, score in zip(beam["tokens"][0], beam["scores"][0]):
        print(f"  {score:8.4f}  {tokenizer.decode(tokens)}")
    assert (np.diff(beam["scores"][0]) <= 0).all()

# %% [markdown]
# ## The same step four times
#
# All continuations of all hypotheses compete at once: W · V candidates, of
# which the best 2 · W are kept, since half of them may end.

# %%
lessons.at_the_spot(engines, "search.py", "Beam", "scores")
print("candidates of a beam of 4:", 4 * config.target_vocab)
assert config.target_vocab == 1000

# %% [markdown]
# ## The cache
#
# To write its tenth token, a decoder without a cache reads nine tokens again.
# But a token attends to no later one, so its key and value never change: keep
# them, and each new token costs one row of work. The answer must be the same,
# and the saving grows with the length. Both are measured here.

# %%
plain = settings.replace(cached=False)
for name, engine in engines.items():
    one = engine.generate(models[name], ids, settings)
    other = engine.generate(models[name], ids, plain)
    assert np.array_equal(one["tokens"], other["tokens"])
    error = assert_parity(one["scores"], other["scores"])[0].error
    print(f"{name:6} with and without a cache: same tokens, scores {error:.1e} "
          "apart")
for length in (10, 100, 1000):
    print(f"{length:4} tokens: {length * (length + 1) // 2:6} rows without a "
          f"cache, {length:4} with one")

# %% [markdown]
# Two mistakes with caches are common. A new token must stand at its own
# position, not at position 0, though it arrives alone. And in a beam, where a
# hypothesis continues another one, it needs that one's keys and values: the
# cache has to be put in the order of the parents. Both give fluent nonsense,
# only later, and never without a cache. So: **check a cached search against the
# same search without a cache.**

# %%
lessons.at_the_spot(engines, "cache.py", "Cache", "here")
cache = import_module(f"{ports.package('numpy')}.cache").Cache(
    (2, 1, 3, 1), np.float64)
for key in (1.0, 2.0):
    both = np.array([10 + key, 20 + key]).reshape(2, 1, 1, 1)
    cache.extend(both, both)
print("keys of two hypotheses after two tokens:")
print(cache.keys[:, 0, :, 0])
assert cache.keys[:, 0, :, 0].tolist() == [[11, 12, 0], [21, 22, 0]]

# %% [markdown]
# Now both of the best continuations are continuations of the second hypothesis.
# Its keys have to be in both rows before the next token is written; without
# this, the first row would go on with a past that is not its own.

# %%
cache.reorder(np.array([1, 1]))
print(cache.keys[:, 0, :, 0])
assert cache.keys[:, 0, :, 0].tolist() == [[21, 22, 0]] * 2

# %% [markdown]
# ## Exercises
#
# - **11.1** Greedy search, with its end.
# - **11.2** One step of a beam: all compete with all.
# - **11.3** Repair a cache: two mistakes.
#
# In the code: `search.py`, `sample.py` and `cache.py` in `reference_numpy`;
# `parity translate "4 July" --beam 4 --port all`.
