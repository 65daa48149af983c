"""GPT-NeoX, as Pythia is."""

from benchmarks.families.fault import (
    BIAS, ORDER, RESIDUAL, ROTARY, SCALE, number)
from benchmarks.families.hugging import (
    ENCODER, Original, OurPort, tokens)

CONFIG = ENCODER | {"hidden_size": 32, "use_cache": False, "rope_parameters": {
    "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}
NEOX = Original("gpt_neox", "gpt_neox", "GPTNeoXForCausalLM", (
    "GPTNeoXConfig", CONFIG))
NNX = OurPort("gpt_neox", "gpt_neox_nnx", NEOX.plain, lambda: tokens().values(),
              CONFIG)

PARALLEL = r"parallel|one after|residual|input|summand§\+"


def copies():
    """Faults in copies of the library's own file."""
    of = NEOX.fault
    yield of("residuals one after the other", (PARALLEL,), (
        "self.use_parallel_residual = config.use_parallel_residual",
        "self.use_parallel_residual = False"))
    yield of("packed without heads", (ORDER,), (
        "qkv = self.query_key_value(hidden_states).view(hidden_shape)"
        ".transpose(1, 2)\n        query_states, key_states, value_states = "
        "qkv.chunk(3, dim=-1)",
        "qkv = self.query_key_value(hidden_states).chunk(3, dim=-1)\n"
        "        query_states, key_states, value_states = (\n"
        "            x.view(*input_shape, -1, self.head_size).transpose(1, 2) "
        "for x in qkv)"))
    yield of("one norm for both", (
        r"@input_layernorm", r"@post_attention_layernorm"), (
        "mlp_output = self.mlp(self.post_attention_layernorm(hidden_states))",
        "mlp_output = self.mlp(self.input_layernorm(hidden_states))",
        "if self.use_parallel_residual:"))
    yield of("the whole head turned by a quarter", (
        number(1e4), number(10)), (
        "base = config.rope_parameters[\"rope_theta\"]",
        "base = config.rope_parameters[\"rope_theta\"] ** 0.25"))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("q, k and v before heads", (ORDER,), (
        "packed = self.query_key_value(x).reshape(rows, length, self.heads, "
        "-1)\n        q, k, v = jnp.split(packed.transpose(0, 2, 1, 3), 3, "
        "-1)",
        "packed = self.query_key_value(x).reshape(\n"
        "            rows, length, 3, self.heads, -1)\n"
        "        q, k, v = packed.transpose(2, 0, 3, 1, 4)"))
    yield of("rotary factor 1", (
        ROTARY + "|partial", r"\b4\b|0\.5|half|part",
        r"\b1\b|\b8\b|whole|all"), (
        '["num_attention_heads"], 0.5', '["num_attention_heads"], 1.0'))
    yield of("the last numbers turned", (
        ROTARY + r"|slice§\[|slice|concat",
        r"last|order|first|place§\[|slice"), (
        "turned, kept = x[..., :size], x[..., size:]",
        "kept, turned = x[..., :size], x[..., size:]"), (
        "jnp.concatenate([turned, kept], -1)",
        "jnp.concatenate([kept, turned], -1)"))
    yield of("gelu by tanh", (r"gelu|tanh", "tanh|erf|approx"),
             ("approximate=False", "approximate=True"))
    yield of("norm ε 1e-6", (number(1e-5), number(1e-6)), (
        "epsilon=1e-5", "epsilon=1e-6"))
    yield of("mlp after attention", (PARALLEL,), (
        "z = self.mlp(self.post_attention_layernorm(x))",
        "z = self.mlp(self.post_attention_layernorm(x + y))"))
    yield of("frequencies by the whole head", (
        ROTARY + r"|table§/|pow|div",
        r"\b[48]\b|head|size|ratio|square|root"), (
        "(jnp.arange(0, size, 2) / size)",
        "(jnp.arange(0, size, 2) / x.shape[-1])"))
    yield of("scale 1/√width", (
        SCALE, number(32**-0.5, 32**0.5) + "|√|width"), (
        "q.shape[-1] ** -0.5", "x.shape[-1] ** -0.5"))
    yield of("no residual", (RESIDUAL,), ("return x + y + z", "return y + z"),
             within=True)
    yield of("bias of dense missing", (BIAS,), (
        "return self.dense(y)", "return y @ self.dense.kernel[...]"),
        within=True)


def pairs():
    """All of them."""
    return [NEOX.sound(), NNX.sound(), *copies(), *ports()]
