"""Dialects against the originals' own libraries, run live."""

import dataclasses
import importlib

import numpy as np
import pytest

from contract.dialects.table import SYSTEMS
from parity.originals import run, sizes
from parity.originals.proof import KINDS, prove
from parity.render import dialects as tables
from parity_tests.support.engines import usable


def original(name):
    """The class of a dialect's original; skips where it cannot run."""
    kind = run.original(name)
    if isinstance(kind, str):
        pytest.skip(f"not checked: {kind}")
    return kind


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", run.ORIGINALS)
def test_a_dialect_is_what_its_original_computes(name, seed):
    """In the reference and in PyTorch; the command proves the other two."""
    kind = original(name)
    engines = {"numpy": usable("numpy"), "torch": usable("torch")}
    findings = list(prove(SYSTEMS[name], kind, seed, engines))
    assert [one for one in findings if not one.matches] == []
    assert {one.port for one in findings} == set(engines)
    kinds = {one.kind for one in findings}
    assert kinds == set(KINDS) or name == "bert" and kinds == {
        "outputs", "ours in theirs"}


@pytest.mark.parametrize("port", ["keras", "jax"])
def test_every_port_is_proved(port):
    findings, left_out = run.proved(
        ["torch_nn"], [0], ["numpy", usable(port).NAME])
    assert left_out == [] and {one.port for one in findings} == {
        "numpy", port}
    assert all(one.matches for one in findings)
    errors, models = tables.worst(findings)
    assert models == {"torch_nn": 1}
    assert {kind for _, kind in errors} == set(KINDS)


def test_a_wrong_epsilon_is_seen():
    """A proof that finds everything right proves nothing."""
    wrong = dataclasses.replace(
        SYSTEMS["torch_nn"], keys={
            key: means for key, means in SYSTEMS["torch_nn"].keys.items()
            if key != "layer_norm_eps"},
        fixed={**SYSTEMS["torch_nn"].fixed, "norm_eps": 1e-6})
    findings = list(prove(wrong, original("torch_nn"), 0,
                          {"numpy": usable("numpy")}))
    assert any(not one.matches for one in findings)


def test_what_cannot_run_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    findings, left_out = run.proved(["torch_nn", "tutorial"], [0], ["numpy"])
    assert findings == []
    assert "install the extra peers" in left_out[0]
    assert "no library that can run here" in left_out[1]


def test_drawn_models_hide_nothing():
    """No scale is 1, no bias 0, and no id of the target is padding's."""
    found = sizes.random_arrays({
        "norm.weight": np.ones(5), "norm.bias": np.zeros(5),
        "kernel": np.zeros((3, 4))}, 0)
    assert all((array != 0).all() and (array != 1).all()
               for array in found.values())
    for seed in range(20):
        config = SYSTEMS["torch_nn"].config(
            sizes.described(SYSTEMS["torch_nn"], seed))
        question = sizes.question(config, seed)
        assert (question.target != config.pad_id).all()
        assert (question.source[:, 0] != config.pad_id).all()
