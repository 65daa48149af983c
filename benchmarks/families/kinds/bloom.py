"""BLOOM, with six heads, which are no power of two."""

from benchmarks.families.fault import (
    ORDER, RESIDUAL, SCALE, either, number)
from benchmarks.families.hugging import Original, OurPort, tokens

CONFIG = {"hidden_size": 24, "n_layer": 2, "n_head": 6, "vocab_size": 29,
          "use_cache": False, "pad_token_id": 0}
BLOOM = Original("bloom", "bloom", "BloomModel", ("BloomConfig", CONFIG))
NNX = OurPort("bloom", "bloom_nnx", BLOOM.plain, lambda: tokens().values(),
              CONFIG)

ALIBI = r"alibi|slope|bias|distance§pow|exp|\*"


def copies():
    """Faults in copies of the library's own file."""
    of = BLOOM.fault
    yield of("bias without slopes' odd heads", (ALIBI,), (
        "slopes = torch.cat([slopes, torch.pow(extra_base, extra_powers)], "
        "dim=0)",
        "slopes = torch.cat([slopes, slopes[:num_remaining_heads]], dim=0)"))
    yield of("residual from the norm", (either(RESIDUAL, "input"), "@norm"), (
        "residual = hidden_states\n\n        # Self attention",
        "residual = layernorm_output\n\n        # Self attention"))
    yield of("embedding's norm forgotten", (r"norm",), (
        "hidden_states = self.word_embeddings_layernorm(inputs_embeds)",
        "hidden_states = inputs_embeds"))
    yield of("bias scaled too", (
        either(SCALE, "beta"), number(0.5) + "|beta|alibi|bias"), (
        "self.beta = 1.0", "self.beta = 1.0 / math.sqrt(self.head_dim)"))
    yield of("key and value exchanged", (
        r"exchang|swap|order§\[|select|slice",), (
        "key_layer = fused_qkv[..., 1, :]", "key_layer = fused_qkv[..., 2, :]"
    ), ("value_layer = fused_qkv[..., 2, :]",
        "value_layer = fused_qkv[..., 1, :]"))
    yield of("gelu by erf", ("gelu|tanh", "erf|exact|tanh"), (
        "return GeLUFunction.apply(x)", "return F.gelu(x)"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("slopes as if a power of two", (ALIBI,), (
        "    return jnp.array(first + more)",
        "    return jnp.array([2 ** (-8 * (i + 1) / heads)\n"
        "                      for i in range(heads)])"))
    yield of("extra slopes by 1, 2", (ALIBI,), (
        "(-4 * (2 * i + 1) / power)", "(-4 * (i + 1) / power)"))
    yield of("bias of the other sign", (
        "sign|negat§neg|-|sub",), (
        "math.sqrt(q.shape[-1]) + bias",
        "math.sqrt(q.shape[-1]) + jnp.where(bias < -1, bias, -bias)"))
    yield of("bias before the scale", (SCALE, ALIBI), (
        "q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1]) + bias",
        "(q @ k.transpose(0, 1, 3, 2) + bias) / math.sqrt(q.shape[-1])"))
    yield of("packed as three, then heads", (ORDER,), (
        "rows, length, self.heads, 3, -1)\n        q, k, v = "
        "packed.transpose(3, 0, 2, 1, 4)",
        "rows, length, 3, self.heads, -1)\n        q, k, v = "
        "packed.transpose(2, 0, 3, 1, 4)"))
    yield of("norm ε 1e-6", (number(1e-5), number(1e-6)), (
        "epsilon=1e-5", "epsilon=1e-6"))
    yield of("0.044715 forgotten", (
        r"gelu|activation|tanh|" + number(0.044715),), (
        "(1 + 0.044715 * x * x)", "(1 + 0.0 * x * x)"), within=True)


def pairs():
    """All of them; a bias by distance is the same to softmax."""
    distance = NNX.fault("sound: bias by distance, not by place", (), (
        "        kept = jnp.tril",
        "        bias = slopes(self.heads)[:, None, None] * (\n"
        "            places[:, None, None] - places[:, None, :, None])\n"
        "        kept = jnp.tril"))
    return [BLOOM.sound(), NNX.sound(), distance, *copies(), *ports()]
