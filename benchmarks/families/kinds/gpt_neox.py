"""GPT-NeoX, as Pythia is."""

from benchmarks.families.fault import (
    EPSILON, ORDER, RESIDUAL, SCALE, number)
from benchmarks.families.hugging import (
    ENCODER, Original, Port, tokens)

CONFIG = ENCODER | {"hidden_size": 32, "use_cache": False, "rope_parameters": {
    "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}
NEOX = Original("gpt_neox", "gpt_neox", "GPTNeoXForCausalLM", (
    "GPTNeoXConfig", CONFIG))
NNX = Port("gpt_neox", "gpt_neox_nnx", NEOX.plain, lambda: tokens().values(),
           CONFIG)

PACKED = r"query_key_value|packed|split|qkv|chunk|heads?|kernel"
ROTARY = r"rotary|rotat|cos|sin|rope|slice|:"


def copies():
    """Faults in copies of the library's own file."""
    of = NEOX.fault
    yield of("residuals one after the other", (RESIDUAL + "|parallel", (
        r"parallel|order|input|norm|attention|attn")), (
        "self.use_parallel_residual = config.use_parallel_residual",
        "self.use_parallel_residual = False"))
    yield of("packed without heads", (PACKED, ORDER + "|split|chunk|view"), (
        "qkv = self.query_key_value(hidden_states).view(hidden_shape)"
        ".transpose(1, 2)\n        query_states, key_states, value_states = "
        "qkv.chunk(3, dim=-1)",
        "qkv = self.query_key_value(hidden_states).chunk(3, dim=-1)\n"
        "        query_states, key_states, value_states = (\n"
        "            x.view(*input_shape, -1, self.head_size).transpose(1, 2) "
        "for x in qkv)"))
    yield of("one norm for both", (
        r"input_layernorm|post_attention_layernorm|norm",), (
        "mlp_output = self.mlp(self.post_attention_layernorm(hidden_states))",
        "mlp_output = self.mlp(self.input_layernorm(hidden_states))",
        "if self.use_parallel_residual:"))
    yield of("the whole head turned by a quarter", (
        ROTARY + "|base|frequenc", number(1e4) + "|0.25|0.5|partial|factor"), (
        "base = config.rope_parameters[\"rope_theta\"]",
        "base = config.rope_parameters[\"rope_theta\"] ** 0.25"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("q, k and v before heads", (PACKED, ORDER + "|split"), (
        "packed = self.query_key_value(x).reshape(rows, length, self.heads, "
        "-1)\n        q, k, v = jnp.split(packed.transpose(0, 2, 1, 3), 3, "
        "-1)",
        "packed = self.query_key_value(x).reshape(\n"
        "            rows, length, 3, self.heads, -1)\n"
        "        q, k, v = packed.transpose(2, 0, 3, 1, 4)"))
    yield of("rotary factor 1", (
        ROTARY, number(0.5) + "|4|part|size", "1|8|whole|all"), (
        '["num_attention_heads"], 0.5', '["num_attention_heads"], 1.0'))
    yield of("the last numbers turned", (ROTARY, r"last|order|slice|:|"
                                         r"concat|first"), (
        "turned, kept = x[..., :size], x[..., size:]",
        "kept, turned = x[..., :size], x[..., size:]"), (
        "jnp.concatenate([turned, kept], -1)",
        "jnp.concatenate([kept, turned], -1)"))
    yield of("gelu by tanh", (r"gelu|tanh|erf|activation", "tanh|erf|approx"),
             ("approximate=False", "approximate=True"))
    yield of("norm ε 1e-6", (EPSILON, number(1e-5), number(1e-6)), (
        "epsilon=1e-5", "epsilon=1e-6"))
    yield of("mlp after attention", (RESIDUAL + "|parallel", (
        r"parallel|order|input|norm|attention|attn|\+")), (
        "z = self.mlp(self.post_attention_layernorm(x))",
        "z = self.mlp(self.post_attention_layernorm(x + y))"))
    yield of("frequencies by the whole head", (
        ROTARY + "|frequenc|table|div|/", r"4|8|head|size|ratio|div|/"), (
        "(jnp.arange(0, size, 2) / size)",
        "(jnp.arange(0, size, 2) / x.shape[-1])"))
    yield of("scale 1/√width", (SCALE, number(32**-0.5) + "|√|width"), (
        "q.shape[-1] ** -0.5", "x.shape[-1] ** -0.5"))
    yield of("no residual", (RESIDUAL,), ("return x + y + z", "return y + z"),
             within=True)
    yield of("bias of dense missing", (r"bias",), (
        "return self.dense(y)", "return y @ self.dense.kernel[...]"),
        within=True)


def pairs():
    """All of them."""
    return [NEOX.sound(), NNX.sound(), *copies(), *ports()]
