"""How a run puts down the values that it sees."""

from parity.operations.program import Value
from parity.operations.signature import signature
from parity.tracing.storage import LARGE, stored


def put_down(program, keep, array, kind, name, dtype, made_by=None,
             before=None):
    """Add a Value to a Program; its number.

    A large array is kept in a file, the same numbers once: those of two
    models that are alike, and of a model that is run again.

    Args:
        program: the Program of this run.
        keep: as of ``Runner.run``.
        array: NumPy's, which nobody writes to afterwards.
        kind, name, dtype, made_by: as of Value.
        before: the Program of an earlier run, or None: where its Value of the
            same number has the same bytes, its signature is this one's.
    """
    number = len(program.values)
    known = before.values[number].signature if (
        before is not None and number < len(before.values)) else None
    value = Value(number, kind, name, array.shape, dtype, None,
                  signature(array, known), made_by)
    if keep if isinstance(keep, bool) else keep(value):
        value.array = kept(array, value.signature)
    program.values.append(value)
    return number


def kept(array, of):
    """An array as a Value keeps it: read-only in a file if it is large.

    Args:
        of: its Signature.
    """
    if array.nbytes < LARGE:
        return array
    return stored(array, (of.digest, array.dtype.str, array.shape))
