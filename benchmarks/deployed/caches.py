"""Caches: one model of its own, right or wrong, and Hugging Face's."""

import functools
import pathlib

import parity
from benchmarks.deployed.case import CaseAnswer, DeployedCase
from parity.invariants.responses import WRONG

KIND = "caches"

#: Words of a right cause.
PLACES, MASK, KEPT, ROWS = (
    r"positions?", r"mask|window|see", r"kept|too few places|cache",
    r"rows .*not reordered|not the same rows")

#: Name of the fault -> how the model is, and the words of its cause.
FAULTS = {
    "p_anew": ({}, "positions are not shifted"),
    "p_late": ({}, "positions are 1 too small"),
    "p_early": ({}, "positions are 1 too large"),
    "p_pad": ({"mask": True}, "padding is counted|" + PLACES),
    "p_padall": ({"mask": True}, "padding is counted|" + PLACES),
    "r_anew": ({"position": "rotary"}, "positions are not shifted"),
    "r_late": ({"position": "rotary"}, "positions are 1 too small"),
    "a_anew": ({"position": "alibi"}, PLACES),
    "m_offset": ({}, "offset|positions are not shifted"),
    "m_last": ({}, MASK), "m_chunk": ({}, "those behind them"),
    "m_ahead": ({}, "those behind them|" + MASK),
    "m_pad": ({"mask": True}, "mask"), "m_padrow": ({"mask": True}, "mask"),
    "w_less": ({"window": True, "cache": "window"}, "too few places"),
    "w_more": ({"window": True}, "off by one|the mask is another"),
    "w_narrow": ({"window": True}, "off by one|the mask is another"),
    "w_chunk": ({"window": True}, MASK),
    "k_lost": ({}, "too few places"), "k_zero": ({}, KEPT),
    "k_swap": ({}, KEPT), "k_again": ({"position": "rotary"}, KEPT),
    "k_short": ({}, KEPT), "k_slot": ({"cache": "static"}, KEPT),
    "k_layer": ({"cache": "object"}, KEPT),
    "b_none": ({"reorder": True}, ROWS), "b_keys": ({"reorder": True}, ROWS),
    "b_layer": ({"reorder": True}, ROWS), "b_back": ({"reorder": True}, ROWS),
    "g_reset": ({"cache": "object"}, PLACES),
    "g_crop": ({"cache": "object"}, PLACES),
    "g_global": ({"cache": "object"}, KEPT + "|" + PLACES),
    "s_scale": ({}, "scale|factor")}


def told(responses):
    """What Responses tell."""
    wrong = [each for each in responses.responses if each.verdict == WRONG]
    return CaseAnswer(responses.status, [*dict.fromkeys(
        each.cause for each in wrong if each.cause)], [
        f"{each.source} {each.step}" for each in wrong])


def ask(**s):
    """What is told of the model of its own."""
    from benchmarks.deployed.decoder import made
    model, keywords = made(**s)
    return told(parity.invariance(model, ways=["cache"], **keywords))


def lines(name):
    """An expression for the lines that a fault is marked at, or uses of it."""
    path = pathlib.Path(__file__).with_name("decoder.py")
    found = {i + more for i, line in enumerate(path.read_text(
        "utf-8").splitlines(), 1) if f'"{name}"' in line or f"@{name}" in line
        for more in range(-1, 5)}
    return rf"decoder.py:({'|'.join(map(str, sorted(found)))})\b"


def hugging(name):
    """What is told of a small model of Hugging Face's."""
    import torch
    import transformers as t

    from benchmarks.deployed.decoder import IDS
    sizes = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads":
             4, "vocab_size": 20, "intermediate_size": 24}
    grouped = sizes | {"num_key_value_heads": 2,
                       "max_position_embeddings": 32}
    gpt = {"n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": 20}
    config = {
        "GPT2": lambda: t.GPT2Config(n_positions=32, **gpt),
        "Llama": lambda: t.LlamaConfig(**grouped),
        "Mistral": lambda: t.MistralConfig(sliding_window=4, **grouped),
        "Qwen2": lambda: t.Qwen2Config(**grouped),
        "Qwen3": lambda: t.Qwen3Config(head_dim=4, **grouped),
        "Gemma2": lambda: t.Gemma2Config(
            head_dim=4, sliding_window=4, **grouped),
        "Olmo2": lambda: t.Olmo2Config(**grouped),
        "GPTNeoX": lambda: t.GPTNeoXConfig(
            max_position_embeddings=32, **sizes),
        "Phi": lambda: t.PhiConfig(**grouped)}[name]()
    torch.manual_seed(0)
    model = getattr(t, f"{name}ForCausalLM", None) or getattr(
        t, f"{name}LMHeadModel")
    return told(parity.invariance(model(config).double().eval(), input_ids=IDS,
                                  ways=["cache"]))


def cases():
    """Every DeployedCase."""
    for name, (s, says) in FAULTS.items():
        yield DeployedCase(KIND, name, functools.partial(
            ask, wrong=name, **s), says,
                   "" if name[0] in "bg" else lines(name))
    ways = [{"position": position, "cache": cache}
            for position in ("learned", "rotary", "alibi")
            for cache in ("tuple", "object", "static")]
    ways += [{"position": position, "window": True, "cache": cache}
             for position in ("learned", "rotary") for cache in (
                 "tuple", "window", "static")]
    ways += [{"mask": True}, {"mask": True, "position": "rotary"},
             {"reorder": True}, {"mask": True, "cache": "static"},
             {"mask": True, "position": "alibi"},
             {"mask": True, "window": True},
             {"position": "alibi", "window": True},
             {"reorder": True, "position": "rotary"},
             {"reorder": True, "window": True, "cache": "window"}]
    for s in ways:
        name = ", ".join(f"{key} {value}" for key, value in s.items())
        yield DeployedCase(KIND, name, functools.partial(ask, **s))
    for name in ("GPT2", "Llama", "Mistral", "Qwen2", "Qwen3", "Gemma2",
                 "Olmo2", "GPTNeoX", "Phi"):
        yield DeployedCase(KIND, name, functools.partial(hugging, name))
