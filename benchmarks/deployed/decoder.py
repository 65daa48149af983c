"""A small decoder with a cache, in several ways, right or with one fault."""

import torch
from torch import nn

W, H, V, WINDOW = 16, 2, 20, 3
IDS = torch.tensor([[3, 5, 7, 9, 11, 13], [2, 4, 6, 8, 10, 12]])


class KeptTokens:
    """What is kept: keys and values by layer, and how many tokens."""

    def __init__(self, layers, room=0, rows=0, wrong=""):
        self.wrong, self.room, self.length = wrong, room, 0
        self.kept = [None] * layers
        if room:
            self.kept = [[torch.zeros(rows, H, room, W // H).double()
                          for _ in range(2)] for _ in range(layers)]

    def add(self, layer, keys, values):
        """All keys and values, with new ones."""
        layer = 0 if self.wrong == "k_layer" else layer
        old = self.kept[layer]
        if self.room:
            first = self.length - (self.wrong == "k_slot" and self.length > 0)
            for store, new in zip(old, (keys, values)):
                store[:, :, first:first + new.shape[2]] = new  # @k_slot
            return [store.clone() for store in old]
        if old is not None:
            keys, values = (torch.cat(pair, 2) for pair in zip(  # @k_layer
                old, (keys, values)))
        self.kept[layer] = [keys, values]
        return keys, values

    def reset(self):
        """Empty it."""
        if self.wrong != "g_reset":
            self.length = 0
        if not self.room:
            self.kept = [None] * len(self.kept)

    def crop(self, size):
        """Cut it back."""
        self.length = size + (self.wrong == "g_crop")
        if not self.room:
            self.kept = [[each[:, :, :size] for each in pair]
                         for pair in self.kept]


class CachedAttention(nn.Module):
    """Attention over what is kept and what is new."""

    def __init__(self, s, index):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(W, W) for _ in range(4))
        self.s, self.index = s, index

    def forward(self, x, past, first, mask):
        s, wrong, (b, t, _) = self.s, self.s["wrong"], x.shape
        q, k, v = (f(x).view(b, t, H, -1).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        if s["position"] == "rotary":
            start = 0 if wrong == "r_anew" else first - (
                wrong == "r_late" and first > 0)
            places = torch.arange(start, start + t)  # @r_anew @r_late
            q, k = turned(q, places), turned(k, places)
        if isinstance(past, KeptTokens):
            k, v = past.add(self.index, k, v)
            kept = None
        else:
            if past is not None:
                old = past[self.index]
                if wrong == "k_again":
                    old = turned(old[0], torch.arange(first)), old[1]
                if wrong == "k_swap":
                    old = old[1], old[0]
                if wrong == "k_zero":
                    old = old[0] * 0, old[1]
                k, v = torch.cat([old[0], k], 2), torch.cat([old[1], v], 2)
            keep = k.shape[2]
            if s["window"] and s["cache"] == "window":
                keep = WINDOW - 2 * (wrong == "w_less")
            if wrong == "k_lost":
                keep = 2
            kept = [each[:, :, -keep:] for each in (k, v)]
            if wrong == "k_short":
                kept = [each.float().double() for each in kept]
        n, end = k.shape[2], first + t
        offset = first if isinstance(past, KeptTokens) and past.room else n - t
        here = torch.arange(n) + (0 if isinstance(
            past, KeptTokens) and past.room else end - n)
        mine = torch.arange(first, end)
        if wrong == "m_offset" and t > 1:
            mine = mine - offset  # @m_offset
        seen = here <= mine[:, None] - int(wrong == "m_last" and first > 0)
        if wrong == "m_chunk" and first:
            seen = torch.ones(t, n, dtype=torch.bool)
        if wrong == "m_ahead" and first:
            seen = here <= mine[:, None] + 1
        if s["window"] and not (wrong == "w_chunk" and t > 1 and first):
            width = WINDOW + (wrong == "w_more" and first > 0) - (
                wrong == "w_narrow" and first > 0)
            seen = seen & (here > mine[:, None] - width)
        seen = seen[None, None]
        if mask is not None and not (wrong == "m_pad" and first):
            full = torch.zeros(b, max(n, end), dtype=torch.bool)
            full[:, :mask.shape[1]] = mask.bool()
            if wrong == "m_padrow" and first:
                full = full[:1].expand(b, -1)
            # @m_pad
            seen = seen & full[:, None, None, here.clamp(max=end - 1)]
        scores = q @ k.mT / (W // H) ** 0.5
        if s["position"] == "alibi":
            far = (mine[:, None] if wrong != "a_anew" else torch.arange(
                t)[:, None]) - here  # @a_anew
            scores = scores - 0.25 * far.abs()
        if wrong == "s_scale" and first:
            scores = scores / 2
        scores = scores.masked_fill(~seen, -1e9)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, W)
        return self.o(y), kept


def turned(x, places):
    """Rotary positions."""
    half = x.shape[-1] // 2
    angle = places[:, None] / 10 ** torch.arange(half)
    cos, sin = angle.cos(), angle.sin()
    one, two = x[..., :half], x[..., half:]
    return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)


class Decoder(nn.Module):
    """The model; s has position, cache, window, mask and wrong."""

    def __init__(self, **s):
        super().__init__()
        self.s = {"position": "learned", "cache": "tuple", "window": False,
                  "mask": False, "wrong": "", "reorder": False} | s
        self.embed, self.place = nn.Embedding(V, W), nn.Embedding(40, W)
        self.layers = nn.ModuleList(
            CachedAttention(self.s, i) for i in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(W) for _ in range(2))
        self.head, self.last = nn.Linear(W, V), None
        if self.s["cache"] in ("object", "static"):
            self.init_cache = self.made
        if self.s["reorder"]:
            self.reorder_cache = self.moved

    def made(self, rows, length):
        """An empty cache."""
        wrong = self.s["wrong"]
        room = length + 2 if self.s["cache"] == "static" else 0
        made = KeptTokens(2, room, rows, wrong)
        if wrong == "g_global":
            made = self.last = self.last or made
        return made

    def moved(self, past, order):
        """What is kept, with its rows in another order."""
        wrong, (layers, count) = self.s["wrong"], past
        if wrong == "b_none":
            return past
        if wrong == "b_back":
            order = order.flip(0)
        return [[each if wrong == "b_keys" and i == 0 or (
            wrong == "b_layer" and place) else each[order]
            for i, each in enumerate(pair)]
            for place, pair in enumerate(layers)], count

    def forward(self, input_ids, attention_mask=None, past_key_values=None,
                use_cache=True):
        s, wrong = self.s, self.s["wrong"]
        past, t = past_key_values, input_ids.shape[1]
        held = isinstance(past, KeptTokens)
        first = 0 if past is None else past.length if held else past[1]
        mask = attention_mask if s["mask"] else None
        start = 0 if wrong == "p_anew" else first + (first > 0) * (
            (wrong == "p_early") - (wrong == "p_late"))
        x = self.embed(input_ids)
        if s["position"] == "learned":
            places = torch.arange(start, start + t)  # @p_anew @p_early @p_late
            if mask is not None and not (wrong == "p_pad" and first):
                places = (mask.cumsum(1) - 1).clamp(min=0)[:, -t:]
            if wrong == "p_padall" and mask is not None:
                places = torch.arange(mask.shape[1])[-t:] if first else places
            x = x + self.place(places)
        kept = []
        for layer, norm in zip(self.layers, self.norms):
            y, k = layer(norm(x), past if held or past is None else past[0],
                         first, mask)
            x, kept = x + y, [*kept, k]
        if held:
            past.length = first + t
        out = {"logits": self.head(x)}
        if not use_cache:
            return out
        return out | {"past_key_values": past if held else (kept, first + t)}


def made(**s):
    """A model in float64, and what it is called with."""
    torch.manual_seed(0)
    model = Decoder(**s).double().eval()
    for each in model.parameters():
        if each.ndim > 1:
            nn.init.normal_(each, std=0.4)
    return model, {"input_ids": IDS}
