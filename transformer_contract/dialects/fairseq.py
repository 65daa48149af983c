"""fairseq's Transformer, and the names that BART and Marian have from it."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import SAME, Entry, layer

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def stacks(prefix=""):
    """The rows of both stacks' layers; the last norm is the feed-forward's."""
    rows = ()
    for stack, attentions in (
            ("encoder", {"self_attention": "self_attn"}),
            ("decoder", {"self_attention": "self_attn",
                         "cross_attention": "encoder_attn"})):
        rows += layer(
            f"{stack}.layers.{{i}}", f"{prefix}{stack}.layers.{{i}}",
            attentions, {"inner": "fc1", "outer": "fc2"},
            [f"{name}_layer_norm" for name in attentions.values()]
            + ["final_layer_norm"], PROJECTIONS)
    return rows


def unbiased(fields, described, arrays):
    """The fields of a file without the projection's bias, which is 0 then.

    So is that of a model which was stored without its projection.
    """
    if not arrays or "final_logits_bias" in arrays:
        return fields
    return {**fields, "output_bias": False}


#: The sizes of a model, as BART's and Marian's ``config.json`` have them.
SIZES = {
    "d_model": "d_model", "encoder_layers": "n_encoder_layers",
    "decoder_layers": "n_decoder_layers",
    "encoder_attention_heads": "n_heads", "decoder_attention_heads": "n_heads",
    "encoder_ffn_dim": "d_ff", "decoder_ffn_dim": "d_ff",
    "max_position_embeddings": "max_length", "pad_token_id": "pad_id",
    "vocab_size": ("source_vocab", "target_vocab"), "dropout": "dropout",
}

FAIRSEQ = Dialect(
    name="fairseq",
    source="facebookresearch/fairseq, models/transformer",
    unlike=(
        "Positions count only tokens that are not padding, from row 2 of the "
        "table; padding's row is zero.",
        "Pairs are divided by d/2 - 1, sines first.",
        "ε is 1e-5.",
        "The table is computed in float32; here in float64, then rounded, so "
        "that it is 2e-5 apart within 256 positions, 6e-5 within 1026.",
        "The softmax of the last attention to the source, whose weights are "
        "given out, is in float32: errors of 6e-8 in float64.",
        "The first W hypotheses that finish are the answer.",
        "Where embeddings read it, the row of padding's id learns nothing.",
    ),
    search={"method": "beam", "beam": 5, "alpha": 1.0,
            "length_rule": "hf_true", "finishing": "first",
            "min_tokens": 2},
    fixed={
        "residual": "post", "norm": "layer", "norm_eps": 1e-5,
        "positions": "halves", "position_divisor": "half_less_one",
        "position_start": 2, "position_padding": True, "pad_id": 1,
        "activation": "relu", "tied": "all",
        "position_rounding": "float32", "padding_learns": False,
    },
    keys={
        "encoder_embed_dim": "d_model", "decoder_embed_dim": "d_model",
        "encoder_layers": "n_encoder_layers",
        "decoder_layers": "n_decoder_layers",
        "encoder_attention_heads": "n_heads",
        "decoder_attention_heads": "n_heads",
        "encoder_ffn_embed_dim": "d_ff", "decoder_ffn_embed_dim": "d_ff",
        "max_source_positions": "max_length",
        "max_target_positions": "max_length",
        "vocab_size": ("source_vocab", "target_vocab"), "dropout": "dropout",
    },
    defaults={
        "encoder_embed_dim": 512, "decoder_embed_dim": 512,
        "encoder_layers": 6, "decoder_layers": 6,
        "encoder_attention_heads": 8, "decoder_attention_heads": 8,
        "encoder_ffn_embed_dim": 2048, "decoder_ffn_embed_dim": 2048,
        "max_source_positions": 1024, "max_target_positions": 1024,
        "vocab_size": 32768, "dropout": 0.3,
    },
    only={"encoder_normalize_before": False,
          "decoder_normalize_before": False, "activation_fn": "relu",
          "share_all_embeddings": True, "no_scale_embedding": False,
          "no_token_positional_embeddings": False,
          "no_cross_attention": False, "cross_self_attention": False},
    sign=r"encoder\.layers\.0\.self_attn\.q_proj\.weight",
    aliases={"decoder.embed_tokens.weight": "encoder.embed_tokens.weight",
             "decoder.output_projection.weight":
                 "encoder.embed_tokens.weight"},
    ignored=(r"(en|de)coder\.version",
             r"(en|de)coder\.embed_positions\._float_tensor"),
    rows=(
        Entry("source_embedding.table", "encoder.embed_tokens.weight", SAME),
        *stacks(),
    ),
    outputs={"encoder_out": "memory", "logits": "output"},
)
