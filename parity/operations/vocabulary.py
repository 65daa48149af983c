"""The names of operations, in every framework alike.

Each framework's file translates its own operations into these. What a
framework does in one call that others do in several, such as a layer norm, a
softmax or ``addmm``, is recorded as several wherever the framework allows that
(by its own decompositions); what remains whole keeps a name of its own here.
"""

#: Name -> how it is written: with {} for each operand.
INFIX = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} · {}",
    "divide": "{} / {}", "matmul": "{} @ {}", "power": "{} ^ {}",
    "negative": "-{}", "equal": "{} = {}", "not_equal": "{} ≠ {}",
    "less": "{} < {}", "less_equal": "{} ≤ {}", "greater": "{} > {}",
    "greater_equal": "{} ≥ {}", "logical_and": "{} and {}",
    "logical_or": "{} or {}", "logical_not": "not {}",
}

#: Of one array, number by number.
UNARY = {
    "negative", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "abs", "sign",
    "sin", "cos", "tan", "tanh", "erf", "erfc", "erfinv", "sigmoid", "floor",
    "ceil", "round", "reciprocal", "logical_not", "isfinite", "isnan", "relu",
    "softplus", "conjugate", "real", "imag", "stop_gradient", "cast",
}

#: Of two arrays that broadcast.
BINARY = {
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum",
    "remainder", "floor_divide", "arctan2", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
}

#: Along axes: settings "axis", a tuple of places from 0; the results keep no
#: axis of length 1, or do: that is no difference.
REDUCTIONS = {"sum", "mean", "max", "min", "prod", "var", "any", "all",
              "argmax", "argmin", "cumsum", "cumprod", "logsumexp", "sort",
              "argsort", "norm"}

#: The same numbers, in another shape or order; also a part of them.
#: reshape (shape), transpose (axes: as numpy.transpose), broadcast (shape),
#: slice (start, stop, step: a tuple each, of every axis), flip (axis),
#: squeeze and expand_dims are reshape; a copy, contiguous, detach or alias is
#: not recorded at all: its result is the Value of its operand.
VIEWS = {"reshape", "transpose", "broadcast", "slice", "flip"}

#: Others, and their operands in order:
#: matmul (x, y): every product that sums over an axis: mm, bmm, dot_general,
#:     einsum of two; settings "contract": ((axes of x), (axes of y)), "batch".
#: where (condition, x, y): also masked_fill(x, mask, v): where(mask, v, x).
#: take (x, indices): rows of x: embedding, index_select, gather along "axis".
#: take_along_axis (x, indices): "axis".
#: put (x, indices, y), scatter_add (x, indices, y): "axis".
#: concatenate (x, y, …): "axis"; stack is reshape and concatenate.
#: pad (x): "low", "high" and a constant operand; roll (x): "shift", "axis".
#: convolution (x, kernel[, bias]): "strides", "padding", "dilation", "groups".
#: arange, iota: no operands or scalars; full (value): "shape".
#: triu, tril (x): "diagonal". topk (x): "k", "axis": values, indices.
#: random: whatever draws numbers. cast (x): "dtype".
#: repeat (x): "repeats", "axis"; tile is repeat of the whole.
OTHERS = {"matmul", "where", "take", "take_along_axis", "put", "scatter_add",
          "concatenate", "pad", "roll", "convolution", "arange", "full",
          "triu", "tril", "topk", "random", "repeat", "softmax", "log_softmax",
          "one_hot", "fft", "lstm", "gru"}

#: Operations whose operands may be exchanged.
COMMUTATIVE = {"add", "multiply", "maximum", "minimum", "equal", "not_equal",
               "logical_and", "logical_or", "bitwise_and", "bitwise_or",
               "bitwise_xor"}

#: Every name. A framework's operation that has none keeps its own.
NAMES = UNARY | BINARY | REDUCTIONS | VIEWS | OTHERS
