"""Where two models' token ids part: often before either model is run."""

import difflib
import itertools

import numpy as np

from parity_io.errors import plural
from parity.inputs.texts import changed, spaceless

#: How the words for what is padding alone begin.
PADDED = "rows are padded to "


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
    if mine.shape == other.shape and (mine == other).all():
        return ""
    if not len(mine):
        return (f"ids have {mine.shape[1]} places in a and {other.shape[1]} "
                "in b, and no rows")
    length = min(mine.shape[1], other.shape[1])
    differ = mine[:, :length] != other[:, :length]
    rows = np.flatnonzero(differ.any(1)) if mine.shape == other.shape else (
        range(len(mine)))
    told = {}
    for row in rows:  # what is more than padding is told first
        told[row] = _why([*map(int, mine[row])], [*map(int, other[row])],
                         pieces)
        if not told[row].startswith(PADDED):
            break
    else:
        row = min(told)
    place = int(differ[row].argmax()) if differ[row].any() else length
    both = [int(ids[row, place]) if place < ids.shape[1] else None
            for ids in (mine, other)]
    why = told[row] or _shifted(mine, other)
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
    sides = (("a", one, two, pieces[0]), ("b", two, one, pieces[1]))
    for side, ids, others, _ in sides:
        pads = _leading(ids)
        if len(ids) == len(others) and ids[pads:] + ids[:pads] == others:
            return f"padding stands on the left in {side}"
    ends = [_leading(ids[::-1]) for ids in (one, two)]
    bare = [ids[:len(ids) - end] for ids, end in zip((one, two), ends)]
    if bare[0] == bare[1] and len(one) == len(two) and min(ends) > 1:
        return f"padding is {one[-1]} in a and {two[-1]} in b"
    for side, ids, others, _ in sides:
        if words := _padded(ids, others):
            return words.format(*(
                (len(ids), len(others)) if side == "a" else (
                    len(others), len(ids))))
    for side, ids, others, known in sides:
        if ids[1:] and others[:len(ids) - 1] == ids[1:len(others) + 1]:
            return _more("begin", ids[0], known, side)
    for side, ids, others, known in sides:
        if added := _ended(ids, others):
            return _more("end", added[0], known, side)
        if ids and (added := _ended(ids[1:], others)):
            return f"a begin and an end token in {side}"
    for side, ids, others, _ in sides:
        known = pieces[side == "a"]  # of the side that has more
        if others[:len(ids)] == ids:
            return f"{side} is cut off{_without(others[len(ids):], known)}"
        if ids and others[-len(ids):] == ids:
            return (f"{side} is cut off at its beginning"
                    f"{_without(others[:-len(ids)], known)}")
    for side, ids, others, _ in sides:
        count = next((n for n in range(1, len(ids) - 2)
                      if ids[n:] == others[:len(ids) - n]), 0)
        if count and len(ids) == len(others):
            return f"{side} is cut off at its end, the other at its beginning"
    return _window(one, two, pieces)


def _more(name, token, known, side):
    """What one more token at an end is: a space is text."""
    if token in known and not spaceless(known[token]):
        return f"a space {'before' if name == 'begin' else 'after'} the " + (
            f"text in {side}")
    return f"{'an' if name == 'end' else 'a'} {name} token in {side}"


def _padded(ids, others):
    """That ids are the others and more of their padding, at either end."""
    count = len(ids) - len(others)
    for ours, theirs in ((ids, others), (ids[::-1], others[::-1])):
        if count > 0 and theirs[1:] and ours[:len(theirs)] == theirs and len(
                {*ours[len(theirs):]}) == 1 and (
                count > 1 or {*theirs[-2:]} == {ours[-1]}):
            return PADDED + "{} places in a and to {} in b"
    return ""


def _without(ids, known):
    """The text of ids that one side has not, if all are known."""
    words = [known.get(each) for each in ids]
    return "" if None in words else f", without {''.join(words)!r}"


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
    if words := _unknown(one, two, pieces):
        return words
    if not all(known) or not all(texts):
        return ""
    if texts[0] == texts[1]:
        return "the same pieces have other ids"
    joined = ["".join(each) for each in texts]
    if joined[0] == joined[1]:
        return _cut_otherwise(*texts)
    return changed(*joined)


def _cut_otherwise(one, two):
    """The first part of a text that both cut at its ends, in words.

    Args:
        one, two: pieces [str] of the same text.
    """
    ends = [[*itertools.accumulate(map(len, each))] for each in (one, two)]
    begin = 0
    for end in sorted({*ends[0]} & {*ends[1]}):
        parts = [sum(begin < each <= end for each in some) for some in ends]
        if parts != [1, 1]:
            return (f"{''.join(one)[begin:end]!r} is {plural(parts[0], 'id')} "
                    f"in a and {parts[1]} in b")
        begin = end
    return (f"{''.join(one)!r} is {plural(len(one), 'id')} in a and "
            f"{len(two)} in b")


def _unknown(one, two, pieces):
    """That one side has a single id wherever it does not know a piece."""
    codes = [code for code in difflib.SequenceMatcher(
        None, one, two, autojunk=False).get_opcodes() if code[0] != "equal"]
    for side, known, spans, others in (
            ("a", pieces[0], [one[i:j] for _, i, j, _, _ in codes],
             [two[i:j] for *_, i, j in codes]),
            ("b", pieces[1], [two[i:j] for *_, i, j in codes],
             [one[i:j] for _, i, j, _, _ in codes])):
        single = {each for span in spans for each in span}
        if len(single) != 1 or not all(spans) or not all(others):
            continue
        token = single.pop()
        if "unk" in known.get(token, "").lower():
            count = sum(map(len, spans))
            return (f"{side} does not know {plural(count, 'piece')}, and has "
                    f"{known[token]!r} there")
    return ""


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
    """[the id] that ids have behind the others and before their padding; []
    if they are not so."""
    if len(ids) == len(others) + 1 and ids[:-1] == others:
        return ids[-1:]
    kept = len(others) - _leading(others[::-1])
    if len(others) > kept + 1 and len(ids) > kept and (
            ids[:kept] == others[:kept] and ids[kept] != others[kept]
            and {*ids[kept + 1:]} <= {others[kept]}):
        return [ids[kept]]
    return []


def _leading(ids):
    """How many equal ids stand at the beginning."""
    return next((n for n, each in enumerate(ids) if each != ids[0]), len(ids))
