"""The teaching systems whose models are presets, one dialect a kind of file.

Each file says which it is by the name below, and its sizes.
"""

from transformer_contract.config import PRESETS
from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    HEADS, PROJECTIONS, SAME, Entry, attention, layer, linear, norm)

#: Their sizes -> ours; ``norm_eps`` overrides the epsilon of the residuals'
#: norms (a lesson that hands d_model to it by accident is replayed as it is).
_KEYS = {
    "d_model": "d_model", "n_heads": "n_heads", "d_ff": "d_ff",
    "n_layers": ("n_encoder_layers", "n_decoder_layers"),
    "norm_eps": "norm_eps", "src_vocab": "source_vocab",
    "tgt_vocab": "target_vocab",
}


def _lesson(preset, rows, outputs, **more):
    return {"source": f"preset {preset}", "fixed": PRESETS[preset].as_dict(),
            "keys": _KEYS, "required": ("d_model", "n_heads"),
            "defaults": {"n_layers": 1}, "rows": tuple(rows),
            "outputs": outputs, **more}


def _layers(encoder, decoder, attentions, cross, feed_forward, norms, names,
            scale):
    """Both stacks' layers; ``norms`` is a pattern and the first number."""
    pattern, first = norms
    numbers = [pattern.replace("{n}", str(n))
               for n in range(first, first + 3)]
    linears = {mine: f"{feed_forward[0]}.{other}" for mine, other
               in zip(("inner", "outer"), feed_forward[1:])}
    return (
        *layer("encoder.layers.{i}", encoder,
               {"self_attention": attentions[0]}, linears, numbers[:2], names,
               scale),
        *layer("decoder.layers.{i}", decoder,
               {"self_attention": attentions[1], "cross_attention": cross},
               linears, numbers, names, scale))


_PRE_NORM_ROWS = (
    Entry("source_embedding.table", "src_embed.embedding.weight", SAME),
    Entry("target_embedding.table", "tgt_embed.embedding.weight", SAME),
    *_layers(
        "encoder.layers.{i}", "decoder.layers.{i}",
        ("self_attention_block",) * 2, "cross_attention_block",
        ("feed_forward_block", "linear_1", "linear_2"),
        ("residual_connections.{n}.norm", 0), ("w_q", "w_k", "w_v", "w_o"),
        ("alpha", "bias")),
    *norm("encoder.norm", "encoder.norm", "alpha"),
    *norm("decoder.norm", "decoder.norm", "alpha"),
    *linear("projection", "projection_layer.proj"),
)

_COMPLETE_ROWS = (
    Entry("source_embedding.table", "encoder.embedding.embedding.weight", SAME),
    Entry("target_embedding.table", "decoder.embedding.embedding.weight", SAME),
    *_layers(
        "encoder.encoder_layers.{i}", "decoder.decoder_layers.{i}",
        ("mha", "mha1"), "mha2", ("ff", "linear1", "linear2"),
        ("norm{n}", 1), ("wq", "wk", "wv", "wo"), ("gamma", "beta")),
    *linear("projection", "final_layer"),
)

_PRACTICAL_ROWS = (
    Entry("source_embedding.table", "encoder_embedding.weight", SAME),
    Entry("target_embedding.table", "decoder_embedding.weight", SAME),
    *_layers(
        "encoder_layers.{i}", "decoder_layers.{i}", ("self_attn",) * 2,
        "cross_attn", ("feed_forward", "fc1", "fc2"), ("norm{n}", 1),
        ("q_linear", "k_linear", "v_linear", "out_linear"),
        ("weight", "bias")),
    *linear("projection", "final_layer"),
)

_NOTEBOOK = ("W_q", "W_k", "W_v", "W_o")
_STATES = {"encoder": "memory", "decoder": "decoded"}

_FILES = {
    "lesson_pre_ln": _lesson("lesson", _PRE_NORM_ROWS, {
        **_STATES, "log_probs": "output",
        "encoder_layer{i}_self_attention_weights":
            "encoder.layers.{i}.self_attention.weights",
        "decoder_layer{i}_cross_attention_weights":
            "decoder.layers.{i}.cross_attention.weights"}),
    "components": _lesson(
        "components", _PRE_NORM_ROWS, {**_STATES, "logits": "output"}),
    "complete_post_ln": _lesson("complete", _COMPLETE_ROWS, {
        "logits": "output",
        "attn.encoder_layer{i}": "encoder.layers.{i}.self_attention.weights",
        "attn.decoder_layer{i}_self_attn":
            "decoder.layers.{i}.self_attention.weights",
        "attn.decoder_layer{i}_cross_attn":
            "decoder.layers.{i}.cross_attention.weights"}, first_layer=1),
    "practical_post_ln": _lesson(
        "practical", _PRACTICAL_ROWS, {"logits": "output"}),
    "notebook_encoder_layer": _lesson(
        "notebook", (
            *attention("self_attention", "self_attention", _NOTEBOOK),
            *linear("feed_forward.inner", "feed_forward.linear1"),
            *linear("feed_forward.outer", "feed_forward.linear2"),
            *norm("self_attention_residual.norm", "norm1"),
            *norm("feed_forward_residual.norm", "norm2")),
        {"output": "output"}, component="encoder_layer",
        inputs=("x", "src_mask")),
    "notebook_multi_head_attention": _lesson(
        "notebook", attention("", "", _NOTEBOOK),
        {"output": "output", "weights": "weights"},
        component="multi_head_attention", inputs=("x", "x", "src_mask")),
    "notebook_feed_forward": _lesson(
        "notebook", (*linear("inner", "linear1"), *linear("outer", "linear2")),
        {"output": "output"}, component="feed_forward", inputs=("x",)),
    "notebook_single_head": _lesson(
        "notebook", (Entry(f"{name}.kernel", name, SAME)
                     for name in PROJECTIONS[:3]),
        {"raw_scores": "raw_scores", "scaled_scores": "scores",
         "weights": "weights", "output": "context"},
        component="single_head_attention", inputs=("x",)),
    "notebook_numpy_multi_head": _lesson(
        "notebook", (*(Entry(f"{name}.kernel", name, HEADS)
                       for name in PROJECTIONS[:3]),
                     Entry("output.kernel", "output", SAME)),
        {"heads": "context", "output": "output"},
        component="multi_head_attention", inputs=("x", "x")),
}

#: Every kind of file, by the name that it gives itself.
LESSONS = {name: Dialect(name=name, **fields)
           for name, fields in _FILES.items()}
