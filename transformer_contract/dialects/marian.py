"""Marian's own files: an npz, whose configuration is an array of text."""

import contextlib

import numpy as np

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import ROW, SAME, TRANSPOSED, Entry

#: The array that holds the configuration, and the length that it is a
#: multiple of; zeros fill it.
MODEL, BLOCK = "special:model.yml", 256


def _attention(ours, theirs):
    """Four kernels [in out] and biases [1 out]."""
    return sum((
        (Entry(f"{ours}.{mine}.kernel", f"{theirs}_W{other}", SAME),
         Entry(f"{ours}.{mine}.bias", f"{theirs}_b{other}", ROW))
        for mine, other in zip(("query", "key", "value", "output"), "qkvo")),
        ())


def _norm(ours, theirs, when=""):
    return (Entry(f"{ours}.scale", f"{theirs}_ln_scale{when}", ROW),
            Entry(f"{ours}.bias", f"{theirs}_ln_bias{when}", ROW))


def _stack(stack, attentions, when):
    """A stack's rows; Marian counts layers from 1.

    ``when`` ends the name of a norm that comes before its sub-layer.
    """
    ours, theirs = f"{stack}.layers.{{i}}", f"{stack}_l{{i+1}}"
    rows = ()
    for mine, other in attentions.items():
        rows += _attention(f"{ours}.{mine}", f"{theirs}_{other}")
        rows += _norm(f"{ours}.{mine}_residual.norm", f"{theirs}_{other}_Wo",
                      when)
    for mine, n in (("inner", 1), ("outer", 2)):
        rows += (Entry(f"{ours}.feed_forward.{mine}.kernel",
                       f"{theirs}_ffn_W{n}", SAME),
                 Entry(f"{ours}.feed_forward.{mine}.bias",
                       f"{theirs}_ffn_b{n}", ROW))
    return (*rows,
            *_norm(f"{ours}.feed_forward_residual.norm", f"{theirs}_ffn_ffn",
                   when),
            *_norm(f"{stack}.norm", f"{stack}_top"))


def _rows(config):
    """The name of a table says whose it is, unless source and target share
    it."""
    when = "_pre" if config.residual == "pre" else ""
    shared = config.embeddings_tied
    return (
        Entry("source_embedding.table", "Wemb" if shared else "encoder_Wemb",
              SAME),
        Entry("target_embedding.table", "decoder_Wemb", SAME),
        *_stack("encoder", {"self_attention": "self"}, when),
        *_stack("decoder", {"self_attention": "self",
                            "cross_attention": "context"}, when),
        Entry("projection.kernel", "decoder_ff_logit_out_Wt", TRANSPOSED),
        Entry("projection.bias", "decoder_ff_logit_out_b", ROW),
    )


# The configuration, lines of "key: value" in an array of bytes

def _told(checkpoint):
    """The configuration in the file; what is a list has a key each item.

    Files that we once wrote have it beside them.
    """
    if MODEL not in checkpoint.arrays:
        return checkpoint.config or {}
    text = checkpoint.arrays[MODEL].tobytes().rstrip(b"\0").decode(
        "utf-8", "replace")
    described, key, count = {}, "", 0
    for line in text.splitlines():
        if line.lstrip().startswith("- "):
            described[f"{key}.{count}"] = _value(line.lstrip()[2:])
            count += 1
            continue
        key, _, value = (part.strip() for part in line.partition(":"))
        items, count = value[1:-1].split(","), 0
        if value[:1] == "[":
            described |= {f"{key}.{i}": _value(item.strip())
                          for i, item in enumerate(items) if item.strip()}
        elif value:
            described[key] = _value(value)
    return described


def _value(text):
    """A number, a truth or a word, as YAML writes it on a line."""
    words = {"true": True, "false": False}
    if text in words:
        return words[text]
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        return float(text)
    return text.strip("\"'")


def _inside(described):
    """{MODEL: the array of text} of a configuration, its keys in order."""
    lines: dict = {}
    for key, value in sorted(described.items()):
        name, dot, place = key.rpartition(".")
        if dot and place.isdigit():
            lines.setdefault(name, []).append(_text(value))
        else:
            lines[key] = _text(value)
    content = "".join(
        f"{key}: " + (f"[{', '.join(value)}]" if isinstance(value, list)
                      else value) + "\n"
        for key, value in lines.items()).encode() + b"\0"
    content += b"\0" * (-len(content) % BLOCK)
    return {MODEL: np.frombuffer(content, np.int8)}


def _text(value):
    """A value as YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


#: What source, target and projection share, by three truths of theirs.
_TIED = {
    (True, False, False): {"tied": "all"},
    (False, False, False): {"tied": "none"},
    (False, False, True): {"tied": "output"},
    (False, True, False): {"tied": "embeddings"},
    (False, True, True): {"tied": "all"},
    (True, True, False): {"tied": "all"}, (True, False, True): {"tied": "all"},
    (True, True, True): {"tied": "all"},
}

_POST = {"residual": "post", "final_norm": False}
_PRE = {"residual": "pre", "final_norm": True}

MARIAN = Dialect(
    name="marian",
    source="marian-nmt/marian-dev, src/models/transformer.h",
    unlike=(
        "Pairs are divided by d/2 - 1, sines first.",
        "The table is computed in float32; here in float64, then rounded, so "
        "that it is 3e-5 apart within 256 positions, 6e-4 within 5000.",
        "The decoder begins with a vector of zeros, not with a token.",
        "No id is padding, and the end, which closes a source too, is 0; here "
        "padding is 1, the id of what is in no word.",
        "The feed-forward is x σ(x), in the models of opus.",
        "The projection has a bias, if it is tied too.",
        "Its gradient of a norm multiplies by the scale last, and so is "
        "another unless all of a scale is one number; here it is the "
        "derivative.",
        "Where the norm comes first, its decoder leaves it out of the keys and "
        "values of what is written, which its scorer and its training do not; "
        "here they have it.",
        "Each that finishes makes the beam narrower, and the search ends when "
        "none is left, or at three times the source's length.",
    ),
    search={"method": "beam", "beam": 12, "alpha": 0.0,
            "length_rule": "hf_true", "finishing": "narrowing"},
    fixed={
        "norm": "layer", "norm_eps": 1e-6, "final_norm_eps": 1e-6,
        "positions": "halves", "position_divisor": "half_less_one",
        "position_rounding": "float32", "begin": "zero", "pad_id": 1,
    },
    keys={
        "dim-emb": "d_model", "transformer-heads": "n_heads",
        "transformer-dim-ffn": "d_ff", "enc-depth": "n_encoder_layers",
        "dec-depth": "n_decoder_layers", "max-length": "max_length",
        "dim-vocabs.0": "source_vocab", "dim-vocabs.1": "target_vocab",
        "transformer-dropout": "dropout",
        "transformer-ffn-activation": {
            "swish": {"activation": "silu"}, "relu": {"activation": "relu"}},
        ("transformer-preprocess", "transformer-postprocess",
         "transformer-postprocess-top"): {
            ("", "dan", ""): _POST, ("n", "da", "n"): _PRE,
            ("", "an", ""): _POST, ("n", "a", "n"): _PRE},
        "transformer-postprocess-emb": {"d": {}, "": {}},
        ("tied-embeddings-all", "tied-embeddings-src", "tied-embeddings"):
            _TIED,
        "output-omit-bias": {False: {"output_bias": True},
                             True: {"output_bias": False}},
    },
    defaults={
        "dim-emb": 512, "transformer-heads": 8, "transformer-dim-ffn": 2048,
        "enc-depth": 6, "dec-depth": 6, "max-length": 5000,
        "dim-vocabs.0": 58100, "dim-vocabs.1": 58100,
        "transformer-dropout": 0.1,
        "transformer-ffn-activation": "swish",
        "transformer-preprocess": "", "transformer-postprocess": "dan",
        "transformer-postprocess-top": "", "transformer-postprocess-emb": "d",
        "tied-embeddings-all": True, "tied-embeddings-src": False,
        "tied-embeddings": False, "output-omit-bias": False,
    },
    only={
        "type": "transformer", "right-left": False, "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 0, "transformer-decoder-dim-ffn": 0,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False, "transformer-pool": False,
        "transformer-disable-position-embeddings": False,
        "transformer-attention-mask": "default", "ulr": False,
        "lemma-dim-emb": 0,
    },
    told=_told,
    inside=_inside,
    sign="(encoder|decoder)_l1_self_Wq",
    ignored=(r"special:model\.yml",),
    rows=_rows,
    outputs={"logits": "output"},
)
