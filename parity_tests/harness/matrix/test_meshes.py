"""Models on a mesh: they match, and what goes wrong there is named.

``parity check matrix --mesh all`` compares every mode on every mesh.
"""

import dataclasses
import json
import os
import time

import numpy as np
import pytest

from parity import ports
from parity.matrix import cells, meshes, run
from parity.matrix.processes import MeshProcesses
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.subjects import MESH_BACKENDS, Subject
from parity_tests.support import meshes as planted
from parity_tests.support.commands import invoke

TWO, HALVES = "data=2,model=1", "data=1,model=2"
JAX = Subject("jax", mode="jit", mesh="data=2,model=2")
SEQUENCE = dataclasses.replace(JAX, mode="sequence")
KERAS = Subject("keras", mode="ModelParallel", mesh="data=2,model=2",
               backend="jax")


@pytest.fixture(scope="module")
def processes():
    """The processes of a port, a mesh and a preset, begun once."""
    begun = {}

    def ask(port, mesh, preset="lesson"):
        if absent := ports.absent(port) or (
                MESH_BACKENDS.get(port) == "jax" and ports.absent("jax")):
            pytest.skip(f"not checked: {absent.reason}")
        key = port, mesh, preset
        if key not in begun:
            begun[key] = MeshProcesses(
                port, mesh, meshes.config_of(preset), meshes.ROWS)
        return begun[key]

    yield ask
    for those in begun.values():
        those.close()


def cell(processes, subject, work, fault="none", preset="lesson"):
    """The SubjectCell of a mesh with a fault in it."""
    reply = processes(subject.port, subject.mesh, preset).ask(
        fault, planted.measured, fault, subject, work, preset)
    assert not reply.failure, reply
    return cells.cell_of(subject, work, reply.value)


@pytest.mark.parametrize("mode", ["DDP", "FSDP2"])
@pytest.mark.parametrize("work", ["forward", "gradients"])
def test_torch_matches_on_two(work, mode, processes):
    found = cell(processes, Subject("torch", mode=mode, mesh=TWO), work)
    assert found.verdict == MATCH, found


@pytest.mark.long(16)
@pytest.mark.parametrize("work", ["forward", "gradients"])
@pytest.mark.parametrize("where", [JAX, SEQUENCE], ids=str)
def test_jax_matches_on_four(where, work, processes):
    found = cell(processes, where, work)
    assert found.verdict == MATCH, found


@pytest.mark.parametrize("where", [
    Subject("torch", mode="DDP", mesh=TWO),
    Subject("torch", mode="FSDP2", mesh=TWO),
    Subject("torch", mode="TP", mesh=HALVES)], ids=str)
def test_a_mesh_finds_the_same_tokens(where, processes):
    found = cell(processes, where, "generation")
    assert (found.verdict, found.compared) == (MATCH, 4), found


def test_tokens_of_exchanged_rows_are_others(processes):
    found = cell(processes, Subject("torch", mode="DDP", mesh=TWO),
                 "generation", "rows exchanged")
    assert found.verdict == DIVERGENCE
    assert found.reason.startswith("greedy tokens")


@pytest.mark.parametrize("mode, mesh, work, fault, words", [
    ("DDP", TWO, "gradients", "mean of means", "a mean of means"),
    ("FSDP2", TWO, "gradients", "mean of means", "a mean of means"),
    ("DDP", TWO, "gradients", "sum of means", "a sum of means"),
    ("DDP", TWO, "gradients", "missing all-reduce", "a missing all-reduce"),
    ("DDP", TWO, "gradients", "padding counted",
     "a loss averaged before padding is counted"),
    ("DDP", TWO, "gradients", "equal dropout", "equal dropout on all shards"),
    ("DDP", TWO, "gradients", "rows exchanged", "rows of shards exchanged"),
    ("DDP", TWO, "forward", "rows exchanged", "rows of shards exchanged"),
    ("TP", HALVES, "forward", "not summed", "a missing all-reduce"),
    ("TP", HALVES, "forward", "kernel exchanged",
     "shards of encoder.layers.1.feed_forward.inner.kernel exchanged")])
def test_a_fault_of_torch_is_named(mode, mesh, work, fault, words, processes):
    found = cell(processes, Subject("torch", mode=mode, mesh=mesh), work, fault)
    assert found.verdict == DIVERGENCE
    assert found.cause.startswith(words), found


@pytest.mark.parametrize("work, fault, words", [
    ("gradients", "equal dropout", "equal dropout on all shards"),
    ("gradients", "rows exchanged", "rows of shards exchanged"),
    ("forward", "rows exchanged", "rows of shards exchanged"),
    ("forward", "kernel exchanged",
     "shards of encoder.layers.1.feed_forward.inner.kernel exchanged")])
@pytest.mark.parametrize("where", [
    JAX, pytest.param(KERAS, marks=pytest.mark.long)], ids=str)
def test_a_fault_of_one_process_is_named(
        where, work, fault, words, processes):
    found = cell(processes, where, work, fault)
    assert found.verdict == DIVERGENCE
    assert found.cause.startswith(words), found


@pytest.mark.parametrize("where, fault, words", [
    (Subject("torch", mode="TP", mesh=HALVES), "not sharded",
     "hold it 2 times"),
    (Subject("torch", mode="FSDP2", mesh=TWO), "unsharded", "hold it 2 times"),
    (JAX, "not sharded", "hold it 4 times, and not 2"),
    (JAX, "reads all", "a device reads 8 of 8, and not 4"),
    pytest.param(SEQUENCE, "whole sequences",
                 "a device reads 8 of 8, and not 4", marks=pytest.mark.long(8)),
    pytest.param(KERAS, "not sharded", "hold it 4 times, and not 2",
                 marks=pytest.mark.long),
    pytest.param(KERAS, "reads all", "a device reads 8 of 8, and not 4",
                 marks=pytest.mark.long)], ids=str)
def test_what_is_not_divided_is_seen(where, fault, words, processes):
    """The numbers are right: no device did another's part."""
    found = cell(processes, where, "forward", fault)
    assert found.verdict == DIVERGENCE
    assert words in found.reason


@pytest.mark.parametrize("work, fault, words", [
    ("gradients", "own gradients", "grad source_embedding.table: rank 1 and"),
    ("generation", "whole search", "rows: a device reads 8 of 8, and not 4"),
    *(pytest.param("training", *these, marks=pytest.mark.long(6)) for these in (
        ("drifted", "source_embedding.table: rank 1 and rank 0 differ in it"),
        ("other moments", "m.source_embedding.table: rank 1 and rank 0"),
        ("whole training", "rows: a device reads 8 of 8, and not 4")))])
def test_what_the_first_rank_does_not_show_is_seen(
        work, fault, words, processes):
    """Its numbers are right, and no step comes after."""
    found = cell(processes, Subject("torch", mode="DDP", mesh=TWO), work, fault)
    assert found.verdict == DIVERGENCE
    assert found.reason.startswith(words), found


@pytest.mark.long
@pytest.mark.parametrize("mode, mesh", [
    ("TP", HALVES), ("FSDP2 + TP", "data=2,model=2")])
def test_tied_weights_are_divided(mode, mesh, processes):
    subject = Subject("torch", mode=mode, mesh=mesh)
    for work in "forward", "gradients", "training", "generation":
        found = cell(processes, subject, work, preset="vaswani2017_base")
        assert found.verdict == MATCH, found


@pytest.mark.long(12)
def test_a_rank_of_another_config_is_named(processes):
    subject = Subject("torch", mode="FSDP2", mesh=TWO)
    reply = processes("torch", TWO).ask(
        "", planted.measured, "other config", subject, "forward", "lesson")
    assert "rank 1 has norm_eps 2e-06, and rank 0 1e-06" in reply.failure


@pytest.mark.parametrize("mode", [
    pytest.param("DDP", marks=pytest.mark.long(12)),
    pytest.param("FSDP2", marks=pytest.mark.long)])
def test_a_rank_that_is_killed_in_a_step_ends_all(mode, processes):
    start = time.monotonic()
    subject = Subject("torch", mode=mode, mesh=TWO)
    ranks = processes("torch", TWO)
    ranks.ask("", planted.measured, "none", subject, "forward", "lesson")
    reply = ranks.ask(
        "", planted.measured, "killed", subject, "training", "lesson")
    assert reply.failure.startswith("rank ")
    assert "rank 1 of 2: its process ended" in reply.failure, reply
    assert time.monotonic() - start < 40
    found = cell(processes, subject, "forward")
    assert found.verdict == MATCH


@pytest.mark.long
def test_tied_weights_updated_twice_are_named(processes):
    subject, preset = Subject("torch", mode="DDP", mesh=TWO), "vaswani2017_base"
    found = cell(processes, subject, "training", preset=preset)
    assert found.verdict == MATCH, found
    found = cell(processes, subject, "training", "updated twice", preset)
    assert found.verdict == DIVERGENCE
    assert found.tensor == "step 1 weights"
    assert found.cause.startswith("tied weights are updated twice")


def test_shards_have_unequally_many_tokens():
    """Else a mean of means would be right."""
    config = meshes.config_of("lesson")
    labels = meshes.reference("lesson", "float64", "gradients")[1].inputs[-1]
    for count in (2, 4):
        tokens = [(part != config.pad_id).sum()
                  for part in np.split(labels, count)]
        assert len(set(tokens)) == count


# What a user gets wrong, and what machines do

@pytest.mark.parametrize("words, said", [
    ("data=3", "data=3 does not divide 8 rows of a batch"),
    ("model=4", "model=4 does not divide 6 heads"),
    ("data=1", "is one device"),
    ("2x2", "axis of a mesh")])
def test_a_mesh_that_does_not_fit_is_refused(words, said):
    result = invoke("check", "matrix", "--port", "jax", "--mesh", words)
    assert result.exit_code == 2
    assert said in result.output + result.stderr


@pytest.mark.parametrize("words, said", [
    (["--mesh", "data=2", "--wide"], "--mesh goes with"),
    (["--mesh", "data=3"], "does not divide"),
    (["--mesh", "data=2", "--seeds", "1"], "leave the other options out"),
    (["--mesh", "data=2", "--preset", "lesson,practical"], "one --preset"),
    (["--mesh", "one"], "is one device, and no mesh"),
    (["--mesh", "data=2", "--train", "2", "--dtype", "float32"],
     "training has a limit in float64 alone")])
def test_check_refuses_what_a_mesh_has_not(words, said):
    result = invoke("check", "--port", "jax", *words)
    assert result.exit_code == 2
    assert said in result.output + result.stderr


def test_a_mesh_where_nothing_divides_is_not_checked(tmp_path):
    """Keras divides arrays on JAX alone: nothing is compared, exit 4."""
    file = tmp_path / "m.json"
    result = invoke(
        "check", "matrix", "--port", "keras", "--backend", "tensorflow",
        "--dtype", "float64", "--work", "forward", "--mesh", "model=2",
        "--json", file)
    assert result.exit_code == 4
    (cell,) = json.loads(file.read_text(encoding="utf-8"))["cells"]
    assert cell["target"]["mesh"] == HALVES
    assert cell["reason"] == "keras.distribution divides arrays on JAX alone"
    assert cells.read_matrix(file).cells[0].reason == cell["reason"]


def test_a_port_without_an_engine_is_not_checked():
    found = list(run.cells_on_mesh("numpy", TWO, "lesson", run.Wanted(
        ("numpy",), works=("forward",), dtypes=("float64", "float32")),
        cells.Matrix("lesson"), print))
    assert {one.reason for one in found} == {"it has no engine for meshes"}


def test_a_mesh_of_gpus_is_not_checked():
    """It is not computed on processors without a word."""
    (found,) = run.cells_on_mesh("jax", TWO, "lesson", run.Wanted(
        ("jax",), works=("forward",), dtypes=("float64",), devices=("cuda",)),
        cells.Matrix("lesson"), print)
    assert found.reason == "meshes are compared on processors alone"


def dies(bench, rank):
    if rank.number == 1:
        os._exit(9)
    time.sleep(60)


def is_silent(bench, rank):
    time.sleep(60 if rank.number == 1 else 0)


def number(bench, rank):
    return rank.number


@pytest.mark.long(12)
def test_a_rank_that_ends_or_is_silent_ends_all():
    """Within seconds, in a sentence; and the next question is answered."""
    processes = MeshProcesses(
        "torch", TWO, meshes.config_of("lesson"), meshes.ROWS)
    processes.port = "numpy"  # nothing that takes seconds to begin
    try:
        for function, patience, words in (
                (dies, 50, "rank 1 of 2: its process ended"),
                (is_silent, 2, "rank 1 of 2: it took more than 2 seconds")):
            assert processes.ask("", number).value == 0
            start = time.monotonic()
            reply = processes.ask("", function, patience=patience)
            assert reply.failure == words
            assert time.monotonic() - start < 20
    finally:
        processes.close()
