"""GPT-2, as Hugging Face's transformers have it: a decoder alone."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    SAME, Entry, fused, fused_biases, linear, norm)
from transformer_contract.dialects.searches import HUGGING_FACE
from transformer_contract.dialects.words import ACTIVATIONS, unpadded
from parity_io.errors import is_whole

_OURS, _THEIRS = "decoder.layers.{i}", "transformer.h.{i}"
_THREE = ("query", "key", "value")


def _inner(fields, described, arrays):
    """The inner width is four times the outer one where none is given."""
    if is_whole(fields["d_model"]):
        fields.setdefault("d_ff", 4 * fields["d_model"])
    return unpadded(fields)


GPT2 = Dialect(
    name="gpt2",
    source="transformers, models/gpt2/modeling_gpt2.py",
    unlike=(
        "It is a decoder alone, which reads no memory.",
        "The norm comes before each sub-layer, and one at the end.",
        "Positions are learned, from row 0.",
        "Embeddings are not multiplied by √d.",
        "The feed-forward is a GELU by tanh.",
        "ε is 1e-5.",
    ),
    fixed={
        "residual": "pre", "norm": "layer", "final_norm": True,
        "stacks": "decoder", "positions": "learned",
        "embedding_scale": "none", "tied": "output",
    },
    keys={
        "n_embd": "d_model", "n_layer": "n_decoder_layers",
        "n_head": "n_heads", "n_inner": "d_ff", "n_positions": "max_length",
        "activation_function": ACTIVATIONS, "resid_pdrop": "dropout",
        "layer_norm_epsilon": ("norm_eps", "final_norm_eps"),
        "vocab_size": ("source_vocab", "target_vocab"),
        "pad_token_id": "pad_id",
    },
    defaults={
        "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "n_inner": None, "n_positions": 1024, "resid_pdrop": 0.1,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
        "pad_token_id": None,
    },
    synonyms={"hidden_size": "n_embd", "num_hidden_layers": "n_layer",
              "num_attention_heads": "n_head",
              "max_position_embeddings": "n_positions"},
    only={"model_type": "gpt2", "scale_attn_weights": True,
          "scale_attn_by_inverse_layer_idx": False,
          "add_cross_attention": False, "tie_word_embeddings": True},
    adjust=_inner,
    search=HUGGING_FACE,
    model_types=("gpt2",),
    sign=r"(transformer\.)?h\.0\.attn\.c_attn\.weight",
    prefix="transformer.",
    aliases={"lm_head.weight": "transformer.wte.weight"},
    ignored=(r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias",),
    rows=(
        Entry("target_embedding.table", "transformer.wte.weight", SAME),
        Entry("target_positions.table", "transformer.wpe.weight", SAME),
        Entry(tuple(f"{_OURS}.self_attention.{name}.kernel" for name in _THREE),
              f"{_THEIRS}.attn.c_attn.weight", fused(3, turned=False)),
        Entry(tuple(f"{_OURS}.self_attention.{name}.bias" for name in _THREE),
              f"{_THEIRS}.attn.c_attn.bias", fused_biases(3)),
        *linear(f"{_OURS}.self_attention.output", f"{_THEIRS}.attn.c_proj",
                how=SAME),
        *linear(f"{_OURS}.feed_forward.inner", f"{_THEIRS}.mlp.c_fc",
                how=SAME),
        *linear(f"{_OURS}.feed_forward.outer", f"{_THEIRS}.mlp.c_proj",
                how=SAME),
        *norm(f"{_OURS}.self_attention_residual.norm", f"{_THEIRS}.ln_1"),
        *norm(f"{_OURS}.feed_forward_residual.norm", f"{_THEIRS}.ln_2"),
        *norm("decoder.norm", "transformer.ln_f"),
    ),
    outputs={
        "logits": "output",
        "attentions{i}": "decoder.layers.{i}.self_attention.weights"},
)
