"""Which models a fast search computes; of others it is the readable one.

It writes a part of the maths again, and so knows the variants that it was
written for. A field that is not listed needs nothing: its variants are
components, which both forms call.
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


def searches(config):
    """Whether the fast search with a cache knows a model of this config."""
    return all(getattr(config, field) in known
               for field, known in KNOWN.items())
