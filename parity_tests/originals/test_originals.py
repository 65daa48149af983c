"""Dialects against the originals' own libraries, run live."""

import dataclasses
import importlib
import os

import numpy as np
import pytest

from transformer_contract.dialects.table import SYSTEMS
from transformer_contract.generation import GenerationConfig
from parity_tests.originals import page, proof, run, searching, random_models
from parity_tests.originals.proof import KINDS, prove, random_state
from parity_tests.support.engines import usable
from parity_tests.support.places import ROOT
from parity_tests.support.processes import python
from reference_numpy.sample import Sample


def original(name, *originals):
    """The class of a dialect's original; skips where it cannot run."""
    kind = run.original(name, *originals)
    if isinstance(kind, str):
        pytest.skip(f"not checked: {kind}")
    return kind


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", run.ORIGINALS)
def test_a_dialect_is_what_its_original_computes(name, seed):
    """In the reference and in PyTorch; ``__main__`` proves the other two."""
    kind = original(name)
    engines = {"numpy": usable("numpy"), "torch": usable("torch")}
    findings = list(prove(SYSTEMS[name], kind, seed, engines))
    assert [one for one in findings if not one.matches] == []
    assert {one.port for one in findings} == set(engines)
    assert {one.kind for one in findings} == set(KINDS)


@pytest.mark.parametrize("port", ["keras", "jax"])
@pytest.mark.long(48)
def test_every_port_is_proved(port, tmp_path):
    findings, left_out = run.proved(
        ["torch_nn"], [0], ["numpy", usable(port).NAME])
    assert left_out == [] and {one.port for one in findings} == {
        "numpy", port}
    assert all(one.matches for one in findings)
    errors, models = page.worst(findings)
    assert models == {"torch_nn": 1}
    one_more = [dataclasses.replace(one, seed=1) for one in findings
                if one.port == "numpy"]
    path = tmp_path / "page.md"
    path.write_text("# D\n\n## Proved\n\nWords.\n\n## Searches\n\n## More\n")
    page.fill(path, [*findings, *one_more], [])
    text = path.read_text()
    assert text.count("| torch_nn | 2 |") == text.count(" (1) |") == 4
    page.fill(path, [
        dataclasses.replace(one, dialect="bert") for one in findings], [])
    text = path.read_text()
    assert text.count("| torch_nn | 2 |") == text.count("| bert | 1 |") == 4
    assert text.index("| torch_nn") < text.index("| bert")
    assert {kind for _, kind in errors} == set(KINDS)


@pytest.mark.long
@pytest.mark.parametrize("name", run.ORIGINALS)
def test_a_port_is_proved_under_its_compiler(name):
    """As ``__main__`` does from the second model on, where JAX is slow."""
    original(name), usable("jax")
    findings, _ = run.proved([name], [run.EAGER], ["numpy", "jax"])
    assert [one for one in findings if not one.matches] == []
    assert {one.kind for one in findings if one.port == "jax"} == set(KINDS)


@pytest.mark.parametrize("name", run.SEARCHED)
def test_searches(name):
    """All hypotheses are those of ``generate()``, and some end early."""
    kind = original(name, run.SEARCHED)
    engines = {"numpy": usable("numpy"), "torch": usable("torch")}
    few = searching.every(kind, 0)[:4]
    rows = list(searching.search(SYSTEMS[name], kind, 0, engines, 5, few))
    assert [one for one in rows if not one.matches] == []
    assert len(rows) == len(few) * len(engines)
    assert any(one.ended for one in rows)
    most = 2 if name == "fairseq" else 10  # it forces an end, see Fairseq
    assert sum(one.left_out for one in rows) < sum(
        one.rows for one in rows) / most
    assert all("equal" in line[port] for line in page.search_rows(rows)
               for port in engines)


def test_another_rule_is_seen():
    """A rule by which all candidates may finish gives other tokens."""
    wrong = dataclasses.replace(SYSTEMS["gpt2"], search={
        **SYSTEMS["gpt2"].search, "finishing": "all"})
    rows = [row for seed in range(3) for row in searching.search(
        wrong, original("gpt2", run.SEARCHED), seed,
        {"numpy": usable("numpy")}, 5, ((2, True, 1.0), (4, True, 1.0)))]
    assert any(not one.matches for one in rows)
    assert "differ" in page.search_rows(rows)[0]["numpy"]


@pytest.mark.parametrize("port", ["keras", "jax"])
@pytest.mark.long(12)
def test_every_port_searches_so(port):
    """One dialect, one beam."""
    rows = list(searching.search(
        SYSTEMS["bart"], original("bart", run.SEARCHED), 0,
        {"numpy": usable("numpy"), port: usable(port)}, 5, ((3, True, 1.0),)))
    assert {one.port for one in rows} == {"numpy", port}
    assert all(one.matches for one in rows)


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_a_seed_draws_every_array(name):
    """Also a projection that is a table of its own in some models."""
    kind, tied = original(name), set()
    for seed in range(3):
        found = []
        for _ in range(2):
            dialect = kind.provable(SYSTEMS[name])
            model = kind(dialect, random_models.described(dialect, seed))
            model.load(random_state(dialect, model, seed))
            found.append(model.arrays())
        assert all(np.array_equal(found[0][array], found[1][array])
                   for array in found[0])
        tied.add(dialect.config(random_models.described(dialect, seed)).tied)
    assert name != "llama" or len(tied) == 2


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
    findings, left_out = run.proved(
        ["torch_nn", "tutorial", "whisper_ct2"], [0], ["numpy"])
    assert findings == []
    assert "install the extra peers" in left_out[0]
    assert "pip install --no-deps annalog" in left_out[1]
    assert "no library that can run here" in left_out[2]


@pytest.mark.parametrize("name, clone", [
    ("fairseq", "facebookresearch/fairseq"), ("flax_wmt", "google/flax"),
    ("t2t", "tensorflow/tensor2tensor")])
def test_a_clone_that_is_not_there_is_asked_for(name, clone, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for originals in (run.ORIGINALS, run.SEARCHED):
        sentence = run.original(name, originals)
        assert f"PYTHONPATH to a clone of {clone}" in sentence.replace(
            "the folder examples of ", "")
    findings, left_out = run.proved([name], [0], ["numpy"])
    assert findings == [] and left_out == [sentence]
    assert run.searched([name], 1, ["numpy"]) == []


def test_what_padding_is_is_not_compared():
    asked = random_models.Asked(
        np.array([[3, 0]]), None, np.array([[3, 0]]), 0)
    vectors = asked.seen(np.ones((1, 2, 4)))
    assert vectors.compressed().shape == (4,) and vectors.mask[0, 1].all()


def test_drawn_models_hide_nothing():
    """No scale is 1, no bias 0, and only a begin of the target is padding."""
    found = random_models.random_arrays({
        "norm.weight": np.ones(5), "norm.bias": np.zeros(5),
        "kernel": np.zeros((3, 4))}, 0)
    assert all((array != 0).all() and (array != 1).all()
               for array in found.values())
    for seed in range(20):
        config = SYSTEMS["torch_nn"].config(
            random_models.described(SYSTEMS["torch_nn"], seed))
        question = random_models.question(config, seed)
        assert (question.target != config.pad_id).all()
        assert (question.source[:, 0] != config.pad_id).all()


@pytest.mark.long(4)
@pytest.mark.parametrize("name, package", [
    ("fairseq", "fairseq"), ("flax_wmt", "wmt"), ("t2t", "tensor2tensor")])
def test_a_clone_that_cannot_be_imported_is_told(name, package, tmp_path):
    """Another package of its name, in a sentence and with status 2."""
    (tmp_path / package).mkdir()
    done = python("-m", "parity_tests.originals", tmp_path / "page.md", name,
                  "--seeds", 1, "--port", "torch",
                  PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 2
    assert f"{package}, as PYTHONPATH has it, cannot be imported" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_departs_is_told_in_words():
    row = proof.ProofRow(
        "bart", 1, "torch", "gradients", "output.bias", 0.0613, False)
    assert str(row) == (
        "bart, model 1, torch, gradients: output.bias, relative error 6.1e-02")
    assert str(dataclasses.replace(row, error=None)).endswith(
        ": output.bias, no number can be compared")
    row = searching.SearchRow(
        "bart", 1, "jax", "beam 4, never, 0.6", 10, 5, 0, 1, 1e-3)
    assert str(row) == (
        "bart, model 1, jax, beam 4, never, 0.6: other tokens in 1 of 10 "
        "rows, relative error of a score 1.0e-03")


@pytest.mark.parametrize("k, p", [(5, 0.6), (50, 0.9), (7, 0.999), (1, 0.5)])
def test_a_sample_is_of_what_transformers_keep(k, p):
    """Where top_p follows top_k: of thousands of draws each token is one."""
    transformers = pytest.importorskip("transformers")
    import torch
    logits = np.random.default_rng(k).normal(size=20)
    left = torch.from_numpy(logits)[None]
    for keep in (transformers.TopKLogitsWarper(k),
                 transformers.TopPLogitsWarper(p)):
        left = keep(None, left)
    drawn = np.linspace(0, 1, 20001)
    search = object.__new__(Sample)
    search.settings = GenerationConfig(
        method="sample", top_k=k, top_p=p, top_p_of_top_k=True)
    search.draws = drawn[:, None]
    found = search.choose(np.tile(logits, (len(drawn), 1)), 0)
    assert set(found.tolist()) == set(
        np.flatnonzero(np.isfinite(left[0].numpy())).tolist())
