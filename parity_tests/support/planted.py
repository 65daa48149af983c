"""The faults of parity_tests.support.porting, by family."""

from parity.comparison.result import FLOAT32
from parity_tests.support.porting import (
    H, NOBODYS, T, W, Planted, attribute, exchanged, patched, weights, wrapped)


#: What is told of common faults: (cause, what it is in a, and in b).
UNMASKED = [("mask", "", "ignored in b"),
            ("mask", "", "the future is seen in b")]
TRANSPOSED = [("kernel", "", "transposed")]
REORDERED = [("kernel", "", "in b the same numbers in another order")]
SCALED = [("factor", "1", "4.89898")]
UNSCALED = [("input's factor", "1.0", "4.898979485566356")]


def activation(one, two):
    """That a function is another; far from 6, ReLU and ReLU6 are one."""
    told = [("activation", one, two)]
    return told + [("activation", one, "relu or relu6")] * (two == "relu")


def turned(layout=None, queries=True, keys=True, sign=1):
    """apply_rotary_pos_emb with something else about it."""
    def make(old):
        def apply(q, k, cos, sin, *rest, **more):
            import torch
            turned_q, turned_k = old(q, k, cos, sign * sin, *rest, **more)
            if layout == "interleaved":
                half = cos.shape[-1] // 2
                order = torch.arange(2 * half).reshape(2, half).T.reshape(-1)
                back = torch.argsort(order)  # 2i and 2i + 1 are a pair
                turned_q, turned_k = (x[..., order] for x in old(
                    q[..., back], k[..., back], cos, sin))
            return turned_q if queries else q, turned_k if keys else k
        return apply
    return make


def repeated(order):
    """repeat_kv in another order."""
    def make(old):
        def repeat(x, count):
            x = old(x, count)
            heads = x.shape[1]
            kept = x[:, ::count]
            return kept[:, [order(h, heads, heads // count)
                            for h in range(heads)]]
        return repeat
    return make


def masks(change):
    """An attention's mask, which hides by -inf or the lowest number."""
    def make(module, forward):
        def called(*arguments, **keywords):
            for name in ("attention_mask", "mask"):
                if keywords.get(name) is not None:
                    keywords[name] = change(keywords[name])
            return forward(*arguments, **keywords)
        return called
    return make


def next_seen(mask):
    """The next key is seen as well."""
    import torch
    step = torch.eye(*mask.shape[-2:], dtype=torch.bool).roll(1, 1)
    step[-1] = False
    return mask | step if mask.dtype == torch.bool else mask.masked_fill(
        step, 0.0)


def itself_hidden(mask):
    """A query does not see its own place, but for the first."""
    import torch
    step = torch.eye(*mask.shape[-2:], dtype=torch.bool)
    step[0] = False
    return mask & ~step if mask.dtype == torch.bool else mask.masked_fill(
        step, torch.finfo(mask.dtype).min)


def without(mask):
    """Everything is seen."""
    return mask * 0 if mask.is_floating_point() else mask | True


def norm(compute):
    """An RMS norm's forward: compute(module, x in float32, x)."""
    def make(module, forward):
        def called(hidden_states):
            x = hidden_states.float()
            return compute(module, x, hidden_states)
        return called
    return make


def rms(x, eps):
    """x over its root mean square."""
    import torch
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def centred(module, x, given):
    """A LayerNorm's, in float32."""
    return module.weight * rms(
        x - x.mean(-1, keepdim=True), module.variance_epsilon).to(given.dtype)


def outside(module, x, given):
    """ε is added to the root."""
    root = x.pow(2).mean(-1, keepdim=True).sqrt() + module.variance_epsilon
    return module.weight * (x / root).to(given.dtype)


def plus_one(module, x, given):
    """1 + w."""
    return (1 + module.weight) * rms(x, module.variance_epsilon).to(given.dtype)


def clipped(module, x, given):
    """What nobody has."""
    return centred(module, x, given).clamp(-1.2, 1.2)


def in_float64(module, x, given):
    """No float32 inside."""
    return module.weight * rms(given, module.variance_epsilon)


def leaking(value):
    """What is hidden has a score so low, and no lower."""
    def make(old):
        def attend(module, q, k, v, mask, **more):
            mask = mask.masked_fill(mask < -1e5, value)
            return old(module, q, k, v, mask, **more)
        return attend
    return make


def rescaled(factor):
    """Scores are multiplied by a factor more."""
    def make(old):
        return lambda *given, scaling, **more: old(
            *given, scaling=scaling * factor, **more)
    return make


def mixed(old):
    """Attention without float32 inside."""
    def attend(module, q, k, v, mask, scaling, **more):
        import torch
        count = q.shape[1] // k.shape[1]
        k, v = (each.repeat_interleave(count, 1) for each in (k, v))
        weights = torch.softmax(q @ k.mT * scaling + mask, -1)
        return (weights @ v).transpose(1, 2).contiguous(), weights
    return attend


def scaled(factor):
    """An embedding times a factor."""
    return lambda module, forward: lambda *a, **k: factor * forward(*a, **k)


def shifted(by):
    """Position ids that begin elsewhere."""
    def make(module, forward):
        def called(*arguments, **keywords):
            if "position_ids" in keywords:
                keywords["position_ids"] = keywords["position_ids"] + by
                return forward(*arguments, **keywords)
            first, *rest = arguments
            return forward(first + by, *rest, **keywords)
        return called
    return make


def interleaved_heads(array):
    """Rows of a kernel by feature, not by head."""
    return array.reshape(H, -1, array.shape[-1]).transpose(0, 1).reshape(
        array.shape)


def roll(by):
    """Rows rolled by a part of them: another order of what is packed."""
    return lambda array: array.roll(by, -1)


def transposed(array):
    """A square kernel, the other way."""
    return array.T


def llama():
    """Faults of Llama, with grouped heads."""
    def of(name, causes, config=None, change=None, **more):
        return Planted("llama", name, causes, config or {}, change, **more)
    attention = "LlamaAttention"
    rope = lambda theta, **more: {"rope_parameters": {  # noqa: E731
        "rope_type": "default", "rope_theta": theta, **more}}
    yield of("equal", [])
    yield of("ε 1e-5", [("epsilon", "1e-06", "1e-05")], {"rms_norm_eps": 1e-5})
    yield of("ε 1e-8", [("epsilon", "1e-06", "1e-08")], {"rms_norm_eps": 1e-8})
    yield of("ε outside", [
        ("epsilon's place", "inside the root", "outside the root")],
             change=wrapped("RMSNorm", norm(outside)))
    yield of("1 + w", [("scale", "used", "1 is added")],
             change=wrapped("RMSNorm", norm(plus_one)))
    yield of("LayerNorm", [("mean", "ignored", "subtracted")],
             change=wrapped("RMSNorm", norm(centred)))
    yield of("a norm nobody has", NOBODYS,
             change=wrapped("RMSNorm", norm(clipped)))
    yield of("norms in float64", [
        ("precision inside", "in float32", "in float64")],
        change=wrapped("RMSNorm", norm(in_float64)), verdict=FLOAT32)
    yield of("θ 500000", [("rotary base", "10000", "500000")], rope(500000.0))
    yield of("θ 1000", [("rotary base", "10000", "1000")], rope(1000.0))
    yield of("positions linearly scaled", [("rotary factor", "1", "2")],
             rope(10000.0, rope_type="linear", factor=2.0))
    yield of("positions from 1", [("first position", "0", "1")],
             change=wrapped("LlamaRotaryEmbedding", shifted(1)))
    yield of("interleaved", [
        ("rotary pairs", "in halves", "interleaved")], change=patched(
        attention, apply_rotary_pos_emb=turned("interleaved")))
    yield of("turned backwards", [
        ("rotary direction", "forwards", "backwards")],
             change=patched(attention, apply_rotary_pos_emb=turned(sign=-1)))
    yield of("queries not turned", [
        ("rotary on", "queries and keys", "keys")], change=patched(
        attention, apply_rotary_pos_emb=turned(queries=False)))
    yield of("keys not turned", [
        ("rotary on", "queries and keys", "queries")], change=patched(
        attention, apply_rotary_pos_emb=turned(keys=False)))
    yield of("no rotary", [
        ("rotary on", "queries and keys", "neither")], change=patched(
        attention, apply_rotary_pos_emb=turned(queries=False, keys=False)))
    yield of("groups in turn", [
        ("shared heads", "in order", "in turn")], change=patched(
        attention, repeat_kv=repeated(lambda h, heads, groups: h % groups)))
    yield of("groups in reverse", [("shared heads", "in order", "in reverse")],
             change=patched(attention, repeat_kv=repeated(
                 lambda h, heads, groups: (heads - 1 - h) * groups // heads)))
    yield of("all the first key", [("shared heads", "in order", "the first")],
             change=patched(attention, repeat_kv=repeated(
                 lambda h, heads, groups: 0)))
    for word, scale in (("1/√d_model", W**-0.5), ("1", 1.0),
                        ("1/d_k", H / W)):
        yield of(f"scale {word}", [("scale", "1/√d_k", word)],
                 change=attribute(attention, scaling=scale))
    yield of("gelu for silu", [
        ("activation", "silu", "gelu")], {"hidden_act": "gelu"})
    yield of("relu for silu", activation("silu", "relu"),
             {"hidden_act": "relu"})
    yield of("gate and up exchanged", [("gate", "as it is", "exchanged")],
             change=exchanged("gate_proj.weight", "up_proj.weight"))
    yield of("the next is seen", [
        ("mask", "", "off by one, the next place is seen in b")],
             change=wrapped(attention, masks(next_seen)))
    yield of("itself hidden", [
        ("mask", "", "off by one, the place itself is hidden in b")],
             change=wrapped(attention, masks(itself_hidden)))
    yield of("no mask", [("mask", "", "ignored in b")],
             change=wrapped(attention, masks(without)))
    yield of("query transposed", TRANSPOSED,
             change=weights(("q_proj.weight", transposed)))
    yield of("key and value exchanged", [
        ("key and value", "as they are", "swapped")],
             change=exchanged("k_proj.weight", "v_proj.weight"))
    yield of("query's heads by feature", REORDERED,
             change=weights(("q_proj.weight", interleaved_heads)))
    yield of("embedding times √d", SCALED,
             change=first_embedding)


def t5():
    """Faults of T5 v1.1."""
    def of(name, causes, config=None, change=None):
        return Planted("t5", name, causes, config or {}, change)
    attention = "T5Attention"

    def bucketed(function):
        def change(model):
            for module in model.modules():
                if attention in type(module).__name__:
                    module._relative_position_bucket = function(
                        module._relative_position_bucket)
        return change
    yield of("equal", [])
    yield of("ε 1e-5", [
        ("epsilon", "1e-06", "1e-05")], {"layer_norm_epsilon": 1e-5})
    yield of("1 + w", [("scale", "used", "1 is added")], change=wrapped(
        "T5LayerNorm", norm(lambda m, x, given: (
            m.weight + 1) * given * (x.pow(2).mean(-1, keepdim=True)
                                     + m.variance_epsilon).rsqrt())))
    yield of("LayerNorm", [("mean", "ignored", "subtracted")],
             change=wrapped("T5LayerNorm", norm(centred)))
    yield of("gelu for its tanh", [("activation", "gelu by tanh", "gelu")],
             change=attribute("GatedActDense", act=gelu_exact))
    yield of("relu for gelu", activation("gelu by tanh", "relu"),
             {"feed_forward_proj": "gated-relu"})
    yield of("gate and up exchanged", [("gate", "as it is", "exchanged")],
             change=exchanged("wi_0.weight", "wi_1.weight"))
    yield of("scores divided", [("scale", "1", "1/√d_k")],
             change=attribute(attention, scaling=8**-0.5))
    yield of("distances' sign", [
        ("buckets", "bidirectional", "of the other sign"),
        ("buckets", "causal", "of the other sign")], change=bucketed(
        lambda old: lambda relative_position, **k: old(
            -relative_position, **k)))
    yield of("buckets of a causal stack", [
        ("buckets", "bidirectional", "causal")],
             change=bucketed(lambda old: lambda *a, bidirectional, **k: old(
                 *a, bidirectional=False, **k)))
    yield of("buckets of the encoder", [
        ("buckets", "causal", "bidirectional")],
             change=bucketed(lambda old: lambda *a, bidirectional, **k: old(
                 *a, bidirectional=True, **k)))
    yield of("distances off by one", [
        ("buckets", "bidirectional", "of distances one more"),
        ("buckets", "causal", "of distances one more")],
             change=bucketed(lambda old: lambda relative_position, **k: old(
                 relative_position - 1, **k)))
    yield of("greatest distance 64", [("greatest distance", "12", "64")],
             {"relative_attention_max_distance": 64})
    yield of("no mask", UNMASKED,
             change=wrapped(attention, masks(without)))
    yield of("value transposed in heads", REORDERED,
             change=weights(("SelfAttention.v.weight", interleaved_heads)))
    yield of("key and value exchanged", [
        ("key and value", "as they are", "swapped")],
             change=exchanged(".k.weight", ".v.weight"))
    yield of("bias in the first layer only", [("factor", "1", "0")],
             change=wrapped("T5LayerSelfAttention", unbiased))
    yield of("output scaled", [("factor", "0.204124", "1")],
             {"scale_decoder_outputs": False})
    yield of("embedding times √d", SCALED,
             change=scaled_embedding)


def gelu_exact(old):
    """The exact GELU as a module."""
    import torch
    return torch.nn.GELU()


def scaled_embedding(model):
    """The token embedding times √d_model."""
    wrapped("Embedding", scaled(W**0.5))(model.encoder.embed_tokens)


def unbiased(module, forward):
    """Layers after the first get no bias."""
    def called(hidden_states, attention_mask=None, position_bias=None, **more):
        if position_bias is not None:
            position_bias = position_bias * 0
        return forward(hidden_states, attention_mask, position_bias, **more)
    return called


def encoders():
    """Faults of BERT and of the encoders of BART and Marian."""
    def of(family):
        return lambda name, causes, config=None, change=None: Planted(
            family, name, causes, config or {}, change)
    bert, bart, marian = of("bert"), of("bart"), of("marian")
    for make, attention, field, eps in (
            (bert, "BertSelfAttention", "hidden_act", "1e-12"),
            (bart, "BartAttention", "activation_function", "1e-05"),
            (marian, "MarianAttention", "activation_function", "1e-05")):
        yield make("equal", [])
        yield make("ε 1e-6", [("epsilon", eps, "1e-06")],
                   change=attribute("LayerNorm", eps=1e-6))
        for word in ("gelu_new", "relu", "silu"):
            if make is not marian or word != "silu":
                yield make(word, activation("gelu", {
                    "gelu_new": "gelu by tanh"}.get(word, word)),
                    {field: word})
        for word, scale in (("1/√d_model", W**-0.5), ("1", 1.0),
                            ("1/d_k", H / W)):
            yield make(f"scale {word}", [("scale", "1/√d_k", word)],
                       change=attribute(attention, scaling=scale))
        yield make("no mask", UNMASKED,
                   change=wrapped(attention, masks(without)))
        query = "query" if make is bert else "q_proj"
        key = "key" if make is bert else "k_proj"
        yield make("query transposed", TRANSPOSED,
                   change=weights((f"{query}.weight", transposed)))
        yield make("query and key exchanged", [
            ("query and key", "as they are", "swapped")],
                   change=exchanged(f"{query}.weight", f"{key}.weight"))
        yield make("query's heads by feature", REORDERED,
                   change=weights((f"{query}.weight", interleaved_heads)))
        yield make("query's bias missing", [("bias", "", "zero in b")],
                   change=weights((f"{query}.bias", lambda b: 0 * b)))
        yield make("embedding times √d", SCALED,
                   change=wrapped("WordEmbedding" if make is bart
                                  else "_", scaled(W**0.5))
                   if make is bart else first_embedding)
    yield bert("positions from 2", [
        ("first position", "0", "2")], change=wrapped(
        "BertEmbeddings", lambda module, forward: lambda *a, **k: forward(
            *a, **k | {"position_ids": places(2)})))
    yield bert("dropout left on", [("dropout", "off", "on")],
               change=lambda model: model.bert.embeddings.train())
    yield bart("positions from 0", [("first position", "2", "0")],
               change=attribute("LearnedPositional", offset=0))
    yield bart("scaled embedding", SCALED,
               {"scale_embedding": True})
    yield marian("unscaled embedding", UNSCALED,
                 {"scale_embedding": True})
    yield marian("positions from 1", [
        ("first position", "0", "1")], change=wrapped(
        "SinusoidalPositional", lambda module, forward: (
            lambda input_ids_shape, past_key_values_length=0, **more: forward(
                input_ids_shape, past_key_values_length + 1, **more))))


def first_embedding(model):
    """The token embedding times √d_model."""
    module = model.get_input_embeddings()
    module.forward = scaled(W**0.5)(module, module.forward)


def gpt2():
    """Faults of GPT-2, whose projections are packed."""
    def of(name, causes, config=None, change=None):
        return Planted("gpt2", name, causes, config or {}, change)
    attention = "GPT2Attention"
    yield of("equal", [])
    yield of("ε 1e-6", [
        ("epsilon", "1e-05", "1e-06")], {"layer_norm_epsilon": 1e-6})
    for word in ("gelu", "relu", "silu"):
        yield of(word, activation("gelu by tanh", word),
                 {"activation_function": word})
    for word, scale in (("1/√d_model", W**-0.5), ("1/d_k", H / W)):
        yield of(f"scale {word}", [("scale", "1/√d_k", word)],
                 change=attribute(attention, scaling=scale))
    yield of("scale 1", [
        ("scale", "1/√d_k", "1")], {"scale_attn_weights": False})
    yield of("the next is seen", [
        ("mask", "", "off by one, the next place is seen in b")],
             change=wrapped(attention, masks(next_seen)))
    yield of("no mask", [("mask", "", "ignored in b")],
             change=wrapped(attention, masks(without)))
    yield of("key, value, query", [
        *REORDERED, ("bias", "", "in b the same numbers in another order")],
             change=weights(("c_attn.weight", roll(W)),
                            ("c_attn.bias", roll(W))))
    yield of("packed head by head", [
        *REORDERED, ("bias", "", "in b the same numbers in another order")],
             change=weights(("c_attn.weight", by_head),
                            ("c_attn.bias", by_head)))
    yield of("output transposed", TRANSPOSED,
             change=weights(("attn.c_proj.weight", transposed)))
    yield of("positions from 1", [("first position", "0", "1")], change=wrapped(
        "GPT2Model", lambda module, forward: lambda *a, **k: forward(
            *a, **k | {"position_ids": places(1)})))
    yield of("embedding times √d", SCALED,
             change=first_embedding)


def places(first):
    """Position ids."""
    import torch
    return torch.arange(first, first + T)[None]


def by_head(array):
    """Query, key and value of a head stand together."""
    *lead, width = array.shape
    return array.reshape(*lead, 3, H, width // 3 // H).swapaxes(
        -3, -2).reshape(array.shape)


def times(factor):
    """A module's output, or its first, times a factor."""
    def make(module, forward):
        def called(*arguments, **keywords):
            result = forward(*arguments, **keywords)
            if isinstance(result, tuple):
                return result[0] * factor, *result[1:]
            return result * factor
        return called
    return make


def previous_seen(share):
    """A share of the position before is added."""
    def make(module, forward):
        def called(*arguments, **keywords):
            result = forward(*arguments, **keywords)
            return result + share * result.roll(1, 1)
        return called
    return make


def several(*changes):
    """Some changes, one after another."""
    def change(model):
        for each in changes:
            each(model)
    return change


def gelu_in_the_last(model):
    """The last layer's activation is another."""
    import torch
    model.model.layers[-1].mlp.act_fn.forward = torch.nn.functional.gelu


def small():
    """Faults of the size of float32's rounding, or below, and deep models."""
    sixty_four = {
        "llama": wrapped("RMSNorm", norm(in_float64)),
        "t5": wrapped("T5LayerNorm", norm(in_float64))}
    layers = {"llama": "LlamaMLP", "t5": "DenseGatedActDense",
              "bert": "BertIntermediate", "gpt2": "GPT2MLP"}
    for family, kind in layers.items():
        inside = sixty_four.get(family, several())
        also = [("precision inside", "in float32", "in float64")] * (
            family in sixty_four)
        for share in (1e-9, 1e-8, 1e-7, 5e-7, 1e-6):
            yield Planted(
                family, f"times 1 + {share:g}",
                [("factor", "1", f"{1 + share:.10g}"), *also],
                change=several(inside, wrapped(kind, times(1 + share))))
            yield Planted(
                family, f"{share:g} of the position before", [(), *also],
                change=several(inside, wrapped(kind, previous_seen(share))))
    for family, inside in sixty_four.items():
        yield Planted(family, "norms in float64, deep", [(
            "precision inside", "in float32", "in float64")], change=inside,
            both={"llama": {"num_hidden_layers": 12},
                  "t5": {"num_layers": 6}}[family], verdict=FLOAT32)
    yield Planted(
        "llama", "gelu in the last of 12", [
            ("activation", "silu", "gelu"),
            ("precision inside", "in float32", "in float64")],
        change=several(sixty_four["llama"], gelu_in_the_last),
        both={"num_hidden_layers": 12})
    attention = "LlamaAttention"
    for name, make in (("a leak of -16", leaking(-16.0)),
                       ("a leak of -20", leaking(-20.0)),
                       ("scores times 1 + 1e-7", rescaled(1 + 1e-7))):
        yield Planted("llama", name, NOBODYS, change=patched(
            attention, eager_attention_forward=make))
    yield Planted("llama", "softmax in float64", [(
        "precision inside", "in float32", "in float64")], change=patched(
            attention, eager_attention_forward=mixed), verdict=FLOAT32)


#: What is caught at its step and not told, or what nobody could tell.
NOT_YET = {
    ("llama", "key and value exchanged"),
}

FAULTS = [*llama(), *t5(), *encoders(), *gpt2(), *small()]
