"""NNX' own layers beside PyTorch's: the cause is named, or none."""

import numpy as np
import pytest

from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.comparison.result import FLOAT32
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import H, V, W, Y, drawn, told


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
