"""Writers that are killed, have no room, or meet another: nothing is lost.

What stands afterwards is whole, of one number, and no older than the last one
that was said to be finished; and the next writer removes the litter.
"""

import random
import time

import pytest

from parity_io.errors import InputError
from parity_tests.support.writers import (
    WRITERS, at_work, largest, litter, without_room)

pytestmark = pytest.mark.long

#: Of each writer, with eight of them: 200, 104 and 56.
KILLS, SIZES, PAIRS = 25, 13, 7


@pytest.fixture
def path(tmp_path):
    return tmp_path / "here" / "a"


@pytest.fixture(params=WRITERS)
def name(request, path):
    """A writer that has written its first number."""
    path.parent.mkdir()
    WRITERS[request.param].write(path, 1)
    return request.param


@pytest.mark.parametrize("kill", range(KILLS))
def test_killed(name, path, kill, record_property):
    writer, moment = WRITERS[name], random.Random(f"{name} {kill}")
    with at_work(name, path, first=2) as finished:
        time.sleep(moment.uniform(0, 0.05))
    last, = finished()
    record_property("in the middle", bool(litter(path)))
    stands = writer.read(path)
    assert last <= stands <= last + 1
    writer.write(path, stands + 1)
    assert writer.read(path) == stands + 1
    assert litter(path) == []


@pytest.mark.parametrize("part", range(SIZES))
def test_no_room(name, path, part):
    """For so many parts of what the largest file needs."""
    writer = WRITERS[name]
    room = largest(path) * part // SIZES
    with pytest.raises(InputError, match="cannot be written"):
        without_room(name, path, 2, room)
    assert writer.read(path) == 1
    assert litter(path) == []
    writer.write(path, 2)
    assert writer.read(path) == 2


@pytest.mark.parametrize("pair", range(PAIRS))
def test_two_at_once(name, path, pair):
    """One of two runs in a folder, and of two dumps, is refused."""
    writer, moment = WRITERS[name], random.Random(f"{name} {pair}")
    with at_work(name, path, first=2, count=2):
        time.sleep(moment.uniform(0, 0.2))
    stands = writer.read(path)
    assert stands >= 2
    writer.write(path, stands + 1)
    assert writer.read(path) == stands + 1
