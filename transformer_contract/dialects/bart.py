"""BART, as Hugging Face's transformers have it."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.fairseq import SIZES, stacks, unbiased
from transformer_contract.dialects.rows import ROW, SAME, Entry, norm
from transformer_contract.dialects.searches import HUGGING_FACE
from transformer_contract.dialects.words import (
    ACTIVATIONS, ATTENTIONS, SCALE_EMBEDDING, SYNONYMS)


def _ends(stack, ours):
    """The positions of one stack and the norm after them."""
    return (Entry(f"{ours}.table", f"model.{stack}.embed_positions.weight",
                  SAME),
            *norm(f"{ours}.norm", f"model.{stack}.layernorm_embedding"))


BART = Dialect(
    name="bart",
    source="transformers, models/bart/modeling_bart.py",
    unlike=(
        "Positions are learned; the first is row 2 of their table.",
        "The sum of embeddings is normalised, before dropout.",
        "Embeddings are not multiplied by √d.",
        "The feed-forward is a GELU.",
        "The projection is tied and has a bias.",
        "ε is 1e-5.",
        "Where embeddings read it, the row of padding's id learns nothing.",
    ),
    fixed={
        "residual": "post", "norm": "layer", "norm_eps": 1e-5,
        "positions": "learned", "position_start": 2, "embedding_norm": True,
        "tied": "all", "output_bias": True, "padding_learns": False,
    },
    keys={**SIZES, "activation_function": ACTIVATIONS,
          "scale_embedding": SCALE_EMBEDDING},
    defaults={
        "vocab_size": 50265, "d_model": 1024, "encoder_layers": 12,
        "decoder_layers": 12, "encoder_attention_heads": 16,
        "decoder_attention_heads": 16, "encoder_ffn_dim": 4096,
        "decoder_ffn_dim": 4096, "max_position_embeddings": 1024,
        "pad_token_id": 1, "dropout": 0.1, "activation_function": "gelu",
        "scale_embedding": False,
    },
    synonyms=SYNONYMS,
    only={"model_type": "bart", "tie_word_embeddings": True},
    adjust=unbiased,
    search=HUGGING_FACE,
    prefix="model.",
    model_types=("bart",),
    apart=(r"(model\.)?(en|de)coder\.version",),  # of older files
    aliases={name: "model.shared.weight" for name in (
        "lm_head.weight", "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight")},
    rows=(
        Entry("source_embedding.table", "model.shared.weight", SAME),
        *_ends("encoder", "source_positions"),
        *_ends("decoder", "target_positions"),
        *stacks("model."),
        Entry("projection.bias", "final_logits_bias", ROW),
    ),
    outputs={**ATTENTIONS, "encoder_last_hidden_state": "memory",
             "logits": "output"},
)
