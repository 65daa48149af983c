"""T5, both versions, as Hugging Face's transformers have it."""

import numpy as np

from transformer_contract.dialects.dialect import Dialect, meaning
from transformer_contract.dialects.rows import SAME, TRANSPOSED, Entry, layer
from transformer_contract.dialects.searches import HUGGING_FACE
from transformer_contract.dialects.words import ACTIVATIONS, ATTENTIONS
from parity_io.errors import InputError

_NAMES = ("q", "k", "v", "o")


def _ends(fields, described, arrays):
    """How many layers the decoder has, and whether the file unties tables.

    transformers ties them whatever the configuration says, unless the file
    has both and they differ. It also writes what it made of
    ``feed_forward_proj``, and goes by that.
    """
    if described.get("scale_decoder_outputs", True) is None:
        raise InputError(
            "scale_decoder_outputs is null; give its value, or leave it out.")
    fields.setdefault("n_decoder_layers", fields["n_encoder_layers"])
    for key, means in _MADE.items():
        if key in described:
            fields |= meaning(key, described[key], means)
    if arrays:
        apart = "lm_head.weight" in arrays and not np.array_equal(
            arrays["lm_head.weight"], arrays.get("shared.weight"))
        fields["tied"] = "embeddings" if apart else "all"
    return fields


#: What transformers makes of ``feed_forward_proj``.
_MADE = {"dense_act_fn": ACTIVATIONS,
         "is_gated_act": {True: {"gated": True}, False: {"gated": False}}}

_SCALED = {"tied": "all", "output_scale": "root"}
_PLAIN = {"tied": "all", "output_scale": "none"}
_UNTIED = {"tied": "embeddings", "output_scale": "none"}


def _stack(config, stack, attentions):
    """A stack's rows: a sub-layer each has a number in a block."""
    ours, theirs = f"{stack}.layers.{{i}}", f"{stack}.block.{{i}}.layer"
    last = len(attentions)
    dense = f"{last}.DenseReluDense"
    rows = layer(
        ours, f"{stack}.block.{{i}}", {
            mine: f"layer.{n}.{other}"
            for n, (mine, other) in enumerate(attentions.items())},
        {}, (), _NAMES)
    inner = ({"gate": "wi_0", "inner": "wi_1"} if config.gated
             else {"inner": "wi"})
    for mine, other in {**inner, "outer": "wo"}.items():
        rows += (Entry(f"{ours}.feed_forward.{mine}.kernel",
                       f"{theirs}.{dense}.{other}.weight", TRANSPOSED),)
    for n, mine in enumerate((*attentions, "feed_forward")):
        rows += (Entry(f"{ours}.{mine}_residual.norm.scale",
                       f"{theirs}.{n}.layer_norm.weight", SAME),)
    return (*rows,
            Entry(f"{stack}.layers.0.self_attention.relative.table",
                  f"{stack}.block.0.layer.0.SelfAttention."
                  "relative_attention_bias.weight", SAME),
            Entry(f"{stack}.norm.scale", f"{stack}.final_layer_norm.weight",
                  SAME))


def _rows(config):
    return (
        Entry("source_embedding.table", "shared.weight", SAME),
        *_stack(config, "encoder", {"self_attention": "SelfAttention"}),
        *_stack(config, "decoder", {"self_attention": "SelfAttention",
                                    "cross_attention": "EncDecAttention"}),
        Entry("projection.kernel", "lm_head.weight", TRANSPOSED),
    )


T5 = Dialect(
    name="t5",
    source="transformers, models/t5/modeling_t5.py",
    unlike=(
        "The norm is RMS, before each sub-layer and at the end, its variance "
        "in float32.",
        "Positions are a learned number for each distance and head, added to "
        "the scores of self-attention.",
        "Scores are not divided by √d_k, and d_k is no part of d.",
        "No Linear has a bias.",
        "Version 1.0 multiplies the output by 1/√d; 1.1 does not, and its "
        "feed-forward is gated.",
        "Embeddings are not multiplied by √d.",
    ),
    fixed={
        "residual": "pre", "norm": "rms", "final_norm": True,
        "norm_rounding": "float32", "softmax_rounding": "float32",
        "positions": "relative", "attention_scale": "none",
        "attention_bias": "none", "feed_forward_bias": False,
        "embedding_scale": "none", "output_bias": False, "max_length": 512,
    },
    keys={
        "d_model": "d_model", "d_kv": "d_head", "num_heads": "n_heads",
        "d_ff": "d_ff", "num_layers": "n_encoder_layers",
        "num_decoder_layers": "n_decoder_layers",
        "vocab_size": ("source_vocab", "target_vocab"),
        "n_positions": "max_length",
        "relative_attention_num_buckets": "relative_buckets",
        "relative_attention_max_distance": "relative_distance",
        "layer_norm_epsilon": ("norm_eps", "final_norm_eps"),
        "pad_token_id": "pad_id", "dropout_rate": "dropout",
        "feed_forward_proj": {
            "relu": {"activation": "relu", "gated": False},
            "gated-gelu": {"activation": "gelu_tanh", "gated": True},
            "gated-silu": {"activation": "silu", "gated": True},
            "gelu": {"activation": "gelu", "gated": False}},
        ("tie_word_embeddings", "scale_decoder_outputs"): {
            (True, None): _SCALED, (False, None): _UNTIED,
            (True, True): _SCALED, (True, False): _PLAIN,
            (False, True): _SCALED, (False, False): _UNTIED},
    },
    defaults={
        "vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048,
        "num_layers": 6, "num_decoder_layers": None, "num_heads": 8,
        "relative_attention_num_buckets": 32, "n_positions": 512,
        "relative_attention_max_distance": 128, "dropout_rate": 0.1,
        "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu",
        "tie_word_embeddings": True, "pad_token_id": 0,
    },
    synonyms={"hidden_size": "d_model", "head_dim": "d_kv",
              "num_attention_heads": "num_heads",
              "num_hidden_layers": "num_layers"},
    only={"model_type": "t5"},
    adjust=_ends,
    casts=True,
    search=HUGGING_FACE,
    model_types=("t5",),
    apart=(r"decoder\.block\.0\.layer\.1\.EncDecAttention\."
           r"relative_attention_bias\.weight",),  # of older files, not read
    aliases={"encoder.embed_tokens.weight": "shared.weight",
             "decoder.embed_tokens.weight": "shared.weight",
             "lm_head.weight": "shared.weight"},
    rows=_rows,
    outputs={**ATTENTIONS, "encoder_last_hidden_state": "memory",
             "logits": "output"},
)
