"""Faults of weights, and of Whisper: kernels and biases where others belong."""

from benchmarks.porting.planted import Planted
from benchmarks.porting.ways import (
    REORDERED, SCALES, TRANSPOSED, activation, attribute, exchanged,
    interleaved_heads, previous_seen, several, times, transposed, weights,
    wrapped)
from parity.numerics.comparator import MATCH

#: family -> the ends of the names of its query, key, value and output in self
#: attention, which of them have biases, and which square kernels.
PROJECTIONS = {
    "bert": (("self.query", "self.key", "self.value",
              "attention.output.dense"), "qkvo", "qkvo"),
    "bart": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
              "self_attn.out_proj"), "qkvo", "qkvo"),
    "marian": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                "self_attn.out_proj"), "qkvo", "qkvo"),
    "whisper": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                 "self_attn.out_proj"), "qvo", "qkvo"),
    "llama": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
               "self_attn.o_proj"), "", "qo"),
}

WORDS = {"q": "query", "k": "key", "v": "value", "o": "output"}

#: What an earlier file has of them.
HAD = {"bert": {"query transposed", "query's bias missing",
                "query's heads by feature", "query and key exchanged"}}
HAD["bart"] = HAD["marian"] = HAD["bert"]
HAD["llama"] = {"query transposed", "query's heads by feature",
                "key and value exchanged"}


def columns_by_feature(array):
    """Columns of the output's kernel by feature, and not by head."""
    return interleaved_heads(array.T).T


def of_attention(family):
    """Faults of its projections."""
    (q, k, v, o), biased, square = PROJECTIONS[family]
    ends = {"q": q, "k": k, "v": v, "o": o}

    def of(name, causes, change, at, verdict=""):
        return Planted(family, name, causes, change=change,
                       at=at.replace(".", "[.]"), verdict=verdict)
    for part in square:
        yield of(f"{WORDS[part]} transposed", TRANSPOSED, weights(
            (f"{ends[part]}.weight", transposed)), ends[part])
    for part in "qkv" if square == "qkvo" else "q":
        yield of(f"{WORDS[part]}'s heads by feature", REORDERED, weights(
            (f"{ends[part]}.weight", interleaved_heads)), ends[part])
    yield of("output's heads by feature", REORDERED, weights(
        (f"{o}.weight", columns_by_feature)), o)
    for part in biased:
        yield of(f"{WORDS[part]}'s bias missing", [("bias", "", "zero in b")],
                 weights((f"{ends[part]}.bias", lambda b: 0 * b)), ends[part],
                 # Softmax hides a key's, which no output shows.
                 MATCH if part == "k" else "")
    for one, two in ("qk", "qv", "kv") if square == "qkvo" else ("kv",):
        if {one, two} <= {*biased} or not biased:
            yield of(f"{WORDS[one]} and {WORDS[two]} exchanged", [
                (f"{WORDS[one]} and {WORDS[two]}", "as they are", "swapped")],
                     several(*(exchanged(f"{ends[one]}.{leaf}",
                                         f"{ends[two]}.{leaf}")
                               for leaf in ("weight", "bias"))), "att")


def kernels():
    """Those of every family that the others do not have."""
    for family in PROJECTIONS:
        for planted in of_attention(family):
            if planted.name not in HAD.get(family, ()):
                yield planted


def whisper():
    """Faults of Whisper, whose input is sound, by two convolutions."""
    def of(name, causes, config=None, change=None, at=""):
        return Planted("whisper", name, causes, config or {}, change, at=at)
    yield of("equal", [])
    for eps in ("1e-06", "0.001"):
        yield of(f"ε {eps}", [("epsilon", "1e-05", eps)],
                 change=attribute("LayerNorm", eps=float(eps)))
    for word in ("gelu_new", "relu", "silu"):
        yield of(word, activation("gelu", {"gelu_new": "gelu by tanh"}.get(
            word, word)), {"activation_function": word})
    for word, scale in SCALES:
        yield of(f"scale {word}", [("scale", "1/√d_k", word)],
                 change=attribute("WhisperAttention", scaling=scale),
                 at="attn")
    yield of("positions times 2", [
        ("table", "", "2 times as large in b")], change=weights(
        ("encoder.embed_positions.weight", lambda w: 2 * w)),
             at="positions|encoder.layers.0 |layers.0.self_attn_layer_norm")
    yield of("kernel turned round", [
        ("kernel", "", "turned round in b")],
             change=weights(("conv1.weight", lambda w: w.flip(-1))),
             at="conv1")
    yield of("second kernel's bias missing", [("bias", "", "zero in b")],
             change=weights(("conv2.bias", lambda b: 0 * b)), at="conv2")
    for share in (1e-8, 1e-6):
        yield of(f"times 1 + {share:g}", [
            ("factor", "1", f"{1 + share:.10g}")], change=wrapped(
            "WhisperAttention", times(1 + share)), at="attn")
        yield of(f"{share:g} of the position before", [()], change=wrapped(
            "Conv1d", previous_seen(share)), at="conv1")
