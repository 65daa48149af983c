"""Marian's own files: an npz, whose configuration is an array of text."""

import contextlib

from contract.dialects.dialect import Dialect
from contract.dialects.rows import ROW, SAME, Entry


def _attention(ours, theirs):
    """Four kernels [in out] and biases [1 out]."""
    return sum((
        (Entry(f"{ours}.{mine}.kernel", f"{theirs}_W{other}", SAME),
         Entry(f"{ours}.{mine}.bias", f"{theirs}_b{other}", ROW))
        for mine, other in zip(("query", "key", "value", "output"), "qkvo")),
        ())


def _norm(ours, theirs):
    return (Entry(f"{ours}.scale", f"{theirs}_ln_scale", ROW),
            Entry(f"{ours}.bias", f"{theirs}_ln_bias", ROW))


def _layer(stack, attentions):
    """A layer's rows; Marian counts layers from 1."""
    ours, theirs = f"{stack}.layers.{{i}}", f"{stack}_l{{i+1}}"
    rows = ()
    for mine, other in attentions.items():
        rows += _attention(f"{ours}.{mine}", f"{theirs}_{other}")
        rows += _norm(f"{ours}.{mine}_residual.norm", f"{theirs}_{other}_Wo")
    for mine, n in (("inner", 1), ("outer", 2)):
        rows += (Entry(f"{ours}.feed_forward.{mine}.kernel",
                       f"{theirs}_ffn_W{n}", SAME),
                 Entry(f"{ours}.feed_forward.{mine}.bias",
                       f"{theirs}_ffn_b{n}", ROW))
    return rows + _norm(f"{ours}.feed_forward_residual.norm",
                        f"{theirs}_ffn_ffn")


def _told(checkpoint):
    """The configuration in the file: lines of "key: value" in an array.

    Files that we wrote have it beside them, as others do.
    """
    if "special:model.yml" not in checkpoint.arrays:
        return checkpoint.config or {}
    text = checkpoint.arrays["special:model.yml"].tobytes().rstrip(
        b"\0").decode("utf-8", "replace")
    pairs = (line.partition(":")[::2] for line in text.splitlines())
    described = {key: _value(value.strip()) for key, value in pairs}
    described["vocab-size"] = len(checkpoint.arrays["Wemb"])
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


MARIAN = Dialect(
    name="marian",
    source="marian-nmt/marian-dev, src/models/transformer.h",
    unlike=(
        "Pairs are divided by d/2 - 1, sines first.",
        "The decoder begins with a vector of zeros, not with a token.",
        "The feed-forward is x σ(x), in the models of opus.",
        "The projection is tied and has a bias.",
    ),
    fixed={
        "residual": "post", "norm": "layer", "norm_eps": 1e-6,
        "positions": "halves", "position_divisor": "half_less_one",
        "position_rounding": "float32", "tied": "all", "output_bias": True,
        "begin": "zero",
    },
    keys={
        "dim-emb": "d_model", "transformer-heads": "n_heads",
        "transformer-dim-ffn": "d_ff", "enc-depth": "n_encoder_layers",
        "dec-depth": "n_decoder_layers", "max-length": "max_length",
        "vocab-size": ("source_vocab", "target_vocab"),
        "transformer-dropout": "dropout",
        "transformer-ffn-activation": {
            "swish": {"activation": "silu"}, "relu": {"activation": "relu"}},
    },
    defaults={
        "dim-emb": 512, "transformer-heads": 8, "transformer-dim-ffn": 2048,
        "enc-depth": 6, "dec-depth": 6, "max-length": 5000,
        "vocab-size": 58100, "transformer-dropout": 0.1,
        "transformer-ffn-activation": "swish",
    },
    only={"type": "transformer", "transformer-preprocess": "",
          "transformer-postprocess": "dan", "tied-embeddings-all": True},
    told=_told,
    sign="encoder_l1_self_Wq",
    ignored=(r"special:model\.yml",),
    rows=(
        Entry("source_embedding.table", "Wemb", SAME),
        *_layer("encoder", {"self_attention": "self"}),
        *_layer("decoder", {"self_attention": "self",
                            "cross_attention": "context"}),
        Entry("projection.bias", "decoder_ff_logit_out_b", ROW),
    ),
    outputs={"logits": "output"},
)
