"""TensorFlow's operations in the words of parity.operations.vocabulary."""

import numpy as np

#: They give what they are given: their result is the operand's Value.
IDENTITIES = {
    "Identity", "IdentityN", "StopGradient", "Snapshot", "PreventGradient",
    "CheckNumerics", "CheckNumericsV2", "EnsureShape", "DeepCopy",
    "PlaceholderWithDefault", "_EagerConst", "Copy"}

#: Bookkeeping; what they give is a leaf where it is used.
UNSEEN = {
    "Shape", "ShapeN", "Size", "Rank", "VarHandleOp", "VarIsInitializedOp",
    "DestroyResourceOp", "Assert", "NoOp", "VariableShape", "BroadcastArgs",
    "AssignAddVariableOp", "AssignSubVariableOp"}

#: All inputs are operands, and there are no settings.
PLAIN = {
    "Add": "add", "AddV2": "add", "Sub": "subtract", "Mul": "multiply",
    "RealDiv": "divide", "Div": "divide", "Pow": "power",
    "Maximum": "maximum", "Minimum": "minimum", "FloorMod": "remainder",
    "FloorDiv": "floor_divide", "Atan2": "arctan2", "Equal": "equal",
    "NotEqual": "not_equal", "Less": "less", "LessEqual": "less_equal",
    "Greater": "greater", "GreaterEqual": "greater_equal",
    "LogicalAnd": "logical_and", "LogicalOr": "logical_or",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "LeftShift": "left_shift",
    "RightShift": "right_shift", "Neg": "negative", "Exp": "exp",
    "Expm1": "expm1", "Log": "log", "Log1p": "log1p", "Sqrt": "sqrt",
    "Rsqrt": "rsqrt", "Abs": "abs", "ComplexAbs": "abs", "Sign": "sign",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Tanh": "tanh", "Erf": "erf",
    "Erfc": "erfc", "Erfinv": "erfinv", "Sigmoid": "sigmoid",
    "Floor": "floor", "Ceil": "ceil", "Rint": "round", "Round": "round",
    "Reciprocal": "reciprocal", "Inv": "reciprocal",
    "LogicalNot": "logical_not", "IsFinite": "isfinite", "IsNan": "isnan",
    "Relu": "relu", "Softplus": "softplus", "Conj": "conjugate",
    "Real": "real", "Imag": "imag", "Select": "where", "SelectV2": "where",
    "Range": "arange", "LinSpace": "linspace", "ComplexPower": "power",
    "Where": "nonzero", "InvertPermutation": "argsort"}

#: Operations that make an array of numbers.
CREATING = {"Range", "Fill", "OneHot", "LinSpace", "ZerosLike", "OnesLike",
            "Where"}


class NativeCall:
    """One call of an operation.

    Attributes:
        op: TensorFlow's name.
        inputs, outputs: eager tensors.
        attributes: {name: value}.
        creates: whether it makes numbers of none.
    """

    def __init__(self, op, inputs, attributes, outputs):
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.attributes = attributes
        self.creates = op in CREATING or "Random" in op

    def array(self, place):
        """An input as a NumPy array."""
        return np.asarray(self.inputs[place].numpy())

    def ints(self, place):
        """An input as a tuple of integers."""
        return tuple(int(i) for i in self.array(place).reshape(-1))

    def shape(self, place=0):
        """The shape of an input."""
        return tuple(self.inputs[place].shape)

    @property
    def made(self):
        """The shape of the first result."""
        return tuple(self.outputs[0].shape)

    def axes(self, place, of=0):
        """An input as axes from 0 of another input."""
        rank = len(self.shape(of))
        return tuple(sorted(axis % rank for axis in self.ints(place)))

    def get(self, name):
        """An attribute as a plain value."""
        value = self.attributes.get(name)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, (list, tuple)):
            return tuple(value)
        return value


def translated(call):
    """A call in the vocabulary.

    Returns:
        The name, which inputs are its operands, and its settings.
    """
    if call.op in PLAIN:
        return PLAIN[call.op], tuple(range(len(call.inputs))), {}
    if call.op in OTHERS:
        return OTHERS[call.op](call)
    if "Random" in call.op:
        return "random", (), {"shape": call.made}
    settings = {name: call.get(name) for name in call.attributes
                if not name.startswith(("T", "_")) and isinstance(
                    call.get(name), (bool, int, float, str, tuple))}
    return call.op, tuple(range(len(call.inputs))), settings


def _reduction(name):
    def of(call):
        return name, (0,), {"axis": call.axes(1)}
    return of


def _along(name):
    """A reduction whose axis is its second input, such as Cumsum."""
    def of(call):
        settings = {"axis": call.axes(1)}
        for flag in ("exclusive", "reverse"):
            if call.get(flag):
                settings[flag] = True
        return name, (0,), settings
    return of


def _reshape(call):
    return "reshape", (0,), {"shape": call.made}


def _transpose(call):
    return "transpose", (0,), {"axes": call.ints(1)}


def _broadcast(call):
    return "broadcast", (0,), {"shape": call.made}


def _cast(call):
    return "cast", (0,), {"dtype": call.outputs[0].dtype.name}


def _matmul(call):
    """MatMul and BatchMatMul: sums over one axis of each."""
    ranks = [len(call.shape(place)) for place in (0, 1)]
    turned = [bool(call.get(names[0]) or call.get(names[1])) for names in (
        ("transpose_a", "adj_x"), ("transpose_b", "adj_y"))]
    batch = min(ranks) - 2
    return "matmul", (0, 1), {
        "contract": ((ranks[0] - (2 if turned[0] else 1),),
                     (ranks[1] - (1 if turned[1] else 2),)),
        "batch": tuple(tuple(range(rank - 2 - batch, rank - 2))
                       for rank in ranks)}


def _einsum(call):
    """einsum of two; of one it keeps its name."""
    equation = call.get("equation").replace(" ", "")
    letters, result = equation.split("->")
    letters = letters.split(",")
    if len(letters) != 2 or "." in equation or any(
            len(set(part)) < len(part) for part in letters):
        return "einsum", tuple(range(len(call.inputs))), {
            "equation": equation}
    both = [a for a in letters[0] if a in letters[1]]
    summed = [a for a in both if a not in result]
    kept = [a for a in both if a in result]
    settings = {
        "contract": tuple(tuple(part.index(a) for a in summed)
                          for part in letters),
        "batch": tuple(tuple(part.index(a) for a in kept)
                       for part in letters)}
    order = kept + [a for part in letters for a in part if a not in both]
    if list(result) != order:
        settings["axes"] = tuple(order.index(a) for a in result
                                 if a in order)
    return "matmul", (0, 1), settings


def _take(call):
    """GatherV2: rows along an axis."""
    axis = call.ints(2)[0] % len(call.shape()) if len(call.inputs) > 2 else 0
    settings = {"axis": axis}
    if call.get("batch_dims"):
        settings["batch"] = call.get("batch_dims")
    return "take", (0, 1), settings


def _concatenate(call):
    return "concatenate", tuple(range(len(call.inputs) - 1)), {
        "axis": call.ints(-1)[0] % len(call.made)}


def _strided(call):
    """StridedSlice: start, stop and step of every axis."""
    begin, end, step = (call.ints(place) for place in (1, 2, 3))
    masks = {name: call.get(f"{name}_mask") or 0 for name in (
        "begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    shape, axis, rows = call.shape(), 0, []
    plain = sum(1 for i in range(len(begin)) if not (
        masks["new_axis"] | masks["ellipsis"]) >> i & 1)
    for i in range(len(begin)):
        if masks["ellipsis"] >> i & 1:
            for _ in range(len(shape) - plain):
                rows.append((0, shape[axis], 1))
                axis += 1
        elif masks["new_axis"] >> i & 1:
            pass
        elif masks["shrink_axis"] >> i & 1:
            start = begin[i] % shape[axis] if shape[axis] else 0
            rows.append((start, start + 1, 1))
            axis += 1
        else:
            rows.append(slice(
                None if masks["begin"] >> i & 1 else begin[i],
                None if masks["end"] >> i & 1 else end[i],
                step[i]).indices(shape[axis]))
            axis += 1
    rows += [(0, size, 1) for size in shape[axis:]]
    return _sliced(call, rows)


def _sliced(call, rows):
    shape = call.shape()
    if all(row == (0, size, 1) for row, size in zip(rows, shape)):
        return _reshape(call)
    back = tuple(i for i, (row, size) in enumerate(zip(rows, shape))
                 if row == (size - 1, -1, -1))
    if back and all(i in back or row == (0, size, 1) for i, (row, size)
                    in enumerate(zip(rows, shape))):
        return "flip", (0,), {"axis": back}
    start, stop, step = zip(*rows) if rows else ((), (), ())
    return "slice", (0,), {"start": start, "stop": stop, "step": step}


def _slice(call):
    begin, size = call.ints(1), call.ints(2)
    return _sliced(call, [
        (b, total if s < 0 else b + s, 1)
        for b, s, total in zip(begin, size, call.shape())])


def _split(data, axis, sizes=None):
    def of(call):
        where = call.ints(axis)[0] % len(call.shape(data))
        lengths = tuple(int(made.shape[where]) for made in call.outputs)
        return "slice", (data,), {"axis": where, "sizes": lengths}
    return of


def _unstack(call):
    return "slice", (0,), {"axis": call.get("axis") % len(call.shape())}


def _pad(call):
    low, high = zip(*call.array(1).tolist()) if call.shape() else ((), ())
    mode = call.get("mode")
    return "pad", (0, 2) if len(call.inputs) > 2 else (0,), {
        "low": low, "high": high} | ({"mode": mode.lower()} if mode else {})


def _roll(call):
    shift, axis = call.ints(1), call.ints(2)
    return "roll", (0,), {"shift": shift, "axis": tuple(
        a % len(call.shape()) for a in axis)}


def _flip(call):
    return "flip", (0,), {"axis": call.axes(1)}


def _tile(call):
    return "repeat", (0,), {"repeats": call.ints(1), "axis": None}


def _convolution(call):
    """Conv2D, Conv3D and the depthwise one, with explicit padding."""
    strides, dilation = call.get("strides"), call.get("dilations")
    form = call.get("data_format") or "NHWC"
    places = [i for i, letter in enumerate(form) if letter not in "NC"]
    kernel, shape, depth = call.shape(1), call.shape(), form.index("C")
    dilation = dilation or (1,) * len(form)
    padding = call.get("padding")
    pads = []
    for k, i in enumerate(places):
        if padding == "EXPLICIT":
            pair = call.get("explicit_paddings")[2 * i:2 * i + 2]
        elif padding == "SAME":
            width = (kernel[k] - 1) * dilation[i] + 1
            count = -(-shape[i] // strides[i])
            total = max((count - 1) * strides[i] + width - shape[i], 0)
            pair = total // 2, total - total // 2
        else:
            pair = 0, 0
        pads.append(tuple(pair))
    groups = shape[depth] if call.op.startswith("Depthwise") else (
        shape[depth] // kernel[-2])
    return "convolution", (0, 1), {
        "strides": tuple(strides[i] for i in places), "padding": tuple(pads),
        "dilation": tuple(dilation[i] for i in places), "groups": groups}


def _pool(name):
    def of(call):
        form = call.get("data_format") or "NHWC"
        places = [i for i, letter in enumerate(form) if letter not in "NC"]
        return name, (0,), {
            "window": tuple(call.get("ksize")[i] for i in places),
            "strides": tuple(call.get("strides")[i] for i in places),
            "padding": call.get("padding").lower()}
    return of


def _one_hot(call):
    return "one_hot", (0, 2, 3), {"depth": call.ints(1)[0],
                                  "axis": call.get("axis")}


def _topk(call):
    return "topk", (0,), {"k": call.ints(1)[0], "axis": len(call.shape()) - 1}


def _arg(name):
    def of(call):
        return name, (0,), {"axis": call.axes(1)}
    return of


def _full(call):
    value = {"Fill": 1, "ZerosLike": 0, "OnesLike": 0}[call.op]
    return "full", (value,) if call.op == "Fill" else (), {
        "shape": call.made}


def _band(call):
    low, high = call.ints(1)[0], call.ints(2)[0]
    if low < 0 <= high:
        return "tril", (0,), {"diagonal": high}
    if high < 0 <= low:
        return "triu", (0,), {"diagonal": -low}
    return "MatrixBandPart", (0,), {"low": low, "high": high}


def _scatter(name, order):
    def of(call):
        return name, order, {"axis": 0, "shape": call.made}
    return of


#: Operation -> function of a NativeCall; see ``translated``.
OTHERS = {
    "Sum": _reduction("sum"), "Mean": _reduction("mean"),
    "Max": _reduction("max"), "Min": _reduction("min"),
    "Prod": _reduction("prod"), "Any": _reduction("any"),
    "All": _reduction("all"), "EuclideanNorm": _reduction("norm"),
    "ArgMax": _arg("argmax"), "ArgMin": _arg("argmin"),
    "Cumsum": _along("cumsum"), "Cumprod": _along("cumprod"),
    "Reshape": _reshape, "ExpandDims": _reshape, "Squeeze": _reshape,
    "Transpose": _transpose, "ConjugateTranspose": _transpose,
    "BroadcastTo": _broadcast, "Cast": _cast, "Bitcast": _cast,
    "MatMul": _matmul, "BatchMatMul": _matmul, "BatchMatMulV2": _matmul,
    "BatchMatMulV3": _matmul, "Einsum": _einsum,
    "GatherV2": _take, "Gather": _take, "ResourceGather": _take,
    "ConcatV2": _concatenate, "StridedSlice": _strided,
    "Slice": _slice, "Unpack": _unstack, "Split": _split(1, 0),
    "SplitV": _split(0, 2),
    "Pad": _pad, "PadV2": _pad, "MirrorPad": _pad, "Roll": _roll,
    "ReverseV2": _flip, "Tile": _tile, "Conv2D": _convolution,
    "Conv3D": _convolution, "DepthwiseConv2dNative": _convolution,
    "MaxPool": _pool("max_pool"), "AvgPool": _pool("avg_pool"),
    "MaxPool3D": _pool("max_pool"), "AvgPool3D": _pool("avg_pool"),
    "OneHot": _one_hot, "TopKV2": _topk, "Fill": _full,
    "ZerosLike": _full, "OnesLike": _full, "MatrixBandPart": _band,
    "ScatterNd": _scatter("scatter_add", (0, 1)),
    "TensorScatterUpdate": _scatter("put", (0, 1, 2)),
    "TensorScatterAdd": _scatter("scatter_add", (0, 1, 2))}

