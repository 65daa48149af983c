"""Which part a config asks for: the paper's, or a dialect's; in one word.

The word is a key of a table of ``parts.py``, in every implementation. "usual"
is the paper's own part.
"""

from transformer_contract.generation import GenerationConfig

#: What the paper's search does not have: fields of a GenerationConfig.
OTHER_SEARCHES = (
    "length_rule", "finishing", "unfinished", "min_tokens", "prompt",
    "forced_bos_id", "forced_eos_id", "suppress_tokens",
    "begin_suppress_tokens", "more_eos_ids", "no_repeat_ngram",
    "allow_padding")


def attention(config, kind):
    """The word of an attention.

    Args:
        config: a TransformerConfig.
        kind: "bidirectional", "causal" or "cross"; the last knows of no
            positions.
    """
    if kind != "cross":
        if config.positions.startswith("rotary"):
            return "rotary"
        if config.positions == "relative":
            return "relative"
    usual = (config.kv_heads == config.n_heads
             and config.n_heads * config.d_k == config.d_model
             and config.attention_bias == "all"
             and config.attention_scale == "root"
             and config.softmax_rounding == "none")
    return "usual" if usual else "dialect"


def feed_forward(config):
    """The word of a feed-forward network."""
    if config.gated:
        return "gated"
    usual = config.activation == "relu" and config.feed_forward_bias
    return "usual" if usual else "dialect"


def stack(config):
    """The word of a stack: whether it is more than its layers."""
    usual = not config.final_norm and config.positions != "relative"
    return "usual" if usual else "dialect"


def embedding(config):
    """The word of an embedding of tokens without types."""
    usual = config.embedding_scale == "root" and config.padding_learns
    return "usual" if usual else "dialect"


def source_embedding(config):
    """The word of the source's embedding, whose tokens may have types."""
    return "typed" if config.token_types else embedding(config)


def positions(config):
    """The word of what is added to embeddings."""
    usual = (config.positions == "interleaved"
             and config.position_divisor == "half"
             and config.position_start == 0
             and config.position_rounding == "none"
             and not config.position_padding and not config.embedding_norm)
    if usual:
        return "usual"
    kind = {"interleaved": "sinusoids", "halves": "sinusoids",
            "learned": "learned"}.get(config.positions)
    if kind is None:
        return "none"
    return f"unpadded {kind}" if config.position_padding else kind


def model(config):
    """The word of a whole model."""
    if config.stacks != "both":
        return config.stacks
    usual = (config.tied == "all" and config.begin == "token"
             and config.output == "logits" and config.output_scale == "none"
             and not config.output_transform)
    return "usual" if usual else "dialect"


def search(config, settings):
    """The word of a search: of a model's config and a GenerationConfig."""
    usual = config.stacks == "both" and all(
        getattr(settings, field) == getattr(GenerationConfig, field)
        for field in OTHER_SEARCHES)
    return "usual" if usual else "dialect"
