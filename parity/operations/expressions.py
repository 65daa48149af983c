"""What a program computes, as a short formula over names that both have."""

import numpy as np

from parity.operations.align import is_scalar, is_view
from parity.operations.program import INPUT, MADE, PARAMETER
from parity.operations.vocabulary import INFIX, REDUCTIONS

#: So many operations deep, and so many characters long, a formula is at most.
DEEP, LONG = 9, 160

#: Settings that are shown.
SHOWN = ("axis", "k", "diagonal", "shift", "dtype", "groups", "strides",
         "dilation", "padding", "correction", "start", "stop", "step")

#: Where a slice of torch's stops that goes to the end.
TO_THE_END = 2**63 - 1

#: Operations for which it matters in which shape an array is read.
ORDERED = {*REDUCTIONS, "slice", "softmax", "take", "topk", "concatenate",
           "flip", "roll"}

#: What binds less than a product, and so stands in brackets in one.
LOOSE = ("add", "subtract", "less", "less_equal", "greater", "greater_equal",
         "equal", "not_equal", "logical_and", "logical_or")

#: The letters that longer values are called, unless a model has one for a
#: name of its own, and from which length on.
LETTERS, LONGER = "xyzuvwpqrst", 36


class Names:
    """Names of values, the same for those that both programs have.

    Args:
        alignment: an Alignment.

    Attributes:
        legend: {letter: what it stands for}.
    """

    def __init__(self, alignment):
        self.alignment, self.legend = alignment, {}
        self.letters, self.ends, taken = {}, {}, set()
        for side in "ab":
            program = getattr(alignment, side)
            self.ends[side] = _ends(program)
            taken |= {*self.ends[side].values(), *(
                tail(value.name) for value in program.values)}
        self.free = [each for each in LETTERS if each not in taken] or LETTERS

    def of(self, side, number):
        """The name of a value: an input's, a parameter's, or that of the
        module of which it is the output; "" if it has none."""
        program = getattr(self.alignment, side)
        value = program.values[number]
        if side == "b" and number in self.alignment.in_a:
            named = next(filter(None, (self.of("a", each) for each
                                       in self.alignment.in_a[number])), "")
            if named:
                return named
        if value.kind in (PARAMETER, INPUT) and value.name:
            return tail(value.name, 2 if value.kind == PARAMETER else 1)
        return next(filter(None, (self.ends[side].get(each, "") for each in (
            number, *self.twins(side, number)))), "")

    def twins(self, side, number):
        """Values of the same program that have the same numbers."""
        mine, theirs = (self.alignment.in_b, self.alignment.in_a) if (
            side == "a") else (self.alignment.in_a, self.alignment.in_b)
        return theirs.get(mine[number][0], ()) if number in mine else ()

    def letter(self, side, number, text):
        """A letter for a value that both have and that is long to write."""
        key = ("a", self.alignment.in_a[number][0]) if side == "b" else (
            "a", number)
        if key not in self.letters:
            letter = self.free[len(self.letters) % len(self.free)]
            self.letters[key] = letter
            self.legend[letter] = cut(text, 100)
        return self.letters[key]


def _ends(program):
    """{number: name} of what modules give to what is outside them."""
    ends = {}
    for operation in program.operations:
        for number in operation.operands:
            maker = program.maker(number)
            if maker is None or maker.module in ("", "(model)"):
                continue
            inside = operation.module == maker.module or (
                operation.module.startswith(maker.module + "."))
            if not inside and len(maker.results) == 1:
                ends[number] = tail(maker.module)
    return ends


def tail(path, parts=1):
    """The end of a path: its last names; a number is not one by itself."""
    names = path.split(".")
    while parts < len(names) and names[-parts].isdigit():
        parts += 1
    return ".".join(names[-parts:])


def formula(names, side, number, top=True, depth=0, reader=None,
            shapes=False):
    """A value in words: of names where both programs have it.

    Args:
        names: the Names of both.
        side: "a" or "b".
        number: of the Value.
        top: whether it is written out even if it has a name.
        depth: how many operations of the formula it is inside.
        reader: the Operation that reads it.
        shapes: whether the shape is told in which an array is read, wherever
            that matters.
    """
    program = getattr(names.alignment, side)
    value, maker = program.values[number], program.maker(number)
    both = names.alignment.has(side, number)
    if is_scalar(value) or value.signature.size == 1 and (
            value.kind != MADE or value.array is not None and both):
        return scalar(value)
    named = names.of(side, number)
    if named and not top and (both or value.kind != MADE):
        return named
    if maker is None:
        return named or f"table{shape(value)}"
    if is_view(maker) and maker.operands:
        text = formula(names, side, maker.operands[0], top, depth, reader,
                       shapes)
        source = program.values[maker.operands[0]]
        seen = reader is not None and reader.name in ORDERED and (
            lean(source) != lean(value))
        return f"{text}{shape(value)}" if seen and not shapes else text
    if depth >= DEEP:
        return "…"
    parts = [formula(names, side, each, False, depth + 1, maker, shapes)
             for each in maker.operands]
    if shapes and maker.name in ORDERED and parts:
        parts[0] += f" {shape(program.values[maker.operands[0]])}"
    text = written(program, maker, parts)
    if len(maker.results) > 1 and text.endswith(")"):
        text = (f"{text[:-1]}, part {maker.results.index(number) + 1} of "
                f"{len(maker.results)})")
    if not top and both and value.signature.telling and len(text) > LONGER:
        return names.letter(side, number, text)
    return text


def shape(value):
    """A shape in words."""
    return f"[{'×'.join(map(str, value.shape))}]"


def lean(value):
    """A shape without axes of length 1."""
    return [size for size in value.shape if size != 1]


def written(program, maker, parts):
    """An operation with its operands in words."""
    pattern = INFIX.get(maker.name)
    if pattern and len(parts) == pattern.count("{}"):
        tight = maker.name not in LOOSE
        return pattern.format(*(
            f"({part})" if tight and any(
                f" {sign} " in _outside(part) for sign in "+-<>≤≥=≠")
            else part for part in parts))
    settings = [f"{name}={plain(maker.settings[name])}" for name in SHOWN
                if maker.settings.get(name) not in (
                    None, (), [], "", TO_THE_END)]
    return f"{maker.name}({', '.join([*parts, *settings])})"


def _outside(text):
    """What of a text stands outside all brackets."""
    level, kept = 0, []
    for letter in text:
        level -= letter in ")]"
        if not level:
            kept.append(letter)
        level += letter in "(["
    return "".join(kept)


def plain(value):
    """A setting, without a tuple of one."""
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return str(value)


def scalar(value):
    """A number as short as it is told apart by."""
    array = np.asarray(value.array)
    if array.size != 1:
        return "?"
    number = array.reshape(-1)[0]
    if array.dtype.kind in "biu":
        return str(number.item())
    return number_text(float(number))


def number_text(number):
    """A floating number with six digits, or all where they are needed."""
    short = f"{number:.6g}"
    return short if abs(float(short) - number) <= 1e-12 * abs(number) else (
        f"{number:.12g}")


def cut(text, width=LONG):
    """A formula of at most some characters."""
    return text if len(text) <= width else f"{text[:width - 1]}…"
