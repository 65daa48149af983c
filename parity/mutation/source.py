"""A source file as text and as syntax, with the places of one in the other."""

import ast
import bisect
import dataclasses
import io
import tokenize


@dataclasses.dataclass(frozen=True)
class Edit:
    """Characters ``start`` to ``end`` of a text become ``new``."""

    start: int
    end: int
    new: str


class ParsedFile:
    """A file's text, its syntax tree, and where nodes begin and end.

    Attributes:
        text: the whole.
        lines: of the text.
        tree: its syntax.
        parents: node -> the node that holds it.
    """

    def __init__(self, text):
        self.text, self.tree = text, ast.parse(text)
        self.lines = text.splitlines()
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree)
                        for child in ast.iter_child_nodes(node)}
        self._tokens = [
            (self.at(*token.start), self.at(*token.end), token.string)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type in (tokenize.OP, tokenize.NAME)]
        self._token_starts = [start for start, _, _ in self._tokens]

    def at(self, line, column):
        """The character at a line, from 1, and a column, from 0."""
        return self._starts[line - 1] + column

    def place(self, character):
        """(line, column) of a character."""
        line = bisect.bisect_right(self._starts, character)
        return line, character - self._starts[line - 1]

    def start(self, node):
        """The first character of a node; ast counts in bytes of UTF-8."""
        return self._at_byte(node.lineno, node.col_offset)

    def end(self, node):
        """The character behind a node."""
        return self._at_byte(node.end_lineno, node.end_col_offset)

    def _at_byte(self, line, byte):
        text = self.lines[line - 1].encode()[:byte].decode()
        return self.at(line, len(text))

    def of(self, node):
        """A node's text; of an operand without the brackets around it."""
        return self.text[self.start(node):self.end(node)]

    def tokens(self, start, end):
        """(start, end, text) of each operator and name in these characters."""
        first = bisect.bisect_left(self._token_starts, start)
        for token in self._tokens[first:]:
            if token[0] >= end:
                return
            yield token

    def between(self, left, right, words):
        """(start, end) of the first of some words between two nodes."""
        for start, end, text in self.tokens(self.end(left), self.start(right)):
            if text in words:
                return start, end
        raise ValueError(f"no {words} between two nodes")

    def ancestors(self, node):
        """The nodes around a node, the next one first."""
        while node := self.parents.get(node):
            yield node

    def function(self, node):
        """The function around a node, or the whole file."""
        return next((above for above in self.ancestors(node) if isinstance(
            above, (ast.FunctionDef, ast.Lambda))), self.tree)

    def statement(self, character):
        """The first line of the innermost statement at a character.

        That of a decorator is its function's.
        """
        found = [1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and (
                    self.start(node) <= character < self.end(node)
                    or any(self.start(part) - 1 <= character < self.end(part)
                           for part in getattr(node, "decorator_list", ()))):
                found.append(node.lineno)
        return max(found)

    def block(self, character):
        """(start, end) of the function, class or line around a character."""
        for node in self.tree.body:
            parts = [node, *getattr(node, "decorator_list", ())]
            start = self.at(min(part.lineno for part in parts), 0)
            if start <= character < self.end(node):
                return start, self.end(node)
        raise ValueError(f"no statement at character {character}")
