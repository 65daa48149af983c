"""Words that several systems share."""

from parity_io.errors import is_whole

#: Hugging Face's names of activations -> our field.
ACTIVATIONS = {
    "relu": {"activation": "relu"}, "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"}, "swish": {"activation": "silu"},
    "gelu_new": {"activation": "gelu_tanh"},
    "gelu_pytorch_tanh": {"activation": "gelu_tanh"},
}

#: The same, where "swish" is the word that files have.
SWISH = {"swish": {"activation": "silu"}, **ACTIVATIONS}

SCALE_EMBEDDING = {True: {"embedding_scale": "root"},
                   False: {"embedding_scale": "none"}}

#: The other names by which BART, Marian and Whisper read their keys.
SYNONYMS = {"hidden_size": "d_model",
            "num_attention_heads": "encoder_attention_heads",
            "num_hidden_layers": "encoder_layers"}

#: Each layer's attention weights, as Hugging Face's outputs call them.
ATTENTIONS = {
    "encoder_attentions{i}": "encoder.layers.{i}.self_attention.weights",
    "decoder_attentions{i}": "decoder.layers.{i}.self_attention.weights",
    "cross_attentions{i}": "decoder.layers.{i}.cross_attention.weights",
}


def unpadded(fields):
    """The fields of a decoder alone, without a padding that is no token.

    Files say -1, or an id that a tokenizer has and the table has not; nothing
    of a prompt is padding.
    """
    pad_id, vocab = fields.get("pad_id", 0), fields["target_vocab"]
    if is_whole(pad_id) and is_whole(vocab) and not 0 <= pad_id < vocab:
        return {key: value for key, value in fields.items()
                if key not in ("pad_id", "padding_learns")}
    return fields
