# %% [markdown]
# # From forty lines to one call
#
# You have written attention by hand. Every framework has it as one layer, and
# a program of yours should call that: it says what you intend, and leaves the
# mechanics to others. But the call decides for you: which truth of a mask
# hides, what a row is that may see nothing, how weights lie in memory, ε, and
# what dropout drops. Here each decision is a number, against the model by hand.
#
# *45 minutes. You need lessons 4, 5 and 6.*

# %%
import ast

import numpy as np

from parity.course.lesson import cases, figures, lessons, ports, probe_weights

np.set_printoptions(precision=4, suppress=True, linewidth=76)
engines = lessons.engines_here()
print("frameworks:", ", ".join(engines))
assert "numpy" in engines

# %% [markdown]
# ## By hand
#
# This is what you know: three maps, heads cut out, scores, a mask, softmax, a
# mean of values, heads put together, one map more. NumPy has the way back
# besides. In statements:

# %%
for name in engines:
    text = (ports.folder(name) / "attention.py").read_text("utf-8")
    owner, = (node for node in ast.parse(text).body if isinstance(
        node, ast.ClassDef) and node.name == "MultiHeadAttention")
    spent = sum(isinstance(node, ast.stmt) for node in ast.walk(owner))
    lines = owner.end_lineno - owner.lineno + 1
    print(f"{name:6} by hand: {spent} statements in {lines} lines")
    assert lines > 40

# %% [markdown]
# The model by hand is the reference's, with twelve features, three heads and
# weights that are all different. The mask is ours: True may be read.

# %%
B, T, D, H = 2, 5, 12, 3
K = D // H
config = cases.test_size("notebook").replace(d_model=D, n_heads=H)
path = "encoder.layers.0.self_attention."
w = {name.removeprefix(path): array
     for name, array in probe_weights(config).items() if name.startswith(path)}
x = cases.values("lesson 14", B, T, D)
mask = np.tri(T, dtype=bool)[None, None].repeat(B, axis=0)
mask[1, 0, 1:, 0] = False  # the second row of the batch begins with padding


def by_hand(x, mask, weights=w):
    """All that lesson 5 has, step by step: [B T D]."""
    numpy = engines["numpy"]
    layer = numpy.build("multi_head_attention", config, weights)
    return numpy.run(layer, x, x, mask, cache=None)["output"]


truth = by_hand(x, mask)
print("weights", {name: array.shape for name, array in w.items()
                  if name.endswith("kernel")})
print("output", truth.shape, "begins with", truth[0, 0, :3])
assert truth.shape == (B, T, D) and len(w) == 8

# %% [markdown]
# ## One call each
#
# `calls` has a function a framework: it makes the layer, gives it our weights,
# and calls it once. Read what had to be said, and what did not.

# %%
calls = {}
if "torch" in engines:
    import torch

    def torch_layer(weights=w, **how):
        """Query, key and value are one array, [3D D], as [out in]."""
        layer = torch.nn.MultiheadAttention(
            D, H, batch_first=True, dtype=torch.float64, **how)
        three = "query", "key", "value"
        arrays = {
            "in_proj_weight": np.concatenate(
                [weights[f"{part}.kernel"].T for part in three]),
            "in_proj_bias": np.concatenate(
                [weights[f"{part}.bias"] for part in three]),
            "out_proj.weight": weights["output.kernel"].T,
            "out_proj.bias": weights["output.bias"]}
        layer.load_state_dict({
            name: torch.from_numpy(array) for name, array in arrays.items()})
        return layer.eval()

    def call_torch(x, mask, layer=None, **how):
        """The mask has an axis for rows and heads, [B·H T S]."""
        x = torch.from_numpy(x)
        mask = torch.from_numpy(mask.repeat(H, axis=1).reshape(-1, T, T))
        output, _ = (layer or torch_layer())(x, x, x, attn_mask=mask, **how)
        return output.detach().numpy()

    calls["torch"] = lambda x, mask: call_torch(x, ~mask)
print("a call of torch:", "torch" in calls)

# %%
if "keras" in engines:
    import keras

    def keras_layer(weights=w, **how):
        """Heads are an axis of each kernel: [D H K], and [H K D]."""
        layer = keras.layers.MultiHeadAttention(H, K, dtype="float64", **how)
        layer.build((None, None, D), (None, None, D))
        layer.set_weights([array.reshape(own.shape) for own, array in zip(
            layer.weights, (weights[f"{part}.{leaf}"] for part in (
                "query", "key", "value", "output")
                for leaf in ("kernel", "bias")))])
        return layer

    def call_keras(x, mask, layer=None, **how):
        """The mask has no axis for heads, [B T S]."""
        output = (layer or keras_layer())(
            x, x, attention_mask=mask[:, 0], **how)
        return keras.ops.convert_to_numpy(
            output[0] if isinstance(output, tuple) else output)

    calls["keras"] = call_keras
print("a call of keras:", "keras" in calls)

# %%
if "jax" in engines:
    import jax.numpy as jnp
    from flax import nnx

    def jax_layer(weights=w, **how):
        """Heads are an axis of each kernel, as in Keras."""
        layer = nnx.MultiHeadAttention(
            H, D, dtype=jnp.float64, param_dtype=jnp.float64, decode=False,
            rngs=nnx.Rngs(0), **how)
        for part, own in (("query", layer.query), ("key", layer.key),
                          ("value", layer.value), ("output", layer.out)):
            for leaf in ("kernel", "bias"):
                kept = getattr(own, leaf)
                kept[...] = jnp.asarray(
                    weights[f"{part}.{leaf}"].reshape(kept.shape))
        return layer

    def call_jax(x, mask, layer=None):
        """The mask has all four axes, [B 1 T S]."""
        return np.asarray((layer or jax_layer())(
            jnp.asarray(x), mask=jnp.asarray(mask)))

    calls["jax"] = call_jax
print("a call of jax:", "jax" in calls)

# %% [markdown]
# Are they the model by hand? Every query sees something here, so no decision
# of theirs shows yet. The limit is large for float64: NNX's softmax is
# float32's in any dtype, which is a decision too.

# %%
def off(found, wanted=truth):
    """The relative error of some output."""
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


seen = mask.copy()
seen[..., np.arange(T), np.arange(T)] = True  # each query sees itself
for name, call in calls.items():
    error = off(call(x, seen), by_hand(x, seen))
    print(f"{name:6} one call: {error:.0e} from the lines by hand")
    assert error < 1e-6
assert off(truth) == 0

# %% [markdown]
# ## Where the mask's truth is
#
# Give each the mask as it is. Only torch's answer changes: its True *hides*.
# Nothing fails, no shape is wrong, and a causal model then sees the future.

# %%
for name, call in calls.items():
    given = call_torch(x, seen) if name == "torch" else call(x, seen)
    error = off(given, by_hand(x, seen))
    print(f"{name:6} given our mask: {error:.0e} off")
    assert (error > 0.1 or np.isnan(error)) == (name == "torch")
turned = by_hand(x, ~seen)
print("by hand, turned round: off by", round(off(turned, by_hand(x, seen)), 2))
assert off(turned, by_hand(x, seen)) > 0.1

# %% [markdown]
# ## A row that may see nothing
#
# Now hide all keys from the last query. Lesson 4 had four answers; three are in
# these layers, and which you get depends on how you call. Asked for its
# weights, Keras gives none to such a row; else it gives the mean of all.

# %%
nothing = seen.copy()
nothing[:, :, -1] = False
row = by_hand(x, nothing)[:, -1]
mean = (x @ w["value.kernel"] + w["value.bias"]).mean(axis=1) @ (
    w["output.kernel"]) + w["output.bias"]
assert np.allclose(row, w["output.bias"], rtol=0, atol=1e-15)


def said(output):
    """What became of the last query, in words."""
    if np.isnan(output[:, -1]).all():
        return "NaN"
    for words, wanted in (("nothing is read", row), ("the mean of all", mean)):
        if np.allclose(output[:, -1], wanted, rtol=1e-5):
            return words
    return "something else"


answers = {"by hand": said(by_hand(x, nothing))}
if "torch" in calls:
    answers["torch"] = said(call_torch(x, ~nothing))
    answers["torch, no weights asked for"] = said(
        call_torch(x, ~nothing, need_weights=False))
    with torch.no_grad():
        answers["torch, without gradients"] = said(call_torch(x, ~nothing))
if "keras" in calls:
    answers["keras"] = said(call_keras(x, nothing))
    answers["keras, asked for its weights"] = said(
        call_keras(x, nothing, return_attention_scores=True))
if "jax" in calls:
    answers["jax"] = said(call_jax(x, nothing))
for how, answer in answers.items():
    print(f"{how:30} {answer}")
assert answers["by hand"] == "nothing is read"
assert "something else" not in answers.values()

# %%
shares = {"nothing is read": np.zeros(T), "the mean of all": np.full(T, 1 / T)}
figure, axes = figures.subplots(2, 2.2)
for axis, (words, weights) in zip(axes, shares.items()):
    last = np.tri(T) / np.arange(1, T + 1)[:, None]
    last[-1] = weights
    figures.heat(axis, last, words, low=0, high=1)
    axis.set(xlabel="key", ylabel="query")
lessons.picture(figure, "Weights of five queries under a causal mask, equal "
                "where allowed; the last query, from which all is hidden, has "
                "none on the left, and a fifth of each key on the right")
print("sums of the last row:", *(weights.sum() for weights in shares.values()))
assert shares["nothing is read"].sum() == 0

# %% [markdown]
# NaN spoils the whole batch, in the next layer or in the loss, and that is
# luck: it is seen. The mean of all is not seen. Padding reaches an output that
# nobody should have, and with it the loss, unless that place does not count.
#
# ## How weights lie
#
# The call made its weights itself. They are the same numbers in three layouts,
# so a file of weights is of use to whoever knows which. D = 12 and H·K = 12:
# a kernel the wrong way round fits, and nothing fails.

# %%
kept = {"by hand": {name: w[name].shape
                    for name in ("query.kernel", "output.kernel")}}
if "torch" in calls:
    kept["torch"] = {name: tuple(array.shape) for name, array
                     in torch_layer().named_parameters() if array.ndim > 1}
if "keras" in calls:
    kept["keras"] = {each.path.split("/", 1)[-1]: each.shape
                     for each in keras_layer().weights[::6]}
if "jax" in calls:
    own = jax_layer()
    kept["jax"] = {"query.kernel": own.query.kernel.shape,
                   "out.kernel": own.out.kernel.shape}
for name, shapes in kept.items():
    print(f"{name:8}", "; ".join(
        f"{each} {list(shape)}" for each, shape in shapes.items()))
wrong = w | {"output.kernel": w["output.kernel"].T}
print(f"one kernel transposed: {off(by_hand(x, mask, wrong)):.1f} off")
assert off(by_hand(x, mask, wrong)) > 0.1
assert kept["by hand"]["query.kernel"] == (D, H * K)

# %% [markdown]
# ## ε, in the call beside it
#
# Attention has no ε. The norm around it has, and each framework another one
# where you say nothing. On vectors with a variance of 1 you would hardly see
# it. Here the variance is 0.0001, as behind a small initialisation.

# %%
small = 0.01 * cases.values("lesson 14 norm", T, D)
norms = {}
if "torch" in engines:
    norms["torch"] = torch.nn.LayerNorm(D, dtype=torch.float64)
if "keras" in engines:
    norms["keras"] = keras.layers.LayerNormalization(dtype="float64")
if "jax" in engines:
    norms["jax"] = nnx.LayerNorm(D, dtype=jnp.float64, rngs=nnx.Rngs(0))


def normalised(eps):
    """The formula of lesson 6, scale 1 and bias 0."""
    variance = small.var(axis=-1, keepdims=True)
    return (small - small.mean(axis=-1, keepdims=True)) / np.sqrt(
        variance + eps)


found = {}
for name, norm in norms.items():
    y = norm(torch.from_numpy(small) if name == "torch" else small)
    y = y.detach().numpy() if name == "torch" else np.asarray(y)
    found[name] = min((1e-3, 1e-5, 1e-6, 1e-12), key=lambda eps: np.abs(
        y - normalised(eps)).max())
    gap = off(y, normalised(1e-12))
    print(f"{name:6} ε {found[name]:.0e}: {gap:.1%} from no ε at all")
    assert np.allclose(y, normalised(found[name]), atol=1e-4)
assert len(set(found.values())) == len(found)
print("by hand: the ε that you write, and no other")

# %% [markdown]
# ## What dropout drops
#
# The paper drops what a sub-layer gives. These layers drop *weights*, after the
# softmax, and divide what is left by 1 - p. To see it, let queries and keys be
# 0, so that each of twelve words has a weight of 1/12, and let word i be the
# i-th unit vector: the output then *is* the weights.

# %%
words = np.eye(D)[None].repeat(2, axis=0)  # two rows of a batch, D words
unit = {f"{part}.{leaf}": np.zeros_like(w[f"{part}.{leaf}"])
        for part in ("query", "key", "value", "output")
        for leaf in ("kernel", "bias")}
unit["value.kernel"] = unit["output.kernel"] = np.eye(D)
p = 0.5
dropped = {}
if "torch" in engines:
    torch.manual_seed(0)
    layer, given = torch_layer(unit, dropout=p).train(), torch.from_numpy(words)
    dropped["torch"] = layer(given, given, given)[0].detach().numpy()
if "keras" in engines:
    dropped["keras"] = keras.ops.convert_to_numpy(keras_layer(
        unit, dropout=p, seed=0)(words, words, training=True))
if "jax" in engines:
    for name, shared in (("jax", True), ("jax, each its own", False)):
        layer = jax_layer(unit, dropout_rate=p, broadcast_dropout=shared)
        layer.train()
        dropped[name] = np.asarray(layer(jnp.asarray(words)))
ones = np.ones((1, 1, 1, D), bool)
everything = by_hand(words, ones, unit)
print("by hand, nothing dropped:", np.unique(everything.round(6)) * D, "/ 12")
assert np.allclose(everything, 1 / D)
for name, output in dropped.items():
    values = np.unique((output * D).round(4))
    zeros, same = (output == 0).mean(), np.array_equal(*output)
    print(f"{name:17} {values} / 12, {zeros:.0%} are 0, both rows "
          f"{'alike' if same else 'apart'}")
    assert set(values) <= {0, 1 / (1 - p)} and 0.3 < zeros < 0.7
    assert same == (name == "jax")

# %% [markdown]
# So it is the weights in all three, and a row of them no longer has the sum 1.
# NNX draws one mask for all rows and heads unless you say
# `broadcast_dropout=False`: half the noise, and no error to see.
#
# ## What to take home
#
# - Write the call, and know the formula: the call is right for what it intends.
# - A mask is tested by a number that must not move, never by its shape.
# - Test a row that may see nothing, both ways of calling, before you pad.
# - Say ε, and the place of dropout, even where the default is what you want.
#
# ## Exercise
#
# - **14.1** A mask for torch's layer. Three wrong ones are known by name.
#
# In the code: each port's `native/` has the whole model of such calls, and
# `parity check --form native` holds it against the model by hand; R1, R2, R4
# and R14 in RULINGS.md.
