"""Llama, as Hugging Face's transformers have it: a decoder alone."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import SAME, TRANSPOSED, Entry, layer
from transformer_contract.dialects.searches import HUGGING_FACE
from transformer_contract.dialects.words import ACTIVATIONS, unpadded
from parity_io.errors import InputError


def _rotary(fields, described, arrays):
    """The base of the rotation, which newer files keep in a dict."""
    base = described.get("rope_theta")
    for name in ("rope_parameters", "rope_scaling"):
        rope = described.get(name) or {}
        if not isinstance(rope, dict):
            raise InputError(
                f"{name} is {str(rope)[:40]!r}; it must be a table of keys.")
        kind = rope.get("rope_type", rope.get("type", "default"))
        whole = rope.get("partial_rotary_factor",
                         described.get("partial_rotary_factor", 1.0))
        for key, value, only in (("rope_type", kind, "default"),
                                 ("partial_rotary_factor", whole, 1.0)):
            if value != only:
                raise InputError(
                    f"{key} is {value!r}, which llama has no table for; it "
                    f"must be {only!r}.")
        base = rope.get("rope_theta", base)
    if described.get("pad_token_id") is not None:  # else none is padding
        fields = fields | {"padding_learns": False}
    return unpadded(
        fields if base is None else fields | {"rotary_base": base})


LLAMA = Dialect(
    name="llama",
    source="transformers, models/llama/modeling_llama.py",
    unlike=(
        "It is a decoder alone, which reads no memory.",
        "The norm is RMS, before each sub-layer and at the end, in float32 "
        "inside.",
        "Positions turn queries and keys, in halves.",
        "Heads share keys and values in groups.",
        "The feed-forward is gated, by x σ(x).",
        "No Linear has a bias.",
        "The softmax is computed in float32.",
        "Embeddings are not multiplied by √d.",
        "Where a file names padding, its row learns nothing where it is read.",
    ),
    fixed={
        "residual": "pre", "norm": "rms", "final_norm": True,
        "norm_rounding": "float32",
        "softmax_rounding": "float32",
        "positions": "rotary_halves", "position_rounding": "float32",
        "stacks": "decoder", "embedding_scale": "none",
        "attention_bias": "none", "feed_forward_bias": False, "gated": True,
        "output_bias": False,
    },
    keys={
        "hidden_size": "d_model", "num_hidden_layers": "n_decoder_layers",
        "num_attention_heads": "n_heads", "num_key_value_heads": "n_kv_heads",
        "head_dim": "d_head", "intermediate_size": "d_ff",
        "hidden_act": ACTIVATIONS, "max_position_embeddings": "max_length",
        "rms_norm_eps": ("norm_eps", "final_norm_eps"),
        "rope_theta": "rotary_base", "pad_token_id": "pad_id",
        "vocab_size": ("source_vocab", "target_vocab"),
        "tie_word_embeddings": {True: {"tied": "output"},
                                False: {"tied": "none"}},
        "attention_dropout": "dropout",
    },
    defaults={
        "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": None,
        "head_dim": None, "intermediate_size": 11008, "hidden_act": "silu",
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False, "attention_dropout": 0.0,
        "pad_token_id": None, "rope_theta": 10000.0,
    },
    only={"model_type": "llama", "attention_bias": False, "mlp_bias": False,
          "pretraining_tp": 1},
    adjust=_rotary,
    casts=True,
    search=HUGGING_FACE,
    model_types=("llama",),
    aliases={"lm_head.weight": "model.embed_tokens.weight"},
    ignored=(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq",),
    rows=(
        Entry("target_embedding.table", "model.embed_tokens.weight", SAME),
        *layer("decoder.layers.{i}", "model.layers.{i}",
               {"self_attention": "self_attn"},
               {"gate": "mlp.gate_proj", "inner": "mlp.up_proj",
                "outer": "mlp.down_proj"},
               ("input_layernorm", "post_attention_layernorm"),
               ("q_proj", "k_proj", "v_proj", "o_proj")),
        Entry("decoder.norm.scale", "model.norm.weight", SAME),
        Entry("projection.kernel", "lm_head.weight", TRANSPOSED),
    ),
    outputs={
        "logits": "output",
        "attentions{i}": "decoder.layers.{i}.self_attention.weights"},
)
