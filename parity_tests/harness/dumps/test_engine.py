"""A program in C that dumps what it computes, beside a model of PyTorch."""

import shutil
import subprocess

import numpy as np
import pytest

import parity
from parity.dumps.read import load
from parity_tests.support.engines import usable
from parity_tests.support.explaining import of_traces
from parity_tests.support.places import ROOT

T, D, F = 5, 6, 8


@pytest.fixture
def model():
    """The layer in PyTorch, in float64, and its input."""
    usable("torch")
    import torch
    torch.manual_seed(0)
    made = torch.nn.Sequential(
        torch.nn.LayerNorm(D), torch.nn.Linear(D, F), torch.nn.GELU(),
        torch.nn.Linear(F, D)).double().eval()
    torch.nn.init.normal_(made[0].weight)
    return made, torch.randn(T, D, dtype=torch.float64)


def dumped(model, x, folder, *options):
    """The Trace of what the program dumps, compiled with some options."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("not checked: no compiler of C is there")
    program, weights = folder / "engine", folder / "weights.bin"
    np.concatenate([each.detach().numpy().ravel() for each in (
        x, *model.parameters())]).tofile(weights)
    subprocess.run([compiler, "-o", program, *options,
                    ROOT / "parity_tests/data/engine.c", "-lm"], check=True)
    for name in ("inputs", "outputs", "parameters", "ln"):
        (folder / "dump" / name).mkdir(parents=True)
    subprocess.run([program, weights, folder / "dump"], check=True)
    return load(folder / "dump")


def test_a_sound_program(model, tmp_path):
    comparison = of_traces(parity.trace(*model), dumped(*model, tmp_path))
    assert comparison.status == 0 and not comparison.explanations
    assert {(row.a, row.b) for row in comparison.rows} >= {
        ("0", "ln"), ("1", "up"), ("2", "gelu"), ("3", "down")}


def test_another_epsilon(model, tmp_path):
    comparison = of_traces(parity.trace(*model), dumped(
        *model, tmp_path, "-DEPSILON=1e-3"))
    assert comparison.status == 1
    told = comparison.explanations[0]
    assert (told.a, told.b) == ("0", "ln")
    assert "epsilon: 0.001 in b, 1e-05 in a" in told.text()
