"""Files are written whole, or not at all: killed, full, two at once."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from transformer_contract import weights
from parity_io import array_file, files
from parity_io.errors import InputError
from transformer_contract.tokenizer import Tokenizer
from parity_tests.support.disks import full


def killed(code, folder, after=0.0):
    """Run Python, kill it after it prints, and return what stands there."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=folder,
        stdout=subprocess.PIPE, env=os.environ | {
            "PYTHONPATH": str(files.pathlib.Path(__file__).parents[2])})
    child.stdout.readline()
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return sorted(path.name for path in folder.iterdir())


WRITING = """
    import time
    from parity_io.files import new_file, new_folder
    with new_{kind}("a") as path:
        print(path, flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_litter_of_a_killed_writer_is_removed_by_the_next(tmp_path, kind):
    litter, = killed(WRITING.format(kind=kind), tmp_path)
    assert litter.startswith(".a.") and litter.endswith(".partial")
    with getattr(files, f"new_{kind}")(tmp_path / "a"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_litter_of_other_names_is_left(tmp_path):
    (tmp_path / ".b.x.partial").write_text("")
    (tmp_path / "a.partial").write_text("")
    files.write_whole(tmp_path / "a", "text")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_writer_at_work_is_not_disturbed(tmp_path):
    with files.new_file(tmp_path / "a") as first:
        files.write_whole(tmp_path / "a", "second")
        first.write_text("first")
    assert (tmp_path / "a").read_text() == "first"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_is_exchanged_at_every_kill(tmp_path):
    """Never is there none, nor one of old and new pages."""
    code = """
        import itertools
        from parity_io.files import new_folder
        print("ready", flush=True)
        for number in itertools.count():
            with new_folder("site", replace=True) as path:
                for name in "abc":
                    (path / name).write_text(str(number))
    """
    site = tmp_path / "site"
    with files.new_folder(site) as path:
        for name in "abc":
            (path / name).write_text("old")
    for i in range(10):
        killed(code, tmp_path, 0.01 * i)
        assert len({(site / name).read_text() for name in "abc"}) == 1
    with files.new_folder(site, replace=True) as path:
        (path / "a").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert [path.name for path in site.iterdir()] == ["a"]


def test_an_exchange_where_the_system_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(files.ctypes, "CDLL", lambda *a, **k: object())
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    files.exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one/other").exists()
    assert (tmp_path / "other/one").exists()


ARRAYS = {"a": np.arange(5000.0), "b": np.ones((3, 4), np.float32)}

WRITERS = {
    "text": lambda path: files.write_whole(path, "x" * 50_000),
    "arrays": lambda path: weights.save(path, ARRAYS),
    "tokenizer": lambda path: Tokenizer.load().save(path),
}


@pytest.mark.parametrize("size", [0, 1, 5000, 20_000])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_a_sentence(tmp_path, name, size):
    path = tmp_path / "a"
    path.write_bytes(b"")
    with full(size), pytest.raises(InputError, match="make room") as found:
        WRITERS[name](path)
    assert str(path) in str(found.value) and "\n" not in str(found.value)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b""


def test_room_is_found_missing_beforehand(tmp_path):
    files.check_room(tmp_path, 100_000)
    with full(50_000), pytest.raises(InputError, match="make room"):
        files.check_room(tmp_path, 100_000)
    with pytest.raises(InputError, match="make room"):
        files.check_room(tmp_path, 1 << 60)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full", "fifo", "folder"])
def test_what_is_no_ordinary_file_is_refused(tmp_path, path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError):
        files.check_writable(tmp_path / path)
    with pytest.raises(InputError, match="no ordinary file"):
        files.write_whole(tmp_path / path, "text")


def test_no_file_is_written_over_another(tmp_path):
    for path in ("a", "./a", f"../{tmp_path.name}/a"):
        for words in ({"read": [tmp_path / "a", None]}, {}):
            with pytest.raises(InputError, match="another file of this"):
                files.check_writable(
                    tmp_path / path, None, *(() if words else [tmp_path / "a"]),
                    **words)
    files.check_writable(tmp_path / "a", tmp_path / "b", read=[tmp_path])


def test_a_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    files.write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def none(handle, how):
        raise OSError(errno.ENOTSUP, "none")
    monkeypatch.setattr(files.fcntl, "flock", none)
    files.write_whole(tmp_path / "a", "text")
    assert (tmp_path / "a").read_text() == "text"


# Damage

def test_every_flipped_bit_is_found_or_harmless(tmp_path):
    """Of a file that we wrote; in its header and in its arrays."""
    path, draw = tmp_path / "a", np.random.default_rng(0)
    weights.save(path, ARRAYS, config={"d_model": 48})
    whole, found = path.read_bytes(), 0
    header = range(8 * 200)
    for bit in [*header, *draw.integers(0, 8 * len(whole), 200)]:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            arrays, metadata = weights.load(path)
        except InputError:
            found += 1
            continue
        kept = weights.described(metadata)  # only words of the metadata's key
        assert kept.get("config", {}) in ({}, {"d_model": 48})
        assert weights.digest(arrays) == weights.digest(ARRAYS)
    assert found > 1600


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    weights.save(tmp_path / "a", {"x": np.ones(2)})

    def refused(path, framework):
        raise FileNotFoundError
    monkeypatch.setattr(array_file, "safe_open", refused)
    with pytest.raises(InputError, match="may not be read"):
        weights.load(tmp_path / "a")


def test_a_full_disk_is_told_by_the_name_that_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with full(1000), pytest.raises(InputError) as told:
        with files.new_folder("out") as folder:
            files.write_whole(folder / "a", "x" * 10_000)
    assert "'out/a' cannot be written" in str(told.value)
    assert not list(tmp_path.iterdir())


def test_files_without_a_checksum_are_read(tmp_path):
    from safetensors.numpy import save_file
    for metadata in (None, {"format": "pt"}, {"parity": '{"preset": "x"}'},
                     {"parity": "no JSON"}, {"parity": "[1]"}):
        save_file(ARRAYS, tmp_path / "a", metadata=metadata)
        arrays, _ = weights.load(tmp_path / "a")
        assert weights.digest(arrays) == weights.digest(ARRAYS)
