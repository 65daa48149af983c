"""A program without its views: what reads what, wherever it stands."""

import functools

from parity.operations.align import is_scalar, is_view
from parity.operations.roles import tables_of


class Skeleton:
    """How a program hangs together, if views are looked through.

    Args:
        program: a Program.
    """

    def __init__(self, program):
        self.program = program
        self.roots, self.read = {}, {}
        for operation in program.operations:
            if is_view(operation) and operation.operands:
                source = self.root(operation.operands[0])
                for result in operation.results:
                    self.roots[result] = source

    def root(self, number):
        """The Value that a view is of; any other is its own."""
        return self.roots.get(number, number)

    def maker(self, number):
        """The Operation that made a value's root; None of a leaf."""
        return self.program.maker(self.root(number))

    @functools.cached_property
    def readers(self):
        """{number of a root: operations that read it, or a view of it}."""
        readers = {}
        for operation in self.program.operations:
            if is_view(operation):
                continue
            for root in dict.fromkeys(map(self.root, operation.operands)):
                readers.setdefault(root, []).append(operation)
        return readers

    def constants(self, operation):
        """{place among its operands: number} of those that are scalars."""
        return {slot: value for slot, value in enumerate(operation.operands)
                if is_scalar(self.program.values[value])}

    def arrays(self, operation):
        """{place among its operands: root} of those that are no scalars."""
        if operation not in self.read:
            self.read[operation] = {
                slot: self.root(value)
                for slot, value in enumerate(operation.operands)
                if not is_scalar(self.program.values[value])}
        return self.read[operation]

    def after(self, numbers, until=()):
        """Every Value that follows from some, views included; not what does
        only through those of ``until``."""
        seen, users = set(numbers), self.users
        queue = [*seen]
        while queue:
            number = queue.pop()
            for operation in () if number in until else users.get(number, ()):
                new = {*operation.results} - seen
                seen |= new
                queue += new
        return seen

    @functools.cached_property
    def tables(self):
        """The numbers of the values that follow from no input."""
        return tables_of(self.program)

    @functools.cached_property
    def users(self):
        """{number of a value: operations that read it}."""
        users = {}
        for operation in self.program.operations:
            for operand in dict.fromkeys(operation.operands):
                users.setdefault(operand, []).append(operation)
        return users
