"""Tensor2Tensor's ``transformer_base``, the authors' own code."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import SAME, Entry, sharded

_PROJECTIONS = {"query": "q", "key": "k", "value": "v",
                "output": "output_transform"}
_BODY = "transformer/body"


def _norm(ours, theirs):
    theirs = f"{theirs}/layer_prepostprocess/layer_norm/layer_norm"
    return (Entry(f"{ours}.scale", f"{theirs}_scale", SAME),
            Entry(f"{ours}.bias", f"{theirs}_bias", SAME))


def _layer(stack, attentions):
    ours = f"{stack}.layers.{{i}}"
    theirs, rows = f"{_BODY}/{stack}/layer_{{i}}", ()
    for mine, other in attentions.items():
        rows += tuple(
            Entry(f"{ours}.{mine}.{name}.kernel",
                  f"{theirs}/{other}/multihead_attention/{word}/kernel", SAME)
            for name, word in _PROJECTIONS.items())
        rows += _norm(f"{ours}.{mine}_residual.norm", f"{theirs}/{other}")
    for mine, word in (("inner", "conv1"), ("outer", "conv2")):
        rows += tuple(Entry(f"{ours}.feed_forward.{mine}.{kind}",
                            f"{theirs}/ffn/{word}/{kind}", SAME)
                      for kind in ("kernel", "bias"))
    return rows + _norm(f"{ours}.feed_forward_residual.norm", f"{theirs}/ffn")


def _rows(config):
    """The table's name has its sizes, and it is in sixteen parts."""
    table = (f"transformer/symbol_modality_{config.source_vocab}_"
             f"{config.d_model}/shared/weights_")
    return (
        Entry("source_embedding.table",
              tuple(f"{table}{n}" for n in range(16)), sharded(16)),
        *_layer("encoder", {"self_attention": "self_attention"}),
        *_layer("decoder", {"self_attention": "self_attention",
                            "cross_attention": "encdec_attention"}),
        *_norm("encoder.norm", f"{_BODY}/encoder"),
        *_norm("decoder.norm", f"{_BODY}/decoder"),
    )


T2T = Dialect(
    name="t2t",
    source="tensorflow/tensor2tensor, models/transformer.py",
    unlike=(
        "The norm comes before each sub-layer, and one at the end.",
        "Pairs are divided by d/2 - 1, sines first.",
        "The table is computed in float32; here in float64, then rounded, so "
        "that it is 3e-5 apart within 256 positions, 6e-4 within 5000.",
        "Attention has no biases.",
        "The decoder begins with a vector of zeros, not with a token.",
        "Padding in a target is a vector of zeros there, here its row of the "
        "table.",
        "A row of a table of target languages is added to the source; it is "
        "kept apart here.",
    ),
    search={"method": "beam", "beam": 4, "alpha": 0.6,
            "length_rule": "paper", "unfinished": "fallback",
            "allow_padding": True},
    fixed={
        "residual": "pre", "norm": "layer", "norm_eps": 1e-6,
        "final_norm": True, "final_norm_eps": 1e-6, "positions": "halves",
        "position_divisor": "half_less_one", "position_rounding": "float32",
        "attention_bias": "none", "activation": "relu", "tied": "all",
        "begin": "zero", "pad_id": 0,
    },
    keys={
        "hidden_size": "d_model", "filter_size": "d_ff",
        "num_heads": "n_heads", "max_length": "max_length",
        "num_hidden_layers": ("n_encoder_layers", "n_decoder_layers"),
        "vocab_size": ("source_vocab", "target_vocab"),
        "layer_prepostprocess_dropout": "dropout",
    },
    defaults={
        "hidden_size": 512, "filter_size": 2048, "num_heads": 8,
        "num_hidden_layers": 6, "max_length": 256, "vocab_size": 33708,
        "layer_prepostprocess_dropout": 0.1,
    },
    only={"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da",
          "norm_type": "layer", "norm_epsilon": 1e-6, "pos": "timing",
          "ffn_layer": "dense_relu_dense",
          "self_attention_type": "dot_product", "proximity_bias": False,
          "multiply_embedding_mode": "sqrt_depth"},
    sign=r"transformer/symbol_modality_\d+_\d+/shared/weights_0",
    apart=(r".*target_space_embedding.*",),
    rows=_rows,
    outputs={"logits": "output"},
)
