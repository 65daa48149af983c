"""The much copied PyTorch tutorial of sequence to sequence models.

ANNalog, a published model of molecules, is built from it.
"""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    SAME, Entry, count_layers, layer, linear, shape_of)

_NAMES = ("fc_q", "fc_k", "fc_v", "fc_o")
_FEED_FORWARD = {"inner": "positionwise_feedforward.fc_1",
                 "outer": "positionwise_feedforward.fc_2"}


def _sizes(fields, described, arrays):
    """The sizes, which no file tells, from the shapes of arrays."""
    if "encoder.tok_embedding.weight" not in arrays:
        return fields
    source, target = (shape_of(arrays, f"{stack}.tok_embedding.weight", 2)
                      for stack in ("encoder", "decoder"))
    inner = shape_of(
        arrays, "encoder.layers.0.positionwise_feedforward.fc_1.bias", 1)
    positions = shape_of(arrays, "encoder.pos_embedding.weight", 2)
    return fields | {
        "source_vocab": source[0], "target_vocab": target[0],
        "d_model": source[1], "d_ff": inner[0],
        "max_length": positions[0],
        "n_encoder_layers": count_layers(arrays, "encoder.layers."),
        "n_decoder_layers": count_layers(arrays, "decoder.layers.")}


TUTORIAL = Dialect(
    name="tutorial",
    source="bentrevett/pytorch-seq2seq, 6; the package annalog",
    unlike=(
        "Positions are learned, from row 0.",
        "The projection has a table and a bias of its own.",
        "ε is 1e-5.",
        "√d_k is rounded to float32: errors of 3e-9 in float64.",
    ),
    fixed={
        "residual": "post", "norm": "layer", "norm_eps": 1e-5,
        "positions": "learned", "activation": "relu", "tied": "none",
        "pad_id": 1,
    },
    keys={
        "hid_dim": "d_model", "n_heads": "n_heads", "pf_dim": "d_ff",
        "enc_layers": "n_encoder_layers", "dec_layers": "n_decoder_layers",
        "max_length": "max_length", "input_dim": "source_vocab",
        "output_dim": "target_vocab", "dropout": "dropout",
        "pad_idx": "pad_id",
    },
    defaults={
        "hid_dim": 256, "n_heads": 8, "pf_dim": 512, "enc_layers": 3,
        "dec_layers": 3, "max_length": 100, "input_dim": 7853,
        "output_dim": 5893, "dropout": 0.1, "pad_idx": 1,
    },
    adjust=_sizes,
    asked=("n_heads",),
    sign=r"encoder\.layers\.0\.self_attention\.fc_q\.weight",
    ignored=(r"(en|de)coder\.scale",),
    rows=(
        Entry("source_embedding.table", "encoder.tok_embedding.weight", SAME),
        Entry("target_embedding.table", "decoder.tok_embedding.weight", SAME),
        Entry("source_positions.table", "encoder.pos_embedding.weight", SAME),
        Entry("target_positions.table", "decoder.pos_embedding.weight", SAME),
        *layer("encoder.layers.{i}", "encoder.layers.{i}",
               {"self_attention": "self_attention"}, _FEED_FORWARD,
               ("self_attn_layer_norm", "ff_layer_norm"), _NAMES),
        *layer("decoder.layers.{i}", "decoder.layers.{i}",
               {"self_attention": "self_attention",
                "cross_attention": "encoder_attention"}, _FEED_FORWARD,
               ("self_attn_layer_norm", "enc_attn_layer_norm",
                "ff_layer_norm"), _NAMES),
        *linear("projection", "decoder.fc_out"),
    ),
    outputs={"memory": "memory", "logits": "output"},
)
