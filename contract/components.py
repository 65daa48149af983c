"""How each component is made from a config; the same in all four.

A component is named by its file, its class (or the table in which the config
chooses the class), and the class's arguments.
"""

import importlib

#: Component -> file, class or (table, fields of the config), and arguments.
COMPONENTS = {
    "token_embedding": ("embedding", "TokenEmbedding",
                        lambda c: (c, c.source_vocab)),
    "positional_encoding": (
        "positional", ("ENCODINGS", "position_padding", "positions"),
        lambda c: (c, c.max_length)),
    "norm": ("layer_norm", ("NORMS", "norm_form"),
             lambda c: (c.d_model, c.norm_eps)),
    "single_head_attention": ("attention", "SingleHeadAttention",
                              lambda c: (c.d_model,)),
    "multi_head_attention": ("attention", "MultiHeadAttention",
                             lambda c: (c, "bidirectional")),
    "feed_forward": ("feed_forward", ("FEED_FORWARDS", "gated"),
                     lambda c: (c,)),
    "residual": ("residual", ("RESIDUALS", "residual"), lambda c: (c,)),
    "encoder_layer": ("encoder", "EncoderLayer", lambda c: (c,)),
    "decoder_layer": ("decoder", "DecoderLayer", lambda c: (c,)),
    "encoder": ("encoder", "Encoder", lambda c: (c,)),
    "decoder": ("decoder", "Decoder", lambda c: (c,)),
    "head": ("head", ("HEADS", "output_transform"), lambda c: (c,)),
    "projection": ("projection", ("PROJECTIONS", "has_output_bias"),
                   lambda c: (c.d_model, c.target_vocab)),
    "transformer": ("one_stack", ("MODELS", "stacks"), lambda c: (c,)),
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


def component(package, name, config):
    """The class of a component, and the arguments that make one.

    Args:
        package: the folder of an implementation, such as "impl_torch".
        name: a key of COMPONENTS.
        config: a TransformerConfig.

    Returns:
        The class, as the config chooses it, and a tuple.
    """
    file, choice, arguments = COMPONENTS[name]
    module = importlib.import_module(f"{package}.{file}")
    if isinstance(choice, str):
        kind = getattr(module, choice)
    else:
        table, *fields = choice
        kind = getattr(module, table)
        for field in fields:
            kind = kind[getattr(config, field)]
    return kind, arguments(config)
