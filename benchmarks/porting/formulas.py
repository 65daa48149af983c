"""Faults of attention's masks and scores, and of norms, as functions."""

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


def unbiased(module, forward):
    """Layers after the first get no bias."""
    def called(hidden_states, attention_mask=None, position_bias=None, **more):
        if position_bias is not None:
            position_bias = position_bias * 0
        return forward(hidden_states, attention_mask, position_bias, **more)
    return called
