"""What to write in b's framework, so that it does what a does."""

import re

#: What configs and modules call one setting -> its name here.
ALIASES = {
    "eps": "epsilon", "rms_norm_eps": "epsilon", "layer_norm_eps": "epsilon",
    "layer_norm_epsilon": "epsilon", "layernorm_epsilon": "epsilon",
    "norm_eps": "epsilon", "norm_epsilon": "epsilon",
    "variance_epsilon": "epsilon", "use_bias": "bias", "causal": "future",
    "is_causal": "future", "rope_theta": "rotary base",
    "theta": "rotary base", "negative_slope": "slope", "num_heads": "heads",
    "nhead": "heads", "n_heads": "heads", "hidden_act": "activation",
    "padding_idx": "padding", "strides": "stride",
    "dilation_rate": "dilation", "kernel_dilation": "dilation",
    "feature_group_count": "groups", "hidden_activation": "activation",
}

#: How a framework's own layers are written.
LAYERS = {
    "torch": "torch.nn.{}(…, {})", "jax": "nnx.{}(…, {})",
    "keras": "keras.layers.{}(…, {})", "mlx": "mlx.nn.{}(…, {})",
}

#: The classes of frameworks' own layers.
KINDS = re.compile(
    r"(?:Layer|RMS|Batch|Group|Instance)Norm(?:alization)?(?:[123]d)?"
    r"|Linear(?:General)?|Dense|EinsumDense|Conv(?:[123][dD])?|Embed(?:ding)?"
    r"|Multi[hH]eadAttention|LeakyReLU")

#: A layer's own argument: cause -> framework -> its name.
ARGUMENTS = {
    "epsilon": {"torch": "eps", "jax": "epsilon", "keras": "epsilon",
                "mlx": "eps"},
    "momentum": dict.fromkeys(("torch", "jax", "keras", "mlx"), "momentum"),
    "bias": {"torch": "bias", "jax": "use_bias", "keras": "use_bias",
             "mlx": "bias"},
    "heads": dict.fromkeys(("torch", "jax", "keras", "mlx"), "num_heads"),
    "groups": {"torch": "groups", "jax": "feature_group_count",
               "keras": "groups", "mlx": "groups"},
    "stride": {"torch": "stride", "jax": "strides", "keras": "strides",
               "mlx": "stride"},
    "dilation": {"torch": "dilation", "jax": "kernel_dilation",
                 "keras": "dilation_rate", "mlx": "dilation"},
    "slope": dict.fromkeys(("torch", "keras", "mlx"), "negative_slope"),
}

#: Whether it is there, or on, as a's word has it.
YES = {"used": True, "hidden": True, "on": True, "true": True,
       "ignored": False, "seen": False, "off": False, "false": False}

_ATTENTION = {
    "torch": "torch.nn.functional.scaled_dot_product_attention(q, k, v, {})",
    "jax": "jax.nn.dot_product_attention(q, k, v, {})",
    "keras": "keras.ops.dot_product_attention(q, k, v, {})",
}

_ROTARY = "{0} ** (-{1}.arange(0, d_k, 2) / d_k)"

#: Activations that are written alike, {} being a framework's module of them.
ACTIVATIONS = {
    "gelu by sigmoid": "x * {}.sigmoid(1.702 * x)",
    "relu squared": "{}.relu(x) ** 2",
    **{word: f"{{}}.{word}(x)" for word in (
        "elu", "mish", "relu", "relu6", "sigmoid", "silu", "softplus",
        "tanh")},
    **{f"leaky relu, {slope}": f"{{}}.leaky_relu(x, {slope})"
       for slope in (0.01, 0.2, 0.3)}}

_GELUS = {"gelu": "{}.gelu(x, approximate=False)",
          "gelu by tanh": "{}.gelu(x, approximate=True)"}

#: Cause -> framework -> what to write, {} being a's value; or a's value -> it.
LINES: dict[str, dict] = {
    "activation": {
        name: {word: line.format(module)
               for word, line in (*ACTIVATIONS.items(), *gelus.items())}
        for name, module, gelus in (
            ("torch", "torch.nn.functional", {
                "gelu": "{}.gelu(x)",
                "gelu by tanh": '{}.gelu(x, approximate="tanh")'}),
            ("jax", "jax.nn", _GELUS),
            ("keras", "keras.activations", _GELUS),
            ("mlx", "mlx.nn", {"gelu": "{}.gelu(x)",
                               "gelu by tanh": "{}.gelu_approx(x)"}))},
    "kernel": {
        "torch": "linear.weight.copy_(kernel.T)",
        "jax": "linear.kernel.set_value(weight.T)",
        "keras": "dense.kernel.assign(weight.T)",
        "mlx": "linear.weight = kernel.T"},
    "softmax over": {
        name: {"keys": f"{call}(scores, {axis}=-1)",
               "queries": f"{call}(scores, {axis}=-2)"}
        for name, call, axis in (
            ("torch", "torch.softmax", "dim"),
            ("jax", "jax.nn.softmax", "axis"),
            ("keras", "keras.ops.softmax", "axis"),
            ("mlx", "mlx.core.softmax", "axis"))},
    "scale": {
        name: {word: call.format(f"scale={scale}") for word, scale in (
            ("1/√d_k", "d_k ** -0.5"), ("1", "1.0"), ("1/d_k", "1 / d_k"),
            ("1/√d_model", "d_model ** -0.5"), ("√d_k", "d_k ** 0.5"))}
        for name, call in _ATTENTION.items()},
    "future": {
        name: {True: call.format("is_causal=True"),
               False: call.format("is_causal=False")}
        for name, call in _ATTENTION.items()},
    "rotary base": {
        "torch": _ROTARY.format("{}", "torch"),
        "jax": _ROTARY.format("{}", "jnp"),
        "keras": "{} ** (-keras.ops.arange(0, d_k, 2) / d_k)",
        "mlx": _ROTARY.format("{}", "mlx.core")},
    "padding": {
        "torch": "torch.nn.Embedding(…, padding_idx={})",
        "jax": "embed(ids) * (ids != {})[..., None]",
        "keras": "embedding(ids) * (ids != {})[..., None]",
        "mlx": "embedding(ids) * (ids != {})[..., None]"},
    "slope": {"jax": "jax.nn.leaky_relu(x, {})"},
    "dropout": {
        "torch": {True: "model.train()", False: "model.eval()"},
        "jax": {True: "model.train()",
                False: "model.eval()  # or deterministic=True"},
        "keras": {True: "model(x, training=True)",
                  False: "model(x, training=False)"},
        "mlx": {True: "model.train()", False: "model.eval()"}},
    "variance": {
        "torch": {"over D": "x.var(-1, correction=0)",
                  "over D - 1": "x.var(-1, correction=1)"},
        "jax": {"over D": "x.var(-1, ddof=0)",
                "over D - 1": "x.var(-1, ddof=1)"},
        "keras": {"over D": "keras.ops.var(x, -1)",
                  "over D - 1": "keras.ops.var(x, -1) * d / (d - 1)"},
        "mlx": {"over D": "x.var(-1, ddof=0)",
                "over D - 1": "x.var(-1, ddof=1)"}},
}

NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def write_of(framework, cause, in_a, kind="", of=""):
    """What to write in a framework instead.

    Args:
        framework: b's: "torch", "jax", "keras" or "mlx".
        cause: what differs, as in Explanation: "epsilon", or what a config
            calls it: "rms_norm_eps".
        in_a: a's value, as in Explanation.
        kind: the class of b's module, such as "LayerNorm".
        of: a's framework. Torch's momentum is the share of what is new, that
            of others the share of what is kept.

    Returns:
        A short line of code; "" where none is known.
    """
    cause, value = ALIASES.get(cause, cause), str(in_a)
    value = YES.get(value.lower(), value)
    if name := ARGUMENTS.get(cause, {}).get(framework):
        return _argument(framework, cause, name, value, kind, of)
    line = LINES.get(cause, {}).get(framework, "")
    if isinstance(line, dict):
        return line.get(value, "")
    if "{}" not in line:
        return line
    found = NUMBER.search(str(value))
    return line.format(found[0]) if found else ""


def _argument(framework, cause, name, value, kind, of):
    """A layer with an argument; the argument alone of a class of a user."""
    if cause == "bias":
        if not isinstance(value, bool):
            return ""
    elif not NUMBER.fullmatch(str(value)) and not str(value).startswith("("):
        return ""
    if cause == "momentum" and of and ("torch" in (of, framework)) and (
            of != framework):
        value = f"{1 - float(value):g}"
    words = f"{name}={value}"
    return (LAYERS[framework].format(kind, words) if KINDS.fullmatch(kind)
            else words)
