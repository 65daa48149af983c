"""What an operation, or a constant in it, is for, in the field's words."""

import math

import numpy as np

from parity.operations.align import is_view
from parity.operations.program import INPUT, PARAMETER

#: How many operations on the way to its use are looked through.
AHEAD = 8

#: Scores below this are hidden, however they were.
HIDDEN = -9e3

#: Functions of one array that are activations by themselves.
ACTIVATIONS = {"relu", "sigmoid", "tanh", "erf", "softplus", "where",
               "maximum", "minimum", "clip", "exp", "expm1", "elu"}


def follows(skeleton, operation, names, through=None, most=AHEAD):
    """Whether what an operation gives is soon read by one of some names.

    Args:
        skeleton: of its program.
        names: those of the operations that are looked for.
        through: of those that may stand between; any where it is None.
    """
    now, seen = [operation], set()
    for _ in range(most):
        after = []
        for each in now:
            for result in each.results:
                for reader in skeleton.readers.get(skeleton.root(result), ()):
                    if reader.number in seen:
                        continue
                    seen.add(reader.number)
                    if reader.name in names:
                        return True
                    if through is None or reader.name in through:
                        after.append(reader)
        now = after
    return False


def comes_from(skeleton, operation, names, through=None, most=AHEAD):
    """Whether an operation reads what one of some names made shortly before;
    the arguments are those of ``follows``."""
    now = [operation]
    for _ in range(most):
        before = []
        for each in now:
            for root in skeleton.arrays(each).values():
                maker = skeleton.program.maker(root)
                if maker is None:
                    continue
                if maker.name in names:
                    return True
                if through is None or maker.name in through:
                    before.append(maker)
        now = before
    return False


def biases_scores(skeleton, number):
    """Whether a table, or what is made of it alone, is added to scores."""
    tables, seen = tables_of(skeleton.program), set()
    queue = [skeleton.root(number)]
    while queue:
        for reader in skeleton.readers.get(queue.pop(), ()):
            if reader.number in seen:
                continue
            seen.add(reader.number)
            if {*reader.results} <= tables or reader.name in (
                    "multiply", "where") or is_view(reader):
                queue += [skeleton.root(each) for each in reader.results]
            elif reader.name in ("add", "subtract") and is_scores(
                    skeleton, reader):
                return True
    return False


#: What stands between scores and the exponential of their softmax.
SCORES = {"subtract", "max", "where", "add", "multiply", "divide", "tanh",
          "maximum", "cast", "softmax", "isfinite"}


def is_scores(skeleton, operation):
    """Whether an operation's result is attention's scores or goes there."""
    return follows(skeleton, operation, {"exp", "softmax", "log_softmax"},
                   SCORES, 6) and (
        operation.name == "matmul" or comes_from(
            skeleton, operation, {"matmul"}, SCORES | {"transpose"}, 4)
        or follows(skeleton, operation, {"matmul"}, SCORES, 2))


def is_variance(skeleton, number):
    """Whether one by the root of a value and a number is taken: a norm's."""
    return any(
        each.name == "add" and skeleton.constants(each) and follows(
            skeleton, each, {"sqrt", "rsqrt", "power"}, (), 1)
        for each in skeleton.readers.get(skeleton.root(number), ()))


def is_shift(skeleton, operation):
    """Whether an operation subtracts the largest of what it reads, as softmax
    does, which changes none of its weights."""
    roots = [*skeleton.arrays(operation).values()]
    if operation.name != "subtract" or len(roots) != 2:
        return False
    return any(each.name == "max" and roots[0] in skeleton.arrays(
        each).values() for each in between(skeleton, roots[1], {roots[0]}, 4))


def is_masked_later(skeleton, operation):
    """Whether scores are masked behind an operation, before their softmax: by
    a choice, or by a sum with what hides."""
    if operation is None or follows(
            skeleton, operation, {"where"}, SCORES - {"where"}, 6):
        return operation is not None
    after = skeleton.after({*operation.results})
    return any(each.name == "add" and is_scores(skeleton, each) and any(
        hides(skeleton.program.values[root]) for root in skeleton.arrays(
            each).values())
        for number in operation.results
        for each in skeleton.readers.get(skeleton.root(number), ())
        if {*each.results} & after)


def hides(value):
    """Whether an array has numbers that hide what they are added to."""
    return value.array is not None and value.array.dtype.kind == "f" and bool(
        (value.array <= HIDDEN).any())


def of_constant(skeleton, operation, slot):
    """What a constant is for, in a word or two; "constant" if unknown."""
    name = operation.name
    if name in ("add", "maximum", "clip") and follows(
            skeleton, operation, {"sqrt", "rsqrt", "power", "divide",
                                  "reciprocal"}, (), 1):
        return "epsilon"
    if name in ("add", "maximum") and follows(
            skeleton, operation, {"divide"}, {"sqrt"}, 2):
        return "epsilon"
    if follows(skeleton, operation, {"sin", "cos"}, {
            "multiply", "divide", "matmul", "power", "exp", "reciprocal",
            "concatenate", "slice", "negative", "log", "add", "subtract"}):
        if name in ("power", "log") or name == "multiply" and follows(
                skeleton, operation, {"exp"}, {"negative", "divide"}, 3):
            return "rotary base"
        return "factor of the frequencies"
    if name in ("multiply", "divide") and is_scores(skeleton, operation):
        return "attention scale"
    if name == "where":
        return "value of the masked places"
    if name in ("add", "subtract") and comes_from(
            skeleton, operation, {"arange", "cumsum"}, (), 2):
        return "first position"
    if name in ("multiply", "divide") and comes_from(
            skeleton, operation, {"take"}, (), 1):
        return "scale of the embedding"
    if name in ("multiply", "divide") and (
            follows(skeleton, operation, {"tanh"}, (), 1)
            or comes_from(skeleton, operation, {"tanh"}, (), 1)):
        return "constant of the tanh"
    if name in ("maximum", "minimum", "clip"):
        return "limit"
    if name in ("multiply", "divide"):
        return "factor"
    if name == "power":
        return "exponent"
    return "constant"


def between(skeleton, number, sources, most=12):
    """The operations by which a value is made of some, the last first.

    Args:
        number: of the value.
        sources: numbers of roots at which to stop.
    """
    found, queue = [], [number]
    while queue and len(found) < most:
        maker = skeleton.maker(queue.pop(0))
        if maker is None or maker in found:
            continue
        found.append(maker)
        queue += [root for root in skeleton.arrays(maker).values()
                  if root not in sources]
    return found


def of_step(skeleton, operations, others=0):
    """What some operations do together, in the field's words, or "".

    Args:
        operations: as of ``between``.
        others: how many values they read beside the one they are done to.
    """
    names = [each.name for each in operations]
    if not names:
        return ""
    if {"rsqrt", "sqrt", "power"} & {*names} and {"mean", "sum", "var"} & {
            *names}:
        return "norm"
    if "exp" in names and "sum" in names or "softmax" in names:
        return "softmax"
    if "erf" in names or "erfc" in names:
        return "gelu"
    if "tanh" in names and any(
            abs(each - 0.044715) < 1e-5 for each in numbers(
                skeleton, operations)):
        return "gelu by tanh"
    if "tanh" in names and {"multiply", "divide"} & {*names}:
        return "soft cap"
    if names[0] == "where" and (word := piecewise(skeleton, operations)):
        return word
    if names[0] == "where" or "logical_not" in names:
        return "mask"
    if "sin" in names or "cos" in names:
        return "position encoding"
    if names[0] == "multiply" and "sigmoid" in names:
        return "gelu by sigmoid" if any(
            abs(each - 1.702) < 1e-5 for each in numbers(
                skeleton, operations)) else "silu"
    if {*names} <= ACTIVATIONS and len(names) == 1:
        return "activation"
    if names[0] in ("multiply", "divide") and len(names) == 1 and not others:
        return "attention scale" if is_scores(
            skeleton, operations[0]) else "factor"
    if names[0] in ("add", "subtract") and len(names) == 1:
        return of_sum(skeleton, operations[0])
    if names[0] in ("multiply", "divide") and len(names) == 1:
        return "factor"
    return ""


def piecewise(skeleton, operations):
    """What is chosen number by number by the sign of the same number:
    "leaky relu", "elu" or "activation"; "" of any other choice."""
    values = skeleton.program.values
    condition, *parts = (skeleton.root(each)
                         for each in operations[0].operands)
    test = skeleton.maker(condition)
    if test is None or test.name not in ("greater", "greater_equal", "less",
                                         "less_equal"):
        return ""
    compared = {*skeleton.arrays(test).values()}
    if len(compared) != 1 or not compared & {*parts}:
        return ""
    names = {each.name for each in operations} - {test.name, "where"}
    if names <= {"multiply", "divide"} and values[parts[1]].signature.size > 1:
        return "leaky relu"
    return "elu" if names & {"exp", "expm1"} else "activation"


def of_sum(skeleton, operation):
    """What is added: a bias, a residual connection, or any summand."""
    roots = [*skeleton.arrays(operation).values()]
    values = [skeleton.program.values[root] for root in roots]
    if any(value.kind == PARAMETER and len(value.shape) < 2
           for value in values):
        return "bias"
    if len(roots) == 2 and values[0].signature.size == (
            values[1].signature.size) and any(
            one != two and two in skeleton.after({one})
            for one, two in (roots, reversed(roots))):
        return "residual connection"
    return "summand"


def terms(skeleton, operation):
    """The roots of what a sum, or a product, is of, through sums in it."""
    found, queue = [], [*skeleton.arrays(operation).values()]
    while queue:
        root = queue.pop(0)
        maker = skeleton.program.maker(root)
        if maker is not None and maker.name == operation.name and not (
                skeleton.constants(maker)):
            queue += skeleton.arrays(maker).values()
        else:
            found.append(root)
    return found


#: What operations are called as steps of a model.
STEPS = {"matmul": "product", "convolution": "convolution",
         "relu": "activation", "erf": "activation", "tanh": "activation",
         "sigmoid": "activation", "softmax": "softmax",
         "where": "mask", "take": "look-up", "max_pool": "pooling"}


def in_turn(skeleton, operations):
    """What some operations do one after the other, a word each.

    Args:
        operations: in the order in which they are done, without views.
    """
    names = {each.name for each in operations}
    normed, words = {"mean", "var"} & names and {
        "rsqrt", "sqrt", "power"} & names, []
    for each in operations:
        word = STEPS.get(each.name, "")
        if normed and each.name in ("rsqrt", "sqrt", "power"):
            word = "norm"
        elif each.name == "add" and len(skeleton.arrays(each)) == 2:
            word = of_sum(skeleton, each)
        elif each.name in ("multiply", "divide") and not normed:
            word = "factor"
        if word and word not in words[-1:]:
            words.append(word)
    return words


def whole_of(skeleton, operation):
    """Of what a reduction is a part: "softmax", "norm" or ""."""
    if operation.name == "max" and follows(
            skeleton, operation, {"exp"}, {"subtract"}, 2) or (
            operation.name == "sum" and comes_from(
                skeleton, operation, {"exp"}, (), 1)):
        return "softmax"
    if operation.name in ("mean", "var") and follows(
            skeleton, operation, {"rsqrt", "sqrt", "power"}, None, 5):
        return "norm"
    return ""


def numbers(skeleton, operations):
    """The single numbers that some operations read, as they are or cast."""
    values = skeleton.program.values
    return [float(values[number].array.reshape(-1)[0].real)
            for operation in operations for number in operation.operands
            if values[number].signature.size == 1
            and number in skeleton.tables
            and values[number].array is not None]


def summed(skeleton, operations):
    """Over how many numbers the norm is taken that some operations do: those
    of the last reduction before its root; None if there is none."""
    for root in operations:
        if root.name not in ("rsqrt", "sqrt") and not (
                root.name == "power" and any(abs(each) < 1 for each in numbers(
                    skeleton, [root]))):
            continue
        for each in between(skeleton, root.results[0], (), 5):
            if each.name in ("mean", "sum", "var"):
                values = skeleton.program.values
                return values[each.operands[0]].signature.size // max(
                    values[each.results[0]].signature.size, 1)
    return None


def tables_of(program):
    """The numbers of the values that follow from no input of the model."""
    tables = set()
    for value in program.values:
        maker = program.maker(value.number)
        if maker is None and value.kind != INPUT or maker is not None and (
                maker.name != "random" and all(
                    operand in tables for operand in maker.operands)):
            tables.add(value.number)
    return tables


def along(truth, actual, size):
    """The factor of each place of an axis of so many, by which one array is
    the other; None if there is no such axis."""
    for axis, length in enumerate(truth.shape):
        if length != size:
            continue
        rows = [np.moveaxis(each, axis, 0).reshape(size, -1)
                for each in (truth, actual)]
        largest = np.abs(rows[0]).argmax(1)
        ratio = rows[1][range(size), largest] / rows[0][range(size), largest]
        if np.allclose(rows[1], rows[0] * ratio[:, None], rtol=1e-6):
            return ratio
    return None


def as_root(number):
    """A number as 1/√n or √n where it is one, else ""."""
    for square, text in ((1 / number ** 2, "1/√{}") if number else (0, ""),
                         (number ** 2, "√{}")):
        if square > 1.5 and math.isclose(square, round(square),
                                         rel_tol=1e-12):
            return text.format(round(square))
    return ""
