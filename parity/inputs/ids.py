"""Where two models' token ids part: often before either model is run."""

import numpy as np

from parity_io.errors import plural
from parity.inputs.texts import changed


def parting(mine, other, pieces=({}, {})):
    """Where ids [B T] of a and of b part, and what one has more, in words.

    The two may differ in length. "" where they are alike, or are no such ids.

    Args:
        mine, other: a's and b's ids.
        pieces: of a and of b, id -> the text that it stands for; may be empty.
    """
    if mine.ndim != 2 or other.ndim != 2 or not (
            {mine.dtype.kind, other.dtype.kind} <= {"i", "u"}):
        return ""
    if len(mine) != len(other):
        return f"a has {plural(len(mine), 'row')} of ids and b {len(other)}"
    length = min(mine.shape[1], other.shape[1])
    differ = mine[:, :length] != other[:, :length]
    if not differ.any() and mine.shape == other.shape:
        return ""
    if not len(mine):
        return (f"ids have {mine.shape[1]} places in a and {other.shape[1]} "
                "in b, and no rows")
    row = int(differ.any(1).argmax())
    place = int(differ[row].argmax()) if differ[row].any() else length
    both = [int(ids[row, place]) if place < ids.shape[1] else None
            for ids in (mine, other)]
    why = _why([*map(int, mine[row])], [*map(int, other[row])], pieces
               ) or _shifted(mine, other)
    return (f"ids differ at row {row}, place {place}: {_both(both, pieces)}"
            f"{why and f': {why}'}")


def _both(ids, pieces):
    """Two ids that differ, with the texts that they stand for."""
    words = ["none" if each is None else str(each) for each in ids]
    named = [known.get(each) for each, known in zip(ids, pieces)]
    if named[0] is not None and named[0] == named[1]:
        return f"{named[0]!r} is {words[0]} in a, {words[1]} in b"
    words = [word if name is None else f"{word} {name!r}"
             for word, name in zip(words, named)]
    return f"{words[0]} in a, {words[1]} in b"


def _why(one, two, pieces):
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
        if ids and others[-len(ids):] == ids:
            return f"{side} is cut off at its beginning"
    return _window(one, two, pieces)


def _window(one, two, pieces):
    """What stands between the ids with which both begin and end alike."""
    one, two = (_bare(ids, other) for ids, other in ((one, two), (two, one)))
    pairs = [*zip(one, two)]
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    last = next((i for i, (a, b) in enumerate(zip(
        one[::-1], two[::-1])) if a != b), len(pairs))
    last = min(last, len(pairs) - first)
    cut = [ids[first:len(ids) - last] for ids in (one, two)]
    texts = [[known.get(each) for each in ids]
             for ids, known in zip(cut, pieces)]
    known = [None not in each for each in texts]
    for side, ids, others, words, sure in (
            ("a", *cut, texts[0], known[0]), ("b", *cut[::-1], texts[1],
                                              known[1])):
        if ids and not others:
            more = f": {''.join(words)!r}" if sure else ""
            return (f"{side} has {plural(len(ids), 'id')} more at place "
                    f"{first}{more}")
    if not all(known) or not all(texts):
        return ""
    if texts[0] == texts[1]:
        return "the same pieces have other ids"
    joined = ["".join(each) for each in texts]
    if joined[0] == joined[1]:
        return (f"{joined[0]!r} is {plural(len(cut[0]), 'id')} in a and "
                f"{len(cut[1])} in b")
    return changed(*joined)


def _bare(ids, others):
    """Ids without the padding behind them, if the others have it as well."""
    if not ids or not others or ids[-1] != others[-1]:
        return ids
    end = _leading(ids[::-1])
    return ids[:len(ids) - end] if end > 1 else ids


def _shifted(mine, other):
    """That all ids of b are a's and one number more, or are one id."""
    if mine.shape != other.shape:
        return ""
    gaps = np.unique(other.astype(np.int64) - mine.astype(np.int64))
    if len(gaps) == 1 and mine.size > 1:
        return f"every id of b is a's {int(gaps[0]):+d}"
    wrong = mine != other
    for side, ids, others in (("a", mine, other), ("b", other, mine)):
        single = np.unique(ids[wrong])
        if len(single) == 1 and len(np.unique(others[wrong])) > 1:
            return (f"{side} has {int(single[0])} at all {int(wrong.sum())} "
                    "places that differ, as for what it does not know")
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
