"""What a difference is called: the cause, and what it is in a and in b."""

import math

import numpy as np

from parity.causes import naming_arrays
from parity.causes import naming_slices as slices
from parity.causes.difference import FaultOfPrograms
from parity.causes.naming_activations import of_activations
from parity.causes.related import hides, masked, related
from parity.numerics.words import apart, listed
from parity.operations import roles
from parity.operations.align import is_view
from parity.operations.expressions import plain
from parity.operations.program import PARAMETER
from parity.operations.vocabulary import NAMES
from parity.operations.trial import (
    ARRAY, COMPUTED, EXCHANGED, EXTRA, FOLDED, MISSING, ORDER, OTHER, PACKED,
    SCALAR, number_of)

#: Words of roles.of_step that are activations.
ACTIVATIONS = {"gelu", "gelu by tanh", "gelu by sigmoid", "silu",
               "activation", "leaky relu", "elu"}

#: Settings of which one that differs is a cause.
SETTINGS = ("axis", "strides", "padding", "dilation", "groups", "k",
            "diagonal", "shift", "correction", "start", "stop")

#: What is told where no name fits the two formulas.
COMPUTATION = "computation"

#: What a setting is called, where another thing has its name.
CALLED = {"padding": "padding of the convolution"}

#: Operations that are each other's but for a sign.
SIGNS = {("add", "subtract"): "+−", ("subtract", "add"): "−+"}


def named(difference: FaultOfPrograms):
    """(cause, what it is in a, in b), in words."""
    return _random(difference) or of_activations(difference) or {
        SCALAR: _constant, ARRAY: naming_arrays.array,
        ORDER: naming_arrays.order, OTHER: _operand,
        MISSING: _missing, EXTRA: _extra, COMPUTED: _computed,
        PACKED: naming_arrays.packed, FOLDED: naming_arrays.folded,
        EXCHANGED: naming_arrays.exchanged}[
            difference.trial.kind](difference)


def _random(this):
    """What one side alone draws at random, or ()."""
    drawn, words = [], []
    for side in "ab":
        number = (this.trial.b.results[0] if side == "b"
                  and this.trial.kind == EXTRA
                  else getattr(this.trial, f"value_{side}"))
        steps = [] if number is None else roles.between(
            this.skeleton(side), number, this.shared(side))
        drawn.append(any(each.name == "random" for each in steps))
        words.append(this.written(side, number) if drawn[-1] else "none")
    return ("random numbers", *words) if drawn[0] != drawn[1] else ()


def _constant(this):
    """Another number."""
    trial = this.trial
    cause = roles.of_constant(this.two, trial.b, trial.slot)
    in_a, in_b = numbers_of(this)
    if trial.a is not None and trial.a.name != trial.b.name:
        return cause, this.words("a"), this.words("b")
    words = apart(in_a, in_b)
    if cause == "attention scale":
        words = [f"{text} = {root}" if (root := roles.as_root(value)) else text
                 for text, value in zip(words, (in_a, in_b))]
    return cause, *words


def numbers_of(this):
    """The constant of a, and that of b."""
    asked = np.asarray(next(iter(this.trial.ways[0].values())))
    return (float(asked.reshape(-1)[0]),
            number_of(this.b.values[this.trial.value_b]))


def _operand(this):
    """Another value is read."""
    trial = this.trial
    in_a, in_b = (this.written(
        side, number, top=not this.names.of(side, number),
        reader=getattr(trial, side)) for side, number in (
            ("a", trial.value_a), ("b", trial.value_b)))
    if in_a == in_b:
        in_a, in_b = this.words("a"), this.words("b")
    if this.of_one_source():
        return "order of the parts", *this.laid_out()
    fixed = roles.tables_of(this.b)
    if trial.value_b in fixed and trial.value_a in this.one.tables:
        return naming_arrays.array(this)
    is_sum = trial.b.name == "add" and not any(
        root in fixed for root in this.two.arrays(trial.b).values())
    return ("residual connection" if is_sum else "another value is read",
            in_a, in_b)


def _step(this, side, steps):
    """What some operations are called."""
    skeleton = this.skeleton(side)
    made = {result for each in steps for result in each.results}
    read = {root for each in steps
            for root in skeleton.arrays(each).values()} - made
    return roles.of_step(skeleton, steps, len(read) - 1) or (
        "" if _joined(this, side, steps) is None else
        {"add": "summand", "multiply": "factor"}[steps[0].name]) or "a step"


def _joined(this, side, steps):
    """The root that the last of some operations adds to, or multiplies with,
    what both have; or None."""
    if not steps or steps[0].name not in ("add", "multiply"):
        return None
    other = "b" if side == "a" else "a"
    have = {this.skeleton(side).root(each) for each in this.twins(
        other, getattr(this.trial, f"value_{other}"))}
    roots = [*this.skeleton(side).arrays(steps[0]).values()]
    left = [root for root in roots if root not in have]
    return _unless_zero(this, side, left[0]) if (
        len(left) == len(roots) - 1 and left) else None


def _unless_zero(this, side, number):
    """The root of what a value is the sum of, without what is 0 everywhere,
    such as the product with a first state."""
    skeleton, values = this.skeleton(side), getattr(this, side).values
    maker = skeleton.maker(number)
    roots = [] if maker is None or maker.name != "add" else [
        root for root in skeleton.arrays(maker).values()
        if values[root].array is None or values[root].array.any()]
    return roots[0] if len(roots) == 1 else number


def _more(this, side, steps, words):
    """(cause, words) of what one side does more."""
    joined = _joined(this, side, steps)
    if joined is not None and steps[0].name == "add":
        term = this.written(side, joined, top=not this.names.of(side, joined))
        words = f"{term} is added"
        value = getattr(this, side).values[joined]
        if value.kind == PARAMETER and len(value.shape) < 2:
            return "bias", words
        if (step := _step(this, side, steps)) in ("norm", "softmax"):
            return "summand", words  # it is what is added, not the sum
        return step, words
    elif joined is not None and _is_mask(this, side, joined):
        return "mask", words
    return _step(this, side, steps), words


def _is_mask(this, side, root):
    """Whether a factor is of booleans, or of zeros and ones."""
    value = getattr(this, side).values[root]
    return value.signature.kind == "b" or value.array is not None and (
        value.signature.size > 1 and bool(np.isin(
            value.array, (0, 1)).all()))


def _missing(this):
    """a does more."""
    return *_more(this, "a", this.steps("a"), this.written(
        "a", this.trial.value_a)), "none"


def _extra(this):
    """b does more."""
    cause, words = _more(this, "b", this.steps("b") or [this.trial.b],
                         this.written("b", this.trial.b.results[0]))
    return cause, "none", words


def _computed(this):
    """It is computed otherwise."""
    trial = this.trial
    if trial.a is not None and trial.a.name == trial.b.name and (
            _read_alike(this)) and (setting := _setting(this)):
        return setting
    if this.of_one_source():
        return "split", *this.laid_out()
    if trial.a is not None and _read_alike(this) and (
            signs := SIGNS.get((trial.a.name, trial.b.name))):
        return "sign", *(f"{this.words(side)}, with {sign}"
                         for side, sign in zip("ab", signs))
    if not this.is_cause:  # where it begins is not seen: steps say nothing
        return _of_numbers(this) or (
            COMPUTATION, this.words("a"), this.words("b"))
    return (_of_terms(this) or _of_parameters(this) or _of_steps(this)
            or _of_branches(this) or _of_numbers(this)
            or (COMPUTATION, this.words("a"), this.words("b")))


def _setting(this):
    """The setting that differs of operations that read the same, or ()."""
    if parts := slices.of_slices(this, ([this.trial.a], [this.trial.b])):
        return parts
    one, two = map(slices.counted, (this.a, this.b), (
        this.trial.a, this.trial.b))
    found = _differing(one, two, SETTINGS if this.trial.a.name in NAMES else {
        *one} & {*two})  # a framework's own operation has its own settings
    return found if found and (found[0] != "axis" or _shape(
        this, "a") == _shape(this, "b")) else ()


def _differing(one, two, names=SETTINGS):
    """(name, value in a, in b) of the first setting that differs, or ()."""
    for name in {**one, **two}:
        values = one.get(name), two.get(name)
        if name == "axis" and None in values:
            continue  # one framework does not say it
        if all(isinstance(each, tuple) for each in values):
            if len(values[0]) != len(values[1]) and name in (
                    "start", "stop", "step"):
                continue
            if len(values[0]) != len(values[1]):
                values = [_without_idle(name, each) for each in values]
            elif name == "padding" and _pairs(values[0]) == _pairs(values[1]):
                continue
        if name in names and values[0] != values[1]:
            return CALLED.get(name, name), *map(plain, values)
    return ()


def _pairs(padding):
    """A padding as a pair for each axis; a number stands for both ends."""
    return [each if isinstance(each, tuple) else (each, each)
            for each in padding]


def _without_idle(name, value):
    """A setting of a convolution, a number or a pair for each axis, without
    the axes along which it does nothing."""
    if name == "padding":
        return tuple(each for each in _pairs(value) if any(each))
    return tuple(each for each in value if each != 1)


def _setting_of(this, steps):
    """The first setting that differs of steps that are the same otherwise, or
    ()."""
    ordered = [sorted(each, key=lambda each: each.number) for each in steps]
    if [each.name for each in ordered[0]] != [
            each.name for each in ordered[1]]:
        return ()
    for one, two in zip(*ordered):
        shapes = [program.values[each.operands[0]].shape if each.operands
                  else () for program, each in ((this.a, one), (this.b, two))]
        if one.name == "slice" and shapes[0] == shapes[1] and (
                one.settings != two.settings):
            return "order of the parts", *map(slices.places, (one, two))
        if shapes[0] == shapes[1] and (settings := _differing(
                one.settings, two.settings)):
            whole = roles.whole_of(this.two, two)
            return (f"axis of the {whole}" if settings[0] == "axis" and whole
                    else settings[0]), *settings[1:]
    return ()


def _spacing(steps):
    """Strides, dilation or padding of the one convolution of each, where they
    differ, however it is packed, and if nothing else pads; or ()."""
    padded = any(each.name == "pad" for some in steps for each in some)
    found = [[each for each in some if each.name == "convolution"]
             for some in steps]
    if [*map(len, found)] != [1, 1] or any(
            each.settings.get("transposed") for (each,) in found):
        return ()
    one, two = ({name: each.settings.get(name) for name in (
        "strides", "dilation", *["padding"] * (not padded))}
                for (each,) in found)
    return _differing(one, two)


def _of_terms(this):
    """The summand or factor that one of two sums or products has alone, or
    ()."""
    trial = this.trial
    if trial.a is None or trial.a.name != trial.b.name or (
            trial.a.name not in ("add", "multiply")):
        return ()
    mine, theirs = (roles.terms(skeleton, operation) for skeleton, operation
                    in ((this.one, trial.a), (this.two, trial.b)))
    for term in [*theirs]:
        twin = next((each for each in mine if each in this.twins(
            "b", term)), None)
        if twin is not None:
            mine.remove(twin)
            theirs.remove(term)
    if len(mine) + len(theirs) != 1:
        return ()
    side, (term,) = ("a", mine) if mine else ("b", theirs)
    maker = this.skeleton(side).maker(term)
    cause = "mask" if maker is not None and maker.name == "where" or (
        trial.a.name == "multiply" and _is_mask(this, side, term)) else (
        "factor" if trial.a.name == "multiply" else "summand")
    words = this.written(side, term, top=not this.names.of(side, term))
    return cause, *((words, "none") if side == "a" else ("none", words))


def _of_parameters(this):
    """The parameters of both, where the same is done with others; or ()."""
    steps = [roles.between(this.skeleton(side), number, this.shared(side))
             for side, number in (("a", this.trial.value_a),
                                  ("b", this.trial.value_b))]
    if sorted(each.name for each in steps[0]) != sorted(
            each.name for each in steps[1]):
        return ()
    read = [sorted({root for each in some
                    for root in this.skeleton(side).arrays(each).values()
                    if getattr(this, side).values[root].kind == PARAMETER})
            for side, some in zip("ab", steps)]
    twins = [{*this.twins("b", root)} for root in read[1]]
    if not all(twins) or len(read[0]) != len(read[1]) or all(
            each & {*read[0]} for each in twins):
        return ()
    words = [listed([this.names.of(side, root) for root in roots])
             for side, roots in zip("ab", read)]
    return ("parameters", *words) if words[0] != words[1] else ()


def _of_steps(this):
    """What the steps of both are, where these have names that differ; or
    ()."""
    skeletons = this.one, this.two
    steps = [roles.between(this.skeleton(side), getattr(
        this.trial, f"value_{side}"), this.shared(side)) for side in "ab"]
    return (_of_named(skeletons, steps) or slices.of_slices(this, steps)
            or _setting_of(this, steps) or _spacing(steps)
            or _of_order(this, skeletons, steps))


def _of_named(skeletons, steps):
    """Two norms of other sizes, or two activations; or ()."""
    words, over = ([*map(function, skeletons, steps)]
                   for function in (roles.of_step, roles.summed))
    if words == ["norm", "norm"] and None not in over and over[0] != over[1]:
        return "norm", *(f"over {count} numbers" for count in over)
    if {*words} <= ACTIVATIONS:
        words = [each[0].name if word == "activation" and len(each) == 1
                 else word for word, each in zip(words, steps)]
        if words[0] != words[1]:
            return "activation", *words
    return ()


def _of_order(this, skeletons, steps):
    """The same steps with another number, or in another order; or ()."""
    orders = [[each for each in sorted(some, key=lambda each: each.number)
               if not is_view(each)] for some in steps]
    names = [[each.name for each in some] for some in orders]
    if sorted(names[0]) != sorted(names[1]):
        return ()
    if other := _constant_of(this, orders):
        return other
    done = [*map(roles.in_turn, skeletons, orders)] if (
        names[0] != names[1]) else []
    return ("order of steps", *(", then ".join(each) for each in done)) if (
        done and done[0] != done[1]) else ()


def _constant_of(this, steps):
    """The one number that differs of steps that are the same but for their
    order, or ()."""
    found = [[(number_of(program.values[number]), each, slot)
              for each in some
              for slot, number in skeleton.constants(each).items()]
             for program, skeleton, some in (
                 (this.a, this.one, steps[0]), (this.b, this.two, steps[1]))]
    for each in [*found[0]]:
        twin = next((other for other in found[1] if None not in (
            each[0], other[0]) and math.isclose(each[0], other[0])), None)
        if twin:
            found[0].remove(each)
            found[1].remove(twin)
    if [*map(len, found)] != [1, 1] or found[0][0][1].name != (
            found[1][0][1].name) or None in (found[0][0][0], found[1][0][0]):
        return ()
    (in_a, *there), (in_b, *at) = found[0][0], found[1][0]
    scores = "attention scale"
    cause = roles.of_constant(this.two, *at)
    return (scores if roles.of_constant(this.one, *there) == scores else
            cause), *apart(in_a, in_b)


def _of_branches(this):
    """Two activations of which the branch below zero differs, or ()."""
    words = []
    for side, number in (("a", this.trial.value_a), ("b", this.trial.value_b)):
        skeleton = this.skeleton(side)
        readers = skeleton.readers.get(skeleton.root(number), ())
        if len(readers) != 1 or readers[0].name != "where":
            return ()
        words.append(roles.piecewise(skeleton, [readers[0], *roles.between(
            skeleton, number, this.shared(side))]))
    return ("activation", *words) if all(words) and (
        words[0] != words[1]) else ()


def _of_numbers(this):
    """What the numbers of both are to each other, or ()."""
    trial = this.trial
    edited = np.asarray(next(iter(trial.ways[0].values())))
    mine = this.b.values[trial.value_b].array
    if edited.shape != mine.shape or mine.dtype.kind != "f" or (
            mine.size == 1):  # any number is a multiple of any other
        return ()
    in_a, in_b = this.words("a"), this.words("b")
    hidden = masked(edited, mine)
    if hidden and not any(roles.is_masked_later(
            this.skeleton(side), this.at(side)) for side in "ab"):
        return "mask", in_a, f"{in_b}, {hidden}"
    seen = ~(hides(edited) | hides(mine))
    factor = related(edited, mine) if seen.all() else related(
        edited[seen], mine[seen])
    if not factor:
        return ()
    large = "times as large" in factor
    scores = large and any(operation is not None and roles.is_scores(
        this.skeleton(side), operation) for side, operation in (
            ("a", trial.a), ("b", trial.b)))
    cause = ("attention scale" if scores else "factor" if large else "order"
        if "order" in factor or "along" in factor else "")
    return (cause, in_a, f"{in_b}, {factor}") if cause else ()


def _read_alike(this):
    """Whether both operations read the same values."""
    mine, theirs = (skeleton.arrays(operation).values() for
                    skeleton, operation in (
                        (this.one, this.trial.a), (this.two, this.trial.b)))
    return len(mine) == len(theirs) and all(any(
        other in this.alignment.in_a.get(each, ()) for other in mine)
        for each in theirs)


def _shape(this, side):
    """The shape of what the operation of a side reads first."""
    operation = getattr(this.trial, side)
    return getattr(this, side).values[operation.operands[0]].shape if (
        operation.operands) else ()
