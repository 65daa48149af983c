"""Runs in folders: resumed to the bit, damaged, stopped, killed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from transformer_contract import weights
from parity_io.errors import InputError
from transformer_contract.tokenizer import SENTENCES
from parity import ports
from parity.runs import tasks, training
from parity_tests.support.runs import TINY, tiny_run, tiny_task

pytestmark = pytest.mark.usefixtures("one_length")


def same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.long
def test_resumed_to_the_bit(engine, tmp_path):
    whole = tiny_run(engine, tmp_path)
    for _ in range(3):
        whole.train_step()
    whole.save()
    for _ in range(2):
        whole.train_step()
    rows = whole.curve
    resumed = tiny_run(engine, tmp_path)
    resumed.load()
    assert resumed.step == 3
    assert [resumed.train_step() for _ in range(2)] == rows[3:]
    assert resumed.curve == rows and len(rows) == 5
    same(resumed.arrays(), whole.arrays())


@pytest.mark.long
def test_resumed_in_another_port(engine, tmp_path):
    """What one has begun another goes on with, and agrees."""
    first = tiny_run(ports.engine("numpy"), tmp_path, "float64")
    first.train_step()
    first.save()
    first.train_step()
    other = tiny_run(engine, tmp_path, "float64")
    other.load()
    row = other.train_step()
    assert row[1] == pytest.approx(first.curve[-1][1], rel=1e-12)
    assert row[2] == pytest.approx(first.curve[-1][2], rel=1e-10)


def damaged(change):
    def made(path):
        arrays, metadata = weights.load(path)
        change(arrays)
        weights.save(path, arrays, **json.loads(metadata["parity"]))
    return made


DAMAGE = {
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "another": lambda path: weights.save(path, {"a": np.ones(2)}),
    "a weight": damaged(lambda a: a.pop("weights.source_embedding.table")),
    "a moment": damaged(lambda a: a.update({"m.more": np.ones(2)})),
    "nan": damaged(lambda a: a["v.source_embedding.table"].fill(np.nan)),
    "key": damaged(lambda a: a["key"].fill(1)),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_checkpoints_are_refused(tmp_path, how):
    run = tiny_run(ports.engine("numpy"), tmp_path)
    run.train_step()
    run.save()
    DAMAGE[how](tmp_path / training.CHECKPOINT)
    with pytest.raises(InputError):
        settings = training.settings_of(tmp_path)
        run.settings = settings
        run.load()


def test_a_curve_that_is_none_is_refused(tmp_path):
    (tmp_path / training.CURVE).write_text("a\tb\n")
    with pytest.raises(InputError, match="curve"):
        training.read_curve(tmp_path / training.CURVE)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    run = tiny_run(ports.engine("numpy"), tmp_path, learning_rate=1e18,
                   clip_norm=0.0)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="rate"):
        for _ in range(20):
            run.train_step()


def test_a_run_of_an_earlier_version_is_read(tmp_path):
    """Its settings call the learning rate "rate"."""
    run = tiny_run(ports.engine("numpy"), tmp_path, learning_rate=0.5)
    run.train_step()
    run.save()
    path = tmp_path / training.CHECKPOINT
    arrays, metadata = weights.load(path)
    settings = json.loads(metadata["parity"])["settings"]
    settings["training"]["rate"] = settings["training"].pop("learning_rate")
    weights.save(path, arrays, settings=settings)
    assert training.settings_of(tmp_path) == run.settings


def test_batches_are_a_function_of_the_step(tmp_path):
    run = tiny_run(ports.engine("numpy"), tmp_path)
    for one, other in zip(run.batches(7), run.batches(7)):
        np.testing.assert_array_equal(one, other)
    assert any((one != other).any() if one.shape == other.shape else True
               for one, other in zip(run.batches(7), run.batches(8)))


def test_an_epoch_of_a_file_has_every_pair_once():
    task = tasks.File(str(SENTENCES), 300)
    count = len(task.train)
    assert count + len(task.validated) == len(task.pairs)
    for epoch in range(2):
        seen = [tuple(task.batch(epoch * count + i + 1, 1)[0][0])
                for i in range(count)]
        assert sorted(seen) == sorted(
            tuple(task.ids[i][0]) for i in task.train)


def test_killed_at_any_moment(tmp_path, monkeypatch):
    """The last checkpoint stands whole, and a resumed run ends the same."""
    monkeypatch.undo()  # the command pads as it does
    words = ["dates", "--port", "numpy", *TINY, "--every", "1"]
    run = [sys.executable, "-m", "parity", "train"]
    child = subprocess.Popen(
        [*run, *words, "--steps", "100000", "--out", str(tmp_path / "killed")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / "killed" / training.CHECKPOINT
    for _ in range(600):
        if checkpoint.exists():
            break
        time.sleep(0.1)
    time.sleep(0.35)
    child.send_signal(signal.SIGKILL)
    child.wait()
    engine = ports.engine("numpy", "fast")  # as the command has it
    settings = training.settings_of(tmp_path / "killed")
    killed = training.Run(engine, tiny_task(), settings, tmp_path / "killed")
    killed.load()
    assert killed.step >= 1 and len(killed.curve) == killed.step
    whole = training.Run(engine, tiny_task(), settings, tmp_path / "whole")
    while whole.step < killed.step + 1:
        whole.train_step()
    killed.train_step()
    same(killed.arrays(), whole.arrays())
