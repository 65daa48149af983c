"""What the bench holds: planted faults and sound pairs."""

import dataclasses
import re
import typing


@dataclasses.dataclass(frozen=True)
class BenchPair:
    """Two models that are the same, but for a fault if there is one.

    Attributes:
        family: which model.
        name: what is wrong, in a word or two, or what kind of sound pair.
        a, b: make each: (model, inputs, keywords); a is right.
        across: whether the two are of different frameworks.
        says: expressions, of which a right answer has all; () of sound pairs.
        where: (file, line) of the fault in b, each.
        source: the text of that file.
        at: an expression that the path of a right module of b matches too,
            where others use what the line makes, or no line is edited.
    """

    family: str
    name: str
    a: typing.Callable
    b: typing.Callable
    across: bool = False
    says: tuple = ()
    where: tuple = ()
    source: str = ""
    at: str = ""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.says


def number(*values) -> str:
    """An expression for any of some numbers, as they may be written.

    ``number(1e-5)`` finds 1e-05, 1e-5, 0.00001; ``number(0.25)`` 0.25, 0.2500.
    Three digits are enough.
    """
    written = set()
    for value in values:
        short = f"{value:.2e}".split("e")
        mantissa, power = short[0].rstrip("0").rstrip("."), int(short[1])
        sign = "-" if power < 0 else r"\+?"
        written.add(rf"{re.escape(mantissa)}\d*e{sign}0*{abs(power)}\b")
        if -7 < power < 8:
            plain = f"{float(f'{value:.2e}'):.{max(0, 2 - power)}f}"
            plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
            written.add(rf"(?<![\d.]){re.escape(plain)}" + (
                r"(?:\.0*)?(?![\d.]*[1-9])" if "." not in plain else r"\d*"))
    return "|".join(sorted(written))


#: What an answer has of common faults. Words before § are looked for in the
#: sentences, without the paths of modules, and in the expressions. What stands
#: behind is code: the two expressions do not have it equally often. With @
#: before them, words are looked for in paths too.
RESIDUAL = r"residual|skip|summand|added|sum of§\+"
BIAS = r"bias|summand|added§\+"
MASK = r"mask|future|causal|window|padding|tri[lu]\b|where§where|inf|<"
SOFTMAX = r"softmax|sum to 1|normali[sz]ed over"
ORDER = (r"order|permut|transpos|swap|exchang|halves|interleav|reshape|split"
         r"|roll|tile|flatten§reshape|transpose|permute|split|view|\[")
SCALE = r"scal|factor|times|divided|√|sqrt§\*|/|√|sqrt|pow"
ROTARY = r"rotary|rotat|\bcos|\bsin|rope\b|angle|polar|frequenc"


def either(*asked) -> str:
    """Any of what is asked for, words and code each."""
    words, codes = zip(*(each.partition("§")[::2] for each in asked))
    return "|".join(filter(None, words)) + "§" + "|".join(filter(None, codes))
