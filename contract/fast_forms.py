"""Which models a fast form computes; others are left to the readable one.

A search writes a part of the maths again, and so knows the variants that it
was written for. A field that is not listed needs nothing: its variants are
components, which both forms call.

It also computes at once what several parts of a model would, and so knows the
parts that build makes. A model in which a user put another is left to the
readable form, which calls every part.
"""

import functools
import warnings

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


def as_built(parts, known):
    """Whether a model's parts are all as build makes them; warns of one.

    Args:
        parts: (path, object) of each.
        known: whether a part is of a kind that build makes.
    """
    for path, part in parts:
        if not known(part) or vars(part).keys() & methods(type(part)):
            warnings.warn(
                f"{path or 'the model'} ({type(part).__name__}) is not as it "
                "was built; the readable form computes instead",
                stacklevel=4)
            return False
    return True


def defined_in(part, package):
    """Whether a part's kind is defined in a package, or below it."""
    return type(part).__module__.partition(".")[0] == package


@functools.cache
def methods(kind):
    """The names of a kind's methods; an object's own would replace one."""
    # keras: puts its own in the place of these
    return frozenset(name for name in dir(kind) if callable(
        getattr(kind, name))) - {"build", "quantize", "loss"}


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
