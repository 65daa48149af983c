"""keras_hub's TransformerEncoder and TransformerDecoder, stacked.

They are layers, without embeddings and projection; a file names an array by the
stack, the layer's number and Keras' path inside it.
"""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    BIAS_OF_HEADS, INTO_HEADS, OUT_OF_HEADS, SAME, Entry)


def _attention(ours, theirs):
    rows = ()
    for mine, other, kernel, bias in (
            ("query", "query", INTO_HEADS, BIAS_OF_HEADS),
            ("key", "key", INTO_HEADS, BIAS_OF_HEADS),
            ("value", "value", INTO_HEADS, BIAS_OF_HEADS),
            ("output", "attention_output", OUT_OF_HEADS, SAME)):
        rows += (Entry(f"{ours}.{mine}.kernel", f"{theirs}/{other}/kernel",
                       kernel),
                 Entry(f"{ours}.{mine}.bias", f"{theirs}/{other}/bias", bias))
    return rows


def _layer(stack, attentions):
    """A layer's rows; the encoder's attention has a name of its own."""
    ours = f"{stack}.layers.{{i}}"
    theirs, rows = f"{stack}/{{i}}", ()
    for mine in attentions:
        rows += _attention(
            f"{ours}.{mine}",
            f"{theirs}/{mine}" + "_layer" * (stack == "encoder"))
    for mine, other in (("inner", "intermediate"), ("outer", "output")):
        rows += tuple(Entry(f"{ours}.feed_forward.{mine}.{kind}",
                            f"{theirs}/feedforward_{other}_dense/{kind}", SAME)
                      for kind in ("kernel", "bias"))
    for mine, other in zip((*attentions, "feed_forward"),
                           (*attentions, "feedforward")):
        norm = f"{theirs}/{other}_layer_norm"
        rows += (Entry(f"{ours}.{mine}_residual.norm.scale", f"{norm}/gamma",
                       SAME),
                 Entry(f"{ours}.{mine}_residual.norm.bias", f"{norm}/beta",
                       SAME))
    return rows


KERAS_HUB = Dialect(
    name="keras_hub",
    source="keras-team/keras-hub, layers/modeling/transformer_*.py",
    unlike=(
        "ε is 1e-5.",
        "There are no embeddings, no positions and no projection.",
        "Pre-norm stacks end without a norm.",
        "1/√d_k is rounded to float32, and so is the √2 of a GELU on "
        "TensorFlow: errors of 1e-8 in float64.",
        "Masked scores get -1e9 in float32 by Keras' softmax, so that a "
        "masked row is uniform.",
    ),
    component="stacks",
    fixed={"norm": "layer", "norm_eps": 1e-5, "final_norm": False},
    keys={
        "hidden_dim": "d_model", "num_heads": "n_heads",
        "intermediate_dim": "d_ff", "encoder_layers": "n_encoder_layers",
        "decoder_layers": "n_decoder_layers", "dropout": "dropout",
        "layer_norm_epsilon": "norm_eps",
        "normalize_first": {False: {"residual": "post"},
                            True: {"residual": "pre"}},
        "activation": {"relu": {"activation": "relu"},
                       "gelu": {"activation": "gelu"}},
    },
    defaults={
        "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048,
        "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.0,
        "layer_norm_epsilon": 1e-5, "normalize_first": False,
        "activation": "relu",
    },
    sign="encoder/0/self_attention_layer/query/kernel",
    rows=(
        *_layer("encoder", ("self_attention",)),
        *_layer("decoder", ("self_attention", "cross_attention")),
    ),
    outputs={"memory": "memory", "output": "decoded"},
)
