"""What goes wrong with positions inside an attention: rotary and relative."""

import importlib

import numpy as np

from contract.buckets import boundaries
from parity.causes.cause import Cause
from parity.causes.faults.putting import (
    after_init, made_with, replaced, tabled)

UNREAD = "positions inside an attention are not read off a foreign model"

KINDS = "bidirectional", "causal"


def without_rotary(which):
    """The queries or the keys of every attention are not turned."""
    def change(attention):
        package = type(attention).__module__.rpartition(".")[0]
        rotary = importlib.import_module(f"{package}.rotary")
        setattr(attention, f"{which}_rotary", rotary.NoRotary(None))
    return after_init("attention", "MultiHeadAttention", change)


def rotary_as(word):
    """Any rotary positions are those of this word."""
    return tabled("rotary", "ROTARIES", lambda old, port: {
        (other, kind): old[word, kind] for other, kind in old})


def rotated_by(angles):
    """Other cosines and sines: ``angles(cosines, sines)``."""
    return replaced("rotary", "RotaryHalves.rotate", lambda old, port: (
        lambda self, x, cosines, sines: old(
            self, x, *angles(cosines, sines))))


def _rotary(name, sentence, put, step, positions="rotary_halves"):
    return Cause(name, "rotary positions", sentence, put=put,
                 case="self_attention", step=step,
                 changes={"positions": positions}, not_explained=UNREAD)


#: So few that distances of the cases fall into every one.
FEW = {"positions": "relative", "relative_buckets": 8, "relative_distance": 10}


def bucketed_by(function):
    """Other buckets: ``function(distance, count, greatest, causal)``."""
    def make(old, port):
        def made(queries, keys, start, count, greatest, causal):
            distance = (start + np.arange(queries))[:, None] - np.arange(keys)
            return function(distance, count, greatest, causal)
        return made
    return replaced("relative", "buckets", make)


def bucket(distance, count, greatest, causal, side="right"):
    """The bucket of each distance; a first distance is its own on the right.
    """
    if causal:
        distance, sign = np.maximum(distance, 0), 0
    else:
        count //= 2
        distance, sign = np.abs(distance), count * (distance < 0)
    first = boundaries(count, greatest)
    return np.maximum(
        np.searchsorted(first, distance, side) - 1, 0) + sign


def evenly(distance, count, greatest, causal):
    """All buckets of one width, as if there were no logarithm."""
    if causal:
        distance, sign = np.maximum(distance, 0), 0
    else:
        count //= 2
        distance, sign = np.abs(distance), count * (distance < 0)
    return np.minimum(distance * count // greatest, count - 1) + sign


def _relative(name, sentence, put, case="self_attention",
              step="relative.position_bias"):
    return Cause(name, "relative positions", sentence, put=put, case=case,
                 step=step, changes=FEW, not_explained=UNREAD)


def relative_as(kind, other):
    """Attentions of a kind have another kind's relative positions."""
    return tabled("relative", "RELATIVES", lambda old, port: {
        ("relative", kind): old["relative", other]})


CAUSES = (
    _rotary("rotary pairs in halves", "Features i and i + d_k/2 are turned "
            "together where 2i and 2i + 1 are to be.",
            rotary_as("rotary_halves"), "query_rotary.rotated",
            "rotary_interleaved"),
    _rotary("rotary pairs interleaved", "Features 2i and 2i + 1 are turned "
            "together where i and i + d_k/2 are to be.",
            rotary_as("rotary_interleaved"), "query_rotary.rotated"),
    _rotary("queries not turned", "Rotary positions on keys alone.",
            without_rotary("query"), "scores"),
    _rotary("keys not turned", "Rotary positions on queries alone.",
            without_rotary("key"), "scores"),
    _rotary("rotary positions turn backwards", "The sine has the other sign.",
            rotated_by(lambda cosines, sines: (cosines, -sines)),
            "query_rotary.rotated"),
    _rotary("rotary base 500000", "Llama 3's base for 10000.", made_with(
        lambda config, weights: (config.replace(rotary_base=5e5), weights)),
            "query_rotary.rotated"),
    _relative("a causal stack's buckets in the encoder", "All keys after a "
              "query share bucket 0.", relative_as("bidirectional", "causal")),
    _relative("the encoder's buckets in a causal stack", "Half of the buckets "
              "are for keys that no query sees.",
              relative_as("causal", "bidirectional"), "decoder_layer",
              "attended"),
    _relative("distances with the other sign", "Query's place less key's, for "
              "key's less query's.", bucketed_by(
                  lambda distance, *sizes: bucket(-distance, *sizes))),
    _relative("a bucket begins a distance later", "Its first distance is in "
              "the bucket before.", bucketed_by(
                  lambda distance, *sizes: bucket(
                      distance, *sizes, side="left"))),
    _relative("buckets of equal width", "Distances are not taken the "
              "logarithm of.", bucketed_by(evenly)),
)
