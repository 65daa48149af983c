"""Training: runs that stay equal, accumulation, resuming, and the command."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from typer.testing import CliRunner

from contract import weights
from contract.errors import InputError
from contract.tokenizer import SENTENCES
from contract.training import TrainingConfig
from parity import ports
from parity.check import cases, lockstep
from parity.cli import app
from parity.numerics.comparator import DIVERGENCE, FREE, relative_error
from parity.runs import tasks, training
from parity_tests.support.engines import patched, uncompiled

TRAINING = TrainingConfig(warmup_steps=10, clip_norm=1.0)


def small(preset="vaswani2017_base", **changes):
    """A model that compiles quickly."""
    return cases.test_size(preset).replace(
        n_encoder_layers=1, n_decoder_layers=1, **changes)


def trainer(engine, config, settings=TRAINING, dtype="float64"):
    arrays = {name: array.astype(dtype)
              for name, array in weights.initial_weights(config).items()}
    model = engine.build("transformer", config, arrays, dtype)
    return model, engine.trainer(model, settings)


@pytest.mark.long
@pytest.mark.parametrize("preset", ["lesson", "complete", "vaswani2017_base"])
def test_a_hundred_steps_are_the_same(port, preset):
    """With dropout, smoothing, schedule, clipping and accumulation."""
    config = small(preset)
    assert config.dropout == 0.1
    clipped = 0
    runner = lockstep.Runner(ports.engine("numpy"), config,
                             weights.initial_weights(config))
    for step in range(1, 4):
        norm = runner.step(*lockstep.batches(config, step))["norm"]["norm"]
        clipped += norm > lockstep.TRAINING.clip_norm
    assert clipped == 3
    run = lockstep.compared(
        config, weights.initial_weights(config), {port.NAME: port}, 100)
    worst = dict.fromkeys(lockstep.KINDS, 0.0)
    for step, kind, _, found in run:
        difference = found[port.NAME]
        assert difference.verdict != DIVERGENCE, (step, kind, difference)
        worst[kind] = max(worst[kind], difference.error)
    assert step == 100
    assert worst["loss"] < 1e-12 and worst["weights"] < 1e-11


def uneven(config):
    """Two batches of which one has far fewer tokens to predict."""
    source = cases.ids("source", 8, 7, config.source_vocab)
    target = cases.ids("target", 8, 6, config.target_vocab)
    target[4:, 2:] = config.pad_id
    source[2, 3:] = config.pad_id
    return source, target


def test_accumulation_equals_the_large_batch(engine):
    config = small(dropout=0.0)
    source, target = uneven(config)
    found = []
    for batches in (1, 2):
        model, run = trainer(engine, config)
        with uncompiled(engine):
            for _ in range(2):
                result = engine.train_step(
                    run, source.reshape(batches, -1, 7),
                    target.reshape(batches, -1, 6))
        found.append((result, engine.export(model)))
    (large, exported), (small_, accumulated) = found
    for name in ("loss", "norm"):
        assert abs(small_[name] / large[name] - 1) < 1e-13
    for name, array in exported.items():
        if not name.endswith(".key.bias"):
            assert relative_error(accumulated[name], array)[0] < 1e-12, name


def test_a_mean_over_batches_would_be_another():
    """The effect that weighing by tokens prevents."""
    engine, config = ports.engine("numpy"), small(dropout=0.0)
    source, target = uneven(config)
    losses = []
    for rows in (slice(None), slice(4), slice(4, None)):
        _, run = trainer(engine, config)
        losses.append(engine.train_step(
            run, source[None, rows], target[None, rows])["loss"])
    assert abs((losses[1] + losses[2]) / 2 / losses[0] - 1) > 1e-3


def test_padding_alone_moves_nothing(engine):
    config = small()
    model, run = trainer(engine, config)
    before = {name: array.copy()
              for name, array in engine.export(model).items()}
    nothing = np.full((1, 3, 5), config.pad_id)
    with uncompiled(engine):
        found = engine.train_step(run, nothing, nothing)
    assert found["loss"] == 0 and found["norm"] == 0
    for name, array in engine.export(model).items():
        np.testing.assert_array_equal(array, before[name])


def test_native_masks_train_too(engine):
    config, settings = small(), TRAINING.replace(masks="native")
    _, run = trainer(engine, config, settings)
    with uncompiled(engine):
        losses = [float(engine.train_step(run, *lockstep.batches(
            config, 1))["loss"]) for _ in range(8)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


WRONG_PAIRS = {
    "three axes": (lambda s, t: (s[0], t), "batches"),
    "as many": (lambda s, t: (s[:, :2], t), "as many"),
    "two tokens": (lambda s, t: (s, t[:, :, :1]), "two"),
    "vocabulary": (lambda s, t: (s, t + 99), "vocabulary"),
    "empty": (lambda s, t: (s[:, :, :0], t), "empty"),
}


@pytest.mark.parametrize("how", WRONG_PAIRS)
def test_wrong_pairs_are_refused(how):
    engine, config = ports.engine("numpy"), small()
    _, run = trainer(engine, config)
    change, words = WRONG_PAIRS[how]
    with pytest.raises(InputError, match=words):
        engine.train_step(run, *change(*lockstep.batches(config, 1)))
    assert run.step == 0


# Runs in folders

@functools.cache
def tiny_task():
    return tasks.task("dates")


@pytest.fixture(autouse=True)
def one_length(monkeypatch):
    """Pad every batch to one length, so that a run compiles once."""
    monkeypatch.setattr(training, "MULTIPLE", 40)


def tiny_run(engine, folder, dtype="float32", **changes):
    config = tiny_task().config.replace(
        d_model=24, n_heads=2, d_ff=40, n_encoder_layers=1,
        n_decoder_layers=1)
    return training.Run(engine, tiny_task(), training.Settings(
        task="dates", config=config, training=TRAINING.replace(**changes),
        rows=5, accumulate=2, dtype=dtype), folder)


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
    run = tiny_run(ports.engine("numpy"), tmp_path, rate=1e18, clip_norm=0.0)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="rate"):
        for _ in range(20):
            run.train_step()


def test_batches_are_a_function_of_the_step(tmp_path):
    run = tiny_run(ports.engine("numpy"), tmp_path)
    for one, other in zip(run.batches(7), run.batches(7)):
        np.testing.assert_array_equal(one, other)
    assert any((one != other).any() if one.shape == other.shape else True
               for one, other in zip(run.batches(7), run.batches(8)))


def test_an_epoch_of_a_file_has_every_pair_once():
    task = tasks.File(str(SENTENCES), 300)
    count = len(task.train)
    assert count + len(task.kept) == len(task.pairs)
    for epoch in range(2):
        seen = [tuple(task.batch(epoch * count + i + 1, 1)[0][0])
                for i in range(count)]
        assert sorted(seen) == sorted(
            tuple(task.ids[i][0]) for i in task.train)


# The command

TINY = ("--d-model", "24", "--heads", "2", "--d-ff", "40", "--layers", "1",
        "--batch", "4", "--every", "2", "--warmup-steps", "10")


def command(*words):
    return CliRunner().invoke(app, ["train", *map(str, words)])


@pytest.mark.long
def test_train(port, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.dates, "TESTED", 1)
    done = command("dates", "--port", port.NAME, "--out", tmp_path / "run",
                   "--steps", 2, *TINY, "--json", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["step"] == 2 and found["tested"] == 75
    assert set(found["groups"]) == set(tasks.dates.LOCALES)
    made = {path.name for path in (tmp_path / "run").iterdir()}
    assert made == {"checkpoint.safetensors", "tokenizer.json", "curve.tsv",
                    "curve.png", "weights.safetensors"}
    assert "step 2: loss" in done.output


def data(tmp_path, lines=30):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"word {i} of {i % 7}\t{i} {i % 7}\n"
                            for i in range(lines)), encoding="utf-8")
    return path


def test_train_on_a_file_and_go_on(tmp_path):
    words = ("--data", data(tmp_path), "--port", "numpy", "--out",
             tmp_path / "run")
    more = (*TINY, "--vocab", 300)
    assert command(*words, "--steps", 2, *more).exit_code == 0
    again = command(*words, "--steps", 4, *more)
    assert again.exit_code == 2 and "--resume" in again.output
    fixed = command(*words, "--resume", "--rate", 2)
    assert fixed.exit_code == 2 and "--rate is fixed" in fixed.output
    other = command("dates", "--port", "numpy", "--out", tmp_path / "run",
                    "--resume")
    assert other.exit_code == 2 and "is a run on" in other.output
    done = command(*words, "--resume", "--steps", 4, "--every", 2)
    assert done.exit_code == 0 and "step 4: loss" in done.output
    curve = training.read_curve(tmp_path / "run" / training.CURVE)
    assert [row[0] for row in curve] == [1, 2, 3, 4]


BAD_LINES = {
    "no tab": ("one column\n", "pairs.tsv:3"),
    "two tabs": ("a\tb\tc\n", "pairs.tsv:3"),
    "empty side": ("a\t \n", "pairs.tsv:3"),
    "too long": ("word " * 400 + "\tb\n", "pairs.tsv:3"),
}


@pytest.mark.parametrize("how", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, how):
    line, words = BAD_LINES[how]
    path = tmp_path / "pairs.tsv"
    path.write_text(f"a b\tc d\ne f\tg h\n{line}i j\tk l\n")
    done = command("--data", path, "--port", "numpy", "--out",
                   tmp_path / "run", *TINY, "--vocab", 300)
    assert done.exit_code == 2 and words in done.output
    assert not (tmp_path / "run").exists()


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tb\n\xff\tc\n")
    done = command("--data", path, "--port", "numpy", "--out",
                   tmp_path / "run")
    assert done.exit_code == 2 and "pairs.tsv:2" in done.output


BAD_WORDS = {
    "task": (["numbers"], "dates"),
    "nothing": ([], "--data"),
    "both": (["dates", "--data", "x.tsv"], "one of"),
    "file": (["--data", "nowhere.tsv"], "nowhere.tsv"),
    "port": (["dates", "--port", "mxnet"], "mxnet"),
    "heads": (["dates", "--heads", "7"], "n_heads"),
    "rate": (["dates", "--rate", "-1"], "rate"),
    "dtype": (["dates", "--dtype", "int8"], "int8"),
    "device": (["dates", "--port", "numpy", "--device", "cuda"], "cuda"),
    "resume": (["dates", "--resume", "--out", "/nowhere"], "no checkpoint"),
    "preset": (["dates", "--preset", "gpt"], "gpt"),
    "decay": (["dates", "--weight-decay", "0.1"], "adamw"),
}


@pytest.mark.parametrize("how", BAD_WORDS)
def test_bad_words_are_refused(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    words, expected = BAD_WORDS[how]
    done = command(*words)
    assert done.exit_code == 2 and expected in done.output
    assert done.output.count("\n") == 1
    assert not list(tmp_path.iterdir())


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
    engine = ports.engine("numpy")
    settings = training.settings_of(tmp_path / "killed")
    killed = training.Run(engine, tiny_task(), settings, tmp_path / "killed")
    killed.load()
    assert killed.step >= 1 and len(killed.curve) == killed.step
    whole = training.Run(engine, tiny_task(), settings, tmp_path / "whole")
    while whole.step < killed.step + 1:
        whole.train_step()
    killed.train_step()
    same(killed.arrays(), whole.arrays())


def test_stopped_by_ctrl_c(tmp_path, monkeypatch):
    def stop(self):
        if self.step == 3:
            raise KeyboardInterrupt
        return step(self)
    step = training.Run.train_step
    monkeypatch.setattr(training.Run, "train_step", stop)
    done = command("dates", "--port", "numpy", "--out", tmp_path / "run",
                   *TINY, "--steps", 9)
    assert done.exit_code == 130 and "stopped at step 3" in done.output
    assert int(weights.load(tmp_path / "run" / training.CHECKPOINT)[0][
        "step"][0]) == 2


def test_curves_on_one_picture(tmp_path):
    for name in ("one", "two"):
        run = tiny_run(ports.engine("numpy"), tmp_path / name,
                       seed=len(name) + (name == "two"))
        run.train_step()
        run.validate()
        run.train_step()
        run.save()
    picture = tmp_path / "curves.png"
    done = CliRunner().invoke(app, [
        "curves", str(tmp_path / "one"), str(tmp_path / "two"), "--out",
        str(picture)])
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    for words in ([str(tmp_path)], [str(tmp_path / "one"), "--out", "a.txt"]):
        done = CliRunner().invoke(app, ["curves", *words])
        assert done.exit_code == 2 and done.output.count("\n") == 1


# Proof by faults

def test_free_is_not_said_of_anything_else():
    """In lockstep the bias of a key alone may wander."""
    config = small()
    run = lockstep.compared(config, weights.initial_weights(config), {}, 1)
    assert {kind for _, kind, _, _ in run} == set(lockstep.KINDS)
    truth = lockstep.Truth({"weights": {"a.key.bias": np.ones(3),
                                        "b": np.ones(3)}}, 0.1)
    moved = {"a.key.bias": np.ones(3) + 0.15, "b": np.ones(3)}
    assert truth.compare("weights", moved).verdict != DIVERGENCE
    assert truth._compare_one("weights", "a.key.bias", *[
        array["a.key.bias"] for array in (moved, truth.steps["weights"])],
        truth.steps["weights"]).verdict == FREE
    moved["b"] = moved["b"] + 1e-9
    assert "in b" in truth.compare("weights", moved).reason
    assert "no tensor b" in truth.compare(
        "weights", {"a.key.bias": np.ones(3)}).reason


def eps_hat(old):
    """Adam as Keras has it: ε beside √v, before the correction."""
    def update(self, weight, gradient, m, v, rate, one, two):
        late = types.SimpleNamespace(
            beta1=self.beta1, beta2=self.beta2, training=self.training,
            eps=self.eps / two**0.5)
        return old(late, weight, gradient, m, v, rate, one, two)
    return update


def late_schedule(old):
    return lambda self, step: (old(self, step + 1)[0], *old(self, step)[1:])


FAULTS = {
    "Adam's ε, as Keras has it": (
        "optimizer", "Adam.update", eps_hat, "step 1 weights"),
    "a schedule that counts from 2": (
        "optimizer", "Adam.settings", late_schedule, "step 1 weights"),
    "no clipping": (
        "train", "clip_by_global_norm",
        lambda old: lambda gradients, limit: old(gradients, 0.0),
        "step 1 weights"),
    "masks turned round": (
        "train", "draw",
        lambda old: lambda *args: {name: ~mask if hasattr(
            mask, "__invert__") else mask == 0
            for name, mask in old(*args).items()}, "step 1 loss"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_part_the_runs(port, fault):
    """Each is found, and the step and the tensors in which it first shows."""
    file, name, make, first = FAULTS[fault]
    config = small()
    with uncompiled(port), patched(port.NAME, file, name, make):
        run = lockstep.compared(
            config, weights.initial_weights(config), {port.NAME: port}, 1)
        wrong = [f"step {step} {kind}" for step, kind, _, found in run
                 if found[port.NAME].verdict == DIVERGENCE]
    assert wrong and wrong[0] == first


def test_a_port_that_fails_is_a_divergence(port):
    config = small()

    def broken(old):
        def train_step(self, sources, targets):
            raise RuntimeError("it broke")
        return train_step
    with patched(port.NAME, "train", "Trainer.train_step", broken):
        *_, (_, _, _, found) = lockstep.compared(
            config, weights.initial_weights(config), {port.NAME: port}, 1)
    assert found[port.NAME].verdict == DIVERGENCE
    assert found[port.NAME].reason == "RuntimeError: it broke"
