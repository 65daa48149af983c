"""The ledger: the error that each port achieved, so that none grows unseen.

A limit says what a port may be off by, the ledger by how much it is off. Sound
code in float64 is a thousand times better than its limit, and could become a
hundred times worse without a word from the check. So an error of more than 4
times the recorded one fails, even below the limit, and the record changes only
by a reviewed diff of ``parity_tests/data/ledger.tsv``.

A row is one component's case, with its worst step, or in the whole model one
kind of step, such as ``scores``, at its worst depth. A row for every step would
be ten thousand lines, and would tell no more: steps follow from one another, so
that an error shows in those behind it, and by far the most lie below the floor
anyway. What must be equal, masks and other booleans, has no row.

How far off a sum is depends on the order in which a BLAS library adds, and so
on the processor: the last digits differ between machines, and what is exactly
right on one is off by an eps or two on another. An entry therefore counts as at
least FLOOR_EPS, so that no port fails below 4 times that. Some cases have
inputs that magnify rounding N times (logits times N, a mean of N deviations),
and there the floor is √N times as high, for roundings add up at random: logits
times 1000 gave 0.3 eps with one set of vector instructions and 28 with another.
"""

import collections
import dataclasses
import math
import pathlib
import re
import typing

from parity_io.errors import InputError
from parity_io.files import check_ordinary, write_whole
from transformer_contract.shipped import LEDGER
from parity.numerics import dtypes
from parity.numerics.comparator import DIVERGENCE

PATH = LEDGER

#: An error of so many times the recorded one fails.
FACTOR = 4

#: What any entry counts as at least, in eps of its dtype.
FLOOR_EPS = 2

#: Entries that moved by less than this stay as they are, in a proposal.
STEADY = 2

#: The dtypes that are recorded.
DTYPES = ("float64", "float32")

#: The case whose steps are recorded by kind, and what others' rows are called.
MODEL, WORST = "transformer", "worst step"

#: A case whose rows are no error of a port's model.
LEFT_OUT = "precision canary"

#: What a case that magnifies rounding says of itself.
MAGNIFIED = re.compile(r", (?:logits times|mean) (\d+)")

SAME, RAISED, LOWERED, NEW, GONE = "same", "raised", "lowered", "new", "gone"


class Key(typing.NamedTuple):
    """What an error is of."""

    preset: str
    case: str
    kind: str
    port: str
    dtype: str
    device: str

    def __str__(self):
        return (f"{self.preset}, {self.case}, {self.kind} "
                f"({self.port}, {self.dtype}, {self.device})")

    @property
    def part(self):
        """What is run as one: preset, port, dtype and device."""
        return self.preset, self.port, self.dtype, self.device


HEADER = "\t".join((*Key._fields, "error"))


@dataclasses.dataclass(frozen=True)
class Achieved:
    """An error that was achieved.

    Attributes:
        error: the worst relative error; infinite for a divergence.
        step: the name of the step that has it.
    """

    error: float
    step: str = ""


def achieved(rows):
    """{Key: Achieved} of a check's Rows."""
    entries: dict = {}
    for row in rows:
        if row.case == LEFT_OUT:
            continue
        kind = row.name.rpartition(".")[2] if row.case == MODEL else WORST
        for port, one in row.differences.items():
            diverges = one.verdict == DIVERGENCE
            if row.limit == 0 and not diverges:
                continue
            key = Key(row.preset, row.case, kind, port, row.dtype, row.device)
            error = math.inf if diverges else float(one.error)
            if key not in entries or error > entries[key].error:
                entries[key] = Achieved(error, row.name)
    return entries


def floor(key):
    """What an entry counts as at least."""
    magnified = MAGNIFIED.search(key.case)
    times = int(magnified[1]) if magnified else 1
    return FLOOR_EPS * math.sqrt(times) * dtypes.EPS[key.dtype]


def bound(key, old):
    """The largest error that does not fail beside the ledger's."""
    return FACTOR * max(old, floor(key))


def problems(rows, ledger=None):
    """What a check's Rows and the ledger disagree on, in sentences.

    Only what was run is compared: rows of the ledger for another preset, port,
    dtype or device stand for themselves.

    Args:
        rows: Rows of parity.check.run, whole groups of them.
        ledger: {Key: error}; by default the committed one.
    """
    ledger = read() if ledger is None else ledger
    entries = achieved(rows)
    for key, one in entries.items():
        if math.isinf(one.error):
            yield f"{key}: {one.step} diverges"
        elif key not in ledger:
            yield (f"{key}: not in the ledger; record it by parity check "
                   "ledger --propose")
        elif one.error > bound(key, ledger[key]):
            yield (f"{key}: error {one.error:.1e} at {one.step}, more than "
                   f"{FACTOR} × the recorded {written(ledger[key])}, which "
                   f"allows {bound(key, ledger[key]):.1e}")
    run = {key.part for key in entries}
    for key in ledger:
        if key.part in run and key not in entries:
            yield f"{key}: in the ledger, and no longer compared"


@dataclasses.dataclass(frozen=True)
class EntryChange:
    """An entry that a proposal changes, or would.

    Attributes:
        kind: RAISED, LOWERED, NEW or GONE.
        old, new: the errors; None where there is none.
    """

    key: Key
    kind: str
    old: float | None
    new: float | None

    @property
    def ratio(self):
        """new / old, each at least the floor; None without both."""
        if self.old is None or self.new is None:
            return None
        least = floor(self.key)
        return max(self.new, least) / max(self.old, least)


def propose(entries, ledger, allow_raise=False):
    """What the ledger would become.

    An entry that moved by less than STEADY, or below the floor, stays, so that
    a diff shows changes and not noise.

    Args:
        entries: {Key: Achieved}, what was run.
        ledger: {Key: error}.
        allow_raise: whether entries may be raised. Otherwise those that would
            be stay as they are, and are among the changes all the same.

    Returns:
        The new ledger, and the Changes, raised ones first.

    Raises:
        InputError: something diverges, which is never recorded.
    """
    for key, one in entries.items():
        if math.isinf(one.error):
            raise InputError(
                f"{key}: {one.step} diverges, which is not recorded; mend it "
                "first.")
    run = {key.part for key in entries}
    proposal, changes = {}, []
    for key, old in ledger.items():
        if key.part in run and key not in entries:
            changes.append(EntryChange(key, GONE, old, None))
        else:
            proposal[key] = old
    for key, one in entries.items():
        new = float(written(one.error))
        if key not in ledger:
            proposal[key] = new
            changes.append(EntryChange(key, NEW, None, new))
            continue
        change = EntryChange(key, SAME, ledger[key], new)
        if change.ratio > STEADY:
            changes.append(dataclasses.replace(change, kind=RAISED))
            proposal[key] = new if allow_raise else ledger[key]
        elif change.ratio < 1 / STEADY:
            changes.append(dataclasses.replace(change, kind=LOWERED))
            proposal[key] = new
    order = RAISED, LOWERED, NEW, GONE
    changes.sort(key=lambda change: (
        order.index(change.kind), -(change.ratio or 0), change.key))
    return proposal, changes


def counted(changes):
    """{kind: how many} of Changes."""
    return collections.Counter(change.kind for change in changes)


# The file

def written(error):
    """An error as the file has it: two digits, 0 as 0."""
    return f"{error:.1e}" if error else "0"


def read(path=PATH):
    """The ledger of a file: {Key: error}."""
    path = pathlib.Path(path)
    check_ordinary(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"the ledger {str(path)!r} cannot be read; make it by parity "
            "check ledger --propose.") from None
    if not lines or lines[0] != HEADER:
        raise InputError(
            f"{str(path)!r} is no ledger, for its first line is not the "
            "ledger's; make it again by parity check ledger --propose.")
    ledger = {}
    for number, line in enumerate(lines[1:], start=2):
        *words, error = line.split("\t")
        key, error = _key(words), _error(error)
        if key is None or error is None or key in ledger:
            raise InputError(
                f"line {number} of the ledger {str(path)!r} "
                + ("repeats a row" if key in ledger else "is no row of it")
                + "; mend it or take it out.")
        ledger[key] = error
    return ledger


def _key(words):
    if len(words) != len(Key._fields) or not all(words):
        return None
    key = Key(*words)
    return key if key.dtype in dtypes.DTYPES else None


def _error(word):
    try:
        error = float(word)
    except ValueError:
        return None
    return error if 0 <= error < math.inf else None


def write(ledger, path=PATH):
    """Write a ledger, sorted, whole or not at all."""
    lines = [HEADER, *("\t".join((*key, written(ledger[key])))
                       for key in sorted(ledger))]
    write_whole(path, "\n".join(lines) + "\n")
