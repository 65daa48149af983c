"""Names and shapes of the weights that all four load.

A canonical name is the path of attributes that leads to an array, and a matrix
stands as the paper writes it: y = x W + b, so ``kernel`` is [in, out].
"""

PROJECTIONS = ("query", "key", "value", "output")

#: Which of them have a bias, by the config's ``attention_bias``.
BIASED = {"all": PROJECTIONS, "none": (),
          "all_but_key": ("query", "value", "output")}

#: Whether a model has an encoder, and whether a decoder, by its stacks.
STACKS = {"both": (True, True), "encoder": (True, False),
          "decoder": (False, True)}


def _linear(d_in, d_out, bias=True):
    return {"kernel": (d_in, d_out), **({"bias": (d_out,)} if bias else {})}


def _norm(config):
    shape = (1,) if config.norm == "scalar_std" else (config.d_model,)
    return {"scale": shape, **({"bias": shape} if config.norm != "rms" else {})}


def _attention(config):
    d, inside = config.d_model, config.n_heads * config.d_k
    shared = config.kv_heads * config.d_k
    sizes = {"query": (d, inside), "key": (d, shared), "value": (d, shared),
             "output": (inside, d)}
    return {name: _linear(*size, name in BIASED[config.attention_bias])
            for name, size in sizes.items()}


def _feed_forward(config):
    d, f, bias = config.d_model, config.d_ff, config.feed_forward_bias
    gate = {"gate": _linear(d, f, bias)} if config.gated else {}
    return {**gate, "inner": _linear(d, f, bias), "outer": _linear(f, d, bias)}


def _layer(config, attentions):
    residual = {"norm": _norm(config)}
    layer = {}
    for attention in attentions:
        layer[attention] = _attention(config)
        layer[f"{attention}_residual"] = residual
    layer["feed_forward"] = _feed_forward(config)
    layer["feed_forward_residual"] = residual
    return layer


def _projection(config):
    weights = _linear(config.d_model, config.target_vocab)
    if config.output_tied:
        del weights["kernel"]
    if not config.has_output_bias:
        del weights["bias"]
    return weights


def _positions(config, max_length):
    weights = {}
    if config.positions == "learned":
        weights["table"] = (
            config.position_start + max_length, config.d_model)
    if config.embedding_norm:
        weights["norm"] = _norm(config)
    return weights


def _stack(config, n_layers, attentions):
    stack = {"layers": {i: _layer(config, attentions)
                        for i in range(n_layers)}}
    if config.positions == "relative":  # the others read the first one's
        stack["layers"][0]["self_attention"]["relative"] = {
            "table": (config.relative_buckets, config.n_heads)}
    if config.final_norm:
        stack["norm"] = _norm(config)
    return stack


def _flatten(tree, prefix=""):
    for name, node in tree.items():
        if isinstance(node, dict):
            yield from _flatten(node, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", node


def schema(config):
    """Every weight of a model: canonical name -> shape, in reading order."""
    tree, source, target = {}, *STACKS[config.stacks]
    if source:
        tree["source_embedding"] = {
            "table": (config.source_vocab, config.d_model)}
        if config.token_types:
            tree["source_embedding"]["types"] = (
                config.token_types, config.d_model)
        tree["source_positions"] = _positions(config, config.source_length)
    if target:
        if not config.embeddings_tied:
            tree["target_embedding"] = {
                "table": (config.target_vocab, config.d_model)}
        tree["target_positions"] = _positions(config, config.max_length)
    if source:
        tree["encoder"] = _stack(
            config, config.n_encoder_layers, ["self_attention"])
    if target:
        attentions = ["self_attention", "cross_attention"]
        tree["decoder"] = _stack(
            config, config.n_decoder_layers, attentions[:1 + source])
    if config.output_transform:
        tree["head"] = {"inner": _linear(config.d_model, config.d_model),
                        "norm": _norm(config)}
    tree["projection"] = _projection(config)
    return dict(_flatten(tree))
