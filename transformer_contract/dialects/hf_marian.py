"""Marian in Hugging Face's transformers, which is not Marian in two fields."""

import numpy as np

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.fairseq import SIZES, stacks, unbiased
from transformer_contract.dialects.rows import ROW, SAME, Entry
from transformer_contract.dialects.searches import HUGGING_FACE
from transformer_contract.dialects.words import (
    ATTENTIONS, SCALE_EMBEDDING, SWISH, SYNONYMS)
from transformer_contract.sinusoids import halves_table, in_float32

_TABLES = {"source_positions.table": "encoder.embed_positions.weight",
           "target_positions.table": "decoder.embed_positions.weight"}


def _positions(fields, described, arrays):
    """Positions are a file's own where it has them and they are not sines.

    transformers reads them; in a file of float16 they are rounded to it.
    """
    fields = unbiased(fields, described, arrays)
    tables = [array for name, array in arrays.items()
              if name.removeprefix("model.") in _TABLES.values()]
    size = fields["max_length"], fields["d_model"]
    if all(table.shape == size and np.array_equal(
            table, in_float32(halves_table(*size))) for table in tables):
        return fields
    return {**fields, "positions": "learned", "position_rounding": "none"}

HF_MARIAN = Dialect(
    name="hf_marian",
    source="transformers, models/marian/modeling_marian.py",
    unlike=(
        "Sines first, then cosines; the table is rounded to float32.",
        "ε is 1e-5, where Marian itself has 1e-6.",
        "Pairs are divided by d/2, where Marian itself divides by d/2 - 1.",
        "Positions that a file has, as older ones do, are read as they are.",
        "The feed-forward is x σ(x), in the files of opus.",
        "The projection is tied and has a bias.",
        "Where embeddings read it, the row of padding's id learns nothing.",
    ),
    fixed={
        "residual": "post", "norm": "layer", "norm_eps": 1e-5,
        "positions": "halves", "position_rounding": "float32",
        "tied": "all", "output_bias": True, "padding_learns": False,
    },
    keys={**SIZES, "activation_function": SWISH,
          "scale_embedding": SCALE_EMBEDDING},
    defaults={
        "vocab_size": 58101, "d_model": 512, "encoder_layers": 6,
        "decoder_layers": 6, "encoder_attention_heads": 8,
        "decoder_attention_heads": 8, "encoder_ffn_dim": 2048,
        "decoder_ffn_dim": 2048, "max_position_embeddings": 512,
        "pad_token_id": 58100, "dropout": 0.1,
        "activation_function": "swish", "scale_embedding": True,
    },
    synonyms=SYNONYMS,
    only={"model_type": "marian", "share_encoder_decoder_embeddings": True,
          "tie_word_embeddings": True},
    adjust=_positions,
    search=HUGGING_FACE,
    prefix="model.",
    model_types=("marian",),
    aliases={name: "model.shared.weight" for name in (
        "lm_head.weight", "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight")},
    ignored=tuple(f"model.{name}" for name in _TABLES.values()),
    rows=(
        Entry("source_embedding.table", "model.shared.weight", SAME),
        *(Entry(ours, f"model.{theirs}", SAME)
          for ours, theirs in _TABLES.items()),
        *stacks("model."),
        Entry("projection.bias", "final_logits_bias", ROW),
    ),
    outputs={
        **ATTENTIONS, "encoder_last_hidden_state": "memory",
        "logits": "output",
        "cross_attn{i}": "decoder.layers.{i}.cross_attention.weights",
    },
)
