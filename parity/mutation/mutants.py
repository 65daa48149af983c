"""Every small edit of a source file, one at a time.

An edit replaces a few characters of the text, so that what is run is the file
as people read it, with one thing wrong. What each kind of edit is stands in
``edits``; here they are made into mutants, and what would not be a program, or
the same one, is left out.
"""

import ast
import collections
import dataclasses
import hashlib
import zlib

from parity.mutation import edits
from parity.mutation.source import ParsedFile


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One edit of one file.

    Attributes:
        file: the file's name in the port's folder.
        line, column: where the edit begins; the column counts from the first
            letter of the line, so that it survives another indentation.
        text: the line as it stands, without its indentation.
        kind: a key of ``edits.KINDS``.
        before, after: what is replaced by what, in one line each.
        start, end: the characters that are replaced.
        new: by what.
        statement: the first line of the statement that has to run.
        nth: how many of the same words stand before it in the file.
    """

    file: str
    line: int
    column: int
    text: str
    kind: str
    before: str
    after: str
    start: int = dataclasses.field(compare=False)
    end: int = dataclasses.field(compare=False)
    new: str = dataclasses.field(compare=False)
    statement: int = dataclasses.field(compare=False)
    nth: int = 0

    @property
    def words(self):
        """What it is called by where lines may have moved."""
        return "\t".join((self.file, self.text, str(self.column), self.kind,
                          self.before, self.after))

    @property
    def key(self):
        """The same, and which of several equal ones it is."""
        return f"{self.words}\t{self.nth}"

    @property
    def edit(self):
        """In words: before → after."""
        return f"{self.before} → {self.after}"

    @property
    def edits(self):
        """The edit in words; with its column; with its number too."""
        there = f"{self.edit} at {self.column}"
        return self.edit, there, f"{there}:{self.nth}"

    def applied(self, text):
        """The file's text with the edit."""
        return text[:self.start] + self.new + text[self.end:]


def in_one_line(text):
    """A text with every run of spaces and line ends as one space."""
    return " ".join(text.split())


def mutants(file, text):
    """Every Mutant of a file, in the order of its text."""
    source, found = ParsedFile(text), []
    programs = {}
    for kind, edit in edits.every(source):
        # parsed alone: the whole file would be as true, and take much longer
        start, end = source.block(edit.start)
        if start not in programs:
            programs[start] = {ast.dump(ast.parse(text[start:end]))}
        seen = programs[start]
        try:
            program = ast.dump(ast.parse(
                text[start:edit.start] + edit.new + text[edit.end:end]))
        except SyntaxError:
            continue
        if program not in seen:
            seen.add(program)
            found.append(made(file, source, kind, edit))
    ordered, seen = [], collections.Counter()
    for mutant in sorted(found, key=lambda mutant: (
            mutant.start, mutant.end, mutant.kind, mutant.after)):
        ordered.append(dataclasses.replace(mutant, nth=seen[mutant.words]))
        seen[mutant.words] += 1
    return ordered


def made(file, source, kind, edit):
    """The Mutant of an edit."""
    line, column = source.place(edit.start)
    text = source.lines[line - 1]
    return Mutant(
        file, line, column - (len(text) - len(text.lstrip())), text.strip(),
        kind, in_one_line(source.text[edit.start:edit.end]),
        in_one_line(edit.new), edit.start, edit.end, edit.new,
        source.statement(edit.start))


def sampled(every, count, seed):
    """``count`` of these Mutants, drawn by a text: the same wherever asked."""
    drawn = sorted(every, key=lambda mutant: (
        zlib.crc32(f"{seed} {mutant.key}".encode()), mutant.key))
    return sorted(drawn[:count], key={
        mutant: place for place, mutant in enumerate(every)}.get)


def digest(text):
    """What tells one text of a file from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
