"""What is said of a conversion of weights."""

import collections

from parity_io.errors import plural, visible
from parity.matching.rearrangement import SAME
from parity.numerics.words import number

#: How many names of one kind are told.
TOLD = 6


def found_words(found, out):
    """What was found, a line or two each; of a mapping that was not, a
    sentence."""
    if found.draft and not found.agrees:
        return visible(_refusal(found, out))
    mapping = found.mapping
    kinds = collections.Counter(map(_kind, mapping.entries))
    lines = [
        f"not complete: {_missing(found)}" if found.draft else
        f"{len(mapping.entries)} of B's "
        f"{plural(len(mapping.b), 'parameter')} are made "
        f"of A's {len(mapping.a)}: "
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items())]
    lines += found.remarks[:TOLD]
    if len(found.remarks) > TOLD:
        lines.append(f"and {len(found.remarks) - TOLD} more")
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
        ", a draft, which is not applied: correct it, or name with "
        "--leave-out what needs no partner" if found.draft else ""))
    return "\n".join(map(visible, lines))


def _missing(found):
    """What a draft lacks, in words."""
    words = [f"{len(over)} of {side}'s {plural(len(of), 'parameter')} "
             f"{'has' if len(over) == 1 else 'have'} no place, such as "
             f"{next(iter(over))!r} of {side}"
             for side, over, of in (
                 ("A", found.over_a, found.mapping.a),
                 ("B", found.over_b, found.mapping.b)) if over]
    if found.doubts and (found.agrees or not words):
        words.append(f"{len(found.doubts)} of B's are not sure, such as "
                     f"{next(iter(found.doubts))!r}")
    return ", and ".join(words)


def _refusal(found, out):
    """That no mapping was found, why, and what to do, in a sentence."""
    row = found.comparison.first
    first = "" if row is None else f", first at {row.b or row.a}"
    return (f"no mapping found: {_missing(found)}, and the outputs differ by "
            f"{number(found.error)}{first}; correct the draft {out}, which "
            "is not applied, or name with --leave-out what needs no partner.")


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

