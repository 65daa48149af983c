"""Faults of convolutions, sliding windows, soft caps and experts."""

import sys

from benchmarks.porting.formulas import masks, next_seen, without
from benchmarks.porting.planted import Planted
from benchmarks.porting.ways import (
    REORDERED, attribute, patched, weights, wrapped)
from parity.comparison.result import FLOAT32


def convolved(before=0, after=0, **settings):
    """A module's convolution with other settings, its own where none are."""
    def make(module, forward):
        def called(x):
            import torch
            kernel = module.weight
            given = {"stride": module.stride, "dilation": module.dilation,
                     "groups": module.groups, "bias": module.bias} | settings
            if settings.get("turned"):
                kernel = kernel.flip(-1)
            pads = {name: given.pop(name) for name in ("turned", "mode")
                    if name in given}
            x = torch.nn.functional.pad(
                x, (before, after), pads.get("mode", "constant"))
            return torch.nn.functional.conv1d(
                x, kernel, given.pop("bias"), **given)
        return called
    return make


def of_convolution(which, make):
    """One of Whisper's two convolutions, replaced."""
    def change(model):
        module = getattr(model.model.encoder, which)
        module.forward = make(module, module.forward)
    return change


def sound():
    """Faults of Whisper's convolutions, and of ViT's patches."""
    def of(name, causes, change, at="conv", family="whisper"):
        return Planted(family, name, causes, change=change, at=at)
    for which in ("conv1", "conv2"):
        for name, cause, make in (
                ("causal", ("padding before", "1", "2"), convolved(2, 0)),
                ("padded behind", ("padding before", "1", "0"),
                 convolved(0, 2)),
                ("turned round", ("kernel", "", "turned round in b"),
                 convolved(1, 1, turned=True)),
                ("dilation 2", ("dilation", "1", "2"),
                 convolved(2, 2, dilation=2)),
                ("bias ignored", ("bias", "used", "ignored"),
                 convolved(1, 1, bias=None)),
                ("mirrored", ("padding filled with", "zeros", "mirrored"),
                 convolved(1, 1, mode="reflect")),
                ("the edge repeated", ("padding filled with", "zeros",
                                       "the edge repeated"),
                 convolved(1, 1, mode="replicate"))):
            causes = [cause, *([("padding before", "1", "2")] * (
                name == "dilation 2"))]
            yield of(f"{which} {name}", causes, of_convolution(which, make),
                     which)
    yield of("conv2 inputs and outputs", [
        ("kernel", "", "inputs and outputs exchanged in b")], weights(
        ("conv2.weight", lambda w: w.transpose(0, 1))), "conv2")
    yield of("conv1 channels reversed", REORDERED, weights(
        ("conv1.weight", lambda w: w.flip(1))), "conv1")
    for name, causes, change in (
            ("equal", [], None),
            ("axes of the window", [(
                "kernel", "", "axis 0 of its window and axis 1 of its window "
                "exchanged in b")], lambda w: w.transpose(2, 3)),
            ("turned round", [("kernel", "", "turned round in b")],
             lambda w: w.flip((2, 3))),
            ("upside down", [("kernel", "", "turned round along axis 0 of "
                              "its window in b")], lambda w: w.flip(2)),
            ("colours reversed", REORDERED, lambda w: w.flip(1)),
            ("patches' bias", [("bias", "", "zero in b")], None)):
        yield of(name, causes, weights(
            ("projection.weight", change) if change else
            ("projection.bias", lambda b: 0 * b)) if causes else None,
                 "projection", "vit")


def seen(window):
    """Masks by which a query sees so many places, its own among them."""
    def change(mask):
        import torch
        back = torch.arange(mask.shape[-2])[:, None] - torch.arange(
            mask.shape[-1])
        low = torch.finfo(mask.dtype).min
        return mask.masked_fill(back >= window, low)
    return change


def windowed():
    """Faults of Mistral's and Gemma 2's windows, which are of 4 places."""
    def of(family, name, cause, config=None, change=None, **more):
        return Planted(family, name, [cause] if cause else [], config or {},
                       change, at="attention_mask|attn", **more)
    for family in ("mistral", "gemma2"):
        yield of(family, "equal", None)
        for window in (5, 3, 6):
            yield of(family, f"window {window}", (
                "sliding window", "4", str(window)),
                {"sliding_window": window})
    yield of("mistral", "no window", ("sliding window", "4", "none"),
             {"sliding_window": None})
    yield of("mistral", "window 3 in attention", (
        "sliding window", "4", "3"), change=wrapped(
            "MistralAttention", masks(seen(3))))
    yield of("mistral", "the next is seen", (
        "mask", "", "off by one, the next place is seen in b"),
        change=wrapped("MistralAttention", masks(next_seen)))
    yield of("mistral", "no mask", ("mask", "", "ignored in b"),
             change=wrapped("MistralAttention", masks(without)))
    yield Planted("gemma2", "windows in the other layers", [
        ("sliding window", "4", "none"), ("sliding window", "none", "4")],
        {"layer_types": ["full_attention", "sliding_attention"]},
        at="attention_mask")
    yield of("gemma2", "a window in every layer", (
        "sliding window", "none", "4"),
        {"layer_types": ["sliding_attention"] * 2})
    yield of("gemma2", "no window", ("sliding window", "4", "none"),
             {"layer_types": ["full_attention"] * 2})


def after_the_mask(old):
    """Gemma 2's attention with the cap behind the mask."""
    def attend(module, q, k, v, mask, dropout=0.0, scaling=None,
               softcap=None, **more):
        import torch
        repeat = sys.modules[type(module).__module__].repeat_kv
        k, v = (repeat(x, module.num_key_value_groups) for x in (k, v))
        scores = torch.tanh((q @ k.mT * scaling + mask) / softcap) * softcap
        weights = scores.float().softmax(-1).to(q.dtype)
        return (weights @ v).transpose(1, 2).contiguous(), weights
    return attend


def capped():
    """Faults of Gemma 2's caps, of scores by 2 and of logits by 3."""
    def of(name, cause, config=None, change=None, at="attn"):
        return Planted("gemma2", name, [cause], config or {}, change, at=at)
    for name, value, word in (("no cap", None, "none"), ("cap 5", 5.0, "5"),
                              ("cap 50", 50.0, "50"),
                              ("cap 2.5", 2.5, "2.5")):
        yield of(name, ("soft cap", "2", word),
                 {"attn_logit_softcapping": value})
        if value != 5.0:
            yield of(f"{name} of logits", ("soft cap", "3", word),
                     {"final_logit_softcapping": value}, at="model")
    yield of("cap after the mask", (
        "soft cap's place", "before the mask", "after the mask"),
        change=patched("Gemma2Attention",
                       eager_attention_forward=after_the_mask))
    yield of("scaled by √d_model", ("scale", "1/√d_k", "1/√d_model"),
             {"query_pre_attn_scalar": 24})
    yield of("scaled by √7", ("scale", "1/√d_k", "0.377964"),
             {"query_pre_attn_scalar": 7})


def routed(weigh):
    """A router whose weights are others: weigh(logits, k) gives them, and
    who they are of."""
    def make(module, forward):
        def called(x):
            import torch
            logits = torch.nn.functional.linear(
                x.reshape(-1, module.hidden_dim), module.weight)
            values, places = weigh(logits if weigh is in_double
                                   else logits.float(), module.top_k)
            return logits, values.to(logits.dtype), places
        return called
    return make


def over_all(logits, k):
    """The softmax is over all experts."""
    return logits.softmax(-1).topk(k)


def over_chosen(logits, k):
    """The softmax is over the chosen."""
    values, places = logits.topk(k)
    return values.softmax(-1), places


def by_sigmoid(logits, k):
    """σ of each logit."""
    values, places = logits.topk(k)
    return values.sigmoid(), places


def in_double(logits, k):
    """The softmax in float64."""
    return over_chosen(logits, k)


def smallest(logits, k):
    """The smallest are chosen."""
    values, places = logits.topk(k, largest=False)
    return values.softmax(-1), places


def alike(logits, k):
    """Every chosen one has the same weight."""
    values, places = logits.topk(k)
    return 0 * values + 1 / k, places


def sharpened(logits, k):
    """Nobody's: logits times 1.1."""
    return over_chosen(1.1 * logits, k)


def before(module, forward):
    """Experts that are given what is weighed already."""
    def called(x, places, weights):
        import torch
        return sum(forward(x * weights[:, k:k + 1], places[:, k:k + 1],
                           torch.ones_like(weights[:, k:k + 1]))
                   for k in range(places.shape[1]))
    return called


def ungated(module, forward):
    """A block that adds its shared expert without a gate."""
    def called(x):
        rows = x.reshape(-1, x.shape[-1])
        _, weights, places = module.gate(rows)
        y = module.experts(rows, places, weights) + module.shared_expert(rows)
        return y.reshape(x.shape)
    return called


def unshared(module, forward):
    """A block without its shared expert."""
    def called(x):
        rows = x.reshape(-1, x.shape[-1])
        _, weights, places = module.gate(rows)
        return module.experts(rows, places, weights).reshape(x.shape)
    return called


def halves(array):
    """The halves of a fused kernel exchanged."""
    import torch
    return torch.cat(array.chunk(2, 1)[::-1], 1)


def experts():
    """Faults of Mixtral and Qwen's mixtures, of 6 experts."""
    chosen, every = "softmax over the chosen", "softmax over all experts"
    for family, mine, k, router in (
            ("mixtral", chosen, 2, "MixtralTopKRouter"),
            ("qwen2_moe", every, 2, "Qwen2MoeTopKRouter"),
            ("qwen3_moe", chosen, 3, "Qwen3MoeTopKRouter")):
        def of(name, cause, config=None, change=None, family=family, **more):
            return Planted(family, name, [] if cause is None else [cause],
                           config or {}, change, at="mlp", **more)

        def weighed(name, word, weigh, of=of, mine=mine, router=router):
            return of(name, ("experts' weights", mine, word),
                      change=wrapped(router, routed(weigh)))
        yield of("equal", None)
        for other in (1, k + 1, 6):
            yield of(f"top-k {other}", ("top-k", str(k), str(other)),
                     {"num_experts_per_tok": other})
        yield (weighed("not to sum 1", every, over_all) if mine == chosen
               else weighed("to sum 1", chosen, over_chosen))
        yield weighed("weights by σ", "sigmoid of each", by_sigmoid)
        yield weighed("weights all alike", "all alike", alike)
        yield of("smallest chosen", ("chosen", "the largest", "the smallest"),
                 change=wrapped(router, routed(smallest))) if (
                     mine == chosen) else of(
                         "logits times 1.1", (), change=wrapped(
                             router, routed(sharpened)))
        yield of("two experts exchanged", (
            "experts", "as they are", "of a's experts 1, 0, 2, 3, 4, 5"),
            change=weights(*((end, lambda w: w[[1, 0, 2, 3, 4, 5]]) for end in
                             ("gate_up_proj", "experts.down_proj"))))
        yield of("gate and up exchanged", (
            "gate and up", "as they are", "swapped"), change=weights(
                ("experts.gate_up_proj", halves)))
        yield of("weighed before", (
            "weights applied", "to what experts give",
            "to what they are given"), change=wrapped(
                f"{router.removesuffix('TopKRouter')}Experts", before))
    yield Planted("qwen3_moe", "router in float64", [
        ("precision inside", "in float32", "in float64")], change=wrapped(
            "Qwen3MoeTopKRouter", routed(in_double)), verdict=FLOAT32)
    for name, word, make in (("shared without its gate", "added", ungated),
                             ("nothing shared", "left out", unshared)):
        yield Planted("qwen2_moe", name, [
            ("shared expert", "through its gate", word)], change=wrapped(
                "Qwen2MoeSparseMoeBlock", make), at="mlp")
    yield Planted("mixtral", "one expert's kernel twice", [
        ("down", "", "different: 960 of 5760 numbers, by up to 1.3e+00")],
                  change=weights(("experts.down_proj", lambda w: w[
                      [0, 0, 2, 3, 4, 5]])))
    yield Planted("mixtral", "window 4", [("sliding window", "none", "4")],
                  {"sliding_window": 4}, at="attention_mask")
    yield Planted("mixtral", "ε 1e-3", [("epsilon", "1e-05", "0.001")],
                  change=attribute("RMSNorm", variance_epsilon=1e-3))


def newer():
    """All of them."""
    return [*sound(), *windowed(), *capped(), *experts()]
