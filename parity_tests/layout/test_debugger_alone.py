"""The debugger runs where there is no Transformer of ours.

Its packages are those of the contract of import-linter in pyproject.toml. With
parity_io they are copied into an empty folder, and two torch models are
compared there.
"""

import shutil
import tomllib

import pytest

from parity_tests.support.places import ROOT
from parity_tests.support.processes import printed

pytest.importorskip("torch", reason="not checked: torch is not installed")

WALL = "The debugger knows no Transformer"

#: Two models that differ in a norm's ε, compared step by step and at once.
COMPARED = """
import sys
import torch
import parity

class Block(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        torch.manual_seed(1)
        self.norm = torch.nn.LayerNorm(8, eps=eps)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(self.norm(x)))

x = torch.randn(2, 5, 8, dtype=torch.float64)
a, b = (Block(eps).double().eval() for eps in (1e-5, 1e-6))
one, other = parity.trace(a, x), parity.trace(b, x)
print(parity.explain(parity.compare(one, other), one, other))
print(parity.diff(a, b, x))
ours = {name.split(".")[0] for name in sys.modules}
assert not [name for name in ours if name.startswith((
    "impl_", "reference_", "transformer_contract"))]
"""


def wall():
    """The contract that says what the debugger is and what it takes."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return next(each for each in tables["tool"]["importlinter"]["contracts"]
                if each["name"] == WALL)


def copied(module, folder):
    """Copy a module, or a package with all its files, into a folder."""
    path = ROOT.joinpath(*module.split("."))
    to = folder / path.relative_to(ROOT)
    if path.is_dir():
        shutil.copytree(path, to)
    else:
        to.parent.mkdir(exist_ok=True)
        shutil.copy(path.with_suffix(".py"), to.with_suffix(".py"))


def test_two_models_are_compared_without_any_of_ours(tmp_path):
    for module in (*wall()["source_modules"], "parity.__init__", "parity_io"):
        copied(module, tmp_path)
    told = printed("-c", COMPARED, here=tmp_path, PYTHONPATH=str(tmp_path))
    assert "epsilon: 1e-06 in b, 1e-05 in a" in told
    assert "1 cause, proved" in told
