# %% [markdown]
# # From text to text
#
# A whole Transformer, from a date as people write it to the same date in
# ISO 8601: text, pieces, ids, vectors, encoder, decoder, probabilities, text.
# The model is the small one that ships with this project (128 numbers a word,
# 2 + 2 layers, 4 heads), and each framework computes every step of it.

# %%
import numpy as np

from contract.batch import Batch
from contract.config import TransformerConfig
from contract.generation import GenerationConfig
from contract.training import TrainingConfig
from contract.weights import initial_weights
from parity import assert_parity
from parity.check import golden
from parity.reading import lessons

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
assert tokenizer.decode(ids) == source and len(ids) == 14

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
# One sentence, 14 pieces of source, 12 of target with bos and eos: here is the
# first layer of each stack and what is around it. Only attention mixes words,
# and only its scores have two lengths: [batch, head, query, key].

# %%
shown = ("source_", "target_", "encoder.layers.0", "memory",
         "decoder.layers.0", "decoded", "output")
for name, value in steps.items():
    if name.startswith(shown) and "norm." not in name:
        print(f"{name:48} {' × '.join(map(str, value.shape))}")
cross = steps["decoder.layers.0.cross_attention.scores"]
assert cross.shape == (1, 4, 12, 14)
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
assert two.source_mask.sum() == 14 + len(tokenizer.encode("5 Mai 1980"))

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
# ## Training: the same gradient in all four
#
# A new, tiny model with the same first weights in each framework. Which way
# should each weight move? PyTorch, Keras and JAX find the gradient by their own
# autodiff, NumPy's is written out by hand, and they agree to the last digits.

# %%
tiny = TransformerConfig(
    source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size,
    d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1,
    max_length=64, dropout=0.0)
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
# ## Writing: beam search
#
# The most likely next piece does not always lead to the most likely answer. A
# beam keeps the W best hypotheses alive. For `2 april`, without a year, greedy
# search runs into a text that never ends; a beam of four finds an answer that
# is 12.8 times as likely, and ends.

# %%
vague = tokenizer.pad([tokenizer.encode("2 april")], length=len(ids))
wide = settings.replace(method="beam", beam=4, length_rule="none")
for name, engine in engines.items():
    greedy = engine.generate(models[name], vague, settings)
    beam = engine.generate(models[name], vague, wide)
    one, best = greedy["scores"][0, 0], beam["scores"][0, 0]
    print(f"{name:6} greedy {tokenizer.decode(greedy['tokens'][0, 0])} "
          f"{one:.4f}, beam {tokenizer.decode(beam['tokens'][0, 0])} "
          f"{best:.4f}: {np.exp(best - one):.1f} times as likely")
    assert round(float(np.exp(best - one)), 1) == 12.8
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
# ## Try it
#
# Write your own date into `source` and its answer into `target`, or a text that
# is no date. How sure is the model of the first piece? Which piece adds most to
# the loss? `parity translate` translates texts on the command line, and
# `parity train dates` trains such a model from the start.
