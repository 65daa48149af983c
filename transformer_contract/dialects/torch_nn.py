"""``torch.nn.Transformer``: both stacks, without embeddings and projection."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    Entry, count_layers, fused, fused_biases, layer, linear, norm, shape_of)

_FEED_FORWARD = {"inner": "linear1", "outer": "linear2"}


def _attention(ours, theirs):
    """q, k and v in one array; the output apart."""
    three = ("query", "key", "value")
    return (Entry(tuple(f"{ours}.{name}.kernel" for name in three),
                  f"{theirs}.in_proj_weight", fused(3, turned=True)),
            Entry(tuple(f"{ours}.{name}.bias" for name in three),
                  f"{theirs}.in_proj_bias", fused_biases(3)),
            *linear(f"{ours}.output", f"{theirs}.out_proj"))


def _layer(stack, attentions):
    ours = theirs = f"{stack}.layers.{{i}}"
    rows = sum((_attention(f"{ours}.{mine}", f"{theirs}.{other}")
                for mine, other in attentions.items()), ())
    rows += layer(ours, theirs, {}, _FEED_FORWARD, (), ())
    for n, mine in enumerate((*attentions, "feed_forward"), start=1):
        rows += norm(f"{ours}.{mine}_residual.norm", f"{theirs}.norm{n}")
    return rows


def _sizes(fields, described, arrays):
    """The sizes from the shapes of arrays, but for the number of heads."""
    if "encoder.layers.0.linear1.weight" in arrays:
        d_ff, d_model = shape_of(arrays, "encoder.layers.0.linear1.weight", 2)
        fields |= {"d_ff": d_ff, "d_model": d_model}
        for stack in ("encoder", "decoder"):
            fields[f"n_{stack}_layers"] = count_layers(
                arrays, f"{stack}.layers.")
    return fields


TORCH_NN = Dialect(
    name="torch_nn",
    source="torch.nn.Transformer, torch/nn/modules/transformer.py",
    unlike=(
        "Both stacks end in a norm of their own, post-norm ones too.",
        "ε is 1e-5.",
        "There are no embeddings, no positions and no projection; causality "
        "is the caller's.",
    ),
    component="stacks",
    fixed={"norm": "layer", "norm_eps": 1e-5, "final_norm": True,
           "final_norm_eps": 1e-5},
    keys={
        "d_model": "d_model", "nhead": "n_heads", "dim_feedforward": "d_ff",
        "num_encoder_layers": "n_encoder_layers",
        "num_decoder_layers": "n_decoder_layers", "dropout": "dropout",
        "norm_first": {False: {"residual": "post"}, True: {"residual": "pre"}},
        "activation": {"relu": {"activation": "relu"},
                       "gelu": {"activation": "gelu"}},
        "layer_norm_eps": ("norm_eps", "final_norm_eps"),
    },
    defaults={
        "d_model": 512, "nhead": 8, "num_encoder_layers": 6,
        "num_decoder_layers": 6, "dim_feedforward": 2048, "dropout": 0.1,
        "activation": "relu", "norm_first": False, "layer_norm_eps": 1e-5,
    },
    only={"bias": True},
    adjust=_sizes,
    asked=("nhead",),
    sign=r"encoder\.layers\.0\.self_attn\.in_proj_weight",
    rows=(
        *_layer("encoder", {"self_attention": "self_attn"}),
        *_layer("decoder", {"self_attention": "self_attn",
                            "cross_attention": "multihead_attn"}),
        *norm("encoder.norm", "encoder.norm"),
        *norm("decoder.norm", "decoder.norm"),
    ),
    outputs={"memory": "memory", "output": "decoded"},
)
