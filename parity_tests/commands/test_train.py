"""``parity train`` and ``parity train curves``."""

import json

import numpy as np
import pytest

from transformer_contract import weights
from parity import ports
from parity.runs import date_formats, tasks, training
from parity_tests.support.commands import invoke
from parity_tests.support.disks import full
from parity_tests.support.processes import printed
from parity_tests.support.runs import TINY, tiny_run

pytestmark = pytest.mark.usefixtures("one_length")


def command(*words):
    return invoke("train", *map(str, words))


@pytest.mark.long
def test_train(port, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.dates, "TESTED", 1)
    done = command("dates", "--port", port.NAME, "--out", tmp_path / "run",
                   "--steps", 2, *TINY, "--json", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["step"] == 2 and found["tested"] == 102
    assert set(found["groups"]) == {*date_formats.LOCALES, *tasks.dates.KINDS}
    made = {path.name for path in (tmp_path / "run").iterdir()}
    assert made == {"checkpoint.safetensors", "tokenizer.json", "curve.tsv",
                    "curve.png", "weights.safetensors"}
    assert "step 2: loss" in done.output


def data(tmp_path, lines=30):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"word {i} of {i % 7}\t{i} {i % 7}\n"
                            for i in range(lines)), encoding="utf-8")
    return path


@pytest.mark.filterwarnings("error")
def test_a_rate_that_is_too_high_is_told_in_a_sentence(tmp_path):
    """At the step of the loss, and without NumPy's warnings before it."""
    told = command("dates", "--port", "numpy", "--out", tmp_path / "run",
                   "--steps", 2, *TINY, "--set", "learning_rate=1e308")
    assert told.exit_code == 2 and "RuntimeWarning" not in told.output
    assert "choose a lower learning rate" in told.output


def test_train_on_a_file_and_go_on(tmp_path):
    words = ("--data", data(tmp_path), "--port", "numpy", "--out",
             tmp_path / "run")
    more = (*TINY, "--vocab", 300)
    assert command(*words, "--steps", 2, *more).exit_code == 0
    again = command(*words, "--steps", 4, *more)
    assert again.exit_code == 2 and "--resume" in again.output
    fixed = command(*words, "--resume", "--set", "learning_rate=2")
    assert fixed.exit_code == 2 and "--set is fixed" in fixed.output
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
    "heads": (["dates", "--set", "n_heads=7"], "n_heads"),
    "rate": (["dates", "--set", "learning_rate=-1"], "learning_rate"),
    "dtype": (["dates", "--dtype", "int8"], "int8"),
    "device": (["dates", "--port", "numpy", "--device", "cuda"], "cuda"),
    "resume": (["dates", "--resume", "--out", "/nowhere"], "no checkpoint"),
    "preset": (["dates", "--preset", "gpt"], "gpt"),
    "batch": (["dates", "--batch", "9" * 20], "--batch"),
    "accumulate": (["dates", "--accumulate", "9" * 20], "--accumulate"),
    "vocab": (["--data", "x.tsv", "--vocab", "9" * 20], "--vocab"),
    "field": (["dates", "--set", "d_modle=8"], "d_model"),
    "value": (["dates", "--set", "d_model=wide"], "d_model"),
    "equals": (["dates", "--set", "d_model"], "KEY=VALUE"),
    "decay": (["dates", "--set", "weight_decay=0.1"], "adamw"),
}


@pytest.mark.parametrize("how", BAD_WORDS)
def test_bad_words_are_refused(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    words, expected = BAD_WORDS[how]
    done = command(*words)
    assert done.exit_code == 2 and expected in done.output
    assert done.output.count("\n") == 1 or "Usage: " in done.output
    assert not list(tmp_path.iterdir())


def pairs_run(tmp_path, *more):
    """A run of two steps on a file of pairs, and the words to go on."""
    path = data(tmp_path)
    words = ("--data", path, "--port", "numpy", "--out", tmp_path / "run")
    done = command(*words, "--steps", 2, *TINY, "--vocab", 300, *more)
    assert done.exit_code == 0, done.output
    return path, (*words, "--resume", "--steps", 3)


def test_data_that_changed_are_named(tmp_path):
    path, words = pairs_run(tmp_path)
    before = {each.name: each.read_bytes()
              for each in (tmp_path / "run").iterdir()}
    text = path.read_text()
    for change in (text.replace("word 7", "ward 7"), text + "one\t1\n",
                   text.replace("\t7 0", "\t8 0")):
        path.write_text(change)
        done = command(*words)
        assert done.exit_code == 2 and done.output.count("\n") == 1
        assert "the data of" in done.output and "changed" in done.output
    assert before == {each.name: each.read_bytes()
                      for each in (tmp_path / "run").iterdir()}
    path.write_text(text)
    assert command(*words).exit_code == 0


def test_a_tokenizer_that_changed_is_named(tmp_path):
    _, words = pairs_run(tmp_path)
    own = tmp_path / "run" / training.TOKENIZER
    found = json.loads(own.read_text())
    found["model"]["merges"].reverse()
    own.write_text(json.dumps(found))
    done = command(*words)
    assert done.exit_code == 2 and done.output.count("\n") == 1
    assert "tokenizer.json' has changed" in done.output
    own.unlink()  # it is made again
    assert command(*words).exit_code == 0


def test_another_version_of_the_tokenizers_is_named(tmp_path, monkeypatch):
    _, words = pairs_run(tmp_path)
    train = tasks.Tokenizer.train
    monkeypatch.setattr(tasks.Tokenizer, "train", lambda texts, vocab: train(
        texts, vocab, single_digits=True))
    done = command(*words)
    assert done.exit_code == 2 and "the tokenizer that" in done.output


def test_a_config_that_changed_is_named(tmp_path):
    _, words = pairs_run(tmp_path)
    path = tmp_path / "run" / training.CHECKPOINT
    whole = path.read_bytes()
    for one, two in ((b"relu", b"gelu"), (b"1e-06", b"2e-06"),
                     (b"interleaved", b"halves     ")):
        assert whole.count(one.replace(b" ", b"")) >= 1
        path.write_bytes(whole.replace(one, two[:len(one)].ljust(len(one))))
        done = command(*words)
        assert done.exit_code == 2 and "damaged" in done.output
        assert done.output.count("\n") == 1


def test_a_folder_that_cannot_be_one_is_found_before_the_first_step(
        tmp_path, monkeypatch):
    monkeypatch.setattr(training.Run, "train_step", None)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    for out, expected in (("file", "is a file"), ("file/run", "written"),
                          ("other", "'notes.txt'"), ("/proc/run", "written")):
        done = command("dates", "--port", "numpy", "--out", tmp_path / out,
                       *TINY)
        assert done.exit_code == 2 and expected in done.output, done.output
        assert done.output.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"file", "other"}
    with full(100_000):
        done = command("dates", "--port", "numpy", "--out", tmp_path / "run",
                       *TINY)
    assert done.exit_code == 2 and "make room" in done.output
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_killed_before_its_checkpoint_starts_again(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for name in ("tokenizer.json", "curve.tsv", ".curve.tsv.x.partial"):
        (run / name).write_text("old")
    pairs_run(tmp_path)
    assert "old" not in (run / "tokenizer.json").read_text()
    assert not list(run.glob(".*"))


def test_two_runs_in_one_folder_are_kept_apart(tmp_path):
    with training.claimed(tmp_path / "run", resume=False):
        done = command("dates", "--port", "numpy", "--out", tmp_path / "run",
                       *TINY, "--steps", 2)
        assert done.exit_code == 2 and "at work" in done.output
        assert done.output.count("\n") == 1


@pytest.mark.long(8)
def test_a_disk_that_becomes_full(tmp_path, monkeypatch):
    """The newest checkpoint is whole, and the run goes on from it."""
    def small(self):
        monkeypatch.undo()
        limit = (tmp_path / "run" / training.CHECKPOINT).stat().st_size
        with full(limit - 1):
            save(self)

    def first(self):
        save(self)
        monkeypatch.setattr(training.Run, "save", small)
    save = training.Run.save
    monkeypatch.setattr(training.Run, "save", first)
    words = ("dates", "--port", "numpy", "--out", tmp_path / "run")
    done = command(*words, *TINY, "--steps", 6)
    assert done.exit_code == 2 and "make room" in done.output
    assert "Traceback" not in done.output
    arrays, _ = weights.load(tmp_path / "run" / training.CHECKPOINT)
    assert int(arrays["step"][0]) == 2
    done = command(*words, "--resume", "--steps", 3)
    assert done.exit_code == 0, done.output


def test_the_last_checkpoints_are_averaged(tmp_path):
    words = ("--data", data(tmp_path), "--port", "numpy", "--average", 3,
             "--out", tmp_path / "run")
    many = command(*words, *TINY, "--vocab", 300, "--steps", 4)
    assert many.exit_code == 2 and "choose fewer" in many.output
    assert not (tmp_path / "run").exists()
    assert command(*words, *TINY, "--vocab", 300, "--steps", 5
                   ).exit_code == 0
    def arrays(name):
        return weights.load(tmp_path / "run" / name)[0]
    ends = [arrays(f"weights-{step}.safetensors") for step in (2, 4, 5)]
    answer = arrays(training.WEIGHTS)
    assert answer.keys() == ends[0].keys()
    for name, mean in answer.items():
        assert mean.dtype == np.float32
        np.testing.assert_array_equal(mean, np.mean(
            [end[name] for end in ends], 0, dtype=np.float64).astype("f4"))
    (tmp_path / "run" / "weights-5.safetensors").unlink()  # killed before it
    more = command(*words, "--resume", "--steps", 6, "--every", 1)
    assert more.exit_code == 0, more.output
    assert "mean after steps 4, 5 and 6" in " ".join(more.output.split())
    lost = command(*words, "--resume", "--steps", 7, "--every", 4)
    assert lost.exit_code == 2 and "choose fewer" in lost.output
    (tmp_path / "run" / "weights-5.safetensors").unlink()
    lost = command(*words, "--resume", "--steps", 7, "--every", 1)
    assert lost.exit_code == 2 and "step 5" in lost.output


def test_weights_of_another_step_are_not_averaged(tmp_path):
    _, words = pairs_run(tmp_path, "--steps", 4, "--average", 2)
    words, run = (*words, "--steps", 6, "--every", 2, "--average", 3), (
        tmp_path / "run")
    kept, whole = run / "weights-2.safetensors", (
        run / "weights-2.safetensors").read_bytes()
    curve = (run / training.CURVE).read_bytes()
    for content, said in (
            ((run / "weights-4.safetensors").read_bytes(), "not of step 2"),
            (whole[:-1] + bytes([whole[-1] ^ 1]), "is damaged"),
            (b"", "is damaged")):
        kept.write_bytes(content)
        done = command(*words)
        assert done.exit_code == 2 and said in " ".join(done.output.split())
        assert (run / training.CURVE).read_bytes() == curve  # no step was made
    kept.write_bytes(whole)
    assert command(*words).exit_code == 0


def test_a_report_is_not_written_over_the_data_or_the_run(tmp_path):
    data, words = pairs_run(tmp_path)
    run = tmp_path / "run"
    for path in (data, run / training.CHECKPOINT, run / training.WEIGHTS):
        before = path.read_bytes()
        done = command(*words, "--json", path)
        assert done.exit_code == 2 and "a name of its own" in done.output
        assert path.read_bytes() == before


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


def test_a_resumed_run_keeps_its_settings(tmp_path, monkeypatch):
    """Its length, how often it saves and what it averages are its own."""
    def stop(self):
        if self.step == 3:
            raise KeyboardInterrupt
        return step(self)
    step, path = training.Run.train_step, data(tmp_path)
    words = ("--port", "numpy", "--data", path, "--out")
    more = (*TINY, "--vocab", 300, "--steps", 5, "--every", 1, "--average", 2)
    assert command(*words, tmp_path / "whole", *more).exit_code == 0
    monkeypatch.setattr(training.Run, "train_step", stop)
    assert command(*words, tmp_path / "run", *more).exit_code == 130
    monkeypatch.setattr(training.Run, "train_step", step)
    monkeypatch.chdir(tmp_path)  # the data are named in another way
    done = command("--port", "numpy", "--data", path.name, "--out", "run",
                   "--resume")
    assert done.exit_code == 0, done.output
    for name in ("weights-4.safetensors", training.CURVE):
        assert (tmp_path / "run" / name).read_bytes() == (
            tmp_path / "whole" / name).read_bytes()
    resumed, whole = (weights.load(tmp_path / run / training.WEIGHTS)[0]
                      for run in ("run", "whole"))
    assert resumed.keys() == whole.keys()
    for name in whole:
        np.testing.assert_array_equal(resumed[name], whole[name])


def test_a_table_is_not_written_over_a_run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / training.CURVE).write_text("step\n")
    before = (tmp_path / "run" / training.CURVE).read_bytes()
    done = invoke(
        "train", "curves", str(tmp_path / "run"), "--out",
        str(tmp_path / "c.png"), "--table",
        str(tmp_path / "run" / training.CURVE))
    assert done.exit_code == 2 and "a name of its own" in done.output
    assert (tmp_path / "run" / training.CURVE).read_bytes() == before


@pytest.mark.long
def test_a_picture_needs_no_window(tmp_path):
    """So that a backend that is none is not asked for one."""
    printed("-c", "from parity.render import curves\n"
            "curves.draw({'a': [[1, 2.0, 1.0, 1.0, None, None]]}, 'a.png')",
            here=tmp_path, MPLBACKEND="nonsense")
    assert (tmp_path / "a.png").stat().st_size


def test_curves_on_one_picture(tmp_path):
    for name in ("one", "two"):
        run = tiny_run(ports.engine("numpy"), tmp_path / name,
                       seed=len(name) + (name == "two"))
        run.train_step()
        run.validate()
        run.train_step()
        run.save()
    picture = tmp_path / "curves.png"
    done = invoke(
        "train", "curves", str(tmp_path / "one"), str(tmp_path / "two"),
        "--out", str(picture))
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    for words in ([str(tmp_path)], [str(tmp_path / "one"), "--out", "a.txt"]):
        done = invoke("train", "curves", *words)
        assert done.exit_code == 2 and done.output.count("\n") == 1
