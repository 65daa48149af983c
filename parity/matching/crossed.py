"""Steps and parameters that values pair crosswise, against equal names.

Where a gate and its partner are exchanged in one of two dumps, each has the
other's values, and only what is computed of both differs. With equal names in
both it is they that differ.
"""

import dataclasses

from parity.matching.pairs import NAMES, Pair
from parity.matching.steps import step_pair


def uncrossed(names, a, b, path):
    """A NameMap in which exchanged steps around one are paired by name.

    Args:
        names: a NameMap.
        a, b: the Traces.
        path: of the first step that differs; those of the module that it is
            in are looked at.

    Returns:
        A NameMap, or None where none are exchanged there.
    """
    around = path.rpartition(".")[0]
    found = [pair for pair in _crossed(names.steps)
             if around and pair.startswith(f"{around}.")]
    if not found:
        return None
    steps = [step_pair(a, b, pair.a, pair.a, NAMES) if pair.a in found
             else pair for pair in names.steps]
    own = {pair.b: pair.b_layout for pair in names.parameters}
    weights = {name for name in _crossed(names.parameters)
               if name.rpartition(".")[0] in found}
    parameters = [Pair(pair.a, pair.a, pair.a_layout, own[pair.a], NAMES)
                  if pair.a in weights else pair for pair in names.parameters]
    one, two = found[:2]
    return dataclasses.replace(
        names, steps=steps, parameters=parameters, notes=[
            f"{one} of a has the values of {two} of b, and the reverse: they "
            "are exchanged" + ", and so are their parameters" * bool(weights)
            + ".", *names.notes])


def _crossed(pairs):
    """The names of which each is paired with the other's in b, in a's order.
    """
    partner = {pair.a: pair.b for pair in pairs}
    return [one for one, two in partner.items()
            if one != two and partner.get(two) == one]
