"""Every pair, family by family."""

import importlib
import pkgutil

from benchmarks.families import kinds


def pairs(families=()) -> list:
    """Faults and sound pairs of some families, or of all.

    Each file in ``kinds`` has ``pairs()``.
    """
    found = [pair for each in pkgutil.iter_modules(kinds.__path__)
             for pair in importlib.import_module(
                 f"{kinds.__name__}.{each.name}").pairs()]
    known = {pair.family for pair in found}
    for family in families:
        if family not in known:
            raise SystemExit(
                f"no family {family!r}; there are {', '.join(sorted(known))}")
    return [pair for pair in found
            if not families or pair.family in families]
