"""The formula of every step, as MathML.

``formulas.toml`` has it in LaTeX, by owner and name; a step of the
backward pass is called by its number, such as "3'".
"""

import functools
import pathlib
import tomllib

from latex2mathml.converter import convert
from markupsafe import Markup

from transformer_contract.errors import InputError

TABLE = pathlib.Path(__file__).parent / "formulas.toml"


@functools.cache
def table():
    """owner -> name -> LaTeX."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


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
        Markup(convert(part.strip(), display="block"))
        for part in latex.split(";;"))
