"""Qwen3, dense."""

from benchmarks.families.fault import (
    MASK, RESIDUAL, ROTARY, SCALE, either, number)
from benchmarks.families.hugging import DECODER, Original, OurPort, tokens

CONFIG = DECODER | {"rope_parameters": {
    "rope_type": "default", "rope_theta": 1e6}}
QWEN3 = Original("qwen3", "qwen3", "Qwen3ForCausalLM", ("Qwen3Config", CONFIG))
NNX = OurPort("qwen3", "qwen3_nnx", QWEN3.plain, lambda: tokens().values(),
              CONFIG | {"theta": 1e6})

PER_HEAD = r"norm|rms§mean|rsqrt"
TILED = r"tile|repeat|shared heads|order|expand§repeat|tile|expand"


def within():
    """Faults in copies of the library's own file."""
    of = QWEN3.fault
    yield of("norm ε 1e-5", (number(1e-6), number(1e-5)), (
        "self.variance_epsilon = eps", "self.variance_epsilon = 1e-5"))
    yield of("keys not normed", (PER_HEAD,), (
        "self.k_norm(self.k_proj(hidden_states).view(hidden_shape))",
        "self.k_proj(hidden_states).view(hidden_shape)"))
    yield of("queries by the keys' norm", (r"@k_norm", r"@q_norm"), (
        "self.q_norm(self.q_proj", "self.k_norm(self.q_proj"))
    yield of("scores scaled twice", (SCALE,), (
        "key_states.transpose(2, 3)) * scaling",
        "key_states.transpose(2, 3)) * scaling**2"))
    yield of("heads tiled", (TILED,), (
        "hidden_states[:, :, None, :, :].expand(batch, num_key_value_heads, "
        "n_rep, slen, head_dim)",
        "hidden_states[:, None].expand(batch, n_rep, num_key_value_heads, "
        "slen, head_dim)"))
    yield of("rotary pairs interleaved", (
        ROTARY + "|pair", r"interleav|halves|neighbour|order§::2|stack"), (
        "x1 = x[..., : x.shape[-1] // 2]\n    x2 = x[..., x.shape[-1] // 2 :]"
        "\n    return torch.cat((-x2, x1), dim=-1)",
        "x1 = x[..., ::2]\n    x2 = x[..., 1::2]"
        "\n    return torch.stack((-x2, x1), dim=-1).flatten(-2)"))
    yield of("second residual from the norm", (
        either(RESIDUAL, "input"), "@norm"), (
        "residual = hidden_states\n        hidden_states = "
        "self.post_attention_layernorm(hidden_states)",
        "hidden_states = self.post_attention_layernorm(hidden_states)\n"
        "        residual = hidden_states"))
    yield of("gate's activation on up", (r"\bgate|activation",), (
        "self.act_fn(self.gate_proj(x)) * self.up_proj(x)",
        "self.gate_proj(x) * self.act_fn(self.up_proj(x))"))
    yield of("no final norm", (r"norm",), (
        "hidden_states = self.norm(hidden_states)",
        "hidden_states = hidden_states"))


def across():
    """Faults in a port to nnx, beside the original or the sound port."""
    of = NNX.fault
    yield of("norm after rotary", (PER_HEAD, "order|before|after|" + ROTARY), (
        "rotate(self.q_norm(heads(self.q_proj(x))), self.theta)",
        "self.q_norm(rotate(heads(self.q_proj(x)), self.theta))"))
    yield of("norm over all heads", (PER_HEAD, r"ax[ie]s|heads|width|shape"), (
        "mean = jnp.mean(x * x, -1, keepdims=True)",
        "mean = jnp.mean(x * x, tuple(range(2, x.ndim)), keepdims=True)"))
    yield of("θ 1e4", (number(1e4), number(1e6)), (
        '"head_dim"], c["theta"]', '"head_dim"], 1e4'))
    yield of("no scale of scores", (SCALE,), (
        'k) / self.size**0.5', 'k)'))
    yield of("padding ignored", (MASK,), (
        "kept = kept & (mask[:, None, None] > 0)", "kept = kept"), at="attn")
    yield of("heads tiled", (TILED,), (
        "k, v = jnp.repeat(k, shared, 2), jnp.repeat(v, shared, 2)",
        "k, v = jnp.tile(k, (1, 1, shared, 1)), "
        "jnp.tile(v, (1, 1, shared, 1))"))
    yield of("head tied", (r"@tied|embed|different",), (
        "return self.lm_head(self.norm(x))",
        "return self.norm(x) @ self.embed_tokens.embedding[...].T"))
    yield of("norm after rotary", (PER_HEAD, "order|before|after|" + ROTARY), (
        "rotate(self.k_norm(heads(self.k_proj(x))), self.theta)",
        "self.k_norm(rotate(heads(self.k_proj(x)), self.theta))"),
        within=True)
    yield of("weight 1 + w", (r"1 is added|1 \+|\+ 1|less 1",), (
        "* self.scale[...]", "* (1 + self.scale[...])"), within=True)
    yield of("mean taken off", (r"subtract|centr|layer norm§ - | − |sub",), (
        "mean = jnp.mean(x * x, -1, keepdims=True)",
        "x = x - jnp.mean(x, -1, keepdims=True)\n"
        "        mean = jnp.mean(x * x, -1, keepdims=True)"), within=True)


def pairs():
    """All of them."""
    shifted = NNX.fault("sound: rotary angles from place 1", (), (
        "jnp.arange(x.shape[1])[:, None]",
        "jnp.arange(1, 1 + x.shape[1])[:, None]"))
    return [QWEN3.sound(), NNX.sound(), shifted, *within(), *across()]
