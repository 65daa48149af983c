"""How each component is made from a config; the same in all five.

A component is made by a function of ``parts.py``, which chooses the class, or
by the class itself where there is no choice.
"""

import importlib

#: Component -> the file and name of what makes it, and its arguments.
COMPONENTS = {
    "token_embedding": ("parts.embedding", lambda c: (c, c.source_vocab)),
    "positional_encoding": ("parts.target_positions", lambda c: (c,)),
    "norm": ("parts.norm", lambda c: (c, c.norm_eps)),
    "single_head_attention": (
        "single_head.SingleHeadAttention", lambda c: (c.d_model,)),
    "multi_head_attention": (
        "parts.attention", lambda c: (c, "bidirectional")),
    "feed_forward": ("parts.feed_forward", lambda c: (c,)),
    "residual": ("parts.residual", lambda c: (c,)),
    "encoder_layer": ("parts.encoder_layer", lambda c: (c,)),
    "decoder_layer": ("parts.decoder_layer", lambda c: (c,)),
    "encoder": ("parts.encoder", lambda c: (c,)),
    "decoder": ("parts.decoder", lambda c: (c,)),
    "head": ("dialects.head.TransformHead", lambda c: (c,)),
    "projection": ("parts.untied_projection", lambda c: (c,)),
    "transformer": ("parts.model", lambda c: (c,)),
}

#: What a component's call, or a model's method, takes besides arrays where a
#: whole sequence is given at once, from position 0 and without a cache.
WHOLE: dict = {
    "positional_encoding": {"start": 0},
    "multi_head_attention": {"cache": None},
    "decoder_layer": {"cache": None},
    "decoder": {"caches": None},
    "decode": {"caches": None},
}


def named(package, path):
    """What a package has at a path, such as "dialects.norms.RMSNorm"."""
    file, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{file}"), name)


def component(package, name, config):
    """What makes a component, and the arguments that it is given.

    Args:
        package: the folder of an implementation, such as "impl_torch".
        name: a key of COMPONENTS.
        config: a TransformerConfig.

    Returns:
        A class, or a function of parts.py, and a tuple.
    """
    path, arguments = COMPONENTS[name]
    return named(package, path), arguments(config)
