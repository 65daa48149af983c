# %% [markdown]
# # Masks, and a leak
#
# Attention looks everywhere, and that is often wrong: padding is no word, and a
# decoder that sees the word it is to predict learns to copy it. Masks forbid
# both. A mask that is off by one place gives no error, only a wonderful loss.
# Here you make both masks, meet a row that may see nothing, and find a leak.
#
# The model is a small one that is trained: it reads a date as people write it,
# such as *5 Mai 1980*, and writes *1980-05-05*. Lesson 7 follows it through.
#
# *50 minutes. You need lesson 3.*

# %%
import numpy as np

from parity.course.lesson import (
    assert_parity, Batch, catalogue, figures, golden, lessons)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
numpy = engines["numpy"]
config, weights, tokenizer, pairs = golden.trained()
weights = {name: array.astype(np.float64) for name, array in weights.items()}
model = numpy.build("transformer", config, weights)
print("frameworks:", ", ".join(engines))
assert config.n_decoder_layers == 2

# %% [markdown]
# ## The rule
#
# A mask is a table of True and False with a row for each query and a column for
# each key. **True means that the query may attend to the key.** Write this
# sentence on the wall: some libraries mean the opposite.
#
#     padding mask   [B 1 1 S]   key ≠ padding
#     causal mask    [1 1 T T]   key ≤ query
#     the decoder's  [B 1 T T]   both
#
# B counts sentences, S the tokens that are looked at, T those of the target.
# The axes of size 1 are for broadcasting: one mask serves every head, and a
# padding mask every query. Two targets follow; the first is cut short, so that
# it is padded. The pictures are of that one.

# %%
batch = Batch.of_text(["5 Mai 1980", "19 avril 2047"],
                      ["1980-05", "2047-04-19"], tokenizer)
length = batch.target.shape[1]
causal = np.tri(length, dtype=bool)[None, None]
padding = (batch.target != config.pad_id)[:, None, None, :]
both = causal & padding
print("causal", causal.shape, "padding", padding.shape, "both", both.shape)
assert np.array_equal(both, batch.target_mask)
figure, axes = figures.subplots(3, 2.9)
for axis, mask, title in zip(axes, (
        causal[0, 0], np.broadcast_to(padding[0, 0], (length, length)),
        both[0, 0]), ("causal", "padding", "both")):
    figures.heat(axis, mask, title, low=0, high=1)
    axis.set(xlabel="key")
axes[0].set(ylabel="query")
lessons.picture(figure, "Three masks of a short target in a padded batch, "
                "yellow where attention is allowed: a lower triangle; all but "
                "the last columns; and where both are")

# %% [markdown]
# Both meanings are in one library. `torch.nn.MultiheadAttention` takes a
# boolean mask whose True *hides*,
# `torch.nn.functional.scaled_dot_product_attention` one whose True *shows*. Do
# not take that on trust: both get a causal mask, each in its own meaning. The
# values are the rows of an identity matrix, so that what comes out are the
# weights. Look at the zeros: they are in the same places. The other numbers
# differ, since `MultiheadAttention` has matrices of its own.

# %%
if "torch" in engines:
    import torch

    torch.manual_seed(4)
    may = torch.ones(3, 3, dtype=torch.bool).tril()
    one = torch.eye(3).double()[None]  # keys that are told apart
    weights_of = torch.nn.functional.scaled_dot_product_attention(
        one, one, one, attn_mask=may)[0]
    layer = torch.nn.MultiheadAttention(3, 1, batch_first=True).double()
    _, of_layer = layer(one, one, one, attn_mask=~may)
    for name, found in (("scaled_dot_product_attention, mask", weights_of),
                        ("MultiheadAttention, ~mask", of_layer[0])):
        print(f"{name}\n{found.detach().numpy()}")
        assert torch.equal(found != 0, may)
else:
    print("not checked: torch is not installed")

# %% [markdown]
# ## How a score is hidden
#
# exp(-∞) is 0, so a hidden score could be replaced by -∞. Two things speak
# against it. A row that is hidden wholly becomes 0/0, which is NaN; and -∞
# times 0 is NaN as well, so adding `(1 - mask) · -∞` spoils the scores that
# should stay. This project puts the lowest *finite* number in place of a hidden
# score. At the end it sets hidden weights to 0 once more. Others do otherwise,
# so that it is written down as a rule, R2 in RULINGS.md.

# %%
lessons.in_full(engines, "attention.py", "masked_softmax")
lowest = np.finfo(np.float64).min
print(f"the lowest finite number {lowest:.3g}, its exponential "
      f"{np.exp(lowest)}")
assert np.exp(lowest) == 0 and np.isfinite(lowest)

# %% [markdown]
# What becomes of a row that may attend to nothing? The weights are a mean over
# nobody. Four answers are in use. Only the third keeps such rows at 0, and this
# project uses it.

# %%
scores = np.array([[2.0, -1.0, 0.5, 1.0]])
nothing = np.zeros((1, 4), bool)


def softmax(x):
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


answers = {
    "-∞ in its place": softmax(np.where(nothing, scores, -np.inf)),
    "-1e9 in its place": softmax(np.where(nothing, scores, -1e9)),
    "and 0 once more": np.where(
        nothing, softmax(np.where(nothing, scores, -1e9)), 0),
    "-1e9 added": softmax(scores - 1e9)}
for name, answer in answers.items():
    print(f"{name:18}", answer[0])
assert np.isnan(answers["-∞ in its place"]).all()
assert np.array_equal(answers["-1e9 in its place"][0], [0.25] * 4)
assert not answers["and 0 once more"].any()
assert np.allclose(answers["-1e9 added"], softmax(scores), atol=1e-6)

# %% [markdown]
# The last answer is the worst, for it looks well: 1e9 is taken from every score
# of the row, and a softmax does not feel what all have in common. The row that
# should see nothing sees everything. Such rows are not rare. Where a decoder's
# batch is padded on the left, the first places see only padding before them. A
# sentence without words has nothing else.
#
# The four frameworks here agree, with the last row hidden wholly:

# %%
small = config.replace(d_model=8, n_heads=2, d_ff=16)
draw = np.random.default_rng(4)
part = {f"{name}.{leaf}": draw.normal(size=(8, 8) if leaf == "kernel" else 8)
        for name in ("query", "key", "value", "output")
        for leaf in ("kernel", "bias")}
x = draw.normal(size=(1, 4, 8))
mask = np.tri(4, dtype=bool)
mask[3] = False
truth = None
for name, engine in engines.items():
    attention = engine.build("multi_head_attention", small, part)
    found = engine.run(attention, x, x, mask[None, None], cache=None)["weights"]
    truth = found if truth is None else truth
    error = assert_parity(found, truth)[0].error
    print(f"{name:6} sums of the rows: {found[0, 0].sum(axis=-1)}, "
          f"error {error:.1e}")
    assert not found[0, :, 3].any()

# %% [markdown]
# ## A leak
#
# Here is the mistake that everybody makes once: `key <= query + 1`. Each place
# sees one word further on, the very word that it is to predict. A model that is
# *trained* with it learns to copy that word: a wonderful loss, and nothing
# learned. Ours was trained with the right mask. We give it the leaking one,
# without training it again, and ask how likely the right tokens are. What do
# you expect of the loss?

# %%
source, target = zip(*pairs[:24])
forced = Batch.of_text(source, target, tokenizer)
reads, labels = forced.target[:, :-1], forced.target[:, 1:]
inputs = Batch.of_ids(forced.source, reads, config.pad_id)
places = np.arange(reads.shape[1])
leaking = (places[None] <= places[:, None] + 1) & (
    reads != config.pad_id)[:, None, None, :]


def loss_with(mask):
    """The mean loss with a target mask."""
    output = numpy.predict(model, inputs.source, inputs.target,
                           inputs.source_mask, mask)
    return float(numpy.loss(output, labels, config.pad_id, 0.0, "uniform"))


sound, leaky = loss_with(inputs.target_mask), loss_with(leaking)
print(f"loss with the right mask {sound:.4f}, with the leaking one {leaky:.4f}")
assert leaky > sound

# %% [markdown]
# Here the loss is *worse*, for this model does not expect the leak. After a
# training with it the loss would be better. So the loss does not show a leak:
# it may move either way. We look at what depends on what. **Change one token
# and see which outputs move.** With a sound mask, none before it does.
#
# In the tables a row is an output and a column the token that is changed; ■ is
# an output that moves.

# %%
def moved(mask):
    """[place, changed token]: whether an output moves at all."""
    one = inputs.target[:1].copy()
    before = numpy.predict(model, inputs.source[:1], one,
                           inputs.source_mask[:1], mask[:1])
    table = np.zeros((one.shape[1],) * 2, bool)
    for place in range(one.shape[1]):
        changed = one.copy()
        changed[0, place] = 3 + (changed[0, place] + 1) % 100
        after = numpy.predict(model, inputs.source[:1], changed,
                              inputs.source_mask[:1], mask[:1])
        table[:, place] = np.abs(after - before)[0].max(axis=-1) > 1e-9
    return table


tables = {"key ≤ query": moved(inputs.target_mask),
          "key ≤ query + 1": moved(leaking)}
for name, table in tables.items():
    print(f"{name}: outputs that a later token moves:",
          int(np.triu(table, 1).sum()))
    print("\n".join("".join("■" if one else "·" for one in row)
                    for row in table))
assert not np.triu(tables["key ≤ query"], 1).any()
assert np.diag(tables["key ≤ query + 1"], 2).any()
assert not np.triu(tables["key ≤ query + 1"], 3).any()
figure, axes = figures.subplots(2, 3.4)
for axis, (name, table) in zip(axes, tables.items()):
    figures.heat(axis, table, name, low=0, high=1)
    axis.set(xlabel="token changed", ylabel="output that moves")
lessons.picture(figure, "Which outputs move when a token is changed: with the "
                "right mask a lower triangle; with a mask that is off by one, "
                "two diagonals more, one for each layer")

# %% [markdown]
# Look at the second table. The mask leaks one place, but *two* diagonals
# are lit above the main one, of 10 and of 9: 19 outputs. The model has two
# decoder layers, and each hands the leak one place further. In a stack of six,
# a leak of one place is one of six.

# %% [markdown]
# ## What the catalogue says
#
# The project knows these mistakes, puts each into each port, and must find it
# at its first step and call it by its name. *named* below says that it did.

# %%
from parity.diagnosis import proof

for name in ("causal mask off by one, to the future", "no padding mask",
             "a query that sees nothing spreads its weight evenly"):
    cause = catalogue.by_name(name)
    print(f"“{name}”, first seen in {cause.case}, {cause.step}:")
    for framework, engine in engines.items():
        if framework != "numpy":
            found = proof.proof(cause, engine)
            print(f"  {framework:6} {found.in_words}")
            assert found.right

# %% [markdown]
# ## Exercises
#
# - **4.1** A causal mask. Six ways of getting it wrong are known by name.
# - **4.2** A masked softmax, with a row that sees nothing.
# - **4.3** Find the leak: a function that takes any model and says at which
#   place it first sees the future.
#
# In the code: `reference_numpy/masks.py`; the rules are R1 and R2 in
# RULINGS.md.
