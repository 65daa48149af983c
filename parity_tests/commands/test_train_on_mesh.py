"""``parity train --mesh``: the same run on many devices, and on none."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.config import preset
from parity import ports
from parity.check import workers
from parity.matrix import processes
from parity.runs import on_mesh, training
from parity_tests.support.commands import invoke
from parity_tests.support.runs import TINY

pytestmark = pytest.mark.usefixtures("one_length")

#: A tiny model in float64 with two batches a step, and tied weights.
WORDS = (*TINY, "--vocab", "300", "--dtype", "float64", "--accumulate", "2")


@pytest.fixture
def command(tmp_path):
    """Train on some pairs in the folder "run": the command's result."""
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"word {i} of {i % 7}\t{i} {i % 7}\n"
                             for i in range(60)), encoding="utf-8")

    def run(*words, port="torch", out="run"):
        if ports.absent(port):
            pytest.skip(f"not checked: {ports.absent(port).reason}")
        return invoke(
            "train", "--data", str(pairs), "--port", port, "--out",
            str(tmp_path / out), *map(str, words))

    return run


def losses(folder):
    return np.array([row[1] for row in training.read_curve(
        folder / training.CURVE)])


def kept(folder):
    """What a run has at its end, to the last of its validations."""
    curve = training.read_curve(folder / training.CURVE)
    return np.array([[value or 0.0 for value in row[1:]] for row in curve])


@pytest.mark.parametrize("meshes", [
    pytest.param((("torch", "data=2"), ("numpy", None)), id="two",
                 marks=pytest.mark.long(4)),
    pytest.param((("torch", "data=2,model=2"), ("torch", "model=2"),
                  ("torch", None)), id="others", marks=pytest.mark.long),
    pytest.param((("keras", "data=2,model=2"), ("keras", "data=2")),
                 id="keras", marks=pytest.mark.long),
    pytest.param((("jax", "data=2,model=2"), ("torch", "data=4")),
                 id="frameworks", marks=pytest.mark.long)])
def test_a_run_goes_on_with_another_mesh(meshes, command, tmp_path):
    """What it learns is what a run on one device does, to 1e-12."""
    last = 4 * len(meshes)
    done = command(*WORDS, "--steps", last, "--every", 2, port="numpy",
                   out="alone")
    assert done.exit_code == 0, done.output
    for number, (port, mesh) in enumerate(meshes, start=1):
        words = ["--resume"] if number > 1 else WORDS
        words = [*words, "--steps", 4 * number, "--every", 2]
        done = command(*words, *(["--mesh", mesh] if mesh else ()), port=port)
        assert done.exit_code == 0, done.output
    theirs, ours = kept(tmp_path / "alone"), kept(tmp_path / "run")
    assert len(theirs) == len(ours) == last
    assert np.abs(ours / np.where(theirs, theirs, 1) - (theirs != 0)).max(
        ) < 1e-12


@pytest.mark.long
def test_fsdp_trains_too(command, tmp_path):
    for out, words in (("a", ["--mode", "FSDP2"]), ("b", [])):
        done = command(*WORDS, "--steps", 6, "--every", 2, "--mesh", "data=2",
                       *words, out=out)
        assert done.exit_code == 0, done.output
    np.testing.assert_allclose(
        kept(tmp_path / "a"), kept(tmp_path / "b"), 1e-12)


@pytest.mark.parametrize("words, said", [
    (["--mesh", "data=3"], "data=3 does not divide 4 rows of a batch"),
    (["--mesh", "model=4"], "model=4 does not divide 2 heads"),
    (["--mesh", "2x2"], "axis of a mesh"),
    (["--mesh", "data=1"], "is one device"),
    (["--mesh", "data=128", "--batch", "128"], "at most 64"),
    (["--mesh", "data=2", "--device", "cuda"], "of processors alone"),
    (["--mode", "DDP"], "give --mesh too"),
    (["--mesh", "model=2", "--mode", "DDP"], "choose one of TP")])
def test_a_mesh_that_does_not_fit_is_refused(words, said, command, tmp_path):
    done = command(*WORDS, *words)
    assert done.exit_code == 2 and said in done.output
    assert done.output.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_numpy_has_no_mesh(command):
    done = command(*WORDS, "--mesh", "data=2", port="numpy")
    assert done.exit_code == 2 and "engine for meshes" in done.output


@pytest.mark.long(8)
def test_a_worker_that_is_killed_in_a_step_costs_no_checkpoint(
        command, tmp_path, monkeypatch):
    """The others end within seconds, with a sentence; the run goes on."""
    begun, pids = {}, []
    train_step = on_mesh.OnMesh.train_step

    def killing(engine, trainer, *pairs):
        if trainer.step == 3:
            pids.extend(one._process.pid for one in engine.ranks.processes)
            begun["at"] = time.monotonic()
            threading.Timer(
                0.01, os.kill, (pids[1], signal.SIGKILL)).start()
            while True:  # it is killed in one of these
                train_step(engine, trainer, *pairs)
        return train_step(engine, trainer, *pairs)

    monkeypatch.setattr(on_mesh.OnMesh, "train_step", killing)
    done = command(*WORDS, "--steps", 8, "--every", 2, "--mesh", "data=2")
    assert done.exit_code == 2
    assert "rank 1 of 2: its process ended" in done.output
    assert "--resume" in done.output
    assert time.monotonic() - begun["at"] < 20
    for pid in pids:
        with pytest.raises(OSError):
            os.kill(pid, 0)
    monkeypatch.undo()
    assert weights.load(tmp_path / "run" / training.CHECKPOINT)[0]["step"] == 2
    done = command("--resume", "--steps", 4, port="numpy")
    assert done.exit_code == 0, done.output
    assert len(losses(tmp_path / "run")) == 4


def test_a_rank_that_fails_otherwise_is_a_mistake_of_ours(monkeypatch):
    """It has a traceback, and no advice to go on."""
    def ask(self, *given):
        return workers.Reply(
            None, "rank 1 of 2: KeyError: 'x'", 0.0, "Traceback: KeyError")

    monkeypatch.setattr(processes.MeshProcesses, "ask", ask)
    engine = on_mesh.OnMesh(
        "torch", "data=2", None, preset("lesson"), rows=4)
    with pytest.raises(RuntimeError, match="Traceback: KeyError"):
        engine.masks()
