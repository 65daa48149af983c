"""JAX's primitives in the words of ``parity.operations.vocabulary``."""

import dataclasses
import enum
from collections.abc import Callable

import jax
import numpy as np
from jax import lax

#: Those that differ in name alone.
RENAMED = {
    "unstack": "slice",
    "add_any": "add", "sub": "subtract", "mul": "multiply", "div": "divide",
    "rem": "remainder", "pow": "power", "max": "maximum", "min": "minimum",
    "neg": "negative", "logistic": "sigmoid", "erf_inv": "erfinv",
    "atan2": "arctan2", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "is_finite": "isfinite", "conj": "conjugate", "shift_left": "left_shift",
    "shift_right_logical": "right_shift",
    "shift_right_arithmetic": "right_shift"}

#: Along the axes that a parameter names.
REDUCTIONS = {
    "reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min",
    "reduce_prod": "prod", "reduce_and": "all", "reduce_or": "any",
    "argmax": "argmax", "argmin": "argmin", "cumsum": "cumsum",
    "cumprod": "cumprod", "cummax": "cummax", "cummin": "cummin",
    "cumlogsumexp": "cumlogsumexp"}

#: Draw numbers, or make what they are drawn from.
RANDOM = {"random_bits", "random_seed", "random_split", "random_fold_in",
          "random_wrap", "random_unwrap", "random_gamma", "random_clone",
          "threefry2x32", "rng_bit_generator", "rng_uniform"}

#: Those of them that draw.
DRAWN = {"random_bits", "random_gamma", "threefry2x32", "rng_bit_generator",
         "rng_uniform"}

#: Give back what they are given.
IDENTITIES = {"copy", "copy_p", "optimization_barrier", "name", "pvary",
              "sharding_constraint", "device_put", "stage", "pcast",
              "mesh_cast", "reshard", "layout_constraint", "stop_gradient"}

#: Hold a program that is run in their place: the parameter that has it.
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "remat2": "jaxpr",
         "checkpoint": "jaxpr", "closed_call": "call_jaxpr",
         "core_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
         "custom_vjp_call": "call_jaxpr", "custom_lin": "call_jaxpr"}

#: Nothing can be seen inside: they are given what they ask for.
OPAQUE = {"pallas_call", "pure_callback", "io_callback", "debug_callback",
          "debug_print", "ffi_call", "shard_map", "run_state",
          "custom_linear_solve", "custom_root"}

#: Move numbers and compute none, so that they round none.
MOVING = {"reshape", "transpose", "broadcast_in_dim", "slice", "rev",
          "squeeze", "gather", "concatenate", "dynamic_slice", "select_n",
          "sort", "top_k", "dynamic_update_slice", "real", "imag", "neg",
          "abs", "max", "min", "reduce_max", "reduce_min"}


@dataclasses.dataclass
class Naming:
    """How a primitive is recorded.

    Attributes:
        name, settings: as of ``program.Operation``.
        operands: arrays and scalars, in the vocabulary's order.
        restore: from operands in that order, the primitive and its own; None
            where they are already its own.
    """

    name: str
    operands: list
    settings: dict
    restore: Callable | None = None


def plain(value):
    """A parameter as plain values; what is none, as its text."""
    if isinstance(value, (type(None), bool, int, float, str)):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (tuple, list)):
        return tuple(plain(item) for item in value)
    if isinstance(value, np.dtype):
        return value.name
    return str(value)


def is_boolean(value):
    """Whether an array or a scalar is of booleans."""
    return jax.typeof(value).dtype.kind == "b"


def power(primitive, args, params):
    """``square`` and ``integer_pow``: a power, its exponent an operand."""
    exponent = params.get("y", 2)

    def restore(operands):
        x, y = operands
        if np.array_equal(y, exponent):
            return primitive, [x], params
        return lax.pow_p, [x, jax.numpy.asarray(y, x.dtype)], {}
    return Naming("power", [args[0], exponent], {}, restore)


def select(primitive, args, params):
    """``select_n``: ``where``, if it is of two."""
    if len(args) != 3 or not is_boolean(args[0]):
        return Naming("select_n", args, {})
    return Naming("where", [args[0], args[2], args[1]], {}, lambda operands: (
        primitive, [operands[0], operands[2], operands[1]], params))


def cut(primitive, args, params):
    """``dynamic_slice``: a slice, where it begins being a setting."""
    x, *starts = args
    sizes = params["slice_sizes"]
    start = tuple(int(np.clip(int(s), 0, whole - size)) for s, size, whole
                  in zip(starts, sizes, x.shape))
    settings = {"start": start, "step": (1,) * x.ndim,
                "stop": tuple(s + size for s, size in zip(start, sizes))}
    return Naming("slice", [x], settings, lambda operands: (
        primitive, [*operands, *starts], params))


def gather(primitive, args, params):
    """``gather``: ``take``, or ``take_along_axis``, where it is that."""
    x, indices = args
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    if len(numbers.start_index_map) == 1:
        axis, = numbers.start_index_map
        rest = [size == whole for i, (size, whole) in enumerate(
            zip(sizes, x.shape)) if i != axis]
        if not numbers.operand_batching_dims and all(rest) and (
                sizes[axis] == 1 and numbers.collapsed_slice_dims == (axis,)):
            return Naming("take", args, {"axis": axis})
        if not numbers.offset_dims and all(size == 1 for size in sizes) and (
                len(numbers.operand_batching_dims) == x.ndim - 1):
            return Naming("take_along_axis", args, {"axis": axis})
    return Naming("gather", args, {"dimension_numbers": plain(numbers),
                                  "sizes": plain(sizes)})


def scatter(name):
    """``scatter`` and ``scatter-add``: x, indices, y in both."""
    def named(primitive, args, params):
        numbers = params["dimension_numbers"]
        axes = numbers.scatter_dims_to_operand_dims
        return Naming(name, args, {
            "axis": axes[0] if len(axes) == 1 else plain(axes)})
    return named


def update(primitive, args, params):
    """``dynamic_update_slice``: ``put`` from a start on."""
    x, y, *starts = args
    return Naming("put", [x, y], {
        "start": tuple(int(start) for start in starts)},
        lambda operands: (primitive, [*operands, *starts], params))


def spread(primitive, args, params):
    """``broadcast_in_dim``; see ``JaxRecording.parts`` for new axes inside."""
    x, shape = args[0], tuple(params["shape"])
    if np.ndim(x) == 0 and not isinstance(x, jax.Array):
        return Naming("full", args, {"shape": shape})
    return Naming("reshape" if np.size(x) == np.prod(shape) else "broadcast",
                 args, {"shape": shape})


def padded(primitive, args, params):
    """``pad``, its constant an operand."""
    low, high, between = zip(*params["padding_config"])
    return Naming("pad", args, {"low": low, "high": high} | (
        {"between": between} if any(between) else {}))


def sliced(primitive, args, params):
    """``slice``."""
    return Naming("slice", args, {
        "start": params["start_indices"], "stop": params["limit_indices"],
        "step": params["strides"] or (1,) * len(params["start_indices"])})


def convolution(primitive, args, params):
    """``conv_general_dilated``."""
    numbers, inner = params["dimension_numbers"], params["lhs_dilation"]
    return Naming("convolution", args, {
        "strides": tuple(params["window_strides"]),
        "padding": plain(params["padding"]),
        "dilation": tuple(params["rhs_dilation"]),
        "groups": params["feature_group_count"],
        "layout": (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)} | (
        {"input_dilation": tuple(inner)} if any(i != 1 for i in inner) else {}))


def product(primitive, args, params):
    """``dot_general``."""
    contract, batch = params["dimension_numbers"]
    return Naming("matmul", args, {"contract": plain(contract),
                                  "batch": plain(batch)})


def logical(primitive, args, params):
    """``and``, ``or``, ``xor`` and ``not``: of booleans, or of bits."""
    kind = "logical" if is_boolean(args[0]) else "bitwise"
    return Naming(f"{kind}_{primitive.name}", args, {})


def setting(name, **names):
    """Those with settings that have another name there."""
    def named(primitive, args, params):
        return Naming(name, args, {ours: plain(params[theirs])
                                  for ours, theirs in names.items()})
    return named


def shaped(name="reshape"):
    """Those of which the new shape is all."""
    def named(primitive, args, params):
        shape = params.get("new_sizes")
        if shape is None:
            shape = [size for i, size in enumerate(args[0].shape)
                     if i not in params["dimensions"]]
        return Naming(name, args, {"shape": tuple(shape)})
    return named


SPECIAL = {
    "square": power, "integer_pow": power, "select_n": select,
    "dynamic_slice": cut, "gather": gather, "scatter": scatter("put"),
    "scatter-add": scatter("scatter_add"), "dynamic_update_slice": update,
    "broadcast_in_dim": spread, "pad": padded, "slice": sliced,
    "conv_general_dilated": convolution, "dot_general": product,
    "and": logical, "or": logical, "xor": logical, "not": logical,
    "reshape": shaped(), "squeeze": shaped(),
    "transpose": setting("transpose", axes="permutation"),
    "rev": setting("flip", axis="dimensions"),
    "concatenate": setting("concatenate", axis="dimension"),
    "iota": setting("arange", shape="shape", axis="dimension", dtype="dtype"),
    "top_k": setting("topk", k="k", axis="axis"),
    "sort": setting("sort", axis="dimension"),
    "convert_element_type": setting("cast", dtype="new_dtype"),
    "bitcast_convert_type": setting("bitcast", dtype="new_dtype"),
    "fft": setting("fft", kind="fft_type", lengths="fft_lengths"),
}


def named(primitive, args, params):
    """The Naming of a primitive and its arguments."""
    name = primitive.name
    if name in SPECIAL:
        return SPECIAL[name](primitive, args, params)
    if name in RANDOM:
        return Naming("random", args, {})
    if name in REDUCTIONS:
        axis = params.get("axes", params.get("axis"))
        settings = {"axis": plain(axis) if isinstance(axis, (tuple, list))
                    else (axis,)}
        if params.get("reverse"):
            settings["reverse"] = True
        return Naming(REDUCTIONS[name], args, settings)
    if name in RENAMED or not params:
        return Naming(RENAMED.get(name, name), args, {})
    return Naming(name, args, {
        key: plain(value) for key, value in params.items()
        if key != "name" and isinstance(value, (
            bool, int, float, str, tuple, np.dtype, enum.Enum))})
