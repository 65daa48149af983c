"""From text to text, on the command line and in Python."""

import io
import json
import shutil
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

from transformer_contract import weights
from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError
from transformer_contract.tokenizer import Tokenizer
from parity import ports
from parity.check import golden
from parity.cli import app
from parity.commands.answering import Answers, lines
from parity.runs import translation

FRIDAY = "vendredi 20 novembre 2026"
SHIPPED = golden.FOLDER / "dates.safetensors"


def run(*arguments, lines=None):
    """The command's result; ``lines`` is what standard input holds."""
    return CliRunner().invoke(app, ["translate", *arguments], input=lines)


@pytest.mark.long(12)
def test_an_answer(engine):
    found = run("--port", engine.NAME, FRIDAY, "20 kwietnia 1999")
    assert found.exit_code == 0
    assert found.stdout == "2026-11-20\n1999-04-20\n"


@pytest.mark.long(8)
def test_all_agree():
    found = run("--port", "all", "--beam", "4", "--nbest", "2", FRIDAY)
    assert found.exit_code == 0
    assert found.stdout.count("2026-11-20") == 4
    assert "match: tokens identical, scores within" in found.stdout


@pytest.mark.long(8)
def test_all_say_where_they_differ(monkeypatch):
    """One wrong weight in one port is a divergence and exits with 1."""
    engine = ports.engine("torch")
    if isinstance(engine, ports.NotChecked):
        pytest.skip(f"not checked: {engine.reason}")
    old = engine.build

    def wrong(component, config, arrays, *args):
        name = "decoder.layers.0.self_attention.value.kernel"
        arrays = dict(arrays) | {name: arrays[name] * 1.001}
        return old(component, config, arrays, *args)

    monkeypatch.setattr(engine, "build", wrong)
    found = run("--port", "all", FRIDAY)
    assert found.exit_code == 1
    assert "DIVERGENCE: torch's scores of 'vendredi" in found.stdout


def test_a_missing_port_is_not_checked(monkeypatch):
    monkeypatch.setattr(ports, "engine", lambda name, *form: (
        golden.ports.importlib.import_module("reference_numpy.engine")
        if name == "numpy" else ports.NotChecked(name, "not here")))
    found = run("--port", "all", FRIDAY)
    assert "not checked: torch" in found.stdout
    assert "match" not in found.stdout
    assert "nothing was compared" in found.stdout


def test_standard_input_is_answered_line_by_line():
    """A line that is not UTF-8, or too long, does not spoil the others."""
    lines = (b"20 novembre 2026\n\xff\xfe\n\n" + b"a" * 5000
             + b"\n20 April 1999\r\n\xf0\x9f\xa6\x89\n")
    found = run("-", lines=lines)
    assert found.exit_code == 2
    answers = found.stdout.split("\n")
    assert answers[0] == "2026-11-20" and answers[4] == "1999-04-20"
    assert answers[1:4] == ["", "", ""]
    assert len(answers) == 7  # an owl has some answer, and no line is lost
    assert "line 2 is not UTF-8 (byte 1)" in found.stderr
    assert "line 4 has" in found.stderr and "reads 64" in found.stderr
    assert "the answer to line 6 is doubtful" in found.stderr
    assert "line 3 is empty" in found.stderr
    assert found.stderr.count("\n") == 4


def test_a_line_without_an_end_is_not_kept():
    """Of 20 MB a hundredth is read, and the next line is answered."""
    found = run("-", lines=b"7" * 20_000_000 + b"\n20 novembre 2026\n")
    assert found.exit_code == 2 and found.stdout == "\n2026-11-20\n"
    assert found.stderr == (
        "parity: line 1 has more than 100,000 bytes; shorten it, or divide "
        "it into several.\n")


def test_a_line_that_never_ends_is_told():
    """Its rest is read only when the next line is asked for."""
    stream = mock.Mock()
    stream.readline.side_effect = [b"a" * (translation.LONGEST + 3)]
    assert len(next(lines(stream))) > translation.LONGEST


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("more", [-3, -1, 0, 1, 2, 3, translation.LONGEST])
def test_lines_around_the_longest(end, more):
    first = b"a" * (translation.LONGEST + more)
    found = list(lines(io.BytesIO(first + end + (b"b\n" if end else b""))))
    assert len(found) == 1 + bool(end) and found[1:] == [b"b"] * bool(end)
    assert found[0] == first or more > 1
    assert (len(found[0]) > translation.LONGEST) == (more > 0)


def test_an_answer_comes_before_the_next_question():
    """Another program can ask, wait for the answer, and ask again."""
    with subprocess.Popen(
            [sys.executable, "-m", "parity", "translate", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for asked, expected in ((b"20 novembre 2026\n", b"2026-11-20\n"),
                                (b"1. Mai 1950\n", b"1950-05-01\n")):
            process.stdin.write(asked)
            process.stdin.flush()
            assert process.stdout.readline() == expected


@pytest.mark.parametrize("arguments, words", [
    (["--beam", "1001", FRIDAY], "the beam is 1001 wide"),
    (["--beam", "0", FRIDAY], None),
    (["--beam", "2", "--sample", FRIDAY], "choose --beam or --sample"),
    (["--port", "mxnet", FRIDAY], "port 'mxnet' is unknown"),
    (["--dtype", "int8", FRIDAY], "dtype 'int8' is unknown"),
    (["--max-tokens", "100", FRIDAY], "max_tokens is 100"),
    (["--temperature", "0", "--sample", FRIDAY], "temperature is 0"),
    (["--weights", "nowhere.safetensors", FRIDAY], "nowhere.safetensors"),
    (["--attention", "a.gif", FRIDAY], "no picture that can be drawn"),
    (["--attention", "nowhere/a.png", FRIDAY], "cannot be written"),
    (["--json", "nowhere/a.json", FRIDAY], "cannot be written"),
    (["--device", "abacus", FRIDAY], "no device abacus"),
])
def test_what_cannot_be_done_is_one_sentence(arguments, words):
    found = run(*arguments)
    assert found.exit_code == 2 and found.stdout == ""
    if words:
        assert words in found.stderr and found.stderr.count("\n") == 1


def test_an_empty_text_has_an_empty_answer():
    found = run("", "20 novembre 2026")
    assert found.exit_code == 0 and found.stdout == "\n2026-11-20\n"


def test_a_tokenizer_of_another_model(tmp_path):
    """Even one of the same size: the vocabulary's hash is in the weights."""
    other = tmp_path / "tokenizer.json"
    Tokenizer.load().save(other)
    found = run("--tokenizer", str(other), FRIDAY)
    assert found.exit_code == 2
    assert "is not the tokenizer of" in found.stderr
    found = run("--tokenizer", str(SHIPPED), FRIDAY)
    assert "cannot be read as a tokenizer" in found.stderr


def test_weights_without_a_tokenizer_or_a_config(tmp_path):
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes(SHIPPED.read_bytes())
    assert "no alone.tokenizer.json" in run(
        "--weights", str(alone), FRIDAY).stderr
    arrays, _ = weights.load(SHIPPED)
    weights.save(alone, arrays)
    assert "does not say which model it is" in run(
        "--weights", str(alone), FRIDAY).stderr


def test_json(tmp_path):
    path = tmp_path / "answers.json"
    found = run("--port", "numpy", "--beam", "2", "--json", str(path),
                FRIDAY, "")
    assert found.exit_code == 0
    read = json.loads(path.read_text("utf-8"))
    first, second = read["answers"]
    assert first["text"] == FRIDAY
    best, other = first["ports"]["numpy"]["hypotheses"]
    assert best["text"] == "2026-11-20" and best["score"] > other["score"]
    assert best["tokens"][0] == 1 and 2 in best["tokens"]
    assert second["ports"]["numpy"]["hypotheses"] == []
    printed = run("--json", "-", FRIDAY)
    assert json.loads(printed.stdout)["answers"][0]["text"] == FRIDAY


@pytest.mark.long(8)
@pytest.mark.parametrize("name", ["a.png", "a.html"])
def test_attention_is_drawn(tmp_path, name):
    path = tmp_path / name
    found = run("--attention", str(path), FRIDAY + " <b>")
    assert found.exit_code == 0
    content = path.read_bytes()
    if name == "a.png":
        assert content.startswith(b"\x89PNG")
    else:
        assert b"<b>" not in content and b"&lt;b&gt;" in content
        assert content.count(b"<details>") == 3 * 2 * 4


@pytest.fixture
def endless(tmp_path):
    """Weights of a model whose answers repeat themselves without end."""
    _, metadata = weights.load(SHIPPED)
    about = weights.described(metadata)
    arrays = weights.probe_weights(TransformerConfig(**about["config"]))
    path = tmp_path / "endless.safetensors"
    weights.save(path, arrays, config=about["config"])
    shutil.copy(SHIPPED.with_name("dates.tokenizer.json"),
                tmp_path / "tokenizer.json")
    return path


@pytest.mark.long(24)
@pytest.mark.parametrize("port_name, more", [
    ("numpy", []), ("numpy", ["--max-tokens", "64"]),
    ("all", ["--max-tokens", "7"])])
def test_an_answer_that_never_ends(endless, tmp_path, port_name, more):
    found = run("--weights", str(endless), "--attention",
                str(tmp_path / "a.html"), "--port", port_name, FRIDAY, *more)
    assert found.exit_code == 0, found.output
    most = 7 if "7" in more else 64
    assert f"text 1 has no end after {most} tokens" in found.stderr
    assert ("raise --max-tokens" if most == 7 else "give a shorter text") in (
        found.stderr)
    assert found.stderr.count("\n") == 1
    assert (tmp_path / "a.html").read_bytes().count(b"<details>") == 24


@pytest.mark.long(8)
def test_attention_is_each_steps(port):
    """Rows sum to one, and are what forward computes for the answer."""
    model = translation.Model.load(SHIPPED)
    settings = translating_settings(model)
    ours, theirs = (translation.Translator(name, model)
                    for name in ("numpy", port.NAME))
    asked = [translation.read(model, FRIDAY, "text 1")]
    answer = ours.answer(asked, settings)[0]
    expected = ours.attention(answer, settings)
    found = theirs.attention(answer, settings)
    assert expected["cross"].shape == (2, 4, 11, len(answer.ids))
    for kind in expected:
        np.testing.assert_allclose(expected[kind].sum(axis=-1), 1)
        np.testing.assert_allclose(found[kind], expected[kind], atol=1e-13)


def translating_settings(model):
    from transformer_contract.generation import GenerationConfig
    return GenerationConfig(
        bos_id=model.tokenizer.bos_id, eos_id=model.tokenizer.eos_id,
        max_tokens=20)


def test_batches_are_alike_in_length():
    lengths = [5, 1, 9, 2, 0, 8, 3]
    asked = [translation.Answer("", "", np.ones(n, np.int64))
             for n in lengths]
    groups = translation.by_length(asked, 3)
    assert [[lengths[i] for i in group] for group in groups] == [
        [1, 2, 3], [5, 8, 9]]


def test_answers_do_not_depend_on_their_batch():
    model = translation.Model.load(SHIPPED)
    translator = translation.Translator("numpy", model)
    settings = translating_settings(model)
    texts = [source for source, _ in golden.trained()[3]][::5]
    asked = [translation.read(model, text, "") for text in texts]
    one, many = (translator.answer(asked, settings, most)
                 for most in (1, 8))
    worst, difference = translation.agree(one, {"batched": many})
    assert not difference and worst < 1e-13


def test_a_tokenizer_is_trained(tmp_path):
    text, out = tmp_path / "text.txt", tmp_path / "t.json"
    text.write_text("der Hund und die Katze und der Vogel\n" * 20, "utf-8")
    for model in ("bpe", "wordpiece"):
        found = CliRunner().invoke(app, [
            "train", "tokenizer", str(text), "--out", str(out), "--vocab",
            "300", "--model", model])
        assert found.exit_code == 0, found.stderr
        tokenizer = Tokenizer.load(out)
        ids = tokenizer.encode("die Katze und der Hund")
        assert tokenizer.decode(ids) == "die Katze und der Hund"
        assert len(ids) <= 6  # of 22 characters


@pytest.mark.parametrize("content, arguments, words", [
    (None, [], "cannot be read"), (b"\xff\n", [], "is not UTF-8"),
    (b"\n \n", [], "there is no text"),
    (b"a b\n", ["--model", "unigram"], "model 'unigram' is unknown")])
def test_text_that_trains_no_tokenizer(tmp_path, content, arguments, words):
    path, out = tmp_path / "text.txt", tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)
    found = CliRunner().invoke(app, [
        "train", "tokenizer", str(path), "--out", str(out), *arguments])
    assert found.exit_code == 2 and words in found.stderr
    assert not out.exists()


def test_a_port_that_is_not_here(monkeypatch):
    monkeypatch.setattr(ports, "engine", lambda name, *form: ports.NotChecked(
        name, "torch is not installed"))
    with pytest.raises(InputError, match="torch cannot run here"):
        translation.Translator("torch", None)


def test_a_text_is_no_markup(capsys):
    """What a reader writes is shown as it is, in a table too."""
    output = Answers(
        [mock.Mock(port=name, model=mock.Mock()) for name in ("a", "b")], [],
        None, 1, "float64", False, False)
    question = mock.Mock(
        problem="", text="[/x] [bold]5 Mai[/bold] :smile: \x1b[31m")
    answer = mock.Mock(texts=["[/y]"], scores=[0.5])
    output._table(question, {"a": answer, "b": answer})
    shown = capsys.readouterr().out
    for words in ("[/x]", "[bold]5", "Mai[/bold]", ":smile:", "\\x1b[31m",
                  "[/y]"):
        assert words in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize("words, said", [
    (("--beam", "2", "--alpha", "1e308"), "choose a smaller one"),
    (("--nbest", "2"), "give --beam too"),
    (("--nbest", "2", "--sample"), "give --beam too")])
def test_settings_that_mean_nothing_are_refused(words, said):
    found = run(*words, FRIDAY)
    assert found.exit_code == 2 and said in found.stderr
