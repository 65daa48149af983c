"""What goes wrong with positions inside an attention: rotary and relative."""

import numpy as np

from parity.causes.cause import OTHER, Cause
from parity.causes.faults.putting import (
    after_init, all_of, configured, replaced, tabled)
from parity.causes.relative import bucket, evenly

CORES = "attention without projections", "rotary table"

KINDS = "bidirectional", "causal"


def still(rotary):
    """Have rotary positions hand on what they are given, and show no step."""
    from parity import ports
    kind, base = type(rotary), type(rotary).__mro__
    name = next(name for name in ("forward", "call", "__call__")
                if any(name in vars(each) for each in base
                       if each.__name__ == "RotaryHalves"))
    plain = kind.__module__.startswith(ports.package("numpy"))
    rotary.__class__ = type(kind)("Still", (kind,), {
        name: lambda self, x, start: (x, {}) if plain else x,
        "backward": lambda self, dx, c: (dx, {})})


def without_rotary(which):
    """The queries or the keys of every attention are not turned."""
    return after_init(
        "dialects.attention", "RotaryAttention",
        lambda attention: still(getattr(attention, f"{which}_rotary")))


def rotary_as(word):
    """Any rotary positions are those of this word."""
    return tabled("dialects.rotary", "ROTARIES", lambda old, port: (
        dict.fromkeys(old, old[word])))


def rotated_by(angles):
    """Other cosines and sines: ``angles(cosines, sines)``."""
    return replaced(
        "dialects.rotary", "RotaryHalves.rotate", lambda old, port: (
            lambda self, x, cosines, sines: old(
                self, x, *angles(cosines, sines))))


def halfway(cosines, sines):
    """Cosines and sines of half the angles, each below π in every case."""
    cosines = ((1 + cosines) / 2)**0.5
    return cosines, sines / (2 * cosines)


def _rotary(name, sentence, settings, put, step, positions="rotary_halves",
            **more):
    return Cause(name, "rotary positions", sentence, CORES, settings, put=put,
                 case="self_attention", step=step,
                 changes={"positions": positions}, **more)


#: So few that distances of the cases fall into every one.
FEW = {"positions": "relative", "relative_buckets": 8, "relative_distance": 10}


def bucketed_by(function):
    """Other buckets: ``function(distance, count, greatest, causal)``."""
    def make(old, port):
        def made(queries, keys, start, count, greatest, causal):
            distance = (start + np.arange(queries))[:, None] - np.arange(keys)
            return function(distance, count, greatest, causal)
        return made
    return replaced("dialects.relative", "buckets", make)


def _relative(name, sentence, settings, put, case="self_attention",
              step="relative.position_bias"):
    return Cause(name, "relative positions", sentence, ("relative positions",),
                 settings, put=put, case=case, step=step, changes=FEW)


def relative_as(kind, other):
    """Attentions of a kind have another kind's relative positions."""
    return tabled("dialects.relative", "RELATIVES", lambda old, port: {
        kind: old[other]})


CAUSES = (
    _rotary("rotary pairs in halves", "Features i and i + d_k/2 are turned "
            "together where 2i and 2i + 1 are to be.",
            {"rotary pairs": "in halves"}, rotary_as("rotary_halves"),
            "query_rotary.rotated", "rotary_interleaved"),
    _rotary("rotary pairs interleaved", "Features 2i and 2i + 1 are turned "
            "together where i and i + d_k/2 are to be.",
            {"rotary pairs": "interleaved"}, rotary_as("rotary_interleaved"),
            "query_rotary.rotated"),
    _rotary("queries not turned", "Rotary positions on keys alone.",
            {"rotary on": "keys"}, without_rotary("query"), "scores"),
    _rotary("keys not turned", "Rotary positions on queries alone.",
            {"rotary on": "queries"}, without_rotary("key"), "scores"),
    _rotary("no rotary positions", "Neither queries nor keys are turned.",
            {"rotary on": "neither"}, all_of(
                without_rotary("query"), without_rotary("key")), "scores"),
    Cause("rotary positions", "rotary positions", "Queries and keys are "
          "turned where neither is to be.", CORES,
          {"rotary on": "queries and keys"}, not_put="their tables are those "
          "of a config that has them"),
    _rotary("rotary positions turn backwards", "The sine has the other sign.",
            {"rotary direction": "backwards"}, rotated_by(
                lambda cosines, sines: (cosines, -sines)),
            "query_rotary.rotated"),
    _rotary("rotary base 500000", "Llama 3's base for 10000.",
            {"rotary base": 5e5}, configured(rotary_base=5e5),
            "query_rotary.rotated"),
    Cause("a rotary base is another", "rotary positions", "A number that is "
          "not listed here.", CORES, {"rotary base": OTHER}, not_put="it "
          "stands for whatever base is not listed here"),
    Cause("rotary positions are divided", "rotary positions", "Each position "
          "is divided by a factor, as for longer texts.", CORES,
          {"rotary factor": OTHER}, put=rotated_by(halfway),
          case="self_attention", step="query_rotary.rotated",
          changes={"positions": "rotary_halves"}),
    Cause("a rotary table begins elsewhere", "rotary positions", "The first "
          "position is not 0.", ("rotary table",), {"first position": OTHER},
          not_put="the same distances give the same scores"),
    _relative("a causal stack's buckets in the encoder", "All keys after a "
              "query share bucket 0.", {"buckets": "causal"},
              relative_as("bidirectional", "causal")),
    _relative("the encoder's buckets in a causal stack", "Half of the buckets "
              "are for keys that no query sees.", {"buckets": "bidirectional"},
              relative_as("causal", "bidirectional"), "decoder_layer",
              "attended"),
    _relative("distances with the other sign", "Query's place less key's, for "
              "key's less query's.", {"buckets": "of the other sign"},
              bucketed_by(
                  lambda distance, *sizes: bucket(-distance, *sizes))),
    _relative("a bucket begins a distance later", "Its first distance is in "
              "the bucket before.", {"buckets": "a distance later"},
              bucketed_by(
                  lambda distance, *sizes: bucket(
                      distance, *sizes, side="left"))),
    _relative("buckets of equal width", "Distances are not taken the "
              "logarithm of.", {"buckets": "of equal width"},
              bucketed_by(evenly)),
    _relative("distances are one more", "As if a query stood one place later.",
              {"buckets": "of distances one more"}, bucketed_by(
                  lambda distance, *sizes: bucket(distance + 1, *sizes))),
    _relative("distances are one less", "As if a query stood one place "
              "earlier.", {"buckets": "of distances one less"}, bucketed_by(
                  lambda distance, *sizes: bucket(distance - 1, *sizes))),
    _relative("the greatest distance is another", "The last bucket begins "
              "elsewhere.", {"greatest distance": OTHER}, bucketed_by(
                  lambda distance, count, greatest, causal: bucket(
                      distance, count, 4 * greatest, causal))),
)
