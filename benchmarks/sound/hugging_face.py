"""Hugging Face's decoders, against themselves and against ports."""

import functools

import torch
import transformers
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_llama import Llama
from benchmarks.sound.weights import call, copied, drawn, tokens

IDS = tokens(2, 9, vocabulary=32)
WHOLE = {"use_cache": False}

#: What all tiny configs have.
TINY = {"vocab_size": 32, "hidden_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "tie_word_embeddings": False,
        "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}

GROUPS = {"intermediate_size": 40, "num_key_value_heads": 2,
          "rms_norm_eps": 1e-5}

PART = {"rope_type": "default", "rope_theta": 10000.0}

#: A family -> its own fields.
FIELDS = {
    "Llama": GROUPS, "Mistral": GROUPS | {"sliding_window": 4},
    "Qwen2": GROUPS, "Qwen3": GROUPS | {"head_dim": 12}, "Olmo2": GROUPS,
    "Gemma": GROUPS | {"head_dim": 12,
                       "hidden_activation": "gelu_pytorch_tanh"},
    "GPTNeoX": {"intermediate_size": 40, "rope_parameters": PART | {
        "partial_rotary_factor": 1 / 3}}, "Bloom": {"n_head": 4, "n_layer": 2},
    "Phi": {"intermediate_size": 40, "rope_parameters": PART | {
        "partial_rotary_factor": 2 / 3}},
    "GPT2": {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 32},
    "OPT": {"ffn_dim": 40, "word_embed_proj_dim": 24,
            "max_position_embeddings": 32, "dropout": 0.0},
    "Mixtral": GROUPS | {"num_local_experts": 4, "num_experts_per_tok": 2},
}


@functools.cache
def config_of(family, attention, experts="eager"):
    """The tiny config of a family, in these ways of attention and experts."""
    fields = {name: value for name, value in TINY.items() if not (
        family in ("GPT2", "Bloom") and name in (
            "num_hidden_layers", "num_attention_heads"))}
    config = getattr(transformers, f"{family}Config")(
        **fields | FIELDS[family])
    config._attn_implementation = attention
    config._experts_implementation = experts
    return config


def model_of(family, attention="eager", experts="eager"):
    """A tiny random model with its head."""
    name = {"GPT2": "GPT2LMHeadModel"}.get(family, f"{family}ForCausalLM")
    return drawn(getattr(transformers, name)(
        config_of(family, attention, experts)))


def ported(family, port, attention="eager"):
    """A family's model, and a port that defines its layers in one order."""
    a = model_of(family, attention)
    b = copied(a, port(a.config).to(torch.float64).eval())
    return call(a, IDS, **WHOLE), call(b, IDS)


def eager_or_sdpa(family):
    """Put a family on the list, in both its ways of attention."""
    def build():
        return tuple(call(model_of(family, way), IDS, **WHOLE)
                     for way in ("eager", "sdpa"))
    build.__name__ = f"{family.lower()}_eager_or_sdpa"
    build.__doc__ = f"{family} in eager attention in a, in sdpa in b."
    build.__module__ = __name__
    sound(build, dtype="float32 inside")


for _family in ("Llama", "Qwen3", "Olmo2", "GPTNeoX", "Mistral", "GPT2", "OPT"):
    eager_or_sdpa(_family)

inside = functools.partial(sound, dtype="float32 inside")


@inside
def mixtral_experts_eager_or_batched():
    """Experts one by one in a, as batched products in b."""
    return tuple(call(model_of("Mixtral", experts=way), IDS, **WHOLE)
                 for way in ("eager", "batched_mm"))


@inside
def llama_ported():
    """Llama in a, a port in float64 in b."""
    return ported("Llama", Llama)


@inside
def llama_sdpa_ported():
    """Llama in sdpa in a, a port in float64 in b."""
    return ported("Llama", Llama, "sdpa")


@inside
def mistral_ported():
    """Mistral, whose window is 4, and a port."""
    return ported("Mistral", Llama)


@inside
def qwen2_ported():
    """Qwen 2, with biases, and a port."""
    return ported("Qwen2", lambda c: Llama(_all_seen(c), bias=True))


def _all_seen(c):
    """A copy of a config without a window."""
    c = type(c)(**c.to_dict())
    c.sliding_window = None
    return c


@inside
def qwen3_ported():
    """Qwen 3, with norms of each head, and a port."""
    return ported("Qwen3", lambda c: Llama(_all_seen(c), normed="head"))


@inside
def olmo2_ported():
    """OLMo 2, with norms behind and over all heads, and a port."""
    return ported("Olmo2", lambda c: Llama(c, post=True, normed="flat"))


@inside
def gemma_ported():
    """Gemma, with 1 + w and scaled embeddings, and a port."""
    return ported("Gemma", lambda c: Llama(
        c, act=nn.GELU("tanh"), more=1.0, scaled=True))


@sound(dtype="float32")
def llama_ported_in_float32():
    """Llama and a port, both in float32."""
    a = model_of("Llama")
    b = copied(a, Llama(a.config).to(torch.float32).eval())
    return call(a, IDS, **WHOLE), call(b, IDS)
