"""Mamba, a state-space model."""

from benchmarks.families.fault import BIAS, number
from benchmarks.families.hugging import Original, OurPort, unpadded

CONFIG = {"hidden_size": 12, "state_size": 4, "num_hidden_layers": 2,
          "vocab_size": 29, "time_step_rank": 3, "use_cache": False,
          "residual_in_fp32": False, "pad_token_id": 0}
MAMBA = Original("mamba", "mamba", "MambaModel", ("MambaConfig", CONFIG),
                 unpadded)
NNX = OurPort("mamba", "mamba_nnx", MAMBA.plain, lambda: unpadded().values(),
              CONFIG)

SKIP = r"\bD\b|skip|summand|residual|added|unused§\+"


def copies():
    """Faults in copies of the library's own file."""
    of = MAMBA.fault
    yield of("A without exp", (r"A_log|\bexp\b§exp|neg",), (
        "A = -torch.exp(self.A_log.float())", "A = -self.A_log.float()"))
    yield of("step without softplus", (r"softplus|log1p|activation§exp",), (
        "dt = F.softplus(dt)\n\n    # We need",
        "dt = dt\n\n    # We need"))
    yield of("D forgotten", (SKIP,), (
        "scan_output = scan_output + hidden_states * D[None, :, None]",
        "scan_output = scan_output"))
    yield of("gate without silu", (r"silu|sigmoid|swish|activation",), (
        "scan_output = scan_output * F.silu(z)",
        "scan_output = scan_output * z"))
    yield of("gate and hidden exchanged", (
        r"exchang|swap|order|halves§\[|chunk|split|slice",), (
        "hidden_states_B_C, gate = projected_states.chunk(2, dim=1)",
        "gate, hidden_states_B_C = projected_states.chunk(2, dim=1)"))
    yield of("B and C exchanged", (
        r"exchang|swap|order§\[|split|slice",), (
        "time_step, B, C = torch.split(", "time_step, C, B = torch.split("))
    yield of("state read before it is written", (
        r"state|scan|before|off by one|previous|shift§\+",), (
        "            ssm_state = discrete_A[:, :, index] * ssm_state + "
        "deltaB_u[:, :, index]\n\n            # Subsequent output\n"
        "            scan_output = torch.matmul(ssm_state.to(input_dtype), "
        "C[:, index, :].unsqueeze(-1))",
        "            scan_output = torch.matmul(ssm_state.to(input_dtype), "
        "C[:, index, :].unsqueeze(-1))\n"
        "            ssm_state = discrete_A[:, :, index] * ssm_state + "
        "deltaB_u[:, :, index]"))
    yield of("no activation after the convolution", (
        r"silu|sigmoid|activation|swish",), (
        "out = ACT2FN[activation](out)\n    return out.to(hidden_states.dtype)"
        "\n\n\n@use_kernel_func_from_hub_with_fallback(\"mamba_inner_fn\"",
        "out = out\n    return out.to(hidden_states.dtype)"
        "\n\n\n@use_kernel_func_from_hub_with_fallback(\"mamba_inner_fn\""))


def ports():
    """Faults in a port to nnx."""
    of = NNX.fault
    yield of("convolution not causal", (r"pad|causal|shift|off by one",),
             ('padding="CAUSAL"', 'padding="SAME"'))
    yield of("A of the other sign, in exp", (
        r"A_log|sign|negat§neg|-|exp",), (
        "* -jnp.exp(self.A_log[...])", "* jnp.exp(-self.A_log[...])"))
    yield of("step's bias forgotten", (BIAS,), (
        "jax.nn.softplus(self.dt_proj(step))",
        "jax.nn.softplus(step @ self.dt_proj.kernel[...])"))
    yield of("step's softplus forgotten", (r"softplus|log1p|activation§exp",),
             ("jax.nn.softplus(self.dt_proj(step))", "self.dt_proj(step)"))
    yield of("B not times the step", (r"step|\bdt\b|factor|times§\*|mul",), (
        "added = (step * x)[..., None]", "added = x[..., None]"))
    yield of("D forgotten", (SKIP,), (
        "y = y.swapaxes(0, 1) + x * self.D[...]", "y = y.swapaxes(0, 1)"))
    yield of("norm ε 1e-6", (number(1e-5), number(1e-6)), (
        "jnp.sqrt(mean + 1e-5)", "jnp.sqrt(mean + 1e-6)"))
    yield of("kernel flipped", (r"flip|revers|order|other way",), change=(
        lambda arrays: {name: x[..., ::-1] if "conv1d.weight" in name else x
                        for name, x in arrays.items()}), at="conv1d")
    yield of("gate before D", (r"gate|order|before|\bD\b|skip",), (
        "y = y.swapaxes(0, 1) + x * self.D[...]\n"
        "        return self.out_proj(y * jax.nn.silu(gate))",
        "y = y.swapaxes(0, 1) * jax.nn.silu(gate) + x * self.D[...]\n"
        "        return self.out_proj(y)"), within=True)


def pairs():
    """All of them."""
    associative = NNX.fault("sound: an associative scan", (), (
        "        def one(state, given):\n"
        "            decay, added, c = given\n"
        "            state = decay * state + added\n"
        "            return state, jnp.einsum(\"bds,bs->bd\", state, c)\n"
        "        first = jnp.zeros_like(added[:, 0])\n"
        "        _, y = jax.lax.scan(one, first, (\n"
        "            decay.swapaxes(0, 1), added.swapaxes(0, 1), "
        "c.swapaxes(0, 1)))\n"
        "        y = y.swapaxes(0, 1) + x * self.D[...]",
        "        def joined(one, two):\n"
        "            return one[0] * two[0], two[0] * one[1] + two[1]\n"
        "        _, states = jax.lax.associative_scan(\n"
        "            joined, (decay, added), axis=1)\n"
        "        y = jnp.einsum(\"btds,bts->btd\", states, c)\n"
        "        y = y + x * self.D[...]"))
    return [MAMBA.sound(), NNX.sound(), associative, *copies(), *ports()]
