"""ONNX's operators in NumPy, as its standard defines them.

Each is a function of a Node; what it does with recorded arrays is recorded
step by step, as torch's fused operations are. An operator that is not here is
computed by ``onnx.reference``, and recorded whole.
"""

import math
from collections.abc import Callable

import numpy as np

#: ONNX's name -> NumPy's function of one or two arrays.
PLAIN: dict[str, Callable] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Pow": np.power,
    "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Tanh": np.tanh,
    "Neg": np.negative, "Abs": np.abs, "Reciprocal": np.reciprocal,
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign,
    "Not": np.logical_not, "And": np.logical_and, "Or": np.logical_or,
    "Xor": np.logical_xor, "Equal": np.equal, "Less": np.less,
    "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal, "MatMul": np.matmul,
    "Where": np.where, "IsNaN": np.isnan}

#: Those of any number of arrays.
FOLDED = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}

#: ONNX's reductions -> NumPy's.
REDUCED = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max",
           "ReduceMin": "min", "ReduceProd": "prod"}

#: The vocabulary's name of what is recorded whole.
WHOLE = {"Erf": "erf", "Conv": "convolution", "TopK": "topk", "Pad": "pad",
         "CumSum": "cumsum", "ScatterND": "put", "ScatterElements": "put",
         "GatherElements": "take_along_axis", "OneHot": "one_hot",
         "LSTM": "lstm", "GRU": "gru", "Range": "arange", "Trilu": "tril",
         "RandomNormal": "random", "RandomUniform": "random"}


def plain(node):
    """One of PLAIN."""
    return PLAIN[node.kind](*node.inputs)


def folded(node):
    """One of FOLDED."""
    made, *more = node.inputs
    for each in more:
        made = FOLDED[node.kind](made, each)
    return made


def div(node):
    """A quotient; of integers it is cut off towards zero."""
    x, y = node.inputs
    if np.asarray(x).dtype.kind in "iu":
        return node.whole("divide")
    return x / y


def identity(node):
    """What it is given: Identity, Dropout that drops nothing."""
    return node.inputs[0]


def sigmoid(node):
    """1 / (1 + exp -x)."""
    return node.whole("sigmoid")


def relu(node):
    """max(x, 0)."""
    return node.recorded("relu", lambda x: np.maximum(x, 0))


def leaky_relu(node):
    """x, or slope · x below zero."""
    x = node.inputs[0]
    return np.where(x > 0, x, x * node.number("alpha", 0.01))


def gelu(node):
    """x Φ(x), by erf or by tanh."""
    x = node.inputs[0]
    if node.text("approximate", "none") == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1 + np.tanh(inner))
    return 0.5 * x * (1 + node.recorded("erf", erf, x * math.sqrt(0.5)))


def erf(x):
    """The error function, number by number, to float64's last digits."""
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)


def swish(node):
    """x σ(α x)."""
    x, alpha = node.inputs[0], node.number("alpha", 1.0)
    return x * node.recorded("sigmoid", logistic,
                             x if alpha == 1 else x * alpha)


def logistic(x):
    """1 / (1 + exp -x), without overflow."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-x))).astype(x.dtype)


def clip(node):
    """Between two bounds, each of which may be missing."""
    x, low, high = (*node.inputs, None, None)[:3]
    low = node.number("min", None) if low is None else low
    high = node.number("max", None) if high is None else high
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def softmax(node):
    """exp(x - max) / sum, along an axis; before opset 13 along all behind."""
    x = node.inputs[0]
    if node.opset < 13:
        axis = node.number("axis", 1)
        shape = x.shape
        flat = x.reshape(int(np.prod(shape[:axis])), -1)
        return _softmax(flat, -1).reshape(shape)
    return _softmax(x, node.number("axis", -1))


def _softmax(x, axis):
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


def log_softmax(node):
    """x - max - log sum exp(x - max)."""
    x, axis = node.inputs[0], node.number("axis", -1)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def layer_norm(node):
    """Over the axes from one on: (x - mean) / √(var + ε) · scale + bias."""
    x, scale, bias = (*node.inputs, None)[:3]
    axes = _from(node.number("axis", -1), x.ndim)
    return _scaled(_normal(x, axes, node.number("epsilon", 1e-5)), scale,
                   bias)


def rms_norm(node):
    """x / √(mean x² + ε) · scale."""
    x, scale = node.inputs
    axes = _from(node.number("axis", -1), x.ndim)
    mean = (x * x).mean(axis=axes, keepdims=True)
    root = node.recorded("rsqrt", _rsqrt,
                         mean + node.number("epsilon", 1e-5))
    return _scaled(x * root, scale, None)


def _from(axis, rank):
    return tuple(range(axis % rank, rank))


def _rsqrt(x):
    return 1 / np.sqrt(x)


def _normal(x, axes, epsilon):
    distance = x - x.mean(axis=axes, keepdims=True)
    variance = (distance * distance).mean(axis=axes, keepdims=True)
    return distance / np.sqrt(variance + epsilon)


def _scaled(x, scale, bias):
    x = x if scale is None else x * scale
    return x if bias is None else x + bias


def batch_norm(node):
    """With the averages that are kept, of x [N C …]."""
    x, scale, bias, mean, variance = (
        each if i == 0 else _by_channel(each, node.inputs[0])
        for i, each in enumerate(node.inputs))
    y = (x - mean) / np.sqrt(variance + node.number("epsilon", 1e-5))
    return _scaled(y, scale, bias)


def instance_norm(node):
    """Each channel of each row by itself, of x [N C …]."""
    x, scale, bias = node.inputs
    y = _normal(x, tuple(range(2, x.ndim)), node.number("epsilon", 1e-5))
    return _scaled(y, _by_channel(scale, x), _by_channel(bias, x))


def group_norm(node):
    """Each group of channels is normalised as one."""
    x, scale, bias = node.inputs
    groups = node.number("num_groups", 1)
    grouped = x.reshape(x.shape[0], groups, -1)
    y = _normal(grouped, (2,), node.number("epsilon", 1e-5)).reshape(x.shape)
    if node.opset < 21:
        scale, bias = (np.repeat(each, x.shape[1] // groups)
                       for each in (scale, bias))
    return _scaled(y, _by_channel(scale, x), _by_channel(bias, x))


def _by_channel(array, x):
    return array.reshape(1, -1, *(1,) * (x.ndim - 2))


def convolution(node):
    """Without its bias, which is then added."""
    if len(node.inputs) < 3:
        return node.whole("convolution")
    made = node.whole("convolution", inputs=node.inputs[:2])
    return made + _by_channel(node.inputs[2], made)


def gemm(node):
    """α A B + β C, of which A and B may be transposed."""
    x, y, *more = node.inputs
    x = x.transpose() if node.number("transA", 0) else x
    y = y.transpose() if node.number("transB", 0) else y
    made, alpha = x @ y, node.number("alpha", 1.0)
    made = made if alpha == 1 else made * alpha
    if not more:
        return made
    beta = node.number("beta", 1.0)
    return made + (more[0] if beta == 1 else more[0] * beta)


def transpose(node):
    """In another order of axes; the reverse where none is given."""
    x = node.inputs[0]
    return x.transpose(node.numbers("perm") or tuple(reversed(range(x.ndim))))


def reshape(node):
    """To a shape, of which 0 is the size that is there."""
    x, shape = node.inputs
    asked = [int(size) for size in np.asarray(shape)]
    if not node.number("allowzero", 0):
        asked = [x.shape[i] if size == 0 else size
                 for i, size in enumerate(asked)]
    return x.reshape(tuple(asked))


def flatten(node):
    """To a matrix."""
    x, axis = node.inputs[0], node.number("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def _axes(node, place=1):
    if len(node.inputs) > place and node.inputs[place] is not None:
        return tuple(int(i) for i in np.asarray(node.inputs[place]))
    return node.numbers("axes")


def squeeze(node):
    """Without axes of length 1."""
    x, axes = node.inputs[0], _axes(node)
    axes = [i % x.ndim for i in axes] if axes else [
        i for i, size in enumerate(x.shape) if size == 1]
    return x.reshape(tuple(size for i, size in enumerate(x.shape)
                           if i not in axes))


def unsqueeze(node):
    """With axes of length 1."""
    x, axes = node.inputs[0], _axes(node)
    rank, sizes = x.ndim + len(axes), iter(x.shape)
    axes = [i % rank for i in axes]
    return x.reshape(tuple(1 if i in axes else next(sizes)
                           for i in range(rank)))


def concatenate(node):
    """One behind the other along an axis."""
    return np.concatenate(node.inputs, axis=node.number("axis", 0))


def split(node):
    """Parts along an axis, a list."""
    x, axis = node.inputs[0], node.number("axis", 0)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        sizes = [int(size) for size in np.asarray(node.inputs[1])]
    elif node.numbers("split"):
        sizes = list(node.numbers("split"))
    else:
        count = node.number("num_outputs", len(node.outputs))
        size = -(-x.shape[axis] // count)
        sizes = [size] * (count - 1) + [x.shape[axis] - size * (count - 1)]
    ends = np.cumsum(sizes)
    return [x[(slice(None),) * (axis % x.ndim) + (slice(end - size, end),)]
            for size, end in zip(sizes, ends.tolist())]


def cut(node):
    """Slice: a part of an array."""
    x, *given = node.inputs
    starts, ends, axes, steps = (
        None if each is None else [int(i) for i in np.asarray(each)]
        for each in (*given, None, None, None, None)[:4])
    if starts is None:
        starts, ends, axes = (node.numbers(name) for name in (
            "starts", "ends", "axes"))
    index = [slice(None)] * x.ndim
    for axis, start, end, step in zip(
            axes or range(x.ndim), starts or (), ends or (),
            steps or [1] * x.ndim):
        size = x.shape[axis]
        low = -1 if step < 0 else 0
        end = min(max(end + size if end < 0 else end, low), size)
        index[axis] = slice(start if start > -size else 0,
                            None if end == -1 else end, step)
    return x[tuple(index)]


def gather(node):
    """Rows of an array."""
    x, indices = node.inputs
    return np.take(x, indices, axis=node.number("axis", 0))


def expand(node):
    """Broadcast with a shape."""
    x, shape = node.inputs
    return np.broadcast_to(x, np.broadcast_shapes(
        x.shape, tuple(int(size) for size in np.asarray(shape))))


def reduction(node):
    """Along axes; all where none is given."""
    x, axes = node.inputs[0], _axes(node)
    if not axes and node.number("noop_with_empty_axes", 0):
        return x
    return getattr(x, REDUCED[node.kind])(
        axis=axes or None, keepdims=bool(node.number("keepdims", 1)))


def cast(node):
    """To another dtype."""
    from onnx.helper import tensor_dtype_to_np_dtype
    to = tensor_dtype_to_np_dtype(node.number("to", 1))
    return node.inputs[0].astype(to)


def cast_like(node):
    """To the dtype of another array."""
    x, other = node.inputs
    return x.astype(getattr(other, "declared", None) or other.dtype)


#: ONNX's name -> what computes it of a Node.
OPERATORS = {
    **dict.fromkeys(PLAIN, plain), **dict.fromkeys(FOLDED, folded),
    **dict.fromkeys(REDUCED, reduction), "Div": div, "Identity": identity,
    "Dropout": identity, "Sigmoid": sigmoid, "Relu": relu,
    "LeakyRelu": leaky_relu, "Gelu": gelu, "Swish": swish, "Clip": clip,
    "Softmax": softmax, "LogSoftmax": log_softmax,
    "LayerNormalization": layer_norm, "RMSNormalization": rms_norm,
    "SimplifiedLayerNormalization": rms_norm,
    "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm, "Conv": convolution, "Gemm": gemm,
    "Transpose": transpose, "Reshape": reshape, "Flatten": flatten,
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Concat": concatenate,
    "Split": split, "Slice": cut, "Gather": gather, "Expand": expand,
    "Cast": cast, "CastLike": cast_like,
    "Erf": lambda node: node.recorded("erf", erf)}
