"""Every writer of files, to be killed, denied room and disturbed.

A Writer writes its number n, and reads back the number of what stands there,
or fails if that is not whole: a part missing, a half, two numbers mixed.
"""

import contextlib
import dataclasses
import itertools
import json
import multiprocessing
import pathlib
import time
import types
import typing

import numpy as np

from transformer_contract import weights
from parity_io import files
from parity_io.errors import InputError
from transformer_contract.tokenizer import Tokenizer
from parity import ports
from parity.reading import pages
from parity.runs import training
from parity.tracing import folder as dumps
from parity.tracing.trace import MODULE, WHOLE, Step, Trace
from parity_tests.support.disks import full
from parity_tests.support.runs import tiny_run

#: So many lines, numbers or pages are of one number.
PARTS = 2000


@dataclasses.dataclass(frozen=True)
class Writer:
    """What writes a number to a path, and reads it.

    Attributes:
        write: of (path, n); n rises from 1.
        read: of a path; the number that stands there.
    """

    write: typing.Callable
    read: typing.Callable


def the_one(numbers):
    """The number that all of these are."""
    one, = set(numbers)
    return int(one)


def write_text(path, n):
    files.write_whole(path, f"{n}\n" * PARTS)


def read_text(path):
    lines = files.read_text(path).split("\n")
    assert len(lines) == PARTS + 1
    return the_one(lines[:-1])


def write_json(path, n):
    files.write_json(path, [n] * PARTS)


def read_json(path):
    return the_one(json.loads(path.read_text()))


def arrays_of(n):
    return {name: np.full(PARTS, float(n)) for name in "abc"}


def number_in(arrays):
    return the_one(np.concatenate([array.ravel() for array in arrays]))


def write_arrays(path, n):
    weights.save(path, arrays_of(n), n=n)


def read_arrays(path):
    arrays, metadata = weights.load(path)
    return the_one([number_in(arrays.values()),
                    weights.described(metadata)["n"]])


def write_tokenizer(path, n):
    tokenizer = Tokenizer.load()
    tokenizer.inner.add_tokens([f"<{i}>" for i in range(n % 50)])
    tokenizer.save(path)
    write_text(path.with_name(f"{path.name}.n"), n)


def read_tokenizer(path):
    Tokenizer.load(path)
    return read_text(path.with_name(f"{path.name}.n"))


def write_dump(path, n):
    path.mkdir(exist_ok=True)
    arrays = arrays_of(n)
    whole = Step(WHOLE, WHOLE, "Model", MODULE, 0, 1, arrays, arrays)
    dumps.dump(Trace("torch", {}, {}, "float64", [whole], arrays, []),
               path / str(n))


def read_dump(path):
    numbers = sorted(int(each.name) for each in path.iterdir()
                     if each.suffix != files.SUFFIX)
    for n in numbers:
        assert number_in(dumps.load(path / str(n)).parameters.values()) == n
    return numbers[-1] if numbers else 0


class Numbers(pages.Site):
    """A site whose pages say a number."""

    def __init__(self, n):
        self.n, self.root = n, pathlib.Path(__file__).parent
        self.values = types.SimpleNamespace(versions=dict)

    def addresses(self):
        return [f"{i}.html" for i in range(9)]

    def pages(self):
        for name in self.addresses():
            yield name, f"{self.n}\n" * (PARTS // 10)

    def assets(self):
        return {"style.css": ""}


def write_site(path, n):
    Numbers(n).write(path)


def read_site(path):
    here = sorted(path.glob("*.html"))
    assert len(here) == 9 and (path / pages.MARK).is_file()
    return the_one(word for page in here for word in page.read_text().split())


def write_run(path, n):
    """A run of n steps, each saved; it is begun or resumed as the command."""
    resume = (path / training.CHECKPOINT).exists()
    with training.claimed(path, resume):
        run = tiny_run(ports.engine("numpy"), path)
        if resume:
            run.load()
        run.check_room()
        run.train_step()
        run.save()
        run.save_weights()


def read_run(path):
    run = tiny_run(ports.engine("numpy"), path)
    run.load()
    assert [row[0] for row in run.curve] == list(range(1, run.step + 1))
    if (path / training.WEIGHTS).exists():
        weights.load(path / training.WEIGHTS)
    return run.step


def write_curve(path, n):
    training.write_curve(path, [
        [i + 1, float(n), float(n), float(n), None, None]
        for i in range(PARTS // 10)])


def read_curve(path):
    rows = training.read_curve(path)
    assert len(rows) == PARTS // 10
    return the_one(value for row in rows for value in row[1:4])


WRITERS = {
    "text": Writer(write_text, read_text),
    "JSON": Writer(write_json, read_json),
    "arrays": Writer(write_arrays, read_arrays),
    "tokenizer": Writer(write_tokenizer, read_tokenizer),
    "dump": Writer(write_dump, read_dump),
    "site": Writer(write_site, read_site),
    "training run": Writer(write_run, read_run),
    "curve": Writer(write_curve, read_curve),
}


def largest(path):
    """The bytes of the largest file at a path."""
    return max(each.stat().st_size for each in (path, *path.rglob("*"))
               if each.is_file())


def litter(path):
    """What unfinished writers left beside and inside a path."""
    return [each for where in (path.parent, path) if where.is_dir()
            for each in where.glob("*" + files.SUFFIX)]


# In another process

#: Processes begin from one that has imported all this and computed nothing.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


def write_on(name, path, first, told):
    """Write rising numbers until killed; tell each that is finished."""
    for n in itertools.count(first):
        with contextlib.suppress(InputError):  # another is at work
            WRITERS[name].write(pathlib.Path(path), n)
            told.send(n)


@contextlib.contextmanager
def at_work(name, path, first=1, count=1):
    """So many processes that write on; killed at the end of the block.

    Yields what gives the last numbers that they finished, once one is.
    """
    links = [PROCESSES.Pipe(duplex=False) for _ in range(count)]
    processes = [PROCESSES.Process(
        target=write_on, args=(name, str(path), first, told),
        daemon=True) for _, told in links]
    finished = [0] * count

    def last():
        for i, (hears, _) in enumerate(links):
            with contextlib.suppress(EOFError):
                while hears.poll():
                    finished[i] = hears.recv()
        return finished
    try:
        for process in processes:
            process.start()
        for _, told in links:
            told.close()
        while not any(last()):
            assert all(process.is_alive() for process in processes)
            time.sleep(0.001)
        yield last
    finally:
        for process in processes:
            process.kill()
            process.join()


def without_room(name, path, n, size):
    """Write a number where no file may become larger than ``size``."""
    with full(size):
        WRITERS[name].write(path, n)
