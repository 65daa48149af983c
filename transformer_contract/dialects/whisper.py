"""Whisper, as Hugging Face's transformers have it, after its convolutions.

The encoder reads vectors that two convolutions make of a sound
(the contract's ``sound.py``). Here they are the rows of the source's table:
token i is frame i of the sound, so that a model is made for each sound.
"""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.fairseq import stacks
from transformer_contract.dialects.rows import SAME, Entry, norm
from transformer_contract.dialects.searches import HUGGING_FACE
from transformer_contract.dialects.words import (
    ACTIVATIONS, ATTENTIONS, SYNONYMS)

WHISPER = Dialect(
    name="whisper",
    source="transformers, models/whisper/modeling_whisper.py",
    unlike=(
        "The source is a sound, of which two convolutions make vectors; they "
        "are computed once, in NumPy.",
        "The norm comes before each sub-layer, and one at the end.",
        "Positions are tables in the file: the encoder's sines first, pairs "
        "divided by d/2 - 1; the decoder's learned.",
        "Queries, values and outputs have biases, keys have none.",
        "Embeddings are not multiplied by √d.",
        "The feed-forward is a GELU.",
        "The projection is the target's table, and the source has none.",
        "ε is 1e-5.",
    ),
    component="frames",
    fixed={
        "residual": "pre", "norm": "layer", "norm_eps": 1e-5,
        "final_norm": True, "final_norm_eps": 1e-5, "positions": "learned",
        "embedding_scale": "none", "attention_bias": "all_but_key",
        "tied": "output",
    },
    keys={
        "d_model": "d_model", "encoder_layers": "n_encoder_layers",
        "decoder_layers": "n_decoder_layers", "dropout": "dropout",
        "encoder_attention_heads": "n_heads",
        "decoder_attention_heads": "n_heads", "encoder_ffn_dim": "d_ff",
        "decoder_ffn_dim": "d_ff", "vocab_size": "target_vocab",
        "max_source_positions": ("source_max_length", "source_vocab"),
        "max_target_positions": "max_length",
        "activation_function": ACTIVATIONS,
    },
    defaults={
        "d_model": 384, "encoder_layers": 4, "decoder_layers": 4,
        "encoder_attention_heads": 6, "decoder_attention_heads": 6,
        "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "dropout": 0.0,
        "vocab_size": 51865, "max_source_positions": 1500,
        "max_target_positions": 448, "activation_function": "gelu",
        "num_mel_bins": 80,
    },
    synonyms={**SYNONYMS, "num_key_value_heads": "encoder_attention_heads"},
    only={"model_type": "whisper", "scale_embedding": False,
          "tie_word_embeddings": True},
    search=HUGGING_FACE,
    model_types=("whisper",),
    aliases={"proj_out.weight": "model.decoder.embed_tokens.weight"},
    apart=(r"model\.encoder\.conv[12]\..*",),
    rows=(
        Entry("target_embedding.table", "model.decoder.embed_tokens.weight",
              SAME),
        Entry("source_positions.table", "model.encoder.embed_positions.weight",
              SAME),
        Entry("target_positions.table", "model.decoder.embed_positions.weight",
              SAME),
        *stacks("model."),
        *norm("encoder.norm", "model.encoder.layer_norm"),
        *norm("decoder.norm", "model.decoder.layer_norm"),
    ),
    outputs={**ATTENTIONS, "encoder_last_hidden_state": "memory",
             "logits": "output"},
)
