"""At which lines of source a difference is told.

A user finds a fault where it was written, and that need not be the line that
computes something else: a step that is missing has no line at all, and a value
may have been chosen far from where it is read. So of a missing step the two
lines are told between which it has to stand, and of another value the line that
hands it on beside the one that reads it.
"""

from parity.operations.align import ENDS, is_view, moves
from parity.operations.layouts import distance, relaid
from parity.operations.program import MADE, Place
from parity.operations.trial import ARRAY, MISSING, ORDER, OTHER, lean


def lines_of(difference, side):
    """The lines of a side: the one that differs, the one from which that was
    called or which handed the value on, and, of a missing step, the one that
    makes what lacks it.

    Returns:
        Three Places, of which any may be empty.
    """
    trial = difference.trial
    if side == "b" and trial.kind == MISSING and trial.slot is not None:
        return _gap(difference)
    place = _differs(difference, side)
    called = place.caller or Place()
    if trial.kind == OTHER and not difference.of_one_source():
        maker = difference.skeleton(side).maker(
            getattr(trial, f"value_{side}"))
        called = _handed_on(place, maker and maker.place) or called
    return place, called, Place()


def _differs(difference, side):
    """The line of a side that stands for the difference.

    Where a value is read in another order, that is the line at which it is
    first laid out otherwise; of a table, the line at which it first differs.
    """
    kind, operation = difference.trial.kind, difference.at(side)
    if kind == ARRAY:
        operation = first_of_table(difference, side) or operation
    if kind == ORDER or kind == OTHER and difference.of_one_source():
        operation = _laid_out(difference, side) or operation
    return operation.place if operation is not None else Place()


def _gap(difference):
    """The lines of b between which a's step has to stand, and what called.

    They are those of b's function, where it makes the value and reads it in
    one; else of the function in which a does the step, where b has that.
    """
    trial = difference.trial
    read = difference.trial.b.place
    operand = trial.b.operands[trial.slot]
    maker = difference.b.maker(operand)
    if maker is not None and is_view(maker):
        read = maker.place  # where what lacks the step is handed on
    maker = difference.two.maker(operand)
    made = maker.place if maker is not None else Place()
    step = difference.at("a")
    if (read.file, read.function, read.module) == (
            made.file, made.function, made.module):
        return read, read.caller or Place(), made
    deeper = step is not None and _read_there(difference, step)
    for i, frame in enumerate(step.place.chain if step is not None else ()):
        reads, makes = (next((each for each in place.chain if same(
            each, frame)), None) for place in (read, made))
        at = read.chain.index(reads) - i if reads else -1
        if deeper and i and at >= 0:
            return read.chain[at], read.chain[at].caller or Place(), Place()
        if reads or makes:
            return (reads or read), (reads or read).caller or Place(), (
                makes or made)
    return read, read.caller or Place(), made


def _read_there(difference, step):
    """Whether what a step of a's gives is read from the function that does it:
    then b lacks it in the function that stands in that one's place."""
    mine = step.place.file, step.place.function, step.place.module
    root = difference.one.root(difference.trial.value_a)
    return any((each.file, each.function, each.module) == mine
               for reader in difference.one.readers.get(root, ())
               if reader is not step for each in reader.place.chain)


def same(one, two):
    """Whether two Places are of one function of the same module."""
    return (one.function, one.module) == (two.function, two.module) and bool(
        one.module)


def _handed_on(read, made):
    """The line at which what was made in one place is given to where it is
    read: in the innermost function that both were called from; or None."""
    outer = {(each.file, each.function, each.module)
             for each in (made.chain if made else ())}
    return next((each for each in read.chain[1:] if (
        each.file, each.function, each.module) in outer), None)


def _laid_out(difference, side):
    """The operation by which what is read in another order was brought into
    it, however much was then computed in that order; or None."""
    program = getattr(difference, side)
    maker = program.maker(getattr(difference.trial, f"value_{side}"))
    first = None
    while maker is not None and maker.operands:
        before = [each for each in maker.operands
                  if program.values[each].kind == MADE
                  and difference.twins(side, each)
                  and not _in_order(difference, side, each)]
        if moves(maker):
            first = maker
            before = before or [each for each in maker.operands[:1]
                                if not difference.twins(side, each)]
        if not before:
            break
        maker = program.maker(before[0])
    return first


def _in_order(difference, side, number):
    """Whether the other side has a value's numbers in the same order: in its
    shape, or where it has none of that, in any."""
    other = difference.b if side == "a" else difference.a
    value = getattr(difference, side).values[number]
    twins = [other.values[each] for each in difference.twins(side, number)]
    alike = [each.array.reshape(value.shape) for each in twins
             if lean(each.shape) == lean(value.shape)]
    laid = alike or [made for each in twins
                     for made in relaid(each.array, value.array, 1)]
    return any(distance(made, value.array) <= ENDS for made in laid)


def first_of_table(difference, side):
    """The operation at which a computed table first differs, or None."""
    program = getattr(difference, side)
    lost = difference.alignment.lost[side]
    number = getattr(difference.trial, f"value_{side}")
    queue, found = [number], []
    while queue:
        maker = program.maker(queue.pop())
        if maker is None or maker in found:
            continue
        found.append(maker)
        queue += [each for each in maker.operands if each in lost]
    telling = [each for each in found
               if program.values[each.results[0]].signature.size > 1
               and program.values[each.results[0]].signature.kind == "f"
               and each.name not in ("arange", "full", "cast")]
    return min(telling, key=lambda each: each.number, default=None)
