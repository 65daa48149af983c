"""``parity train`` and ``parity curves``."""

import json

import pytest
from typer.testing import CliRunner

from contract import weights
from parity import ports
from parity.cli import app
from parity.runs import tasks, training
from parity_tests.support.runs import TINY, tiny_run

pytestmark = pytest.mark.usefixtures("one_length")


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
    "rate": (["dates", "--rate", "-1"], "learning_rate"),
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
