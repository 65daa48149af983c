"""Which models a fast form computes; others are left to the readable one.

A search writes a part of the maths again, and so knows the variants that it
was written for. A field that is not listed needs nothing: its variants are
components, which both forms call.

A fast form is made by build, for the parts that build chose. Values of weights
may change later; changing anything else of a built model is not supported.
"""

#: What a search with a cache knows: field of a TransformerConfig -> its words.
KNOWN = {
    "positions": ("interleaved", "halves", "learned"),
    "position_padding": (False,),
    "embedding_norm": (False,),
    "softmax_rounding": ("none",),
    "begin": ("token",),
    "stacks": ("both",),
}

#: The steps that a fast form may compute together with others, and so not
#: show: never an output, a loss, or a weight's gradient.
FUSABLE = {"query", "key", "value", "scores", "weights", "context", "mean",
           "centered", "variance", "normalized", "inner", "gradients"}

#: What a search that is compiled as a whole knows: field of a
#: GenerationConfig -> its words.
COMPILED = {
    "finishing": ("all",),
    "unfinished": ("compete",),
    "min_tokens": (1,),
    "prompt": ((),),
    "forced_bos_id": (None,),
    "forced_eos_id": (None,),
    "suppress_tokens": ((),),
    "begin_suppress_tokens": ((),),
    "allow_padding": (False,),
    "top_p_of_top_k": (False,),
}


def searches(config):
    """Whether the fast search with a cache knows a model of this config."""
    return not unknown(config, KNOWN)


def compiles(config, settings):
    """Whether a search compiled as a whole knows the model and settings."""
    return (searches(config) and settings.bos_id != config.pad_id
            and not unknown(settings, COMPILED))


def unknown(config, known):
    """Why a part of a fast form does not take a model: a field and its word.

    Args:
        known: {field: its words that are taken}.

    Returns:
        Of the first such field; "" where all are known.
    """
    return next((f"{field} {getattr(config, field)!r}"
                 for field, words in known.items()
                 if getattr(config, field) not in words), "")


def left(config, settings=None, **parts):
    """What a fast form leaves to the readable one, in words each.

    Args:
        settings: a GenerationConfig, of a form that compiles a whole search.
        parts: of a form beside its searches, {name: what it knows}.
    """
    for part, known in {"generation": KNOWN, **parts}.items():
        why = unknown(config, known)
        if part == "generation" and settings and not why:
            why = unknown(settings, COMPILED) or (
                "a bos id that is padding's" * (
                    settings.bos_id == config.pad_id))
        if why:
            yield f"{part.replace('_', ' ')} ({why})"
