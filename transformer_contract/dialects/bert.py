"""BERT, as Hugging Face's transformers have it: an encoder alone."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import SAME, Entry, layer, linear, norm
from transformer_contract.dialects.words import ACTIVATIONS
from parity_io.errors import InputError

_HEAD = "cls.predictions.transform"


def _headed(fields, described, arrays):
    """The head that guesses masked tokens, where a file has it."""
    if f"{_HEAD}.dense.weight" not in arrays:
        return fields
    if not described.get("tie_word_embeddings", True) and (
            "cls.predictions.decoder.weight" not in arrays):
        raise InputError(
            "tie_word_embeddings is False, but the file has no "
            "'cls.predictions.decoder.weight'; set it True, or fetch the "
            "file again.")
    return {**fields, "output_transform": True, "output_bias": True}


BERT = Dialect(
    name="bert",
    source="transformers, models/bert/modeling_bert.py",
    unlike=(
        "It is an encoder alone.",
        "Positions are learned, from row 0.",
        "A table of two segments is added, and the sum is normalised, before "
        "dropout.",
        "Embeddings are not multiplied by √d.",
        "The feed-forward is a GELU.",
        "ε is 1e-12.",
        "Where embeddings read it, the row of padding's id learns nothing.",
        "To guess masked tokens, vectors pass a Linear, a GELU and a norm, and "
        "the projection has a bias; a file without them is read without.",
    ),
    fixed={
        "residual": "post", "norm": "layer", "stacks": "encoder",
        "positions": "learned", "embedding_norm": True,
        "embedding_scale": "none", "tied": "output",
        "padding_learns": False,
    },
    keys={
        "hidden_size": "d_model", "num_hidden_layers": "n_encoder_layers",
        "num_attention_heads": "n_heads", "intermediate_size": "d_ff",
        "hidden_act": ACTIVATIONS, "layer_norm_eps": "norm_eps",
        "max_position_embeddings": "max_length", "pad_token_id": "pad_id",
        "type_vocab_size": "token_types", "hidden_dropout_prob": "dropout",
        "vocab_size": ("source_vocab", "target_vocab"),
    },
    defaults={
        "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "pad_token_id": 0,
    },
    only={"model_type": "bert", "is_decoder": False,
          "position_embedding_type": "absolute"},
    model_types=("bert",),
    sign=r"(bert\.)?encoder\.layer\.0\.attention\.self\.query\.weight",
    prefix="bert.",
    renamed=((r"LayerNorm\.gamma$", "LayerNorm.weight"),
             (r"LayerNorm\.beta$", "LayerNorm.bias")),
    ignored=(r"(bert\.)?embeddings\.position_ids",),
    apart=(r"(bert\.)?pooler\..*", r"cls\.seq_relationship\..*",
           r"classifier\..*"),
    aliases={"cls.predictions.decoder.weight":
             "bert.embeddings.word_embeddings.weight",
             "cls.predictions.decoder.bias": "cls.predictions.bias"},
    adjust=_headed,
    rows=(
        Entry("source_embedding.table",
              "bert.embeddings.word_embeddings.weight", SAME),
        Entry("source_positions.table",
              "bert.embeddings.position_embeddings.weight", SAME),
        Entry("source_embedding.types",
              "bert.embeddings.token_type_embeddings.weight", SAME),
        *norm("source_positions.norm", "bert.embeddings.LayerNorm"),
        *layer("encoder.layers.{i}", "bert.encoder.layer.{i}",
               {"self_attention": "attention"},
               {"inner": "intermediate.dense", "outer": "output.dense"},
               ("attention.output.LayerNorm", "output.LayerNorm"),
               ("self.query", "self.key", "self.value", "output.dense")),
        *linear("head.inner", f"{_HEAD}.dense"),
        *norm("head.norm", f"{_HEAD}.LayerNorm"),
        Entry("projection.bias", "cls.predictions.bias", SAME),
    ),
    outputs={
        "last_hidden_state": "memory", "logits": "output",
        "attentions{i}": "encoder.layers.{i}.self_attention.weights"},
)
