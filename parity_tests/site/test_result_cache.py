"""What was made for pages is taken again, as long as it would be the same."""

import importlib
import pathlib
import pickle
import sys
import time

import pytest

from parity.reading import lessons, prebuild, result_cache


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """A lesson that is a file of the project, and that says how often it ran.
    """
    project = tmp_path / "project"
    project.mkdir()
    path = project / "01_one.py"
    path.write_text(f"# %%\nwith open({str(tmp_path / 'ran')!r}, 'a') as f:\n"
                    "    f.write('x')\nprint(6 * 7)\n", encoding="utf-8")
    monkeypatch.setattr(result_cache, "PACKAGES", project)
    monkeypatch.setattr(result_cache.read_here, "__defaults__", (project,))
    return path


def ran(lesson, folder):
    """What a lesson prints, made here, and how often it has run by then."""
    job = lessons.shown, lesson, ()
    found = result_cache.load(folder, job) or (
        result_cache.compute(folder, *job),)
    return found[0][0][0].output, len(
        (lesson.parent.parent / "ran").read_text("utf-8"))


def test_what_is_as_it_was_is_not_made_again(lesson, tmp_path):
    folder = tmp_path / "kept"
    assert ran(lesson, folder) == ("42", 1)
    assert ran(lesson, folder) == ("42", 1)
    lesson.write_text(lesson.read_text("utf-8").replace("6 *", "5 *"))
    assert ran(lesson, folder) == ("35", 2)
    assert ran(lesson, folder) == ("35", 2)
    assert len(list(folder.iterdir())) == 1


def test_another_version_of_anything_makes_it_again(
        lesson, tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    ran(lesson, folder)
    monkeypatch.setattr(result_cache, "installed", lambda: "newer")
    assert ran(lesson, folder) == ("42", 2)


@pytest.mark.parametrize("content", [
    b"", b"no pickle", pickle.dumps(1), pickle.dumps(("", {}, 1))])
def test_what_is_damaged_is_made_again(lesson, tmp_path, content):
    folder = tmp_path / "kept"
    ran(lesson, folder)
    file, = folder.iterdir()
    file.write_bytes(content)
    assert ran(lesson, folder) == ("42", 2)


def test_where_nothing_can_be_kept_it_is_made(lesson, tmp_path):
    folder = tmp_path / "file"
    folder.write_text("")
    assert ran(lesson, folder) == ("42", 1)
    assert ran(lesson, folder) == ("42", 2)


def test_what_changes_while_it_is_read_is_not_kept(lesson, tmp_path):
    folder = tmp_path / "kept"
    lesson.write_text(lesson.read_text("utf-8") + "import os, time\n"
                      "os.utime(__file__, 2 * (time.time() + 9,))\n")
    assert ran(lesson, folder) == ("42", 1)
    assert ran(lesson, folder) == ("42", 2)


def test_each_job_has_a_place_of_its_own(tmp_path, monkeypatch):
    jobs = [(lessons.shown, pathlib.Path("a"), ()),
            (lessons.shown, pathlib.Path("a"), ("torch",)),
            (lessons.shown, pathlib.Path("b"), ()),
            (lessons.run, pathlib.Path("a"), ())]
    assert len(jobs) == len(
        {result_cache.file_of(tmp_path, job) for job in jobs})
    here = result_cache.file_of(tmp_path, jobs[0])
    monkeypatch.setattr(result_cache, "PACKAGES", tmp_path / "another checkout")
    assert result_cache.file_of(tmp_path, jobs[0]) != here


def test_the_project_s_own_files_are_what_counts():
    """Those that are imported or opened; no library, and nothing compiled."""
    importlib.import_module("parity.cli")
    files = result_cache.read_here(time.time())
    assert __file__ in files and result_cache.__file__ in files
    assert not any("/parity/commands/" in name or name.endswith("/cli.py")
                   for name in files)
    assert not any(name.startswith(sys.prefix) or name.endswith(".pyc")
                   for name in files)


def test_the_folder_is_the_environment_s(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert result_cache.folder() == tmp_path / result_cache.NAME
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert result_cache.folder() is None


def test_what_is_kept_starts_no_process(lesson, tmp_path, monkeypatch):
    """Where all that is asked for is there."""
    folder = tmp_path / "kept"
    job = lessons.shown, lesson, ()
    monkeypatch.setattr(prebuild, "jobs", lambda *names: iter([job]))
    result_cache.compute(folder, *job)
    monkeypatch.setattr(
        prebuild.concurrent.futures, "ProcessPoolExecutor", None)
    with prebuild.running((), folder=folder) as call:
        assert call(*job)[0][0].output == "42"
    assert len((tmp_path / "ran").read_text("utf-8")) == 1
