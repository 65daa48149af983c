"""The run: every mutant of a port, and the question that noticed it.

A process of its own works for the port. It is asked one question after the
other, so that a mutant which never ends is ended with the process, and the
next one has a new process.
"""

import collections
import concurrent.futures
import math
import time

from parity.check import workers
from parity.mutation import questions
from parity.mutation.importing import Texts
from parity.mutation.mutants import mutants
from parity.mutation.results import KILLED, SURVIVED, Result
from parity.numerics.comparator import DIVERGENCE

#: A question may take so many seconds, and so many times its own time.
PATIENCE, TIMES = 10, 10

#: How a question begins to tell of a process that had no answer in time.
LATE = "no answer in"

#: How much more than an edit elsewhere in the file one of the same statement
#: tells of which question notices it.
SAME = 30

#: So many mutants are tried by one process: frameworks keep what they compiled.
FRESH = 100

#: What stands for the lines that run while a port is imported.
IMPORT = "import"


class Hunt:
    """A port, what runs which line, and a process that tries mutants.

    Args:
        name: the port's.
    """

    def __init__(self, name):
        self.name = name
        self.texts = Texts(name).texts
        self.process, self.installed = None, 0
        self.seconds, self.lines = {}, {}
        self.kills = collections.Counter()  # by question, file and statement

    def mutants(self, files=None):
        """Every Mutant of the port, or of some of its files."""
        return [mutant for file in (self.texts if files is None else files)
                for mutant in mutants(file, self.texts[file])]

    def ask(self, function, *arguments, patience=None):
        """A Reply, or None if there was none in time: the process is ended."""
        if self.process is None:
            self.process = workers.Apart(self.name)
        try:
            told = self.process.ask(
                "", function, *arguments).result(patience)
        except Exception as error:  # what it sent is no Reply
            told = (None if isinstance(error, concurrent.futures.TimeoutError)
                    else workers.Reply(None, workers.words_of(error), 0.0))
        if told is None or told.failure:
            self.close()
        return told

    def close(self):
        """End the process."""
        if self.process:
            self.process.close()
        self.process = None

    def many(self, mutants, tell=lambda text: None):
        """Yield the Result of each of many mutants, as it is known.

        The first questions, which kill nearly all, are prepared and asked of
        each mutant; the others only of what is left.

        Args:
            tell: called with a text, for progress.

        Raises:
            RuntimeError: the port diverges as it is, or cannot be asked.
        """
        first = [name for name in questions.questions()
                 if not name.startswith(questions.LAST)]
        self.ready(IMPORT)
        for name in first:
            tell(f"as it is · {name}")
            self.ready(name)
        left = []
        for place, mutant in enumerate(mutants, start=1):
            tell(f"{place} of {len(mutants)} · {mutant.file}:{mutant.line} · "
                 f"{mutant.edit}")
            result = self.tried(mutant, first)
            if result.verdict == KILLED:
                yield result
            else:
                left.append(mutant)
        yield from self.few(left, tell, [
            name for name in questions.questions() if name not in first])

    def ready(self, name):
        """Ask the port as it is one question, unless that is done."""
        if name in self.lines:
            return
        told = self.ask(recorded, name)
        if told.failure:
            raise RuntimeError(f"{self.name}: {name}: {told.failure}")
        words, ran = told.value
        if words:
            raise RuntimeError(f"{self.name}: {name}: {words}")
        self.lines[name], self.seconds[name] = set(ran), told.seconds

    def wanted(self, mutant, names=None):
        """The questions that run a mutant's line, the most promising first.

        That are the quickest, and those that noticed other edits of the file
        and, most of all, of the same statement.

        Args:
            names: of these questions; None is all.
        """
        def runs(name):
            return (mutant.file, mutant.statement) in self.lines[name]

        def cost(name):
            likely = 1 + self.kills[name, mutant.file] + SAME * self.kills[
                name, mutant.file, mutant.statement]
            return (self.seconds[name] + 1e-3) / likely

        always = runs(IMPORT)
        order = {name: i for i, name in enumerate(questions.questions())}
        return sorted(
            (name for name in names or order if always or runs(name)),
            key=lambda name: (round(math.log(cost(name), 4)), order[name]))

    def few(self, mutants, tell=lambda text: None, names=None):
        """Yield the Result of each of some mutants, as it is known.

        Questions are prepared one after the other, and only until every mutant
        is killed: quick where all of them would take longer than the mutants.

        Args:
            names: ask these questions; None is all.
        """
        self.ready(IMPORT)
        alive = {mutant: 0 for mutant in mutants}
        for name in names or questions.questions():
            if alive:
                tell(f"{len(alive)} left · {name}")
                self.ready(name)
            for mutant in list(alive):
                result = self.tried(mutant, [name])
                alive[mutant] += result.asked
                if result.verdict == KILLED:
                    del alive[mutant]
                    yield result
        for mutant, asked in alive.items():
            yield Result(mutant, SURVIVED, asked=asked)

    def tried(self, mutant, names=None, again=False):
        """The Result of a mutant, by all questions or by some.

        Where its process ends or is late, so has a second one to be.
        """
        start, names = time.perf_counter(), self.wanted(mutant, names)
        question, words = "", ""
        if names:
            text = mutant.applied(self.texts[mutant.file])
            question = IMPORT
            self.installed += 1
            if self.installed % FRESH == 0:
                self.close()
            words = self.said(installed, mutant.file, text,
                              patience=PATIENCE + TIMES)
            for question in () if words else names:
                words = self.said(
                    noticed, question,
                    patience=PATIENCE + TIMES * self.seconds[question])
                if words:
                    break
            # It may have been killed from outside, or the machine was busy.
            if words.startswith((workers.ENDED, LATE)) and not again:
                return self.tried(mutant, names, again=True)
            if question != IMPORT and words:
                self.kills[question, mutant.file] += 1
                self.kills[question, mutant.file, mutant.statement] += 1
        return Result(
            mutant, KILLED if words else SURVIVED, question if words else "",
            words, len(names), time.perf_counter() - start)

    def said(self, function, *arguments, patience):
        """What a mutant gives itself away by, in words; "" if by nothing."""
        told = self.ask(function, *arguments, patience=patience)
        if told is None:
            return f"{LATE} {patience:.0f} seconds"
        return told.failure or told.value


# What the process is asked


def texts(bench):
    """The port's Texts, made once a process."""
    if not hasattr(bench, "texts"):
        bench.texts = Texts(bench.engine.NAME)
    return bench.texts


def installed(bench, file, text):
    """Import the port with a file of this text: "" or why that fails."""
    bench.engine.set_precision()
    bench.mutated = None
    try:
        engine = texts(bench).mutated(file, text)
    except BaseException as error:
        return workers.words_of(error)
    bench.mutated = questions.Examinee(engine)
    return ""


def noticed(bench, name):
    """Ask a question of what is installed: "" or what is wrong."""
    return told_by(questions.questions()[name], bench.mutated)


def told_by(question, bench):
    """The first divergence in words, the first exception, or ""."""
    try:
        found = question.ask(bench)
    except BaseException as error:
        return workers.words_of(error)
    for step, difference in found.items():
        if difference.verdict == DIVERGENCE:
            words = difference.reason or f"error {difference.error:.1e}"
            return f"{step}: {words}"
    return "" if found else "nothing was compared"


def recorded(bench, name):
    """Ask the port as it is: ("" or what is wrong, [(file, line)] that ran).

    Args:
        name: a question's, or IMPORT.
    """
    bench.engine.set_precision()
    engine, ran = texts(bench).probed(), texts(bench).ran
    if name == IMPORT:
        return "", sorted(ran)
    ran.clear()
    words = told_by(questions.questions()[name], questions.Examinee(engine))
    return words, sorted(ran)
