"""Dumps of other programs."""

import json

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.comparison.compare import compare
from parity.comparison.verdicts import INCOMPLETE
from parity.dumps import gguf
from parity.dumps.read import load
from parity.tracing.trace import WHOLE
from benchmarks.dumps import writing as written
from parity_tests.harness.dumps.test_named import write


@pytest.fixture
def truth(tmp_path):
    return load(write(tmp_path / "truth", written.model()))


# llama.cpp

def llama(path, *arguments, **keywords):
    path.write_text(written.as_llama(*arguments, **keywords))
    return load(path)


def last_row(name, array):
    return array[:, -1:] if name in ("h.1.norm", "h.1.mlp", "h.1",
                                     "outputs/logits") else array


@pytest.mark.parametrize("rows", [lambda name, array: array, last_row])
def test_llama_prints_corners(truth, tmp_path, rows):
    made = llama(tmp_path / "b.txt", written.model(), rows=rows)
    assert [*made.inputs["input_ids"][0]] == [*truth.inputs["ids"][0]]
    comparison = compare(truth, made)
    assert comparison.verdict == INCOMPLETE, comparison.sentence()
    assert "of the models' outputs not all numbers" in comparison.sentence()
    assert len([row for row in comparison.rows if row.part == "output"]) > 14


def test_llama_parts_at_its_first_step(truth, tmp_path):
    made = llama(tmp_path / "b.txt", written.model(eps=1e-2), rows=last_row)
    comparison = compare(truth, made)
    assert comparison.status == 1
    assert (comparison.first.a, comparison.first.b) == (
        "h.1.norm (last row)", "ffn_norm-1")


def test_a_fault_between_the_corners_is_in_the_mean(truth, tmp_path):
    def middle(name, array):
        if name == "h.0.mlp":
            array = array.copy()
            array[:, 4, 7:9] += 1
        return array
    made = llama(tmp_path / "b.txt", written.model(change=middle))
    comparison = compare(truth, made)
    assert comparison.status == 1
    assert comparison.first.a_name == "output mean"
    assert comparison.first.a == "h.0.mlp"


def test_decimals_are_no_fault(truth, tmp_path):
    """Small numbers are known to few digits."""
    small = written.model(change=lambda name, array: array / 500)
    truth = load(write(tmp_path / "small", small))
    assert compare(truth, llama(tmp_path / "b.txt", small)).status == 4


def test_a_cut_text_is_refused(tmp_path):
    text = written.as_llama(written.model())
    (tmp_path / "b.txt").write_text(text[:text.rindex("[ ") + 30])
    with pytest.raises(InputError, match="it is cut short, or of another"):
        load(tmp_path / "b.txt")


def test_several_passes_and_quantised_tensors(tmp_path):
    text = written.as_llama(written.model())
    head = "common_debug_cb_eval: k = (q8_0) CPY(x{4, 1, 1, 1}, }) = {4, 1}\n"
    (tmp_path / "b.txt").write_text(text + head + text)
    made = load(tmp_path / "b.txt")
    assert len(made.steps) == 9 and "several passes" in made.notes[0]
    assert "1 quantised" in " ".join(made.notes)


def test_weights_of_a_folder(truth, tmp_path):
    (tmp_path / "log.txt").write_text(written.as_llama(written.model()))
    (tmp_path / "m.gguf").write_bytes(written.as_gguf(
        {f"blk.{name}": array for name, array in truth.parameters.items()}))
    made = load(tmp_path)
    assert [*made.parameters] == ["blk.embed", "blk.h.0", "blk.h.1",
                                  "blk.head"]
    rows = [row for row in compare(truth, made).rows
            if row.part == "parameter"]
    assert len(rows) == 4 and not any(row.diverges for row in rows)


def test_gguf(tmp_path):
    draw = np.random.default_rng(0)
    arrays = {"blk.0.attn_q.weight": draw.normal(size=(8, 32)),
              "half": draw.normal(size=(3, 4)),
              "eight": draw.normal(size=(2, 64)),
              "other": draw.normal(size=(2, 32))}
    path = tmp_path / "m.gguf"
    path.write_bytes(written.as_gguf(arrays, {
        "general.architecture": "llama", "llama.attention.head_count": 2},
        {"half": 1, "eight": 8, "other": 12}))
    read, notes = gguf.read(path)
    turned = arrays["blk.0.attn_q.weight"].reshape(2, 2, 2, 32)
    assert np.allclose(read["blk.0.attn_q.weight"].reshape(2, 2, 2, 32),
                       turned.swapaxes(1, 2))
    assert np.allclose(read["half"], arrays["half"], atol=1e-2)
    assert np.allclose(read["eight"], arrays["eight"], atol=3e-2)
    assert "other" not in read and "'other'" in notes[0]


@pytest.mark.parametrize("data, words", [
    (b"", "is empty"), (b"GGML" + b"\0" * 40, "no GGUF"),
    (b"GGUF\0\0\0\3" + b"\0" * 40, "of another byte order"),
    (written.as_gguf({"a": np.ones((4, 4))})[:-40], "cut short")])
def test_bad_gguf(tmp_path, data, words):
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(InputError, match=words):
        gguf.read(tmp_path / "m.gguf")


# vLLM

def test_vllm(truth, tmp_path):
    pytest.importorskip("torch", reason="not written: torch is not installed")
    written.write_vllm(tmp_path / "run", written.model())
    made = load(tmp_path / "run")
    assert [step.path for step in made.steps] == [
        step.path for step in truth.steps]
    comparison = compare(truth, made)
    assert comparison.verdict == INCOMPLETE
    assert not comparison.divergences and comparison.compared == 7
    written.write_vllm(tmp_path / "wrong", written.model(eps=1e-2))
    comparison = compare(truth, load(tmp_path / "wrong"))
    assert comparison.first.a == "h.1.norm"


# Polygraphy

def test_polygraphy(truth, tmp_path):
    path = tmp_path / "outputs.json"
    path.write_text(written.as_polygraphy(written.model()))
    made = load(path)
    assert [step.path for step in made.steps][-3:] == ["h.1", "logits", WHOLE]
    assert compare(truth, made).status == 0
    path.write_text(written.as_polygraphy(written.model(eps=1e-2)))
    assert compare(truth, load(path)).first.a == "h.1.norm"
    path.write_text(path.read_text()[:4000])
    with pytest.raises(InputError, match="it is cut short"):
        load(path)


# transformers

@pytest.fixture(scope="module")
def debugged(tmp_path_factory):
    torch = pytest.importorskip(
        "torch", reason="not written: torch is not installed")
    transformers = pytest.importorskip(
        "transformers", reason="not written: transformers is not installed")

    def write_tree(name, use_repr, eps=1e-6):
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=30, hidden_size=64, intermediate_size=48,
            num_hidden_layers=2, num_attention_heads=4)).eval()
        for each in model.parameters():
            torch.nn.init.normal_(each, std=0.3)
        model.model.norm.variance_epsilon = eps
        folder = tmp_path_factory.mktemp("tree") / name
        with transformers.model_addition_debugger_context(
                model, debug_path=str(folder), do_prune_layers=False,
                use_repr=use_repr):
            model.forward(torch.arange(2 * 11).reshape(2, 11),
                          use_cache=False)
        return folder
    folders = {
        "stored": write_tree("stored", False),
        "printed": write_tree("printed", True),
        "wrong": write_tree("wrong", True, 0.5)}
    torch.set_printoptions(profile="default")
    return folders


def test_trees_stored_and_printed(debugged):
    stored, printed = load(debugged["stored"]), load(debugged["printed"])
    assert [*stored.step(WHOLE).outputs] == ["logits"]
    assert printed.printed and not stored.printed
    comparison = compare(stored, printed)
    assert comparison.verdict == INCOMPLETE and not comparison.divergences
    assert comparison.compared > 30
    comparison = compare(stored, load(debugged["wrong"]))
    assert comparison.first.a == "model.norm"


def test_bad_trees(debugged, tmp_path):
    file = next(debugged["stored"].glob("*FULL*"))
    other = tmp_path / file.name
    other.write_text(file.read_text())
    with pytest.raises(InputError, match="which is not beside"):
        load(other)
    other.write_text(file.read_text()[:500])
    with pytest.raises(InputError, match="is cut short"):
        load(other)
    tree = json.loads(next(debugged["printed"].glob("*FULL*")).read_text())
    tree["children"][0]["children"][0]["outputs"]["value"].pop(1)
    other.write_text(json.dumps(tree))
    with pytest.raises(InputError, match="use_repr=False"):
        load(other)
