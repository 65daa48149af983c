"""softmax(Q Kᵀ / √d_k) V of what was projected elsewhere."""

from parity.causes.formulas.attention import HEADS, NAMED, Attention

#: How modules call the width of a head.
WIDTHS = "head_dim", "key_value_proj_dim", "attention_head_size", "d_kv"


class Core(Attention):
    """Attention of what was projected elsewhere."""

    name = "attention without projections"

    def readings(self, side):
        """None are needed but the number of heads."""
        heads, size = side.setting(*HEADS[:-1]), side.setting(*WIDTHS)
        if not isinstance(heads, int) and isinstance(size, int) and size > 0:
            heads = self.width(side, None) // size
        yield {f"{name}{leaf}": None for name in NAMED
               for leaf in ("", " bias")} | {
            "heads": heads if isinstance(heads, int) else None}

    def fields(self, side, parameters):
        """What attentions differ in, and positions inside."""
        fields, seen = super().fields(side, parameters), side.seen[0]
        if "cosines" in seen.tables:
            fields |= {"rotary on": ["queries and keys", "neither"],
                       "rotary pairs": ["in halves", "interleaved"],
                       "rotary direction": ["forwards"]}
        else:
            fields |= {"rotary on": ["neither", "queries and keys"],
                       "rotary pairs": ["in halves", "interleaved"],
                       "rotary direction": ["forwards"],
                       "rotary base": [10000.0]}
        if "position bias" in seen.tables:
            fields["position bias"] = ["added"]
        if seen.floats["key"].shape[-1] != self.width(side, None):
            fields["shared heads"] = ["in order"]
        return fields

    @staticmethod
    def width(side, parameters):
        """The width of all heads together."""
        return side.seen[0].x.shape[-1]
