"""The dialect marian against Marian's own programs, where they are there."""

import copy
import dataclasses
import os
import shutil
from unittest import mock

import numpy as np
import pytest

from parity_io.checkpoints.folder import Checkpoint
from parity_io.errors import InputError
from parity.numerics import dtypes
from parity_tests.originals import marian, marian_proof, page, run
from parity_tests.originals.marian import MARIAN, Marian
from parity_tests.originals.marian_proof import KINDS, drawn, prove, search
from parity.runs import exchange
from parity_tests.support.engines import usable
from reference_numpy.decoder import DecoderLayer
from reference_numpy.layer_norm import LayerNorm

#: A seed whose model has the norm behind, and small vectors; one that has it
#: before.
POST, PRE = 2, 0

#: The words of a model with the norm first.
FIRST = {"transformer-preprocess": "n", "transformer-postprocess": "da",
         "transformer-postprocess-top": "n"}


@pytest.fixture
def programs():
    """Skips without Marian's programs."""
    if sentence := marian.missing():
        pytest.skip(f"not checked: {sentence}")


def numpy():
    return {"numpy": usable("numpy")}


# Without its programs

def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    findings, left_out = run.proved(["marian"], [0], ["numpy"])
    assert findings == [] and "github.com/marian-nmt" in left_out[0]
    assert run.searched(["marian"], 1, ["numpy"]) == []


def test_a_configuration_is_read_as_marian_writes_it(tmp_path):
    """Lists in lines or in brackets; what is empty is not there."""
    text = ("dim-vocabs:\n  - 30\n  - 40\ninput-types:\n  []\n"
            "tied-embeddings-all: false\ntransformer-preprocess: \"\"\n"
            "transformer-tied-layers: [1, 1]\ntype: transformer\n\0\0")
    told = MARIAN.told(Checkpoint(tmp_path, "npz", {
        "special:model.yml": np.frombuffer(text.encode(), np.int8)}, {}))
    assert told == {
        "dim-vocabs.0": 30, "dim-vocabs.1": 40, "tied-embeddings-all": False,
        "transformer-preprocess": "", "transformer-tied-layers.0": 1,
        "transformer-tied-layers.1": 1, "type": "transformer"}


@pytest.mark.parametrize("seed", range(6))
def test_a_configuration_comes_back_from_its_array(tmp_path, seed):
    described = MARIAN.describe(drawn(seed)[0])
    arrays = MARIAN.inside(described)
    assert MARIAN.told(Checkpoint(tmp_path, "npz", arrays, {})) == described
    assert all(len(array) % 256 == 0 and array[-1] == 0
               for array in arrays.values())


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_an_export_has_floats_that_marian_reads(tmp_path, dtype):
    config, weights = drawn(POST)
    arrays = MARIAN.write(weights, config)
    np.savez(tmp_path / "model.npz", **MARIAN.inside(MARIAN.describe(config)),
             **arrays)
    theirs = exchange.foreign(tmp_path / "model.npz")
    exchange.keep(dataclasses.replace(theirs, arrays={
        name: array.astype(dtypes.NUMPY[dtype])
        for name, array in theirs.arrays.items()}), tmp_path / "ours")
    exchange.export(tmp_path / "ours", "marian", tmp_path / "again")
    with np.load(tmp_path / "again" / exchange.NPZ) as file:
        assert file.files[0] == "special:model.yml"
        assert {file[name].dtype.name for name in arrays} == {"float32"}


# With them

@pytest.mark.parametrize("seed", [POST, PRE])
def test_the_dialect_is_what_marian_computes(programs, seed):
    engines = {"numpy": usable("numpy"), "torch": usable("torch")}
    findings = list(prove(seed, engines))
    assert [one for one in findings if not one.matches] == []
    assert {one.port for one in findings} == set(engines)
    assert {one.kind for one in findings} == set(KINDS)


@pytest.mark.parametrize("changes", [
    {"norm_eps": 1e-5}, {"position_divisor": "half"}, {"begin": "token"}])
def test_the_port_of_hugging_face_is_refused(programs, changes):
    """By each of the fields in which it is not Marian, in each kind."""
    wrong = {one.kind for one in prove(POST, numpy(), **changes)
             if not one.matches}
    assert wrong == set(KINDS)


def test_the_gradient_of_a_norm_has_its_scale_last(programs):
    """Marian's is another, unless a scale's numbers are all one."""
    def scaled_last(self, doutput, c):
        plain = copy.copy(self)
        plain.scale = np.ones_like(self.scale)
        return (self.scale * right(plain, doutput, c)[0],
                right(self, doutput, c)[1])

    def different(seed):
        return [one for one in prove(seed, numpy(), even=lambda x: x)
                if one.kind == KINDS[1] and not one.matches]

    right = LayerNorm.backward
    assert max(one.error for one in different(POST)) > 0.1
    with mock.patch.object(LayerNorm, "backward", scaled_last):
        assert different(POST) == different(PRE) == []


@pytest.mark.parametrize("seed", [0, 1])
def test_searches(programs, seed):
    """All W hypotheses, one source at a time and several at once."""
    engines = {"numpy": usable("numpy"), "torch": usable("torch")}
    asked = (1, 0.6), (3, 0.0), (4, 1.0)
    rows = list(search(seed, engines, 5, asked))
    assert [one for one in rows if not one.matches] == []
    assert len(rows) == len(asked) * len(engines)
    assert any(one.ended for one in rows)
    assert (sum(one.left_out for one in rows)
            < sum(one.rows for one in rows) / 4)
    assert page.search_rows(rows)[0]["inputs"] == "5"


@pytest.mark.parametrize("word", ["all", "top", "first"])
def test_another_rule_is_seen(programs, word):
    rows = [row for seed in range(2) for row in search(
        seed, numpy(), 10, ((3, 0.0), (4, 0.6)), finishing=word)]
    assert any(one.different for one in rows)


def test_where_the_norm_comes_first_a_search_leaves_it_out(programs):
    """Keys and values of what is written are not normalised behind the first
    token, so that Marian's decoder and scorer give a target two scores.
    """
    def as_its_decoder(self, x, memory, memory_mask, mask, cache):
        attend = self.self_attention.forward

        def unnormed(y, _, mask, cache):
            first, c = attend(y, y, mask, None)
            others, _ = attend(y, x, mask, None)
            return np.concatenate([first[:, :1], others[:, 1:]], axis=1), c

        with mock.patch.object(self.self_attention, "forward", unnormed):
            return right(self, x, memory, memory_mask, mask, cache)

    def rows():
        return list(search(PRE, numpy(), 5, ((1, 0.0), (3, 0.6)), FIRST,
                           cached=False))

    right = DecoderLayer.forward
    assert not any(one.matches for one in rows())
    with mock.patch.object(DecoderLayer, "forward", as_its_decoder):
        assert all(one.matches for one in rows())


def test_a_model_that_marian_wrote_is_read(programs, tmp_path):
    config, weights = drawn(POST)
    pairs = marian_proof.SentencePairs(config, POST)
    one = Marian(tmp_path / "theirs", config, weights)
    one.train(pairs.sources, pairs.targets, "sgd", "--learn-rate", "1")
    read = exchange.foreign(tmp_path / "theirs" / "after-sgd.npz")
    assert read.dialect is MARIAN
    assert read.config.replace(
        max_length=config.max_length, dropout=0.0) == config


def test_what_is_exported_is_read_by_marian(programs, tmp_path):
    """And scores as the model did, in whatever dtype it was."""
    config, weights = drawn(POST)
    pairs = marian_proof.SentencePairs(config, POST)
    one = Marian(tmp_path / "theirs", config, weights)
    sums, _ = one.score(pairs.sources, pairs.targets)
    theirs = exchange.foreign(one.model)
    for dtype in ("float32", "float64"):
        exchange.keep(dataclasses.replace(theirs, arrays={
            name: array.astype(dtype) for name, array
            in theirs.arrays.items()}), tmp_path / dtype)
        exchange.export(tmp_path / dtype, "marian", tmp_path / f"{dtype} 2")
        shutil.copy(tmp_path / f"{dtype} 2" / exchange.NPZ, one.model)
        assert one.score(pairs.sources, pairs.targets)[0] == sums


@pytest.mark.parametrize("script, words", [
    ("exit 1", "marian-scorer ended with status 1"),
    ("echo nonsense", "marian-scorer printed what Marian's does not")])
def test_other_programs_of_these_names_are_told(
        script, words, monkeypatch, tmp_path):
    """In a sentence, whatever they do."""
    for name in marian.PROGRAMS:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(InputError, match=words):
        run.proved(["marian"], [0], ["numpy"])
