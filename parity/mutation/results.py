"""What became of every mutant, kept in a file from which a run goes on."""

import collections
import dataclasses
import json
import time

from transformer_contract.errors import InputError
from transformer_contract.files import write_json
from parity.mutation import equivalent
from parity.mutation.mutants import Mutant, digest

KILLED, EQUIVALENT, SURVIVED = "killed", "equivalent", "survived"

#: How many seconds pass until the file is written again.
EVERY = 10


@dataclasses.dataclass(frozen=True)
class Result:
    """One mutant's end.

    Attributes:
        mutant: which.
        verdict: KILLED, EQUIVALENT or SURVIVED.
        question: the one that noticed it; else "".
        words: what the question said, or why it is equivalent.
        asked: how many questions ran the line.
        seconds: how long it took.
    """

    mutant: Mutant
    verdict: str
    question: str = ""
    words: str = ""
    asked: int = 0
    seconds: float = 0.0

    def as_json(self):
        """The result as plain data."""
        mutant = self.mutant
        return {
            "file": mutant.file, "line": mutant.line, "text": mutant.text,
            "kind": mutant.kind, "before": mutant.before,
            "after": mutant.after, "key": mutant.key,
            **{field.name: getattr(self, field.name)
               for field in dataclasses.fields(self)[1:]}}


class Results:
    """The Results of one port's mutants, by their keys.

    Args:
        port: its name.
        texts: {file: text} of the port.
        path: where they are kept, or None.

    Raises:
        InputError: ``path`` is another file than one written here.
    """

    def __init__(self, port, texts, path=None):
        self.port, self.path, self.found = port, path, {}
        self.digests = {file: digest(text) for file, text in texts.items()}
        self.earlier = self._read() if path and path.exists() else {}
        self._written = time.monotonic()

    def _read(self):
        """{key: row} of what was killed in files that are still the same."""
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            same = data["port"] == self.port
            return {row["key"]: row for row in data["mutants"]
                    if same and row["verdict"] == KILLED
                    and data["files"].get(row["file"])
                    == self.digests.get(row["file"])}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"{str(self.path)!r} holds no results of mutants; choose "
                "another file.") from None

    def known(self, mutant):
        """A mutant's Result if it need not be tried, else None."""
        if row := self.earlier.get(mutant.key):
            return Result(mutant, *(row[field.name] for field in
                                    dataclasses.fields(Result)[1:]))
        if entry := equivalent.entry_of(self.port, mutant):
            return Result(mutant, EQUIVALENT, words=entry.why)
        return None

    def add(self, result):
        """Take a Result in; write the file from time to time."""
        self.found[result.mutant.key] = result
        if time.monotonic() - self._written > EVERY:
            self.write()

    def write(self):
        """Write the file, if there is one."""
        if self.path:
            rows = {key: row for key, row in self.earlier.items()
                    if key not in self.found}
            write_json(self.path, {
                "schema": 1, "port": self.port, "files": self.digests,
                "mutants": [*(result.as_json()
                              for result in self.found.values()),
                            *rows.values()]})
        self._written = time.monotonic()

    def survived(self):
        """The Results of those that nothing noticed or explains."""
        return sorted((result for result in self.found.values()
                       if result.verdict == SURVIVED), key=place)

    def counts(self):
        """{file: Counter of verdicts}, by the files' names."""
        counted = {}
        for result in sorted(self.found.values(), key=place):
            counted.setdefault(result.mutant.file, collections.Counter())[
                result.verdict] += 1
        return counted


def place(result):
    """What sorts Results by where their mutants stand."""
    return result.mutant.file, result.mutant.start
