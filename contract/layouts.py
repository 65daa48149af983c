"""Other systems' weights under our names: one table for each system.

A row is ``(our name, their name, how)``. ``{i}`` stands for a layer's number.
``how`` says what is done to their array: SAME, TRANSPOSED (a torch Linear
stores [out, in]), or HEADS (one [D, K] matrix a head, stacked, becomes the
columns of one [D, D] matrix, head after head). Every array must be named by
exactly one row; a missing or surplus one is an error.
"""

import dataclasses

import numpy as np

from contract.config import PRESETS, TransformerConfig
from contract.errors import InputError, one_of

SAME, TRANSPOSED, HEADS = "same", "transposed", "heads"

_HOW = {
    SAME: lambda array: array,
    TRANSPOSED: lambda array: np.ascontiguousarray(array.T),
    HEADS: lambda array: np.concatenate(list(array), axis=1),
}


@dataclasses.dataclass(frozen=True)
class Layout:
    """How one system stores one component or model.

    Attributes:
        preset: the preset whose variants it uses.
        component: what the arrays belong to, such as "transformer".
        rows: (our name, their name, how), see the module.
        outputs: their output name -> our step name; ``{i}`` counts layers from
            ``first_layer``.
        first_layer: the number that the system gives its first layer in the
            names of its outputs.
        inputs: the names of the component's inputs, in order.
    """

    preset: str
    component: str
    rows: tuple
    outputs: dict
    first_layer: int = 0
    inputs: tuple = ("src", "tgt", "src_mask", "tgt_mask")


def _linear(ours, theirs):
    return ((f"{ours}.kernel", f"{theirs}.weight", TRANSPOSED),
            (f"{ours}.bias", f"{theirs}.bias", SAME))


def _norm(ours, theirs, scale, bias):
    return ((f"{ours}.scale", f"{theirs}.{scale}", SAME),
            (f"{ours}.bias", f"{theirs}.{bias}", SAME))


def _attention(ours, theirs, names):
    ours = f"{ours}." if ours else ""
    theirs = f"{theirs}." if theirs else ""
    return sum((
        _linear(f"{ours}{mine}", f"{theirs}{other}")
        for mine, other in zip(("query", "key", "value", "output"), names)
    ), ())


def _blocks(scale_names, attention_names, feed_forward_names, norms, parts,
            encoder, decoder):
    """The rows of the encoder's and the decoder's layers.

    ``parts`` gives their names for (encoder's self-attention, decoder's
    self-attention, cross-attention, feed-forward); ``norms`` a pattern with
    ``{n}`` for the n-th norm of a layer and the first n.
    """
    pattern, first = norms
    of_encoder, of_decoder, cross, feed_forward = parts
    rows = ()
    for stack, theirs, attentions in (
        ("encoder", encoder, [("self_attention", of_encoder)]),
        ("decoder", decoder, [("self_attention", of_decoder),
                              ("cross_attention", cross)]),
    ):
        ours = f"{stack}.layers.{{i}}"
        order = [name for name, _ in attentions] + ["feed_forward"]
        for mine, other in attentions:
            rows += _attention(
                f"{ours}.{mine}", f"{theirs}.{other}", attention_names)
        for mine, other in zip(("inner", "outer"), feed_forward_names):
            rows += _linear(f"{ours}.feed_forward.{mine}",
                            f"{theirs}.{feed_forward}.{other}")
        for n, mine in enumerate(order, start=first):
            norm = pattern.replace("{n}", str(n))
            rows += _norm(f"{ours}.{mine}_residual.norm",
                          f"{theirs}.{norm}", *scale_names)
    return rows


_PRE_NORM_ROWS = (
    ("source_embedding.table", "src_embed.embedding.weight", SAME),
    ("target_embedding.table", "tgt_embed.embedding.weight", SAME),
    *_blocks(
        scale_names=("alpha", "bias"),
        attention_names=("w_q", "w_k", "w_v", "w_o"),
        feed_forward_names=("linear_1", "linear_2"),
        norms=("residual_connections.{n}.norm", 0),
        parts=("self_attention_block", "self_attention_block",
               "cross_attention_block", "feed_forward_block"),
        encoder="encoder.layers.{i}", decoder="decoder.layers.{i}",
    ),
    *_norm("encoder.norm", "encoder.norm", "alpha", "bias"),
    *_norm("decoder.norm", "decoder.norm", "alpha", "bias"),
    *_linear("projection", "projection_layer.proj"),
)

_STATES = {"encoder": "memory", "decoder": "decoded"}

#: Every layout that can be read, by the name that vector files give it.
LAYOUTS = {
    "lesson_pre_ln": Layout(
        preset="lesson", component="transformer", rows=_PRE_NORM_ROWS,
        outputs={
            **_STATES,
            "log_probs": "output",
            "encoder_layer{i}_self_attention_weights":
                "encoder.layers.{i}.self_attention.weights",
            "decoder_layer{i}_cross_attention_weights":
                "decoder.layers.{i}.cross_attention.weights",
        },
    ),
    "components": Layout(
        preset="components", component="transformer", rows=_PRE_NORM_ROWS,
        outputs={**_STATES, "logits": "output"},
    ),
    "complete_post_ln": Layout(
        preset="complete", component="transformer",
        rows=(
            ("source_embedding.table", "encoder.embedding.embedding.weight",
             SAME),
            ("target_embedding.table", "decoder.embedding.embedding.weight",
             SAME),
            *_blocks(
                scale_names=("gamma", "beta"),
                attention_names=("wq", "wk", "wv", "wo"),
                feed_forward_names=("linear1", "linear2"),
                norms=("norm{n}", 1), parts=("mha", "mha1", "mha2", "ff"),
                encoder="encoder.encoder_layers.{i}",
                decoder="decoder.decoder_layers.{i}",
            ),
            *_linear("projection", "final_layer"),
        ),
        outputs={
            "logits": "output",
            "attn.encoder_layer{i}":
                "encoder.layers.{i}.self_attention.weights",
            "attn.decoder_layer{i}_self_attn":
                "decoder.layers.{i}.self_attention.weights",
            "attn.decoder_layer{i}_cross_attn":
                "decoder.layers.{i}.cross_attention.weights",
        },
        first_layer=1,
    ),
    "practical_post_ln": Layout(
        preset="practical", component="transformer",
        rows=(
            ("source_embedding.table", "encoder_embedding.weight", SAME),
            ("target_embedding.table", "decoder_embedding.weight", SAME),
            *_blocks(
                scale_names=("weight", "bias"),
                attention_names=("q_linear", "k_linear", "v_linear",
                                 "out_linear"),
                feed_forward_names=("fc1", "fc2"), norms=("norm{n}", 1),
                parts=("self_attn", "self_attn", "cross_attn",
                       "feed_forward"),
                encoder="encoder_layers.{i}", decoder="decoder_layers.{i}",
            ),
            *_linear("projection", "final_layer"),
        ),
        outputs={"logits": "output"},
    ),
    "notebook_encoder_layer": Layout(
        preset="notebook", component="encoder_layer",
        rows=(
            *_attention("self_attention", "self_attention",
                        ("W_q", "W_k", "W_v", "W_o")),
            *_linear("feed_forward.inner", "feed_forward.linear1"),
            *_linear("feed_forward.outer", "feed_forward.linear2"),
            *_norm("self_attention_residual.norm", "norm1", "weight", "bias"),
            *_norm("feed_forward_residual.norm", "norm2", "weight", "bias"),
        ),
        outputs={"output": "output"}, inputs=("x", "src_mask"),
    ),
    "notebook_multi_head_attention": Layout(
        preset="notebook", component="multi_head_attention",
        rows=_attention("", "", ("W_q", "W_k", "W_v", "W_o")),
        outputs={"output": "output", "weights": "weights"},
        inputs=("x", "x", "src_mask"),
    ),
    "notebook_feed_forward": Layout(
        preset="notebook", component="feed_forward",
        rows=_linear("inner", "linear1") + _linear("outer", "linear2"),
        outputs={"output": "output"}, inputs=("x",),
    ),
    "notebook_single_head": Layout(
        preset="notebook", component="single_head_attention",
        rows=tuple((f"{name}.kernel", name, SAME)
                   for name in ("query", "key", "value")),
        outputs={"raw_scores": "raw_scores", "scaled_scores": "scores",
                 "weights": "weights", "output": "context"},
        inputs=("x",),
    ),
    "notebook_numpy_multi_head": Layout(
        preset="notebook", component="multi_head_attention",
        rows=(*((f"{name}.kernel", name, HEADS)
                for name in ("query", "key", "value")),
              ("output.kernel", "output", SAME)),
        outputs={"heads": "context", "output": "output"},
        inputs=("x", "x"),
    ),
}


def layout(name):
    """The layout called ``name``; an unknown name raises InputError."""
    return LAYOUTS[one_of(name, LAYOUTS, "layout")]


def config_of(name, sizes):
    """The configuration of a file of layout ``name`` with these sizes.

    ``sizes`` is the file's own description: d_model, n_heads and, for whole
    models, d_ff, n_layers, src_vocab and tgt_vocab; ``norm_eps`` overrides the
    epsilon of the residuals' norms (a lesson that hands d_model to it by
    accident can be replayed as it is).
    """
    try:
        changes = {"d_model": sizes["d_model"], "n_heads": sizes["n_heads"]}
    except KeyError as missing:
        raise InputError(
            f"the file's description lacks {missing}; add it."
        ) from None
    layers = sizes.get("n_layers", 1)
    changes |= {"n_encoder_layers": layers, "n_decoder_layers": layers}
    for ours, theirs in (
        ("d_ff", "d_ff"), ("norm_eps", "norm_eps"),
        ("source_vocab", "src_vocab"), ("target_vocab", "tgt_vocab"),
    ):
        if theirs in sizes:
            changes[ours] = sizes[theirs]
    return PRESETS[layout(name).preset].replace(**changes)


def _numbered(name, n_layers):
    """The numbers that ``{i}`` in a name stands for."""
    return range(n_layers) if "{i}" in name else [0]


def rows(name, config: TransformerConfig):
    """Every row of a layout, once for each layer."""
    for ours, theirs, how in layout(name).rows:
        n_layers = (config.n_decoder_layers if ours.startswith("decoder")
                    else config.n_encoder_layers)
        for i in _numbered(ours, n_layers):
            index = str(i)
            yield (ours.replace("{i}", index), theirs.replace("{i}", index),
                   how)


def read(name, arrays, config):
    """Their arrays under our names, in our orientation.

    Args:
        name: a layout.
        arrays: their arrays by their names.
        config: what the model is, see config_of.

    Raises:
        InputError: an array is missing or surplus.
    """
    left, weights = dict(arrays), {}
    for ours, theirs, how in rows(name, config):
        if theirs not in left:
            raise InputError(
                f"the file lacks the array {theirs!r} that the layout {name} "
                "asks for; check the layout and the number of layers."
            )
        weights[ours] = _HOW[how](left.pop(theirs))
    if left:
        raise InputError(
            f"the file holds an array {min(left)!r} that the layout {name} "
            "does not know; check the layout and the number of layers."
        )
    return weights


def step_of(name, output, config):
    """Our step name of their output, or None if the layout has none."""
    table = layout(name)
    for pattern, step in table.outputs.items():
        for i in _numbered(pattern, config.n_encoder_layers):
            if output == pattern.replace("{i}", str(i + table.first_layer)):
                return step.replace("{i}", str(i))
    return None
