# %% [markdown]
# # Tokens and embeddings
#
# A model computes with numbers, and a sentence has none. So text is cut into
# pieces, each piece gets a number, and each number a row of a table. We build
# all three steps by hand, and then the gradient of the last: which rows learn?
#
# *50 minutes. You need Python and NumPy, and should know what a matrix product
# and a derivative are.*

# %%
import numpy as np

from parity.course.lesson import (
    assert_parity, Batch, figures, golden, lessons, ports, Tokenizer)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
print("frameworks:", ", ".join(engines))

# %% [markdown]
# ## Why not words, why not letters?
#
# A vocabulary of words never ends: the next text has a name that no list has.
# A vocabulary of letters is short, but then a sentence is long, and attention
# compares each piece with each, so twice the length costs four times the work.
# **Byte-pair encoding** lies between: start with letters, and again and again
# merge the two neighbours that stand side by side most often. Frequent words
# end up whole, rare ones in parts, and no text is unknown.
#
# Here are the first five merges of ten short words.

# %%
from importlib import import_module

bpe = import_module(f"{ports.package('numpy')}.bpe")
words = "low low low lower newest newest newest widest widest lowest".split()
merges = bpe.train(words, 5)
for pair in merges:
    print(" + ".join(pair), "→", "".join(pair))
assert merges[0] == ("e", "s") and merges[1] == ("es", "t")

# %% [markdown]
# Why is `e s` first? Count the neighbours: `es` stands in newest (3 times),
# widest (2) and lowest (1), 6 times in all. So does `st`; of equals, the first
# in the alphabet is merged. `lo` and `ow` stand in low, lower and lowest, 5
# times. After the merge the pieces are other ones, so the count is made anew:
# `es t` follows.
#
# To encode a word, make the same merges **in the order in which they were
# learned**. A word that was not in the text is cut as well:

# %%
for word in ("lowest", "newer", "slow"):
    pieces = bpe.encode(word, merges)
    print(f"{word:8}", " | ".join(pieces))
    assert "".join(pieces) == word
assert bpe.encode("lowest", merges) == ["low", "est"]

# %% [markdown]
# ## What a vocabulary buys
#
# More merges, fewer pieces: the picture shows how many pieces a letter costs,
# on the project's own sentences, as merges are added. The first merges save
# most. Each merge is one more row in the table of embeddings, so somewhere the
# gain is not worth the row.

# %%
tokenizer = Tokenizer.load()
sentences = [text for pair in golden.trained()[3][:60] for text in pair]
all_words = [word for text in sentences for word in text.split()]
counts = (0, 5, 10, 20, 40, 80, 120)
learned = bpe.train(all_words, max(counts))
letters = sum(map(len, all_words))
pieces = [sum(len(bpe.encode(word, learned[:count])) for word in all_words)
          for count in counts]
share = np.array(pieces) / letters
for count, each in zip(counts, share):
    print(f"{count:4} merges: {each:.2f} pieces a letter")
assert share[0] == 1 and (np.diff(share) < 0).all()
figure, axis = figures.subplots(height=2.8)
axis.plot(counts, share, "o-", color=figures.COLOURS[0])
axis.set(xlabel="merges", ylabel="pieces a letter", ylim=(0, 1.05))
lessons.picture(figure, "Pieces a letter against the number of merges: a "
                f"curve that falls from 1 to {share[-1]:.2f}, steeply at first")

# %% [markdown]
# The project's own tokenizer does the same on **bytes**, so that every script
# works: 1000 pieces, of which the first four are special. Nothing is lost on
# the way there and back.

# %%
for text in ("Thank you.", "Vielen Dank!", "2026年", "🙂"):
    ids = tokenizer.encode(text)
    print(f"{text:14} {list(map(int, ids))}")
    assert tokenizer.decode(ids) == text
print("padding, bos, eos:", tokenizer.pad_id, tokenizer.bos_id,
      tokenizer.eos_id)
assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)

# %% [markdown]
# ## From ids to vectors
#
# An id is a name, not a size: token 412 is not twice token 206. So each id
# takes a row of a table E, with D numbers, which training moves:
#
#     embedded = E[token] · √D
#
# A lookup is a matrix product in disguise: a row with a single 1 at the place
# of the token, times the table. Nobody computes it so, for it multiplies by
# zeros.

# %%
draw = np.random.default_rng(0)
table = draw.normal(size=(10, 4))
tokens = np.array([[7, 2, 7, 0]])
one_hot = np.eye(10)[tokens]
print("one-hot:", one_hot.shape, "times", table.shape)
assert np.array_equal(one_hot @ table, table[tokens])
print(table[tokens][0])

# %% [markdown]
# Why √D? The rows begin with entries of size 1/√D, so that the same table can
# serve as the output's projection, where a sum of D products should have size
# 1. But positions, which are added next, are sines and cosines, of size 0.6 on
# average. Without the root they would drown the words:

# %%
from parity.course.lesson import interleaved_table

for width in (16, 128, 512):
    rows = draw.normal(size=(1000, width)) / width**0.5
    places = interleaved_table(50, width)
    loud = places.std() / rows.std()
    print(f"D {width:3}: positions are {loud:5.1f} times as large, with the "
          f"root {loud / width**0.5:.2f}")
    assert 0.5 < loud / width**0.5 < 1

# %% [markdown]
# ## The same line four times
#
# This is the step as each framework writes it. The marker above it in the code,
# `[1] embedded [B T D]`, is the same in all four.

# %%
lessons.at_the_spot(engines, "embedding.py", "TokenEmbedding", "embedded")

# %% [markdown]
# And these are the numbers: the shipped model's table, read by each framework.
# The limit is 1e-12 of relative error, in float64.

# %%
config, weights, tokenizer, pairs = golden.trained()
weights = {name: array.astype(np.float64) for name, array in weights.items()}
batch = Batch.of_text(["5 Mai 1980"], ["1980-05-05"], tokenizer)
name = "source_embedding.table"
by_hand = weights[name][batch.source] * config.d_model**0.5
for framework, engine in engines.items():
    module = engine.build("token_embedding", config,
                          {"table": weights[name]})
    embedded = engine.run(module, batch.source)["embedded"]
    error = assert_parity(embedded, by_hand)[0].error
    print(f"{framework:6} {embedded[0, 0, :4]} error {error:.1e}")

# %% [markdown]
# ## Which rows learn?
#
# Backward, the gradient of a vector goes to the row that it came from. A token
# that stands twice sends both gradients to one row, and they add up; a row
# whose token is not in the batch gets nothing. `dtable[tokens] += …` looks
# right and is not: NumPy adds to each row once.

# %%
dembedded = np.ones((1, 4, 4))
right, wrong = np.zeros((10, 4)), np.zeros((10, 4))
np.add.at(right, tokens, dembedded)
wrong[tokens] += dembedded
print("token 7 stands twice:", right[7], "not", wrong[7])
assert (right[7] == 2).all() and (wrong[7] == 1).all()
untouched = [row for row in range(10) if not right[row].any()]
print("rows that learn nothing:", untouched)
assert untouched == [1, 3, 4, 5, 6, 8, 9]

# %% [markdown]
# ## What the shipped model has learned
#
# Tokens that are used alike get rows that are alike. The cosine between two
# rows is 1 if they point the same way, and 0 if they have nothing in common.
# The ten digits stand in the same places of dates, letters in words. Here are
# the cosines among ten digits and ten letters.

# %%
signs = list("0123456789abcdefghij")
rows = weights[name][[int(tokenizer.encode(sign)[0]) for sign in signs]]
unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
cosine = unit @ unit.T
digit = np.arange(20) < 10
off = ~np.eye(20, dtype=bool)
within = cosine[np.ix_(digit, digit)][off[:10, :10]].mean()
across = cosine[np.ix_(digit, ~digit)].mean()
print(f"between two digits {within:.2f}, a digit and a letter {across:.2f}")
print(f"two random rows of {config.d_model} numbers: about "
      f"±{config.d_model**-0.5:.2f}")
assert np.allclose(np.diag(cosine), 1) and within > 3 * abs(across)
figure, axis = figures.subplots(height=4.6)
figure.colorbar(figures.heat(
    axis, np.where(off, cosine, np.nan), "cosine of two rows",
    signs, signs), shrink=0.8)
axis.set_aspect("equal")
lessons.picture(figure, "A map of the cosines between the rows of ten digits "
                "and ten letters in the trained model: a light square where "
                "digits meet digits; the diagonal is left out")

# %% [markdown]
# ## Exercises
#
# `parity exercise 1.1` writes a file to begin with, and `parity exercise 1.1
# exercise_1_1.py` checks your answer.
#
# - **1.1** Encode a word with merges. Their order is the whole difficulty.
# - **1.2** Turn ids into vectors, padding included.
# - **1.3** The gradient of the table. Try a sentence with one word twice.
#
# In the code: `reference_numpy/bpe.py` and `reference_numpy/embedding.py`;
# why padding has a row like any other is R9 in RULINGS.md.
