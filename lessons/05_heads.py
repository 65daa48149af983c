# %% [markdown]
# # Heads and layouts
#
# One head looks in one way; many heads look in many ways at once, for the same
# price. All that is new is how one wide vector is cut into heads, and just
# there ports go wrong: a reshape that forgets to transpose has the right shape
# and mixes words. You cut, merge, and carry weights into torch's own layer.
#
# *45 minutes. You need lessons 3 and 4.*

# %%
import numpy as np

from parity.course.lesson import (
    assert_parity, Batch, figures, golden, lessons, Vector, VECTORS)

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
reference = engines["numpy"]
print("frameworks:", ", ".join(engines))
assert "numpy" in engines

# %% [markdown]
# ## Cutting a vector
#
# Section 3.2.2 of the paper:
#
#     head_h = Attention(x W_Q,h, x W_K,h, x W_V,h)
#     output = [head_1 … head_H] W_O
#
# H small products side by side are one large one, so the kernels of all heads
# stand in one matrix, head after head: head h owns the columns from h·K to
# (h + 1)·K. To cut, split the last axis in two and bring the heads forward.
# Follow the numbers 0 to 23: two words, twelve features, three heads.

# %%
x = np.arange(24).reshape(1, 2, 12)
right = x.reshape(1, 2, 3, 4).swapaxes(1, 2)
wrong = x.reshape(1, 3, 2, 4)
print("right, head 1:", right[0, 0].tolist())
print("wrong, head 1:", wrong[0, 0].tolist())
assert right.shape == wrong.shape == (1, 3, 2, 4)
assert right[0, 0].tolist() == [[0, 1, 2, 3], [12, 13, 14, 15]]

# %% [markdown]
# Both have the shape [1 3 2 4]. The right head 1 has the first four features
# of *each* word; the wrong one has the first word twice. The picture shows
# which word each cell of head 1, 2 and 3 came from.

# %%
word = np.repeat([[0], [1]], 12, axis=1)[None]
figure, axes = figures.subplots(2, 2.4)
for axis, cut, title in (
        (axes[0], word.reshape(1, 2, 3, 4).swapaxes(1, 2), "split, then swap"),
        (axes[1], word.reshape(1, 3, 2, 4), "only a reshape")):
    figures.heat(axis, cut.reshape(6, 4), title, [
        f"head {h}, row {t}" for h in (1, 2, 3) for t in (1, 2)], low=0,
        high=1)
    axis.set(xlabel="feature of the head", xticks=range(4))
lessons.picture(figure, "Which word the rows of three heads came from. Split "
                "and swapped, each head has a row of both words; with only a "
                "reshape the first head has the first word twice, and the "
                "second has a row of each")
own = [len(set(word.reshape(1, 3, 2, 4)[0, h].ravel())) for h in range(3)]
print("words in each head, only reshaped:", own)
assert own == [1, 2, 1]

# %% [markdown]
# ## Three heads at work
#
# Each head attends by itself, and their outputs are concatenated and mixed by
# one more matrix. The shapes are [batch, head, word, number].

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
# ## The same step four times
#
# Three of the four cut and merge as above. Keras' own layer, which the Keras
# port uses, has heads as an axis of its *kernels* instead, [D, H, K], and
# computes the projection with an einsum: there is nothing to cut.

# %%
lessons.at_the_spot(engines, "attention.py", "MultiHeadAttention", "output")
merged = right.swapaxes(1, 2).reshape(1, 2, 12)
print("cut and merged is what it was:", np.array_equal(merged, x))
assert np.array_equal(merged, x)

# %% [markdown]
# ## One set of numbers, four layouts
#
# What a framework calls its weights differs more than what it computes:
#
#     here           query.kernel            [D, H·K]     x @ kernel + bias
#     torch.Linear   weight                  [H·K, D]     transposed
#     torch MHA      in_proj_weight          [3·D, D]     q, then k, then v
#     Keras, Flax    query kernel            [D, H, K]    heads apart
#
# Where D = H·K the kernel is square, and a forgotten transpose raises no error.
# So this project's checks use sizes that all differ. We carry the weights of
# the notebook's attention into torch's own layer:

# %%
D, heads = 12, many.config.n_heads
part = many.weights
packed = np.concatenate(
    [part[f"{name}.kernel"].T for name in ("query", "key", "value")])
print("in_proj_weight:", packed.shape)
assert packed.shape == (3 * D, D)
if "torch" in engines:
    import torch
    layer = torch.nn.MultiheadAttention(
        D, heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.from_numpy(packed))
        layer.out_proj.weight.copy_(torch.from_numpy(part["output.kernel"].T))
        y = torch.from_numpy(many.inputs()[0])
        theirs = layer(y, y, y, need_weights=False)[0].numpy()
        layer.out_proj.weight.copy_(torch.from_numpy(part["output.kernel"]))
        untransposed = layer(y, y, y, need_weights=False)[0].numpy()
    error = assert_parity(theirs, steps["output"])[0].error
    gap = np.abs(untransposed - steps["output"]).max()
    print(f"torch's layer: error {error:.1e}; with one kernel not transposed, "
          f"off by {gap:.1f}")
    assert gap > 0.1
else:
    print("not checked: torch's own layer")

# %% [markdown]
# ## What heads learn
#
# Random weights attend to random words. The shipped model was trained to write
# dates as 2047-04-19; when it writes the month, where do the heads of its last
# layer look?

# %%
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
month = [i for i, word in enumerate(words) if word in (" a", "vr", "il")]
share = attended["numpy"][0, :, place][:, month].sum(axis=-1)
print("of each head's attention, to the month:", share)
assert share.max() > 0.5

figure, axes = figures.subplots(4, 3.4, sharey=True)
for number, axis in enumerate(axes):
    figures.heat(axis, attended["numpy"][0, number, 1:-1].T,
                 f"head {number + 1}", words if not number else None, low=0,
                 high=1)
    axis.set_xticks(range(len(written) - 2), written[1:-1], fontsize=7)
lessons.picture(figure, "Where the four heads of the last layer look in the "
                "source while each piece of the date is read")

# %% [markdown]
# ## Exercises
#
# - **5.1** Split into heads. A reshape has the right shape and is wrong.
# - **5.2** Concatenate the heads again.
# - **5.3** Pack three kernels and biases for `torch.nn.MultiheadAttention`.
#
# In the code: `split` and `merge` in `reference_numpy/attention.py`; R14 in
# RULINGS.md says which columns are whose, and `parity check differences` what
# each framework stores.
