# %% [markdown]
# # The whole model, from text to text
#
# A whole Transformer, from a date as people write it to the same date in
# ISO 8601: text, pieces, ids, vectors, encoder, decoder, probabilities, text.
# The model is the small one that ships with this project (128 numbers a word,
# 2 + 2 layers, 4 heads), and each framework computes every step of it.
#
# *60 minutes. You need lessons 1 to 6.*

# %%
import numpy as np

from parity.course.lesson import (
    assert_parity, Batch, figures, GenerationConfig, golden, lessons)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
config, weights, tokenizer, pairs = golden.trained()
weights = {name: array.astype(np.float64) for name, array in weights.items()}
models = {name: engine.build("transformer", config, weights)
          for name, engine in engines.items()}
numpy, model = engines["numpy"], models["numpy"]
print("frameworks:", ", ".join(engines))
print(f"{sum(array.size for array in weights.values()):,} weights")

# %% [markdown]
# ## Text to pieces to ids
#
# A tokenizer cuts text into pieces that it has seen often, and gives each its
# number. Frequent words stay whole, rare ones are split. Target texts also get
# a bos (begin of sequence, id 1) and an eos (end of sequence, id 2); 0 is
# padding. Nothing is lost on the way.

# %%
source, target = "vendredi 19 avril 2047", "2047-04-19"
ids = tokenizer.encode(source)
print(" | ".join(f"{piece} {number}" for piece, number
                 in zip(tokenizer.tokens(ids), ids)))
print("and back:", tokenizer.decode(ids))
assert tokenizer.decode(ids) == source and len(ids) == 15

# %% [markdown]
# ## Ids to vectors
#
# Each id takes its row of a table, times √128 = 11.3137, so that the row is as
# large as the position that is added to it: sines and cosines, which differ
# from place to place and are never trained.

# %%
batch = Batch.of_text([source], [target], tokenizer)
steps = numpy.forward(model, *batch)
row = weights["source_embedding.table"][ids[0]]
print("the table's row   ", row[:4])
print("times 11.3137     ", steps["source_embedding.embedded"][0, 0, :4])
print("the first position", steps["source_positions.positions"][..., 0, :4]
      .ravel())
print("both              ", steps["source_positions.positioned"][0, 0, :4])
assert np.allclose(row * 128**0.5, steps["source_embedding.embedded"][0, 0])
assert np.array_equal(
    steps["source_positions.positions"][..., 0, :4].ravel(), [0, 1, 0, 1])

# %% [markdown]
# ## Every shape on the way
#
# One sentence, 15 pieces of source, 12 of target with bos and eos: here is the
# first layer of each stack and what is around it. Only attention mixes words,
# and only its scores have two lengths: [batch, head, query, key].

# %%
shown = ("source_", "target_", "encoder.layers.0", "memory",
         "decoder.layers.0", "decoded", "output")
for name, value in steps.items():
    if name.startswith(shown) and "norm." not in name:
        print(f"{name:48} {' × '.join(map(str, value.shape))}")
cross = steps["decoder.layers.0.cross_attention.scores"]
assert cross.shape == (1, 4, 12, 15)
assert steps["output"].shape == (1, 12, 1000)

# %% [markdown]
# ## Two masks
#
# Sentences of one batch are padded to one length. The **padding mask** says
# which places are real; the **causal mask** lets a target word attend to itself
# and earlier words, never to the word it predicts. True means may attend. The
# source's mask goes into the encoder and into the cross-attention, both of the
# target's into the decoder's self-attention.

# %%
two = Batch.of_text(["5 Mai 1980", source], ["1980-05-05", target],
                    tokenizer)
print("source mask:")
print(two.source_mask[:, 0, 0].astype(int))
print("target mask of the first sentence, its first five rows:")
print(two.target_mask[0, 0, :5].astype(int))
assert not np.triu(two.target_mask[0, 0], 1).any()
assert two.source_mask.sum() == 15 + len(tokenizer.encode("5 Mai 1980"))

# %% [markdown]
# Padding must not change a sentence's output. The first one's is the same alone
# and beside the longer one, to the last digits; without the source's mask it is
# not.

# %%
first = Batch.of_text(["5 Mai 1980"], ["1980-05-05"], tokenizer)
alone = numpy.forward(model, *first)["output"]
unmasked = numpy.forward(model, two.source, two.target,
                         np.ones_like(two.source_mask), two.target_mask)
masked = numpy.forward(model, *two)["output"][:1]
length = first.target.shape[1]
right, wrong = (np.abs(output[:, :length] - alone).max()
                for output in (masked, unmasked["output"][:1]))
print(f"largest difference with the mask {right:.1e}, without {wrong:.2f}")
assert right < 1e-12 and wrong > 0.1

# %% [markdown]
# ## Teacher forcing
#
# In training the model does not read its own guesses but the right answer, one
# place behind: it reads `<s> 2 0 4 …` and predicts `2 0 4 7 …`. All places are
# predicted at once; the causal mask keeps them from reading the answer. The
# loss is the mean of -log p of the right pieces.

# %%
read, labels = batch.target[:, :-1], batch.target[:, 1:]
forced = Batch.of_ids(batch.source, read, config.pad_id)
outputs = {name: engine.forward(models[name], *forced)["output"]
           for name, engine in engines.items()}


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


log_p = log_softmax(outputs["numpy"][0])
for place, (before, right) in enumerate(zip(read[0], labels[0])):
    before, piece = tokenizer.tokens([before, right])
    print(f"having read {before!r:6} p({piece!r:6}) = "
          f"{np.exp(log_p[place, right]):.4f}")
by_hand = -log_p[np.arange(len(labels[0])), labels[0]].mean()
for name, engine in engines.items():
    loss = float(engine.loss(outputs[name], labels, config.pad_id, 0.0,
                             "uniform"))
    print(f"{name:6} loss {loss:.12f}")
    assert abs(loss - by_hand) < 1e-12

# %% [markdown]
# At once or one after the other is the same: cut the target after each place,
# and the prediction there does not change. So one pass trains all places, and
# the same model can write word by word.

# %%
cut = [numpy.forward(model, *Batch.of_ids(
    batch.source, read[:, :place], config.pad_id))["output"][0, -1]
    for place in range(1, read.shape[1] + 1)]
error = assert_parity(np.stack(cut), outputs["numpy"][0])[0].error
print(f"{len(cut)} passes against one: error {error:.1e}")

# %% [markdown]
# ## Writing: greedy search
#
# In use there is no right answer to read. The model writes its most likely
# piece, reads it, and so on until the eos: here 11 passes, `2047-04-19` and the
# eos. The score is the sum of log p.

# %%
settings = GenerationConfig(
    bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, max_tokens=15)
for name, engine in engines.items():
    greedy = engine.generate(models[name], batch.source, settings)
    answer, score = greedy["tokens"][0, 0], float(greedy["scores"][0, 0])
    print(f"{name:6} {tokenizer.decode(answer)}  log p {score:.12f}")
    assert tokenizer.decode(answer) == target
    forced_score = log_p[np.arange(len(labels[0])), labels[0]].sum()
    assert abs(score - forced_score) < 1e-12
print("the sum of the log p above:", f"{forced_score:.12f}")

# %% [markdown]
# ## Where the weights are
#
# Source, target and projection share one table here, 1000 rows of 128 numbers.
# The decoder is the larger stack: each of its layers has two attentions.

# %%
groups = {"embeddings and projection": 0, "encoder": 0, "decoder": 0}
for name, array in weights.items():
    stack = name.partition(".")[0]
    groups[stack if stack in groups else "embeddings and projection"] += (
        array.size)
total = sum(groups.values())
for name, count in groups.items():
    print(f"{name:26} {count:9,}  {count / total:.0%}")
assert total == sum(array.size for array in weights.values())
assert groups["decoder"] > groups["encoder"]
figure, axis = figures.subplots(height=1.9)
axis.barh(list(groups), list(groups.values()), color=figures.COLOURS[:3])
axis.set(xlabel="weights")
axis.invert_yaxis()
lessons.picture(figure, "How many weights the ends, the encoder and the "
                "decoder have; the decoder has the most")

# %% [markdown]
# ## Exercises
#
# - **7.1** An encoder layer, from the parts that you have written.
# - **7.2** Count the weights of the paper's model.
# - **7.3** Repair a decoder layer: three mistakes, all shapes right.
#
# In the code: `encoder.py`, `decoder.py` and `transformer.py` in
# `reference_numpy`. `parity translate` translates texts on the command line.
