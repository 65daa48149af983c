"""Words that several systems share."""

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
