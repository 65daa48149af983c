"""The formula of every step, as MathML, and why the step is there.

``formulas.toml`` has it in LaTeX, by owner and name; a step of the
backward pass is called by its number, such as "3'". ``reasons.toml`` has the
reasons in the same way.
"""

import functools
import pathlib
import re
import tomllib

from latex2mathml.converter import convert
from markupsafe import Markup

from parity_io.errors import InputError

TABLE = pathlib.Path(__file__).parent / "formulas.toml"
REASONS = TABLE.with_name("reasons.toml")

#: Symbols that have one colour in all formulas, and in code by their names.
COLOURED = re.compile(r"<mi>([QKV])</mi>")


@functools.cache
def table(path=TABLE):
    """owner -> name -> LaTeX, or a reason."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def reason(step):
    """Why a step is there, or ""."""
    owner, name = key(step)
    return table(REASONS).get(owner, {}).get(name, "")


def key(step):
    """(owner, name) of a step in the table."""
    if step.backward:
        return step.owner.removesuffix("_backward"), f"{step.number}'"
    return step.owner, step.name


def formula(step):
    """The MathML of a step.

    Raises:
        InputError: the table has none.
    """
    owner, name = key(step)
    latex = table().get(owner, {}).get(name)
    if latex is None:
        raise InputError(
            f"step {name!r} of {owner} has no formula; add it to "
            f"parity/reading/{TABLE.name}.")
    return mathml(latex)


@functools.cache
def mathml(latex):
    """LaTeX as a MathML block, several lines parted by ``;;``."""
    return Markup("").join(
        Markup(COLOURED.sub(coloured, convert(part.strip(), display="block")))
        for part in latex.split(";;"))


def coloured(symbol):
    """A match of COLOURED with its class."""
    return f'<mi class="role-{symbol[1].lower()}">{symbol[1]}</mi>'
