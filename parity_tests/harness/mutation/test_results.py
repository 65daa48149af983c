"""What became of the mutants: kept, found again, explained; and a sample."""

import functools
import json
import pathlib

import pytest

from transformer_contract.errors import InputError
from parity import ports
from parity.mutation import entries, equivalent
from parity.mutation.mutants import mutants, sampled
from parity.mutation.results import (
    EQUIVALENT, KILLED, SURVIVED, Result, Results)
from parity.mutation.run import Hunt
from parity_tests.support.engines import usable

DATA = pathlib.Path(__file__).parents[2] / "data"

QUICK = ("beginning", "borders", "lesson float64: transformer",
         "lesson float64: gradients", "lesson: greedy", "lesson: sample")

TEXTS = {"a.py": "def f(x, y):\n    return x + y\n",
         "b.py": "def g(x):\n    return x * 2\n"}


def both():
    return [mutants(file, text) for file, text in TEXTS.items()]


def test_a_run_goes_on_from_its_file(tmp_path):
    """What was killed is not tried again; what survived is."""
    path = tmp_path / "r.json"
    of_a, of_b = both()
    first = Results("torch", TEXTS, path)
    first.add(Result(of_a[0], KILLED, "q", "w", 3, 0.5))
    first.add(Result(of_b[0], SURVIVED))
    first.write()
    again = Results("torch", TEXTS, path)
    assert again.known(of_a[0]) == Result(of_a[0], KILLED, "q", "w", 3, 0.5)
    assert again.known(of_b[0]) is None
    again.write()
    assert [row["verdict"] for row in json.loads(path.read_text())[
        "mutants"]] == [KILLED]


@pytest.mark.parametrize("port, texts", [
    ("jax", TEXTS), ("torch", {**TEXTS, "a.py": TEXTS["a.py"] + "\n"})])
def test_results_of_another_source_do_not_count(tmp_path, port, texts):
    path, (of_a, _) = tmp_path / "r.json", both()
    first = Results("torch", TEXTS, path)
    first.add(Result(of_a[0], KILLED, "q", "w"))
    first.write()
    assert Results(port, texts, path).known(of_a[0]) is None


@pytest.mark.parametrize("content", ["", "[]", '{"port": 1}', "\0"])
def test_a_file_without_results(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(InputError, match="no results of mutants"):
        Results("torch", TEXTS, path)


def test_an_explained_mutant_is_not_tried(monkeypatch):
    mutant = both()[0][0]
    entry = entries.Equivalent(
        ("torch",), "a.py", mutant.text, (mutant.edit,), "it is so", list)
    monkeypatch.setattr(equivalent, "EQUIVALENT", (entry,))
    results = Results("torch", TEXTS)
    assert results.known(mutant) == Result(
        mutant, EQUIVALENT, words="it is so")
    assert Results("jax", TEXTS).known(mutant) is None


def test_numbers_of_each_file():
    results = Results("torch", TEXTS)
    of_a, of_b = both()
    results.add(Result(of_a[0], KILLED))
    results.add(Result(of_a[1], SURVIVED))
    results.add(Result(of_b[0], EQUIVALENT))
    assert results.counts() == {"a.py": {KILLED: 1, SURVIVED: 1},
                                "b.py": {EQUIVALENT: 1}}
    assert [one.mutant for one in results.survived()] == [of_a[1]]


def explained():
    return [pytest.param(entry, id=f"{entry.file}: {entry.edits[0]}")
            for entry in equivalent.EQUIVALENT]


def texts(port, file):
    """A port's files of a name: the paper's, and dialects'."""
    return [path.read_text("utf-8") for path in (
        ports.folder(port) / file, ports.folder(port) / "dialects" / file)
        if path.is_file()]


@pytest.mark.long
@pytest.mark.parametrize("entry", explained())
def test_an_equivalent_is_one(entry):
    """Its edits exist, and its reason holds."""
    edits = {edit for port in entry.ports for text in texts(port, entry.file)
             for mutant in mutants(entry.file, text)
             if mutant.text == entry.text for edit in mutant.edits}
    assert edits and set(entry.edits) - {entries.ANY} <= edits
    if entry.why == entries.NO_DEVICE and any(
            devices(port) != ["cpu"] for port in entry.ports):
        pytest.skip("not checked: other devices are here, so that an edit of "
                    "their names counts")
    entry.proof()


def test_a_line_that_is_explained_stands_there():
    """An entry whose line was written anew explains nothing."""
    def packed(text):
        return "".join(text.split())

    assert [(entry.file, entry.text) for entry in equivalent.EQUIVALENT
            if not any(packed(entry.text) in packed(text)
                       for port in entry.ports
                       for text in texts(port, entry.file))] == []


def devices(port):
    return usable(port).devices()


@functools.cache
def unexplained(port):
    """The keys of mutants known to survive, which nobody has explained yet.

    They are a debt: each asks for a condition, for less code or for an entry
    in parity.mutation.equivalent. ``parity mutate`` tells them as survivors.
    """
    rows = (DATA / "survivors.tsv").read_text("utf-8").splitlines()[1:]
    return frozenset(key for name, key in (
        row.split("\t", 1) for row in rows) if name == port)


@pytest.mark.parametrize("port", ports.known_ports())
def test_an_unexplained_mutant_is_one(port):
    """What is gone, or is explained now, leaves the list."""
    files = {key.split("\t")[0] for key in unexplained(port)}
    every = {mutant.key: mutant for mutant in Hunt(port).mutants(files)}
    assert not unexplained(port) - every.keys()
    assert not [key for key in unexplained(port)
                if equivalent.entry_of(port, every[key])]


def told(results):
    """Where mutants are, of some Results."""
    return [(one.mutant.file, one.mutant.line, one.mutant.edit)
            for one in results]


@pytest.mark.long(12)
def test_no_other_mutant_of_torch_survives(request):
    """One of them, another each commit; without a sample's seed all."""
    usable("torch")
    seed, hunt = request.config.getoption("sample"), Hunt("torch")
    every = hunt.mutants()
    drawn = [mutant for mutant in (sampled(every, 1, seed) if seed else every)
             if not equivalent.entry_of("torch", mutant)]
    new = [mutant for mutant in drawn
           if mutant.key not in unexplained("torch")]
    try:
        if seed:
            found = list(hunt.few(new))
        else:
            found = list(hunt.many(drawn))
    finally:
        hunt.close()
    survived = [one for one in found if one.verdict == SURVIVED]
    assert told(one for one in survived
                if one.mutant.key not in unexplained("torch")) == []
    assert seed or {one.mutant.key for one in survived} == unexplained("torch")


@pytest.mark.long(12)
def test_quick_questions_do_not_notice_an_equivalent(request):
    """If one does, what explains the edit is wrong."""
    usable("torch")
    seed, hunt = request.config.getoption("sample") or "all", Hunt("torch")
    explained = [mutant for mutant in hunt.mutants()
                 if equivalent.entry_of("torch", mutant)]
    try:
        found = list(hunt.few(sampled(explained, 3, seed), names=QUICK))
    finally:
        hunt.close()
    assert told(one for one in found if one.verdict == KILLED) == []
