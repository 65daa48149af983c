"""The edits: what each kind makes of a line, and what it leaves alone."""

import ast
import itertools
import pathlib

import pytest

from parity import ports
from parity.mutation import edits, mutants, words
from parity.mutation.importing import with_probes
from parity.mutation.source import ParsedFile

HEAD = "import torch\n\n\ndef f(self, x, y, mask, n_heads, d_k):\n    x = y\n"


def made(line, kind):
    """What a kind of edit makes of a line in a function."""
    every = mutants.mutants("f.py", f"{HEAD}    {line}\n")
    return [mutant.applied(f"{HEAD}    {line}\n").splitlines()[-1].strip()
            for mutant in every if mutant.kind == kind
            and mutant.text == line]


@pytest.mark.parametrize("kind, line, expected", [
    ("operators", "z = (x + y) * 2",
     ["z = (x - y) * 2", "z = (x) * 2", "z = (y) * 2", "z = (x + y)",
      "z = 2", "z = (x + y) / 2"]),
    ("operators", "z = x - y * 2",
     ["z = x", "z = y * 2", "z = (y * 2) - x", "z = x + y * 2", "z = x - y",
      "z = x - 2", "z = x - y / 2"]),
    ("assigned operators", "x += 1", ["x -= 1", "x = 1"]),
    ("signs", "z = -x", ["z = x"]),
    ("comparisons", "z = x <= y", ["z = x < y", "z = x >= y"]),
    ("comparisons", "z = x is not None", ["z = x is None"]),
    ("conditions", "z = x and y", ["z = x", "z = y", "z = x or y"]),
    ("conditions", "z = 1 if (x) else y", ["z = 1", "z = y"]),
    ("conditions", "z = [a for a in x if a]",
     ["z = [a for a in x if False]", "z = [a for a in x if True]"]),
    ("numbers", "z = x + 3",
     ["z = x + -3", "z = x + 0", "z = x + 2", "z = x + 4"]),
    ("numbers", "z = x.sum(-1)", ["z = x.sum(-2)", "z = x.sum(0)"]),
    ("numbers", "z = x[2]", ["z = x[0]", "z = x[1]", "z = x[3]"]),
    ("numbers", "z = 1.5",
     ["z = -1.5", "z = 0.0", "z = 2.5", "z = 3.0"]),
    ("truths", "z = True", ["z = False"]),
    ("texts", 'z = "pre"', ['z = "post"']),
    ("texts", 'z = "source"', ['z = "target"']),
    ("texts", 'z = "α"', ['z = "α_"']),
    ("names", "z = n_heads", ["z = d_k"]),
    ("names", "z = self.source_mask", ["z = self.target_mask"]),
    ("masks", "z = g(mask)", ["z = g(~mask)"]),
    ("calls", "z = torch.exp(x + y) * 2", ["z = (x + y) * 2"]),
    ("calls", "z = x.exp()", ["z = x"]),
    ("arguments", "z = torch.where(x, y, 0)",
     ["z = torch.where(x, 0, y)", "z = torch.where(y, x, 0)"]),
    ("arguments", "z = torch.sum(x, dim=1)", ["z = torch.sum(x)"]),
    ("arguments", "z = x[:, None]", ["z = x[None, :]"]),
    ("arguments", "z = max(x, y)", []),
    ("slices", "z = x[1:2]", ["z = x[1:]", "z = x[:2]"]),
    ("statements", "x = 2", ["pass"]),
    ("statements", "new = 2", []),
    ("statements", "self.a = 2", ["pass"]),
    ("statements", "raise ValueError(1 + 1)", ["pass"]),
    ("operators", "raise ValueError(1 + 1)", []),
])
def test_a_kind_of_edit(kind, line, expected):
    assert sorted(made(line, kind)) == sorted(expected)


def test_a_context_and_a_decorator_are_dropped():
    text = ("@g\ndef f():\n    with a(), b(1) as c:\n        pass\n"
            "    with d():\n        pass\n")
    found = {mutant.kind: [] for mutant in mutants.mutants("f.py", text)}
    for mutant in mutants.mutants("f.py", text):
        found[mutant.kind].append(mutant.applied(text))
    assert [text.splitlines()[2].strip() for text in found["contexts"]] == [
        "with b(1) as c:", "with a(), b(1) as c:"]
    assert "if True:" in found["contexts"][1]
    assert found["decorators"] == [text.replace("@g", "")]


def test_names_of_steps_and_documents_are_left_alone():
    text = ('"""Doc."""\n__all__ = ["a"]\n\n\ndef f(x):\n    """Doc 1."""\n'
            '    return tap(x, "scores", f"{x} 2")\n')
    assert mutants.mutants("f.py", text) == []


def test_a_mutant_is_found_again_where_lines_moved():
    text = f"{HEAD}    return x + 1\n"
    moved = "# α\n\n" + text.replace("def f", "def g")
    before = {m.key for m in mutants.mutants("f.py", text)}
    assert before == {m.key for m in mutants.mutants("f.py", moved)}


def test_equal_lines_are_told_apart():
    text = f"{HEAD}    x += 1\n    x += 1\n"
    every = mutants.mutants("f.py", text)
    assert len({m.key for m in every}) == len(every)
    assert {m.nth for m in every if m.text == "x += 1"} == {0, 1}


def test_a_sample_follows_from_its_seed():
    every = mutants.mutants("f.py", f"{HEAD}    return x * (y + 1)\n")
    drawn = mutants.sampled(every, 3, "a")
    assert len(drawn) == 3 and drawn == mutants.sampled(every, 3, "a")
    assert drawn != mutants.sampled(every, 3, "b")
    assert mutants.sampled(every, 999, "a") == every


def files():
    return [path for name in ports.known_ports()
            for pattern in ("*.py", "dialects/*.py")
            for path in sorted(ports.folder(name).glob(pattern))]


@pytest.mark.long
@pytest.mark.parametrize("path", files(), ids=lambda path: (
    "-".join(path.parts[-3:])))
def test_mutants_of_a_port_are_programs_and_each_is_another(path):
    text = path.read_text(encoding="utf-8")
    every = mutants.mutants(path.name, text)
    assert len({m.key for m in every}) == len(every)
    made = {ast.dump(ast.parse(m.applied(text))) for m in every}
    assert len(made) == len(every) and ast.dump(ast.parse(text)) not in made


@pytest.mark.parametrize("port", ports.known_ports())
@pytest.mark.long(12)
def test_there_are_a_thousand_of_each_port(port):
    every = itertools.chain.from_iterable(
        mutants.mutants(path.name, path.read_text("utf-8"))
        for path in ports.folder(port).glob("*.py"))
    assert len(list(itertools.islice(every, 1000))) == 1000


def test_statements_are_noted_before_they_run():
    text = "def f(x):\n    if x:\n        return 1\n    return 2\n"
    space = {"_ran": set()}
    exec(compile(with_probes("f.py", text), "f.py", "exec"), space)
    assert space["f"](False) == 2
    assert space["_ran"] == {("f.py", 1), ("f.py", 2), ("f.py", 4)}


def test_a_statement_is_the_innermost():
    text = pathlib.Path(words.__file__).read_text("utf-8")
    source = ParsedFile(text)
    line = source.statement(text.index("found |= zip"))
    assert text.splitlines()[line - 1].strip().startswith("found |= zip")
    decorated = ParsedFile("@g(\n  1)\ndef f():\n    pass\n")
    assert decorated.statement(decorated.text.index("1")) == 3


def test_every_kind_is_described():
    assert all(kind.__doc__ for kind in edits.KINDS.values())
