"""Hugging Face's, Keras Hub's and NNX' layers: the cause is named, or none."""

import numpy as np
import pytest

from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.comparison.result import FLOAT32
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import (
    F, H, V, W, Y, drawn, filled, port, stored, told)


def hugging_face(name):
    pytest.importorskip(
        "transformers", reason="not checked: transformers is not installed")
    usable("torch")
    import transformers
    if name == "bert":
        return drawn(transformers.BertModel(transformers.BertConfig(
            vocab_size=V, hidden_size=W, num_hidden_layers=2,
            num_attention_heads=H, intermediate_size=F,
            max_position_embeddings=16, attn_implementation="eager"),
            add_pooling_layer=False))
    model = transformers.MarianModel(transformers.MarianConfig(
        vocab_size=V, d_model=W, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=H, decoder_attention_heads=H,
        encoder_ffn_dim=F, decoder_ffn_dim=F, max_position_embeddings=16,
        scale_embedding=True, activation_function="swish", pad_token_id=0,
        decoder_start_token_id=0, attn_implementation="eager"))
    model = drawn(model, "embed_positions").encoder
    import torch
    with torch.no_grad():
        model.embed_positions.weight.copy_(
            model.embed_positions.create_weight())
    return model


BERT = stored("encoder.layer", ln1="attention.output.LayerNorm",
              ln2="output.LayerNorm", inner="intermediate.dense",
              outer="output.dense", **{
                  f"attention.{mine}": f"attention.{other}"
                  for mine, other in (("q", "self.query"), ("k", "self.key"),
                                      ("v", "self.value"),
                                      ("o", "output.dense"))}) | {
    "tok": "embeddings.word_embeddings", "n": "embeddings.LayerNorm",
    "pos": "embeddings.position_embeddings",
    "seg": "embeddings.token_type_embeddings"}

MARIAN = stored("layers", ln1="self_attn_layer_norm",
                ln2="final_layer_norm", inner="fc1", outer="fc2", **{
                    f"attention.{mine}": f"self_attn.{other}_proj"
                    for mine, other in (("q", "q"), ("k", "k"), ("v", "v"),
                                        ("o", "out"))}) | {
    "tok": "embed_tokens"}


def tokens():
    import torch
    ids = np.random.default_rng(3).integers(1, V, (2, 7))
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[0, 5:] = False
    ids = torch.from_numpy(ids)
    return [ids, mask.long()], [ids, mask]


@pytest.mark.long(8)
@pytest.mark.parametrize("wrong, expected", [
    ({}, []), ({"eps": 1e-5}, [("epsilon", "1e-05")]),
    ({"eps0": 1e-5}, [("epsilon", "1e-05")]),
    ({"tanh": True}, [("activation", "gelu by tanh")]),
    ({"words": False}, [("summand", "missing")]),
    ({"factor": W**0.5}, [("factor", "3.4641")]),
    ({"first": 2}, [("first position", "2")]),
    ({"mask": None}, [("mask", "ignored in b")]),
    ({"mask": lambda mask: ~mask[:, None, None]},
     [("mask", "turned round in b")]),
    ({"scale": W**-0.5}, [("scale", "1/√d_model")]),
    ({"tanh": True, "eps0": 1e-6}, [("epsilon", "1e-06"),
                                    ("activation", "gelu by tanh")])])
def test_bert(wrong, expected):
    """With token types, which ports forget, and the exact gelu."""
    theirs = hugging_face("bert")
    from torch.nn import functional
    wrong = {"words": True, "eps": 1e-12, **wrong}
    how = "tanh" if wrong.pop("tanh", False) else "none"
    mine = filled(port(act=lambda x: functional.gelu(x, approximate=how),
                       **wrong), theirs, BERT)
    _, found = told(theirs, mine, *tokens())
    assert [(cause, what) for _, cause, what in found] == expected


def table(first=0, halves=True, t2t=False):
    """Marian's positions, which passed through float32."""
    pair = np.arange(W // 2)
    step = pair / (W // 2 - 1) if t2t else 2 * pair / W
    angle = (np.arange(7) + first)[:, None] / 10000.0**step
    both = np.sin(angle), np.cos(angle)
    rows = (np.concatenate(both, -1) if halves
            else np.stack(both, -1).reshape(7, W))
    return rows.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("wrong, expected", [
    ({}, []),
    ({"table": {"halves": False}}, [("positions' layout", "interleaved")]),
    ({"table": {"t2t": True}}, [("positions' exponent", "i/(d/2 - 1)")]),
    ({"table": {"first": 1}}, [("first position", "1")]),
    ({"factor": 1.0}, [("input's factor", "1.0")]),
    ({"eps": 1e-6}, [("epsilon", "1e-06")]),
    ({"table": {"halves": False}, "eps": 1e-6},
     [("positions' layout", "interleaved"), ("epsilon", "1e-06")])])
def test_marian(wrong, expected):
    """Its sinusoids stand in halves, and its embedding is scaled."""
    theirs = hugging_face("marian")
    from torch.nn import functional
    wrong = {"factor": W**0.5, "act": functional.silu, **wrong}
    wrong["table"] = table(**wrong.pop("table", {}))
    _, found = told(theirs, filled(port(**wrong), theirs, MARIAN), *tokens())
    assert [(cause, what) for _, cause, what in found] == expected


@pytest.mark.parametrize("wrong, expected", [
    ({}, []), ({"layer_norm_epsilon": 1e-6}, [("epsilon", "1e-06")]),
    ({"activation": "silu"}, [("activation", "silu")]),
    ({"normalize_first": True}, [("norm's place", "before the sub-layer")])])
def test_keras_hub(wrong, expected):
    hub = pytest.importorskip(
        "keras_hub", reason="not checked: keras_hub is not installed")
    give = usable("keras").to_native
    from parity_tests.support import layers as others
    layer = others.torch_layer()
    arrays = others.weights_of(layer)
    size, heads = others.D, others.H
    b = hub.layers.TransformerEncoder(others.F, heads, dtype="float64",
                                      **{"layer_norm_epsilon": 1e-5, **wrong})
    b(give(others.X, "cpu"))
    inner = b._self_attention_layer
    inner._inverse_sqrt_key_dim = np.float64((size // heads)**-0.5)
    for name, kernel, bias in zip(("query", "key", "value"), *(
            np.split(arrays[f"self_attn.in_proj_{leaf}"], 3)
            for leaf in ("weight", "bias"))):
        dense = getattr(inner, f"_{name}_dense")
        dense.kernel.assign(kernel.T.reshape(size, heads, -1))
        dense.bias.assign(bias.reshape(heads, -1))
    inner._output_dense.kernel.assign(
        arrays["self_attn.out_proj.weight"].T.reshape(heads, -1, size))
    inner._output_dense.bias.assign(arrays["self_attn.out_proj.bias"])
    for name, other in (("self_attention_layer_norm", "norm1"),
                        ("feedforward_layer_norm", "norm2"),
                        ("feedforward_intermediate_dense", "linear1"),
                        ("feedforward_output_dense", "linear2")):
        held, array = getattr(b, f"_{name}"), arrays[f"{other}.weight"]
        (held.gamma if "norm" in other else held.kernel).assign(array.T)
        (held.beta if "norm" in other else held.bias).assign(
            arrays[f"{other}.bias"])
    a, b = others.traced(layer, "torch"), others.traced(b, "keras")
    found = explain(compare(a, b), a, b)
    assert [(each.cause, each.in_b) for each in found] == expected


@pytest.mark.long(8)
def test_nnx_attention():
    """Its own computes the softmax in float32, and that is told."""
    usable("torch"), usable("jax")
    import jax
    import jax.numpy as jnp
    import torch
    from flax import nnx

    class Torch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mha = torch.nn.MultiheadAttention(W, H, batch_first=True)

        def forward(self, x):
            return self.mha(x, x, x)[0]

    class Jax(nnx.Module):
        def __init__(self, attention):
            self.mha = nnx.MultiHeadAttention(
                H, W, decode=False, param_dtype=jnp.float64,
                rngs=nnx.Rngs(0), attention_fn=attention)

        def __call__(self, x):
            return self.mha(x)
    theirs = drawn(Torch())
    held = {name: value.numpy() for name, value in
            theirs.state_dict().items()}

    def made(attention):
        model = Jax(attention)
        for name, kernel, bias in zip(("query", "key", "value"), *(
                np.split(held[f"mha.in_proj_{leaf}"], 3)
                for leaf in ("weight", "bias"))):
            dense = getattr(model.mha, name)
            dense.kernel.set_value(jnp.array(kernel.T.reshape(W, H, -1)))
            dense.bias.set_value(jnp.array(bias.reshape(H, -1)))
        model.mha.out.kernel.set_value(jnp.array(
            held["mha.out_proj.weight"].T.reshape(H, -1, W)))
        model.mha.out.bias.set_value(jnp.array(held["mha.out_proj.bias"]))
        return model

    def attention(scale):
        def attend(q, k, v, **_):
            scores = jnp.einsum("bthd,bshd->bhts", q, k) * scale
            return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
        return attend
    given = [torch.from_numpy(Y)], [jnp.array(Y)]
    assert told(theirs, made(attention((W // H)**-0.5)), *given) == (None, [])
    assert told(theirs, made(attention(1.0)), *given)[1] == [
        ("mha", "scale", "1")]
    a, b = trace(theirs, *given[0]), trace(
        made(nnx.dot_product_attention), *given[1])
    comparison = compare(a, b)
    only, = explain(comparison, a, b)
    assert (only.cause, only.in_a, only.in_b) == (
        "precision inside", "in float64", "in float32")
    assert 1e-9 < only.errors["without"] < 1e-6
    assert only.errors["b"] < 1e-12 and only.errors["a"] < 1e-12
    assert comparison.verdict == FLOAT32


def test_nnx_embed_casts_to_the_dtype_it_was_built_with():
    """A table that became float64 later does not change what it makes."""
    usable("torch"), usable("jax")
    import jax.numpy as jnp
    import torch
    from flax import nnx
    theirs = drawn(torch.nn.Sequential(
        torch.nn.Embedding(V, W), torch.nn.Linear(W, 3)))

    def made(dtype):
        table, dense = (
            nnx.Embed(V, W, dtype=dtype, rngs=nnx.Rngs(0)),
            nnx.Linear(W, 3, rngs=nnx.Rngs(0)))
        for held, parameter in ((table.embedding, theirs[0].weight),
                                (dense.kernel, theirs[1].weight.T),
                                (dense.bias, theirs[1].bias)):
            held.set_value(jnp.array(parameter.detach().numpy()))
        return nnx.Sequential(table, dense)
    ids = np.arange(6).reshape(2, 3) % V
    given = [torch.from_numpy(ids)], [jnp.array(ids)]
    assert told(theirs, made(jnp.float64), *given) == (None, [])
    a, b = trace(theirs, *given[0]), trace(made(None), *given[1])
    first, *_ = explain(compare(a, b), a, b)
    assert (first.cause, first.in_a, first.in_b) == (
        "dtype", "float64", "float32")
    assert "give it dtype as well as param_dtype" in first.text()
