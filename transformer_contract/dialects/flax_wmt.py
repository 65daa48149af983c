"""Flax's example of translation, whose names are paths of a tree."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    INTO_HEADS, OUT_OF_HEADS, SAME, Entry)

_ATTENTION = "MultiHeadDotProductAttention_{n}"


def _norm(ours, theirs):
    return (Entry(f"{ours}.scale", f"{theirs}/scale", SAME),
            Entry(f"{ours}.bias", f"{theirs}/bias", SAME))


def _layer(stack, theirs, attentions):
    """A block's rows; what it has several of is counted from 0."""
    ours, rows = f"{stack}.layers.{{i}}", ()
    for n, mine in enumerate(attentions):
        other = f"{theirs}/{_ATTENTION}".replace("{n}", str(n))
        rows += tuple(
            Entry(f"{ours}.{mine}.{name}.kernel", f"{other}/{name}/kernel",
                  INTO_HEADS) for name in ("query", "key", "value"))
        rows += (Entry(f"{ours}.{mine}.output.kernel", f"{other}/out/kernel",
                       OUT_OF_HEADS),)
    for n, mine in enumerate(("inner", "outer")):
        dense = f"{theirs}/MlpBlock_0/Dense_{n}"
        rows += (Entry(f"{ours}.feed_forward.{mine}.kernel", f"{dense}/kernel",
                       SAME),
                 Entry(f"{ours}.feed_forward.{mine}.bias", f"{dense}/bias",
                       SAME))
    for n, mine in enumerate((*attentions, "feed_forward")):
        rows += _norm(f"{ours}.{mine}_residual.norm",
                      f"{theirs}/LayerNorm_{n}")
    return rows


FLAX_WMT = Dialect(
    name="flax_wmt",
    source="google/flax, examples/wmt/models.py",
    unlike=(
        "The norm comes before each sub-layer, and one at the end.",
        "Pairs are divided by d/2 - 1, sines first; the table is rounded to "
        "float32.",
        "Embeddings are not multiplied by √d.",
        "Attention has no biases.",
        "The output is multiplied by 1/√d.",
    ),
    search={"method": "beam", "beam": 4, "alpha": 0.6,
            "length_rule": "paper", "unfinished": "fallback",
            "allow_padding": True},
    fixed={
        "residual": "pre", "norm": "layer", "norm_eps": 1e-6,
        "final_norm": True, "final_norm_eps": 1e-6, "positions": "halves",
        "position_divisor": "half_less_one", "position_rounding": "float32",
        "embedding_scale": "none", "attention_bias": "none",
        "activation": "relu", "tied": "all", "output_scale": "root",
        "pad_id": 0,
    },
    keys={
        "emb_dim": "d_model", "qkv_dim": "d_model", "mlp_dim": "d_ff",
        "num_heads": "n_heads", "max_len": "max_length",
        "num_layers": ("n_encoder_layers", "n_decoder_layers"),
        "vocab_size": ("source_vocab", "target_vocab"),
        "dropout_rate": "dropout",
    },
    defaults={
        "emb_dim": 1024, "qkv_dim": 1024, "mlp_dim": 4096, "num_heads": 16,
        "num_layers": 6, "vocab_size": 32000, "max_len": 256,
        "dropout_rate": 0.1,
    },
    only={"share_embeddings": True, "logits_via_embedding": True},
    sign="encoder/encoderblock_0/MultiHeadDotProductAttention_0/query/kernel",
    rows=(
        Entry("source_embedding.table", "shared_embedding/embedding", SAME),
        *_layer("encoder", "encoder/encoderblock_{i}", ("self_attention",)),
        *_layer("decoder", "decoder/encoderdecoderblock_{i}",
                ("self_attention", "cross_attention")),
        *_norm("encoder.norm", "encoder/encoder_norm"),
        *_norm("decoder.norm", "decoder/encoderdecoder_norm"),
    ),
    outputs={"encoded": "memory", "logits": "output"},
)
