"""A run's operations in a dump: run again in NumPy, compared like a model."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from parity_io.errors import InputError
from parity.commands import compare as commands
from parity.operations import stored
from parity.operations.program import LEAF, OPERAND, RESULT
from parity.operations.replay import _way
from parity.tracing import folder
from parity.tracing.trace import trace
from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from parity.operations.torch import Runner  # noqa: E402

APP = typer.Typer()
APP.command()(commands.dump)
APP.command()(commands.compare)

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, eps, scale):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.norm = nn.Embedding(9, 6), nn.LayerNorm(6, eps)
        self.mix, self.out = nn.Linear(6, 18), nn.Linear(6, 4)
        self.scale = scale

    def forward(self, ids):
        x = self.embed(ids)
        q, k, v = self.mix(self.norm(x)).chunk(3, -1)
        scores = q @ k.mT * self.scale
        seen = torch.ones(5, 5).tril().bool()
        scores = scores.masked_fill(~seen, -torch.inf)
        return self.out(nn.functional.gelu(x + scores.softmax(-1) @ v))

IDS = torch.tensor([[3, 5, 7, 0, 1], [2, 4, 6, 8, 1]])

def truth():
    return Net(1e-5, 6 ** -0.5).double().eval(), IDS

def eps():
    return Net(1e-3, 6 ** -0.5).double().eval(), IDS

def both():
    return Net(1e-3, 1.0).double().eval(), IDS

def short():
    return Net(1e-5, 6 ** -0.5).eval(), IDS
"""


def invoke(*arguments):
    return CliRunner().invoke(APP, [*map(str, arguments)])


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """The script, and a folder with a dump of each of its models."""
    home = tmp_path_factory.mktemp("stored")
    (home / "net.py").write_text(SCRIPT, encoding="utf-8")
    for name in ("truth", "eps", "both"):
        made = invoke("dump", f"{home / 'net.py'}:{name}", "--out",
                      home / name, "--operations")
        assert made.exit_code == 0, made.output
    return home


@pytest.mark.parametrize("wrong, causes", [
    ("eps", ["epsilon"]), ("both", ["epsilon", "attention scale"])])
def test_two_dumps_are_told_as_two_models_are(dumps, wrong, causes, tmp_path):
    told = []
    for a, b in ((dumps / "truth", dumps / wrong),
                 (f"{dumps / 'net.py'}:truth", f"{dumps / 'net.py'}:{wrong}")):
        answer = invoke("compare", a, b, "--json", tmp_path / "told.json")
        assert answer.exit_code == 1, answer.output
        told.append([
            (each["cause"], each["in_a"], each["in_b"], each["place_b"])
            for each in json.loads((tmp_path / "told.json").read_text())[
                "explanations"]])
    assert [cause for cause, *_ in told[0]] == causes
    assert [each[:3] for each in told[0]] == [each[:3] for each in told[1]]
    assert all(place.startswith("net.py:") for *_, place in told[0][1:])


def test_a_dump_beside_a_script_and_exact(dumps):
    script = f"{dumps / 'net.py'}:truth"
    assert invoke("compare", dumps / "truth", script, "--exact").exit_code == 0
    answer = invoke("compare", script, dumps / "eps")
    assert answer.exit_code == 1 and "epsilon" in answer.output


def test_a_dump_without_operations_has_no_exact_run(dumps, tmp_path):
    script = f"{dumps / 'net.py'}:truth"
    assert invoke("dump", script, "--out", tmp_path / "plain").exit_code == 0
    answer = invoke("compare", tmp_path / "plain", dumps / "truth", "--exact")
    assert answer.exit_code == 2 and "--operations" in answer.output
    assert stored.side_of(tmp_path / "plain") is None


@pytest.mark.parametrize("name", [stored.OPERATIONS, stored.VALUES])
def test_damaged_operations_are_refused(dumps, tmp_path, name):
    for path in (dumps / "eps").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data = bytearray((tmp_path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        stored.StoredSide(tmp_path).runner()
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match="lacks"):
        stored.read(tmp_path)


@pytest.mark.parametrize("change", [
    lambda plain: plain.pop("values"),
    lambda plain: plain["operations"][0].__setitem__(2, [10 ** 6]),
    lambda plain: plain["values"][0].__setitem__(0, "nothing"),
    lambda plain: plain["outputs"].__setitem__("output", 10 ** 6)])
def test_crafted_operations_are_refused(dumps, tmp_path, change):
    """A manifest that fits them does not make them consistent."""
    for path in (dumps / "eps").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    plain = json.loads((tmp_path / stored.OPERATIONS).read_text())
    change(plain)
    (tmp_path / stored.OPERATIONS).write_text(json.dumps(plain))
    manifest = json.loads((tmp_path / folder.MANIFEST).read_text())
    manifest["files"][stored.OPERATIONS] = folder._file_hash(
        tmp_path / stored.OPERATIONS)
    manifest["sha256"] = folder._own_hash(manifest)
    (tmp_path / folder.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="not consistent"):
        stored.read(tmp_path)


class Many(nn.Module):
    """One of each kind of step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1,
                              dilation=(1, 2), groups=2)
        self.norm, self.group = nn.BatchNorm2d(6), nn.GroupNorm(3, 6)
        self.out = nn.Linear(6, 5)
        self.register_buffer("places", torch.tensor([2, 0, 1]))

    def forward(self, x):
        h = self.group(self.norm(self.conv(x)))
        h = nn.functional.pad(h, (1, 2, 0, 1), value=0.5).roll(1, 2)
        h = torch.cat([h.flip(2), nn.functional.elu(h)], 2)
        h = self.out(h.mean(2).transpose(1, 2))
        h = h.cumsum(1) + h.amax(1, keepdim=True) - h.var(1, keepdim=True)
        h = torch.einsum("bij,bkj->bik", h, h)[:, ::2]
        h = h.index_select(1, self.places.clamp(max=h.shape[1] - 1))
        return torch.sigmoid(h).log1p().norm(dim=-1), h.tril(1).sum((1, 2))


def test_numpy_does_what_torch_did(tmp_path):
    model, x = Many().double().eval(), torch.randn(2, 4, 7, 6).double()
    runner = Runner(model, (x,), {})
    program = runner.run(exact=True)
    folder.dump(trace(model, x), tmp_path / "many",
                stored.files_of(runner, 100))
    again = stored.read(tmp_path / "many")
    assert [each.name for each in again.operations] == [
        each.name for each in program.operations]
    for one, two in zip(program.values, again.values):
        assert one.signature == two.signature and one.dtype == two.dtype
        assert np.array_equal(one.array, two.array, equal_nan=True)
    lacks = {each.name for each in again.operations if _way(
        each, [again.values[i].array for i in each.operands],
        [again.values[i] for i in each.results]) is None}
    assert lacks <= {"arange", "full"}


@pytest.mark.parametrize("edit", ["leaf", "operand", "result"])
def test_an_edit_gives_what_it_gives_in_torch(tmp_path, edit):
    model, x = Many().double().eval(), torch.randn(2, 4, 7, 6).double()
    runner = Runner(model, (x,), {})
    program = runner.run(exact=True)
    folder.dump(trace(model, x), tmp_path / "many",
                stored.files_of(runner, 100))
    number = next(each.number for each in program.operations
                  if each.name == "rsqrt")
    operation = program.operations[number]
    key, value = {
        "leaf": ((LEAF, "conv.weight"), next(
            each.number for each in program.values
            if each.name == "conv.weight")),
        "operand": ((OPERAND, number, 0), operation.operands[0]),
        "result": ((RESULT, number, 0), operation.results[0])}[edit]
    edits = {key: program.values[value].array * 1.5}
    one = runner.run(exact=True, edits=edits)
    two = stored.StoredSide(tmp_path / "many").runner().run(edits=edits)
    for name, end in one.outputs.items():
        assert np.allclose(one.values[end].array, two.values[
            two.outputs[name]].array, rtol=1e-12, atol=1e-13)


def test_operations_of_modules_alone_are_refused(tmp_path):
    """What cannot be seen as operations is not dumped as such."""
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "def make():\n"
        "    made = torch.jit.script(torch.nn.Linear(3, 3))\n"
        "    return made, torch.ones(2, 3)\n", encoding="utf-8")
    answer = invoke("dump", f"{script}:make", "--out", tmp_path / "out",
                    "--operations")
    assert answer.exit_code == 2 and not (tmp_path / "out").exists()
