"""How a run puts down the values that it sees."""

from parity.operations.program import Value
from parity.operations.signature import signature
from parity.tracing.storage import is_stored, stored

#: Arrays of fewer bytes stay in memory: a run has hundreds of the others.
LEAST = 1 << 15


def put_down(program, keep, array, kind, name, dtype, made_by=None,
             before=None):
    """Add a Value to a Program; its number.

    A large array is kept in a file, the same numbers once: those of two
    models that are alike, and of a model that is run again.

    Args:
        program: the Program of this run.
        keep: as of ``Runner.run``.
        array: NumPy's, which nobody writes to afterwards if it is small.
        kind, name, dtype, made_by: as of Value.
        before: the Program of an earlier run, or None: where its Value of the
            same number has the same bytes, its signature is this one's.
    """
    number = len(program.values)
    known = before.values[number].signature if (
        before is not None and number < len(before.values)) else None
    return put_down_known(
        program, keep, lambda: array, array.shape, kind, name, dtype, made_by,
        signature(array, known))


def put_down_known(program, keep, read, shape, kind, name, dtype, made_by,
                   of, same=None):
    """Add a Value whose Signature is known; its number.

    Args:
        read: returns the array; not asked where nobody needs it.
        of: the Signature.
        same: a Value that has the same array, if one does.
    """
    value = Value(len(program.values), kind, name, shape, dtype, None, of,
                  made_by)
    if keep if isinstance(keep, bool) else keep(value):
        value.array = same.array if same is not None and (
            same.array is not None) else kept(read(), of)
    program.values.append(value)
    return value.number


def kept(array, of):
    """An array as a Value keeps it: read-only in a file if it is large.

    Args:
        of: its Signature.
    """
    if array.nbytes < LEAST:
        return array
    array = stored(array, (of.digest, array.dtype.str, array.shape), LEAST)
    return array if is_stored(array) else array.copy()
