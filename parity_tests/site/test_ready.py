"""The ready pages of a release: packed, unpacked, damaged, made anew."""

import json
import zipfile

import pytest

from parity_io.errors import InputError
from parity.commands import read as command
from parity.reading import lessons, ready, serving, sources, teaching
from parity_tests.support.commands import invoke

PAGES = {"index.html": b"<p>one</p>" * 90, "style.css": b"p {}",
         ready.MARK: json.dumps({"pages": {"index.html": 900}, "with": {
             "numpy": "NumPy 2", "jax": "JAX 0.10"}}).encode()}


@pytest.fixture
def archive(tmp_path):
    """The archive of a small site."""
    site = tmp_path / "site"
    site.mkdir()
    for name, data in PAGES.items():
        (site / name).write_bytes(data)
    path = tmp_path / "ready" / "pages.zip"
    ready.pack(site, path)
    return path


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_pages_come_back_the_same(archive, tmp_path):
    before = archive.read_bytes()
    assert ready.pack(tmp_path / "site", archive) == len(before)
    assert archive.read_bytes() == before
    for _ in range(2):  # the second time in place of the first
        mark = ready.unpack(tmp_path / "out", archive)
        assert mark["pages"] == {"index.html": 900}
        assert written(tmp_path / "out") == PAGES


def test_another_folder_is_left_alone(archive, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="something else"):
        ready.unpack(tmp_path / "out", archive)
    assert list(written(tmp_path / "out")) == ["thesis.txt"]


def test_a_folder_that_cannot_be_made_is_found_before(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="no folder that can be written to"):
        ready.refuse(tmp_path / "file" / "site")
    ready.refuse(tmp_path / "new" / "site")
    with pytest.raises(InputError, match="something else"):
        ready.refuse("/")

    def refused(**where):
        raise PermissionError

    monkeypatch.setattr(ready.tempfile, "mkdtemp", refused)
    found = invoke("read", "--out", str(tmp_path / "site"))
    assert found.exit_code == 2 and "choose another" in found.stderr
    assert not (tmp_path / "site").exists()


def crafted(archive, files):
    with zipfile.ZipFile(archive, "w") as made:
        for name, data in files.items():
            made.writestr(name, data)


@pytest.mark.parametrize("damage", [
    lambda path, data: path.write_bytes(data[:len(data) // 2]),
    lambda path, data: path.write_bytes(b""),
    lambda path, data: path.unlink(),
    lambda path, data: path.write_bytes(
        data[:60] + bytes([data[60] ^ 255]) + data[61:]),
    lambda path, data: crafted(path, {"index.html": "x"}),
    lambda path, data: crafted(path, {**PAGES, "../x.html": "x"}),
    lambda path, data: crafted(path, {**PAGES, ready.MARK: "[]"}),
    lambda path, data: crafted(path, {
        **PAGES, ready.MARK: '{"pages": {"gone.html": 1}}'}),
])
def test_damaged_pages_are_refused_whole(archive, tmp_path, damage):
    damage(archive, archive.read_bytes())
    with pytest.raises(InputError, match="damaged; make new ones"):
        ready.unpack(tmp_path / "out", archive)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "x.html").exists()


@pytest.fixture
def installed(archive, monkeypatch):
    """As in a wheel: ready pages, and nothing that makes others."""
    def making(*names):
        raise InputError("other pages are made.")
    monkeypatch.setattr(ready, "are_here", lambda: True)
    monkeypatch.setattr(ready.unpack, "__defaults__", (archive,))
    monkeypatch.setattr(command, "_modules", making)


def test_read_opens_them_at_once(installed, tmp_path):
    out = tmp_path / "out"
    answer = invoke("read", "--out", str(out))
    assert answer.exit_code == 0 and written(out) == PAGES
    assert "made with NumPy 2; JAX 0.10; --rebuild" in answer.output
    assert f"wrote 1 pages to {out}" in answer.output


def test_serve_opens_them_too_and_no_browser_for_a_pipe(
        archive, monkeypatch, tmp_path):
    served = []
    monkeypatch.setattr(ready, "are_here", lambda: True)
    monkeypatch.setattr(ready.unpack, "__defaults__", (archive,))
    monkeypatch.setattr(serving, "serve", lambda *given: served.append(given))
    out = tmp_path / "out"
    for _ in range(2):  # the second time they are there already
        answer = invoke(
            "read", "--serve", "--port", "torch", "--tcp-port", "0", "--out",
            str(out))
        assert answer.exit_code == 0, answer.output
        assert written(out) == PAGES
    assert [(given[0].folder, *given[1:]) for given in served] == [
        (out, 0, False)] * 2
    assert "ready pages, made with" not in answer.output
    assert "are of other code than is here" in answer.output


@pytest.mark.parametrize("option", [["--rebuild"], ["--port", "torch"]])
def test_and_makes_others_where_it_is_asked(installed, tmp_path, option):
    answer = invoke("read", "--out", str(tmp_path / "out"), *option)
    assert answer.exit_code == 2 and "other pages are made" in answer.output


def test_a_checkout_opens_those_of_its_own_code_alone(
        archive, monkeypatch, tmp_path):
    monkeypatch.setattr(ready, "ARCHIVE", archive)
    assert not ready.are_here()
    mark = json.loads(PAGES[ready.MARK]) | {"of": ready.made_of()}
    (tmp_path / "site" / ready.MARK).write_text(json.dumps(mark))
    ready.pack(tmp_path / "site", archive)
    assert ready.are_here()
    assert ready.there(tmp_path / "site") == mark
    (tmp_path / "site" / "index.html").unlink()
    assert ready.there(tmp_path / "site") is None


def test_pages_made_by_a_wheel_have_its_lessons(monkeypatch, tmp_path):
    """It has them beside its weights, and not beside the four."""
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    assert teaching.folder(tmp_path) == lessons.FOLDER
    assert teaching.folder(tmp_path / "x") == tmp_path / "x" / "lessons"
