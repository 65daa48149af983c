"""Where two models' token ids part: often before either model is run."""

from contract.errors import amount


def parting(mine, other):
    """Where ids [B T] of a and of b part, and what one has more, in words.

    The two may differ in length. "" where they are alike, or are no such ids.
    """
    if mine.ndim != 2 or other.ndim != 2 or not (
            {mine.dtype.kind, other.dtype.kind} <= {"i", "u"}):
        return ""
    if len(mine) != len(other):
        return f"a has {amount(len(mine), 'row')} of ids and b {len(other)}"
    length = min(mine.shape[1], other.shape[1])
    differ = mine[:, :length] != other[:, :length]
    if not differ.any() and mine.shape == other.shape:
        return ""
    if not len(mine):
        return (f"ids have {mine.shape[1]} places in a and {other.shape[1]} "
                "in b, and no rows")
    row = int(differ.any(1).argmax())
    place = int(differ[row].argmax()) if differ[row].any() else length
    both = [str(ids[row, place]) if place < ids.shape[1] else "none"
            for ids in (mine, other)]
    why = _why([*map(int, mine[row])], [*map(int, other[row])])
    return (f"ids differ at row {row}, place {place}: {both[0]} in a, "
            f"{both[1]} in b{why and f': {why}'}")


def _why(one, two):
    """What of two lists of ids is in one and not in the other."""
    sides = (("a", one, two), ("b", two, one))
    for side, ids, others in sides:
        pads = _leading(ids)
        if len(ids) == len(others) and ids[pads:] + ids[:pads] == others:
            return f"padding stands on the left in {side}"
    ends = [_leading(ids[::-1]) for ids in (one, two)]
    bare = [ids[:len(ids) - end] for ids, end in zip((one, two), ends)]
    if bare[0] == bare[1] and len(one) == len(two) and min(ends) > 1:
        return f"padding is {one[-1]} in a and {two[-1]} in b"
    for side, ids, others in sides:
        if ids[1:] and others[:len(ids) - 1] == ids[1:len(others) + 1]:
            return f"a begin token in {side}"
    for side, ids, others in sides:
        if _ended(ids, others):
            return f"an end token in {side}"
    for side, ids, others in sides:
        if others[:len(ids)] == ids:
            return f"{side} is cut off"
    return ""


def _ended(ids, others):
    """Whether ids are the others, one more, and the padding behind them."""
    if len(ids) == len(others) + 1:
        return ids[:-1] == others
    kept = len(others) - _leading(others[::-1])
    return (len(ids) == len(others) > kept + 1 and ids[:kept] == others[:kept]
            and ids[kept + 1:] == others[kept + 1:])


def _leading(ids):
    """How many equal ids stand at the beginning."""
    return next((n for n, each in enumerate(ids) if each != ids[0]), len(ids))
