"""NumPy's functions in the words of parity.operations.vocabulary."""

import numpy as np

#: A ufunc's or a function's name -> the vocabulary's, if it is another.
NAMES = {
    "true_divide": "divide", "absolute": "abs", "float_power": "power",
    "rint": "round", "around": "round", "mod": "remainder",
    "fmax": "maximum", "fmin": "minimum", "invert": "logical_not",
    "amax": "max", "amin": "min", "conj": "conjugate", "astype": "cast",
    "moveaxis": "transpose", "swapaxes": "transpose", "rollaxis": "transpose",
    "permute_dims": "transpose", "matrix_transpose": "transpose",
    "broadcast_to": "broadcast", "dot": "matmul", "inner": "matmul",
    "expand_dims": "reshape", "squeeze": "reshape", "ravel": "reshape",
    "flatten": "reshape", "concat": "concatenate"}

#: A ufunc that is reduced or accumulated.
REDUCED = {("add", "reduce"): "sum", ("multiply", "reduce"): "prod",
           ("maximum", "reduce"): "max", ("minimum", "reduce"): "min",
           ("logical_or", "reduce"): "any", ("logical_and", "reduce"): "all",
           ("add", "accumulate"): "cumsum",
           ("multiply", "accumulate"): "cumprod"}

#: They give what they are given.
IDENTITIES = {"positive", "copy", "asarray", "ascontiguousarray"}

#: Functions that take numbers as operands, as ufuncs do.
MIXED = {"where", "clip", "power"}

#: Functions of Python that NumPy makes of others, recorded as one.
WHOLE = {"sum", "mean", "var", "prod", "max", "min", "amax", "amin", "any",
         "all", "argmax", "argmin", "cumsum", "cumprod", "take", "reshape",
         "transpose", "squeeze", "expand_dims", "moveaxis", "swapaxes",
         "broadcast_to", "repeat", "take_along_axis", "einsum", "sort",
         "argsort", "flip", "roll", "pad", "clip", "ravel", "around", "tril",
         "triu", "matrix_transpose"}

AXIS = {"sum", "mean", "var", "prod", "max", "min", "any", "all", "argmax",
        "argmin", "cumsum", "cumprod", "sort", "argsort", "concatenate",
        "take", "take_along_axis", "repeat", "roll", "flip"}

#: The axis where none is given, if it is not all.
DEFAULT = {"concatenate": 0, "sort": -1, "argsort": -1}


def translated(name, arrays, args, keywords, made):
    """A call in the vocabulary.

    Args:
        name: NumPy's own.
        arrays: its operands.
        args, keywords: all that is given.
        made: its first result.

    Returns:
        The name and the settings.
    """
    name = NAMES.get(name, name)
    shape = np.shape(arrays[0]) if arrays else ()
    match name:
        case "reshape" | "broadcast":
            return name, {"shape": np.shape(made)}
        case "cast":
            return name, {"dtype": str(np.dtype(
                keywords["dtype"] if "dtype" in keywords else args[1]))}
        case "matmul":
            return name, product(shape, np.shape(arrays[1]))
        case "einsum":
            return contracted(str(args[0]).replace(" ", ""))
        case _ if name in AXIS:
            return name, {"axis": axes(name, args, keywords, len(shape))}
    return name, {key: value for key, value in keywords.items()
                  if isinstance(value, (bool, int, float, str, tuple))}


def axes(name, args, keywords, rank):
    """The axis that is given, as places from 0; all where there is none."""
    given = keywords.get("axis", DEFAULT.get(name))
    place = {"take": 2, "repeat": 2, "roll": 2, "take_along_axis": 2}.get(
        name, 1)
    if "axis" not in keywords and len(args) > place:
        given = args[place]
    if given is None:
        return tuple(range(rank))
    several = given if isinstance(given, (tuple, list)) else (given,)
    return tuple(sorted(int(axis) % max(rank, 1) for axis in several))


def product(one, other):
    """Over which axes a product of two shapes sums."""
    ranks = len(one), len(other)
    batch = max(min(ranks) - 2, 0)
    return {"contract": ((ranks[0] - 1,), (max(ranks[1] - 2, 0),)),
            "batch": tuple(tuple(range(rank - 2 - batch, rank - 2))
                           for rank in ranks)}


def contracted(equation):
    """einsum of two as a matmul; any other keeps its name."""
    letters, _, result = equation.partition("->")
    letters = letters.split(",")
    if len(letters) != 2 or "." in equation or not result:
        return "einsum", {"equation": equation}
    both = [a for a in letters[0] if a in letters[1]]
    return "matmul", {
        key: tuple(tuple(part.index(a) for a in both
                         if (a in result) == kept) for part in letters)
        for key, kept in (("contract", False), ("batch", True))}


def moved(function, rank):
    """Which axes a function that only moves axes has where."""
    marked = np.lib.stride_tricks.as_strided(
        np.zeros(1), (1,) * rank, tuple(8 * (i + 1) for i in range(rank)))
    return tuple(stride // 8 - 1 for stride in function(marked).strides)


def indexed(shape, index, made):
    """What ``x[index]`` is: its name and settings.

    Args:
        shape: of x.
        index: as NumPy takes it.
        made: the shape of the result.
    """
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, (np.ndarray, list))]
    if arrays:
        axis = next((i for i, part in enumerate(parts)
                     if isinstance(part, (np.ndarray, list))), 0)
        plain = len(arrays) == 1 and np.asarray(arrays[0]).dtype.kind in (
            "iu") and all(part == slice(None) for part in parts
                          if isinstance(part, slice))
        return ("take", {"axis": axis}) if plain else ("index", {})
    missing = len(shape) - sum(
        part is not None and part is not Ellipsis for part in parts)
    rows, axis = [], 0
    for part in parts:
        if part is Ellipsis:
            rows += [(0, size, 1) for size in shape[axis:axis + missing]]
            axis += missing
        elif part is not None:
            rows.append(part.indices(shape[axis]) if isinstance(
                part, slice) else (int(part) % shape[axis],
                                   int(part) % shape[axis] + 1, 1))
            axis += 1
    rows += [(0, size, 1) for size in shape[axis:]]
    if all(row == (0, size, 1) for row, size in zip(rows, shape)):
        return "reshape", {"shape": made}
    start, stop, step = zip(*rows)
    return "slice", {"start": start, "stop": stop, "step": step}
