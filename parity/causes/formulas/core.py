"""softmax(Q Kᵀ / √d_k) V of what was projected elsewhere."""

from parity.causes.formulas.attention import Attention
from parity.causes.formulas.projections import HEADS, NAMED
from parity.causes.formulas.family import Change
from parity.causes.formulas.rotary import base_of

#: How modules call the width of a head.
WIDTHS = "head_dim", "key_value_proj_dim", "attention_head_size", "d_kv"

#: Bases of rotary positions that models have.
BASES = 1e4, 1e3, 1e5, 5e5, 1e6


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
                       "rotary base": [*BASES]}
        if "position bias" in seen.tables:
            fields["position bias"] = ["added"]
        if seen.floats["key"].shape[-1] != self.width(side, None):
            fields["shared heads"] = ["in order"]
        return fields

    def also(self, first, second, sides):
        """A base of positions: a was given a table, and b computed it."""
        yield from super().also(first, second, sides)
        tables, base = sides[0].seen[0].tables, second.settings.get(
            "rotary base")
        mine = base_of(tables["cosines"], tables["sines"]) if (
            base and "cosines" in tables) else None
        if mine and abs(mine - base) > 1e-3 * base:
            yield Change("rotary base", mine, base, base, second.settings | {
                "rotary base": mine}, second.parameters)

    @staticmethod
    def width(side, parameters):
        """The width of all heads together."""
        return side.seen[0].x.shape[-1]
