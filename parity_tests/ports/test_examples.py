"""The examples run: a user's loop in each framework, and one file in all."""

import ast
import contextlib
import importlib
import io
import re

import numpy as np
import pytest

import transformer_contract.weights
from transformer_contract.batch import Batch
from parity import ports
from parity.ports import NotChecked
from parity_tests.support.places import ROOT

EXAMPLES = ROOT / "examples"
NAMES = ports.known_ports()

#: The page that names them, and what it says of arrays in each framework.
PAGE = (ROOT / "docs" / "use.md").read_text(encoding="utf-8")
SHOWN = re.findall("^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
ARRAYS = dict(re.findall(r"\| `impl_(\w+)` \| `(.+)\(source\)` \|", PAGE))


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    """Examples import each other as programs do."""
    monkeypatch.syspath_prepend(EXAMPLES)


def skip_without(name):
    """Skip, with its reason, where a framework is missing."""
    engine = ports.engine(name)
    if isinstance(engine, NotChecked):
        pytest.skip(f"{name} is not checked: {engine.reason}")


def first_loss(dates):
    """The reference's loss on the pairs that are not trained on."""
    reference = ports.engine("numpy")
    weights = transformer_contract.weights.initial_weights(dates.CONFIG, 0)
    source, target = dates.pairs(256, seed=1)
    batch = Batch.of_ids(source, target[:, :-1], dates.PAD)
    model = reference.build("transformer", dates.CONFIG, {
        name: array.astype(np.float64) for name, array in weights.items()})
    return float(reference.loss(reference.predict(model, *batch),
                                target[:, 1:], dates.PAD, 0.0, "uniform"))


@pytest.mark.parametrize("name", NAMES)
def test_a_users_loop(name, tmp_path):
    """It begins as the reference, learns, and reads its files to the bit."""
    skip_without(name)
    dates, printed = importlib.import_module("dates"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        model, again = importlib.import_module(
            f"train_dates_{name}").main(8, tmp_path)
    first, last = map(float, re.findall(
        r"loss .*?(\d\.\d+)$", printed.getvalue(), flags=re.M))
    assert abs(first / first_loss(dates) - 1) < 1e-5 and last < 0.8 * first
    assert f"The first loss is {first:.3f} in all" in PAGE
    citizen = importlib.import_module(f"parity_tests.ports.citizens.{name}")
    shared = importlib.import_module(ports.package(name)).load(
        tmp_path / f"dates_{name}.safetensors")
    source, target = dates.pairs(4, seed=2)
    wanted = citizen.logits(model, source, target)
    for loaded in again, shared:
        np.testing.assert_array_equal(
            citizen.logits(loaded, source, target), wanted)


def test_one_file_gives_the_same_answer_in_all(tmp_path, monkeypatch):
    """Whichever wrote it; of the frameworks that are here. Some compile each
    length, so that answers are short."""
    here = [name for name in NAMES
            if not isinstance(ports.engine(name), NotChecked)]
    dates = importlib.import_module("dates")
    monkeypatch.setattr(dates, "TARGET", 4)
    files = [str(tmp_path / f"dates_{name}.safetensors") for name in here]
    for seed, (name, file) in enumerate(zip(here, files)):
        port = importlib.import_module(ports.package(name))
        port.save(port.create(dates.CONFIG, seed=seed), file)
    found = importlib.import_module("translate_in_all").main(*files)
    assert list(found) == files
    for by_name in found.values():
        assert list(by_name) == [
            ports.package(name) for name in ("numpy", *here)]
        assert all(answer == by_name["reference_numpy"]
                   for answer in by_name.values())


def test_an_answer_of_its_own_ends_it(monkeypatch):
    together = importlib.import_module("translate_in_all")
    monkeypatch.setattr(together, "faces", lambda: {"a": "a", "b": "b"})
    monkeypatch.setattr(together, "answers", lambda path, face: [[ord(face)]])
    monkeypatch.setattr(together.dates, "texts", lambda rows: ["?"])
    with pytest.raises(SystemExit, match="differ"):
        together.main("some.safetensors")


def test_pairs_are_dates():
    dates = importlib.import_module("dates")
    source, target = dates.pairs(200)
    assert source.max() < dates.CONFIG.source_vocab
    assert (target == dates.END).sum(axis=1).tolist() == [1] * 200
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", text)
               for text in dates.texts(target))
    assert len(set(dates.texts(target))) > 190


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_true(name, tmp_path, monkeypatch, capsys):
    """Its lines run as they stand, with the framework's import and arrays."""
    skip_without(name)
    monkeypatch.chdir(tmp_path)
    make = ARRAYS[name]
    lines = SHOWN[1].replace("impl_torch", f"impl_{name}").replace(
        ARRAYS["torch"], make).replace(
        "import torch", f"import {make.rpartition('.')[0]}")
    exec(SHOWN[0] + lines, {})
    answer, = re.findall(r"# (\d{4}-\d\d-\d\d)$", SHOWN[1], flags=re.M)
    assert capsys.readouterr().out == f"{answer}\n"
    assert (tmp_path / "model.safetensors").exists()


def test_nothing_of_the_harness_is_imported():
    for path in EXAMPLES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [
                each.name for each in getattr(node, "names", ())
            ] if isinstance(node, ast.Import) else []
            assert not any(name.startswith("parity") for name in names), path
