"""The ways in which people read with a cache, each a list of Reads.

Whatever is kept, and however it is used, the answer at each place is what the
model gives to all tokens at once.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from parity.invariants.arguments import MASKS, POSITIONS, shown
from parity.invariants.kept import NotAsked

ONE, CHUNKS, PROMPT, REUSED, STATIC, LEFT, BEAMS, SHARED = CACHED = (
    "tokens", "chunks", "prompt", "reused", "static", "cached-left", "beams",
    "shared")

#: So many sizes of chunks, and of prompts, are asked at most.
MOST_SIZES = 12

#: So many places padding adds on the left.
PADDED = 3


@dataclasses.dataclass(frozen=True)
class Read:
    """Tokens that are read at once.

    Attributes:
        start, stop: the places.
        rows: whose tokens, of the Use's arrays; all where it is None.
        order: which rows of what is kept are taken before; None of all.
        arrays: of another request, or None: the Use's own.
        request: whose state is continued, 0 or 1.
        before: a function of the Keeping, the model and the state, which
            gives the state that is read with; or None.
        cut: how many of the places that are kept stay; None of all.
        counts: whether what it answers is compared.
    """

    start: int
    stop: int
    rows: tuple | None = None
    order: tuple | None = None
    arrays: dict | None = None
    request: int = 0
    before: Callable | None = None
    cut: int | None = None
    counts: bool = True


@dataclasses.dataclass(frozen=True)
class Use:
    """One way to read with a cache.

    Attributes:
        words: what it is called.
        arrays: what is read, by name.
        reads: its Reads, in order.
        room: how many places a static cache has; 0 where there is none.
    """

    words: str
    arrays: dict
    reads: tuple
    room: int = 0


def uses(keeping, name):
    """The Uses of a name of CACHED.

    Raises:
        NotAsked: the call, or the model, has not what it needs.
    """
    call, length = keeping.call, keeping.length
    arrays = call.arrays
    match name:
        case _ if name == ONE:
            return [Use("one token at a time", arrays, by(1, length))]
        case _ if name == CHUNKS:
            return [Use(f"in chunks of {size}" if size < length
                        else "all at once into the cache", arrays,
                        by(size, length)) for size in sizes(2, length)]
        case _ if name == PROMPT:
            return [Use(f"a prompt of {size}, then one by one", arrays,
                        prompt(size, length)) for size in sizes(2, length - 1)]
        case _ if name == REUSED:
            return reused(keeping)
        case _ if name == STATIC:
            keeping.static(length)
            return [Use(f"a static cache of {room}, {words}", arrays, reads,
                        room)
                    for room in (length, length + 3)
                    for words, reads in (
                        ("one by one", by(1, length)),
                        ("in chunks of 3", by(3, length)),
                        ("all at once", by(length, length)))]
        case _ if name == LEFT:
            return padded(keeping)
        case _ if name == BEAMS:
            return beams(keeping)
    return shared(keeping)


def sizes(first, last):
    """Numbers between two, the smallest and the largest among them."""
    every = [*range(first, last + 1)]
    if len(every) <= MOST_SIZES:
        return every
    chosen = np.linspace(0, len(every) - 1, MOST_SIZES).round().astype(int)
    return [every[i] for i in dict.fromkeys(chosen.tolist())]


def by(size, length, start=0, **more):
    """Reads of so many places each."""
    return tuple(Read(first, min(first + size, length), **more)
                 for first in range(start, length, size))


def prompt(size, length, **more):
    """Reads of a prompt, and of one place after another behind it."""
    return (Read(0, size, **more), *by(1, length, size, **more))


def reused(keeping):
    """Caches that stand beside, behind or after those of another request."""
    call, length = keeping.call, keeping.length
    if length < 3:
        raise NotAsked("there are fewer than three tokens")
    rows = tuple(range(call.rows))
    other = call.beside(-1, rows)
    if all(np.array_equal(other[name], call.arrays[name]) for name in other):
        raise NotAsked("no argument has numbers or several ids, of which "
                       "others could be drawn")
    half = length // 2
    mine, theirs = prompt(half, length), by(
        half, length, arrays=other, request=1, counts=False)
    found = [
        Use("after another request", call.arrays, theirs + mine),
        Use("beside another request", call.arrays, (
            mine[0], theirs[0], *mine[1:-1], *theirs[1:], mine[-1]))]
    kind = probe(keeping)
    if hasattr(kind, "reset"):
        found.append(Use(
            "with a cache that was reset", call.arrays, (
                *by(half, length, arrays=other, counts=False),
                dataclasses.replace(mine[0], before=reset), *mine[1:])))
    if hasattr(kind, "crop"):
        found.append(Use(
            f"with a cache that was cut back to {half}", call.arrays, (
                mine[0], Read(half, length, arrays=other, counts=False),
                dataclasses.replace(mine[1], cut=half),
                *mine[2:])))
    return found


def probe(keeping):
    """What the model keeps of the first token."""
    model = keeping.call.model
    with keeping.call.put_back():
        return keeping.read(
            model, keeping.call.arrays, 0, 1, keeping.empty(
                model, keeping.call.rows, keeping.length))[1]


def reset(keeping, model, state):
    """What is kept, emptied by its own function."""
    made = state.reset()
    return state if made is None else made


def cropped(state, size, length):
    """What is kept, cut back to some places by its own function.

    Hugging Face's is told how many places go, below zero; another's, how many
    stay.
    """
    theirs = type(state).__module__.startswith("transformers.")
    try:
        made = state.crop(size - length if theirs else size)
    except Exception as error:  # such as a window that has let tokens go
        raise NotAsked("what it keeps cannot be cut back "
                       f"({type(error).__name__})") from None
    return state if made is None else made


def padded(keeping):
    """Rows padded on the left, each by another number of places."""
    call, role = keeping.call, keeping.role
    sequence = call.sequences[role]
    if not sequence.mask or call.arrays[sequence.mask].ndim != 2:
        raise NotAsked("no argument is a mask [B T], so that padding cannot "
                       "be hidden")
    pad_id = getattr(getattr(call.model, "config", None), "pad_token_id", 0)
    pads = {role: (PADDED, 0)}
    arrays = call.padded(pads, pad_id or 0)
    inverted = sequence.mask in call.inverted
    mask = arrays[sequence.mask] = arrays[sequence.mask].copy()
    for row in range(call.rows):
        mask[row, :PADDED + row % 2] = mask[row, 0]
    if POSITIONS[role] in call.takes and POSITIONS[role] not in arrays:
        seen = shown(mask, inverted)
        arrays[POSITIONS[role]] = np.maximum(seen.cumsum(1) - 1, 0)
    length = sequence.length + PADDED
    return [Use("padded left, a prompt and one by one", arrays,
                prompt(PADDED + 2, length)),
            Use("padded left, in chunks of 3", arrays, by(3, length))]


def beams(keeping):
    """Rows of what is kept that change places, as those of a beam search."""
    call, length = keeping.call, keeping.length
    if length < 3:
        raise NotAsked("there are fewer than three tokens")
    arrays = several(call)
    rows = tuple(range(len(next(iter(arrays.values())))))
    turned = rows[1:] + rows[:1]
    kept = tuple(turned[i] for i in (0,) + (0,) + tuple(range(2, len(rows))))
    half = max(1, length // 2)
    after = half + 1
    return [Use("beams that change places", arrays, (
        Read(0, half), Read(half, after, turned, turned),
        *by(1, length, after, rows=turned))),
        Use("a beam that is copied over another", arrays, (
            Read(0, half),
            Read(half, after, turned, turned),
            Read(after, after + 1, kept, (0, 0, *range(2, len(rows)))),
            *by(1, length, after + 1, rows=kept)))]


def several(call):
    """The arrays of at least two different rows."""
    if call.rows > 1:
        return call.arrays
    arrays = call.beside(0, (0, 0))
    if all(np.array_equal(array[:1], array[1:]) for array in arrays.values()
           if array.ndim > 1 and len(array) == 2):
        raise NotAsked("there is one row, and no other can be drawn")
    return arrays


def shared(keeping):
    """A beginning that is read once, and continued by several rows."""
    call, length = keeping.call, keeping.length
    if length < 2:
        raise NotAsked("there is one token")
    arrays, half = dict(several(call)), max(1, length // 2)
    rows = len(arrays[call.sequences[keeping.role].lead])
    for name in call.of(keeping.role):
        array = arrays[name] = arrays[name].copy()
        if array.ndim > 1 and array.shape[1] == length:
            array[:, :half] = array[:1, :half]
    if any(name in arrays for name in call.arrays
           if name not in call.of(keeping.role) and call.has_rows(name)):
        raise NotAsked("other arguments have rows of their own")
    return [Use(f"a beginning of {half} that rows share", arrays, (
        Read(0, half, (0,)), Read(half, half + 1, tuple(range(rows)),
                                  (0,) * rows),
        *by(1, length, half + 1, rows=tuple(range(rows)))))]


def visible(keeping, arrays):
    """bool [B T]: which tokens of some arrays are none of padding."""
    sequence = keeping.call.sequences[keeping.role]
    lead = arrays[sequence.lead]
    mask = arrays.get(sequence.mask) if sequence.mask else arrays.get(
        MASKS[keeping.role])
    if mask is None:
        return np.ones(lead.shape[:2], bool)
    return shown(mask, sequence.mask in keeping.call.inverted).reshape(
        len(lead), -1, lead.shape[1]).any(1)
