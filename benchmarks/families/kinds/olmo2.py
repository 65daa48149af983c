"""OLMo 2."""

from benchmarks.families.fault import (
    MASK, ORDER, RESIDUAL, SCALE, number)
from benchmarks.families.hugging import DECODER, Original, OurPort, tokens

CONFIG = DECODER | {"rms_norm_eps": 1e-5, "rope_parameters": {
    "rope_type": "default", "rope_theta": 5e5}}
OLMO2 = Original("olmo2", "olmo2", "Olmo2ForCausalLM", (
    "Olmo2Config", CONFIG))
TORCH = OurPort("olmo2", "olmo2_torch", OLMO2.plain, lambda: tokens().values(),
                CONFIG, "torch")

NORM = r"norm|rms§mean|rsqrt|sqrt"


def copies():
    """Faults in copies of the library's own file."""
    of = OLMO2.fault
    yield of("norm before the sub-layer", (NORM, r"before|behind|pre-|place|"
                                           r"input|order"), (
        "hidden_states=hidden_states,\n            attention_mask=attention_"
        "mask,\n            position_ids=position_ids,\n            past_key_"
        "values=past_key_values,\n            use_cache=use_cache,\n          "
        "  position_embeddings=position_embeddings,\n            **kwargs,\n  "
        "      )\n        hidden_states = self.post_attention_layernorm("
        "hidden_states)\n",
        "hidden_states=self.post_attention_layernorm(hidden_states),\n"
        "            attention_mask=attention_mask,\n"
        "            position_embeddings=position_embeddings,\n"
        "        )\n"))
    yield of("ff norm forgotten", (NORM,), (
        "hidden_states = self.post_feedforward_layernorm(hidden_states)",
        "hidden_states = hidden_states"))
    yield of("residual inside the norm", (RESIDUAL, "@norm"), (
        "hidden_states = self.post_feedforward_layernorm(hidden_states)\n"
        "        hidden_states = residual + hidden_states",
        "hidden_states = self.post_feedforward_layernorm("
        "residual + hidden_states)\n        hidden_states = hidden_states"))
    yield of("gelu for silu", (r"gelu|erf", r"silu|swish|sigmoid"), (
        "self.act_fn = ACT2FN[config.hidden_act]",
        'self.act_fn = ACT2FN["gelu"]'))
    yield of("rotary the other way", ("sign|direction|negat|order§neg|-",), (
        "torch.cat((-x2, x1), dim=-1)", "torch.cat((x2, -x1), dim=-1)"))


def ports():
    """Faults in a port to plain torch, beside the original."""
    of = TORCH.fault
    yield of("norm ε 1e-6", (number(1e-5), number(1e-6)), (
        "torch.sqrt(mean + 1e-5)", "torch.sqrt(mean + 1e-6)"))
    yield of("ε outside the root", (
        r"ε|epsilon|" + number(1e-5), r"outside|place|root|sqrt"), (
        "torch.sqrt(mean + 1e-5)", "(torch.sqrt(mean) + 1e-5)"))
    yield of("norm per head", (NORM, r"heads?|ax[ie]s|shape|width"), (
        "mean = x.square().mean(-1, keepdim=True)",
        "mean = (x.unflatten(-1, (-1, 6)).square().mean(-1, keepdim=True)"
        ".expand(*x.shape[:-1], -1, 6).flatten(-2)\n                if "
        "x.dim() == 3 and self.weight.numel() == 12\n                else "
        "x.square().mean(-1, keepdim=True))"))
    yield of("pairs interleaved", (ORDER,), (
        "y.unflatten(-1, (2, -1)).transpose(-1, -2).contiguous())",
        "y.unflatten(-1, (-1, 2)).contiguous())"), (
        "pairs * turns).transpose(-1, -2).flatten(-2)",
        "pairs * turns).flatten(-2)"))
    yield of("θ 1e4", (number(5e5), number(1e4)), (
        "5e5 ** -powers", "1e4 ** -powers"), at="attention")
    yield of("heads tiled", (r"tile|repeat|shared heads|order§repeat",), (
        "y.repeat_interleave(q.shape[1] // y.shape[1], 1)",
        "y.repeat(1, q.shape[1] // y.shape[1], 1, 1)"))
    yield of("window of 4", (MASK, r"\b[34]\b"), (
        "torch.ones(length, length).tril().bool()",
        "torch.ones(length, length).tril().triu(-3).bool()"), at="attention")
    yield of("the next token seen", (MASK,), (
        "torch.ones(length, length).tril().bool()",
        "torch.ones(length, length).tril(1).bool()"), at="attention")
    yield of("scale 1/√width", (SCALE, number(24**-0.5, 24**0.5, 0.5) + "|√"),
             ("q, k, v, attn_mask=bias)",
              "q, k, v, attn_mask=bias, scale=24**-0.5)"))
    yield of("gate and up exchanged", (
        r"@exchang|swap|w1.*(w3|up_proj)|w3.*(w1|gate_proj)",), (
        '("mlp.gate_proj", "w1")', '("mlp.gate_proj", "w3")'), (
        '("mlp.up_proj", "w3")', '("mlp.up_proj", "w1")'),
        at=r"w1|w3|^blocks\.\d+$")


def pairs():
    """All of them."""
    other = TORCH.fault("sound: each head's scores by itself", (), (
        "y = nn.functional.scaled_dot_product_attention(\n"
        "            q, k, v, attn_mask=bias)",
        "y = torch.stack([((one @ two.mT / self.size**0.5).masked_fill(\n"
        "            ~bias[:, 0], -torch.inf).softmax(-1) @ three)\n"
        "            for one, two, three in zip(*(z.unbind(1) for z in (\n"
        "                q, k, v)))], 1)"))
    return [OLMO2.sound(), TORCH.sound(), other, *copies(), *ports()]
