"""What is known of a value of torch before its numbers are read.

A parameter that nobody wrote to, and what the same operation makes of the same
values, are as in an earlier run of the Runner. So in a run with edits only
what follows from them is read.
"""

import dataclasses
import hashlib

from parity.operations.program import LEAF, OPERAND, RESULT
from parity.tracing.storage import LARGE

#: Operations that keep every number, and say where it stands.
MOVED = ("transpose", "reshape")


class Unchanged:
    """Values of an earlier run that are the same to the bit in this one.

    Args:
        program: of this run.
        edits: {(what, which): …} of this run.
        names: [(kind, name, tensor)] of its inputs, parameters and buffers.
        before: the Program of the earlier run, or None.
        marks: the ``marks`` of that run.
    """

    def __init__(self, program, edits, names, before, marks):
        self.program, self.edits, self.before = program, edits, before
        self.marks = {name: mark(tensor) for _, name, tensor in names}
        self.same = {name for name, each in self.marks.items()
                     if marks and marks.get(name) == each
                     and (LEAF, name) not in edits}

    def leaf(self, name):
        """The earlier Value of the next leaf, or None."""
        value = self.at(len(self.program.values))
        return value if value is not None and value.name == name and (
            name in self.same) else None

    def results(self, operation, count):
        """The earlier Values of an operation's next results, or Nones.

        Args:
            count: how many they are.
        """
        first = len(self.program.values)
        known = self.before.operations[operation.number] if (
            self.before and operation.number < len(self.before.operations)
        ) else None
        if known is None or not operation.operands or (
                known.native, known.settings, known.results,
                len(known.operands)) != (
                operation.native, operation.settings,
                (*range(first, first + count),), len(operation.operands)) or (
                (OPERAND, operation.number) in self.edits
                or (RESULT, operation.number) in self.edits) or any(
                self.program.values[one].signature
                is not self.before.values[two].signature
                for one, two in zip(operation.operands, known.operands)):
            return [None] * count
        return [self.at(number) for number in known.results]

    def at(self, number):
        """The earlier Value of a number, or None."""
        return self.before.values[number] if (
            self.before and number < len(self.before.values)) else None


def mark(tensor):
    """What changes if a tensor is another, or is written."""
    return (id(tensor), tensor._version, tensor.dtype,
            tensor.untyped_storage().data_ptr())


def moved(program, operation, tensor, edits):
    """The Signature of a large array that is another in another shape.

    Returns:
        None where that is not known, or where reading it costs little.
    """
    if operation.name not in MOVED or len(operation.operands) != 1 or (
            RESULT, operation.number) in edits or (
            OPERAND, operation.number) in edits:
        return None
    source = program.values[operation.operands[0]]
    nbytes = tensor.numel() * tensor.dtype.itemsize
    if nbytes < LARGE or source.signature.size != tensor.numel() or (
            tensor.is_complex()):
        return None
    digest = hashlib.blake2b(source.signature.digest + repr(
        (source.shape, operation.native, operation.settings)).encode(),
        digest_size=16).digest()
    return dataclasses.replace(source.signature, digest=digest)
