"""What is said of a conversion of weights."""

import collections

from parity_io.errors import plural, visible
from parity.matching.rearrangement import SAME
from parity.numerics.words import number

#: How many names of one kind are told.
TOLD = 6


def found_words(found, out):
    """What was found, a line or two each."""
    mapping = found.mapping
    kinds = collections.Counter(map(_kind, mapping.entries))
    lines = [
        f"{len(mapping.entries)} of B's "
        f"{plural(len(mapping.b), 'parameter')} are made "
        f"of A's {len(mapping.a)}: "
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items())]
    for side, over in (("A", found.over_a), ("B", found.over_b)):
        lines += _told(over, lambda name, why, side=side: (
            f"without a place, {name!r} of {side}: {why}"))
    lines += _told(found.doubts, lambda name, why: (
        f"not sure, {name!r} of B: {why}"))
    if found.kept:
        lines.append("kept as they are, for both models compute the same with "
                     f"their own: {', '.join(found.kept[:TOLD])}"
                     + (", …" if len(found.kept) > TOLD else ""))
    lines += found.notes
    lines.append(_agreement(found.error, "with drawn weights, the outputs"))
    if not found.agrees:
        lines.append(f"{found.comparison.sentence()} Where the mapping is "
                     "right, convert, and `parity compare` says why.")
    lines.append(f"made {out}" + (
        "" if found.complete else
        ", which is not complete: correct it, or name with --leave-out what "
        "needs no partner" if found.over_a or found.over_b or found.doubts
        else ""))
    return "\n".join(map(visible, lines))


def applied_words(applied, out):
    """What was made, a line each."""
    lines = [f"made {out}: {plural(len(applied.arrays), 'array')}"
             ] if out else []
    lines.append({
        True: "the way back gives the same weights, to the bit",
        False: "the way back does not give the same weights to the bit: "
               "dtypes differ, or A holds what B does not",
        None: "there is no way back: some parameters are sums, or in no "
              "parameter of the other model"}[applied.again])
    if applied.comparison:
        lines.append(_agreement(applied.error, "the outputs"))
        if applied.diverges:
            lines.append(f"{applied.comparison.sentence()} `parity compare` "
                         "says why.")
    else:
        lines.append("the outputs were not compared; give both models as "
                     "SCRIPT.py:FUNCTION for that")
    return "\n".join(map(visible, lines))


def _agreement(error, what):
    """How far outputs differ."""
    return f"{what} differ by {number(error)} at most, relatively"


def _kind(entry):
    """What is done to make a parameter, in a word or two."""
    layouts = [piece.layout for piece in entry.pieces] + [entry.then]
    if entry.join:
        return "added" if entry.join == "sum" else "joined of several"
    if any(word in layout for layout in layouts for word in ("part", "slice")):
        return "a part of one"
    if all(layout == SAME for layout in layouts):
        return "as they are"
    return "transposed or reshaped"


def _told(over, words):
    """A line for each name, of many only the first."""
    lines = [words(name, why) for name, why in list(over.items())[:TOLD]]
    if len(over) > TOLD:
        lines.append(f"and {len(over) - TOLD} more")
    return lines
