"""torch's operations in the words of parity.operations.vocabulary."""

import torch

aten = torch.ops.aten

#: What changes no number and no shape.
IDENTITIES = {aten.clone, aten.detach, aten.alias, aten.contiguous,
              aten.lift_fresh, aten.lift_fresh_copy, aten._to_copy,
              aten.positive, aten.view_as_real_copy}

#: torch's name -> the vocabulary's, where operands come first and in order.
NAMES = {
    "neg": "negative", "sgn": "sign", "bitwise_not": "logical_not",
    "sub": "subtract", "mul": "multiply", "div": "divide",
    "true_divide": "divide", "pow": "power", "atan2": "arctan2",
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "fmod": "remainder",
    "amax": "max", "amin": "min", "linalg_vector_norm": "norm",
    "view": "reshape", "_unsafe_view": "reshape", "unsqueeze": "reshape",
    "squeeze": "reshape", "_reshape_alias": "reshape", "t": "transpose",
    "permute": "transpose", "expand": "broadcast", "mm": "matmul",
    "bmm": "matmul", "mv": "matmul", "dot": "matmul",
    "embedding": "take", "index_select": "take", "gather": "take_along_axis",
    "cat": "concatenate", "constant_pad_nd": "pad",
    "convolution_overrideable": "convolution", "_to_copy": "cast",
    "zeros_like": "full", "ones_like": "full", "full_like": "full",
    "zeros": "full", "ones": "full", "scalar_tensor": "full",
    "fill": "full", "zero": "full", "copy": "cast", "empty": "full",
    "empty_like": "full", "new_zeros": "full", "new_ones": "full",
    "new_full": "full", "new_empty": "full", "new_empty_strided": "full",
    "empty_strided": "full", "split": "slice", "split_with_sizes": "slice",
    "unbind": "slice", "unsafe_split": "slice",
    "unsafe_split_with_sizes": "slice", "unfold": "unfold",
    "as_strided": "as_strided",
    "flip": "flip", "scatter": "put", "index_put": "put", "_index_put_impl":
    "put", "index_copy": "put", "slice_scatter": "put",
    "select_scatter": "put", "masked_scatter": "put",
    "index_add": "scatter_add", "scatter_add": "scatter_add",
    "scatter_reduce": "scatter_add", "native_dropout": "random",
    "rand": "random", "randn": "random", "bernoulli": "random",
    "normal": "random", "uniform": "random", "rand_like": "random",
    "randn_like": "random", "randint": "random", "randperm": "random",
    "multinomial": "random", "exponential": "random",
    "special_erfcx": "erfcx", "special_expit": "sigmoid", "where": "where",
}

#: Operands in another order than torch has its arguments.
ORDER = {"rsub": ("subtract", (1, 0)), "masked_fill": ("where", (1, 2, 0))}

#: Arguments that are settings, though they are numbers.
SETTINGS = {
    "dim": "axis", "keepdim": "", "dims": "axes", "size": "shape",
    "shape": "shape", "start": "start", "end": "stop", "step": "step",
    "diagonal": "diagonal", "stride": "strides", "padding": "padding",
    "dilation": "dilation", "groups": "groups", "k": "k", "shifts": "shift",
    "dim0": "axes", "dim1": "axes", "dtype": "dtype", "correction":
    "correction", "unbiased": "correction", "split_size": "sizes",
    "split_sizes": "sizes", "pad": "pad", "largest": "largest",
    "sorted": "", "descending": "descending", "rounding_mode": "rounding",
    "padding_idx": "", "scale_grad_by_freq": "", "sparse": "",
    "memory_format": "", "non_blocking": "", "implicit": "", "layout": "",
    "device": "", "pin_memory": "", "transposed": "transposed",
    "output_padding": "output_padding", "alpha": "alpha", "p": "p",
    "generator": "", "accumulate": "accumulate", "unsafe": "",
    "reduce": "reduce", "include_self": "include_self", "copy": "",
    "kernel_size": "kernel", "output_size": "output", "ceil_mode":
    "ceil_mode", "count_include_pad": "count_include_pad", "decimals":
    "decimals", "num_classes": "classes", "ord": "order", "stable": "",
    "sparse_grad": "", "dimension": "axis", "num_samples": "count",
    "replacement": "replacement", "repeats": "repeats", "dim_size": "size",
    "train": "training", "input_size": "shape", "scale_factors": "scale",
    "scales_h": "scale", "scales_w": "scale", "align_corners":
    "align_corners", "n": "n", "normalization": "normalization",
    "forward": "forward", "onesided": "onesided", "equation": "equation",
    "lower_bound": "low", "index": "index",
}

#: Arguments of one name that are operands in some operations all the same.
OPERANDS = {"arange": {"start", "end", "step"}, "linspace": {
    "start", "end", "steps"}, "index_select": {"index"}, "gather": {"index"},
    "scatter": {"index"}, "scatter_add": {"index"}, "index_add": {"index"},
    "index_copy": {"index"}, "scatter_reduce": {"index"}}


def at(args, kwargs, path):
    """The argument at a path, which ``translated`` gave."""
    value = kwargs if isinstance(path[0], str) else args
    for step in path:
        value = value[step]
    return value


def put(args, kwargs, path, value):
    """The arguments with another one at a path."""
    if isinstance(path[0], str):
        return args, {**kwargs, **_put(kwargs, path, value)}
    return _put(args, path, value), kwargs


def _put(nest, path, value):
    first, *rest = path
    inner = _put(nest[first], rest, value) if rest else value
    if isinstance(nest, dict):
        return {first: inner}
    return [inner if i == first else each for i, each in enumerate(nest)]


def translated(function, args, kwargs):
    """What an operation is called, reads, and is set to.

    Args:
        function: the overload.
        args, kwargs: its arguments.

    Returns:
        Its name; a path to each operand; {setting: plain value}.
    """
    schema = function._schema
    plain = schema.name.partition("::")[2]
    base = plain.rstrip("_") if plain.endswith("_") and not plain.startswith(
        "__") else plain
    paths, settings = [], {}
    for i, argument in enumerate(schema.arguments):
        path = (i,) if i < len(args) else (argument.name,)
        if i >= len(args) and argument.name not in kwargs:
            continue
        value = at(args, kwargs, path)
        name = argument.name
        is_operand = name in OPERANDS.get(base, ()) or (
            name not in SETTINGS and name != "alpha")
        if isinstance(value, (list, tuple)) and any(
                isinstance(each, torch.Tensor) for each in value):
            paths += [(*path, j) for j, each in enumerate(value)
                      if isinstance(each, torch.Tensor)]
        elif isinstance(value, torch.Tensor) or (
                is_operand and isinstance(value, (int, float, complex))
                and not isinstance(value, bool)):
            paths.append(path)
        elif name == "alpha" and value == 1:
            pass
        elif value is not None and SETTINGS.get(name, name):
            add(settings, SETTINGS.get(name, name), value)
    name, order = ORDER.get(base, (NAMES.get(base, base), None))
    if order and len(paths) == len(order):
        paths = [paths[i] for i in order]
    if base in ("max", "min") and len(paths) == 2:
        name = f"{base}imum"
    elif base == "index":
        name = "take" if len(paths) == 2 else "index"
    elif base in ("mm", "bmm", "mv", "dot"):
        settings = products(args)
    elif base in ("unsqueeze", "squeeze", "split", "unbind",
                  "unsafe_split") or name in ("reshape",):
        settings = {key: value for key, value in settings.items()
                    if key in ("shape", "axis", "sizes")}
    elif base in ("clamp", "clamp_min", "clamp_max"):
        name = clamped(base, args, kwargs)
    elif name == "full" and base.startswith(("zeros", "ones", "new_zeros",
                                             "new_ones", "empty",
                                             "new_empty")):
        paths = []
        settings["value"] = float("ones" in base)
    return name, paths, settings


def add(settings, name, value):
    """Put a setting to others, as a plain value."""
    if isinstance(value, torch.dtype):
        value = str(value).removeprefix("torch.")
    elif isinstance(value, (list, tuple)):
        value = tuple(value)
    elif not isinstance(value, (bool, int, float, str)):
        value = str(value)
    settings[name] = (*settings[name], value) if name == "axes" and (
        name in settings) else (value,) if name == "axes" and isinstance(
        value, int) else value


def products(args):
    """Over which axes a product of two sums."""
    ranks = [each.dim() for each in args[:2]]
    over = (ranks[0] - 1,), (max(ranks[1] - 2, 0),)
    return {"contract": over, "batch": ((0,), (0,)) if ranks == [3, 3]
            else ((), ())}


def clamped(base, args, kwargs):
    """Whether a bound is the lowest, the greatest, or both."""
    low, high = (
        args[i] if i < len(args) else kwargs.get(word)
        for i, word in ((1, "min"), (2, "max")))
    if base != "clamp":
        return "maximum" if base == "clamp_min" else "minimum"
    return ("clip" if low is not None and high is not None
            else "maximum" if high is None else "minimum")
