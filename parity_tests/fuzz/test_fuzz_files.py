"""Damaged and crafted files: refused in a sentence, or read as they are."""

import copy
import hashlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_contract import weights
from parity_io.errors import InputError
from transformer_contract.tokenizer import Tokenizer
from parity.check import golden, ledger
from parity.matching import mapping_file, steps
from parity.runs import training, translation
from parity.tracing import folder
from parity_tests.support.engines import usable
from parity_tests.support.fuzzing import answered, tries
from parity_tests.support.runs import tiny_run

pytestmark = pytest.mark.long

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.sampled_from(
        [0, -1, 2**31, 2**63, 10**30, 1e308, float("inf"), float("nan"), "",
         "(model)", "../../x", "\x1b[31m", "\ud800", "a" * 3000, [], {},
         [[]], {"a": {}}]), st.text(max_size=6))


def places(data, path=()):
    """The paths of everything inside plain data."""
    yield path
    parts = (data.items() if isinstance(data, dict) else
             enumerate(data) if isinstance(data, list) else ())
    for key, part in parts:
        yield from places(part, (*path, key))


def changed(draw, data):
    """Plain data with one to three parts replaced, removed or repeated."""
    data = {"": copy.deepcopy(data)}
    for _ in range(draw(st.integers(1, 3))):
        every = [path for path in places(data) if path]
        path = every[draw(st.integers(0, len(every) - 1))]
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        how = draw(st.sampled_from(["replace", "remove", "rename", "repeat"]))
        if how == "replace" or len(path) == 1:
            holder[path[-1]] = copy.deepcopy(draw(LEAVES))
        elif isinstance(holder, dict) and how == "rename":
            holder[draw(st.text(max_size=4))] = holder.pop(path[-1])
        elif isinstance(holder, list) and how == "repeat":
            holder.append(copy.deepcopy(holder[path[-1]]))
        else:
            del holder[path[-1]]
    return data[""]


def mangled(draw, content):
    """Bytes with some flipped, cut out, repeated or put in."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        match draw(st.sampled_from(["flip", "cut", "repeat", "put", "end"])):
            case "flip" if at < len(content):
                content[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del content[at:at + draw(st.integers(1, 40))]
            case "repeat":
                content[at:at] = content[at:at + draw(st.integers(1, 40))]
            case "put":
                content[at:at] = draw(st.sampled_from([
                    b"\xff", b"\0", b"\xef\xbb\xbf", b"[" * 9999, b"\t", b"\n",
                    b"9" * 5000, b"1e999", b"nan", b'"', b"\x1b[2J"]))
            case "end":
                del content[at:]
    return bytes(content)


def model(seed):
    """A small torch model that can be traced."""
    import torch
    from torch import nn
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.ReLU(),
                         nn.Linear(4, 3)).double()


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Two dumps whose models differ."""
    usable("torch")
    import torch

    import parity
    here = tmp_path_factory.mktemp("dumps")
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, 6)))
    for name, seed in (("a", 0), ("b", 1)):
        folder.dump(parity.trace(model(seed), x), here / name)
    return here


@tries(60)
@given(st.data())
def test_manifests_with_right_hashes(dumps, data):
    manifest = json.loads((dumps / "a" / folder.MANIFEST).read_text())
    shutil.rmtree(dumps / "crafted", ignore_errors=True)
    shutil.copytree(dumps / "a", dumps / "crafted")
    made = changed(data.draw, manifest)
    if isinstance(made, dict):
        made["sha256"] = folder._own_hash(made)
    (dumps / "crafted" / folder.MANIFEST).write_text(
        json.dumps(made), encoding="utf-8", errors="surrogatepass")
    answered(["compare", dumps / "crafted", dumps / "b"])
    answered(["compare", dumps / "b", dumps / "crafted"])


@tries(60)
@given(st.data())
def test_damaged_dumps(dumps, data):
    shutil.rmtree(dumps / "crafted", ignore_errors=True)
    shutil.copytree(dumps / "a", dumps / "crafted")
    name = data.draw(st.sampled_from([folder.MANIFEST, folder.ARRAYS]))
    path = dumps / "crafted" / name
    path.write_bytes(mangled(data.draw, path.read_bytes()))
    answered(["compare", dumps / "crafted", dumps / "b"])


@tries(60)
@given(st.data())
def test_maps(dumps, data):
    path = dumps / "map.toml"
    a, b = folder.load(dumps / "a"), folder.load(dumps / "b")
    mapping_file.write(steps.suggest(a, b), path)
    path.write_bytes(mangled(data.draw, path.read_bytes()))
    answered(["compare", dumps / "a", dumps / "b", "--map", path])


def read_or_refused(read, *args):
    """Read something; only an InputError of one line may be raised."""
    try:
        read(*args)
    except InputError as error:
        assert "\n" not in str(error).strip()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    run = tiny_run(usable("numpy"), tmp_path_factory.mktemp("run"))
    run.train_step()
    run.save()
    run.save_weights()
    return run.folder


@tries(60)
@given(st.data())
@pytest.mark.parametrize("sound", [True, False])
def test_metadata_of_weights_and_checkpoints(run_folder, sound, data):
    """Crafted: with a right checksum, or without one."""
    for name, read in ((training.WEIGHTS, translation.Model.load),
                       (training.CHECKPOINT, lambda path: (
                           training.settings_of(path.parent)))):
        arrays, metadata = weights.load(run_folder / name)
        made = changed(data.draw, weights.described(metadata))
        here = run_folder.parent / "crafted"
        shutil.copytree(run_folder, here, dirs_exist_ok=True)
        if not isinstance(made, dict) or not all(
                isinstance(key, str) for key in made):
            continue
        if sound:
            made.pop(weights.CHECKSUM, None)
            weights.save(here / name, arrays, **made)
        else:
            from safetensors.numpy import save_file
            save_file(arrays, here / name, {"parity": json.dumps(made)})
        read_or_refused(read, here / name)


@tries(60)
@given(st.data())
def test_arrays_of_checkpoints(run_folder, data):
    arrays, metadata = weights.load(run_folder / training.CHECKPOINT)
    here = run_folder.parent / "arrays"
    shutil.copytree(run_folder, here, dirs_exist_ok=True)
    for name in data.draw(st.lists(st.sampled_from(
            [*arrays, "step", "key"]), min_size=1, max_size=2)):
        arrays.pop(name, None)
        change = data.draw(st.sampled_from([
            None, np.zeros(0), np.zeros(()), np.array([-1]), np.ones(3, bool),
            np.array([2**62]), np.array([0.5]), np.full(2, np.nan)]))
        if change is not None:
            arrays[name] = change
    weights.save(here / training.CHECKPOINT, arrays,
                 **weights.described(metadata))
    run = tiny_run(usable("numpy"), here)
    read_or_refused(run.load)


READERS = {
    "weights": (golden.FOLDER / "lesson.safetensors", weights.load),
    "trained": (golden.FOLDER / "dates.safetensors", lambda path: (
        translation.Model.load(path, golden.FOLDER / "dates.tokenizer.json"))),
    "tokenizer": (golden.FOLDER / "dates.tokenizer.json", Tokenizer.load),
    "ledger": (ledger.PATH, ledger.read),
}


@tries(30)
@given(st.data())
@pytest.mark.parametrize("name", READERS)
def test_damaged_files(tmp_path_factory, name, data):
    path, read = READERS[name]
    here = tmp_path_factory.mktemp("damaged") / path.name
    here.write_bytes(mangled(data.draw, path.read_bytes()))
    read_or_refused(read, here)


VECTORS = golden.FOLDER.parent / "parity_tests" / "data" / "vectors"


@tries(40)
@given(st.data())
def test_vectors(tmp_path_factory, data):
    path = VECTORS / "notebook_single_head.safetensors"
    here = tmp_path_factory.mktemp("vectors") / path.name
    if data.draw(st.booleans()):
        here.write_bytes(mangled(data.draw, path.read_bytes()))
    else:
        from safetensors.numpy import save_file
        arrays, metadata = weights.load(path)
        made = changed(data.draw, json.loads(metadata["vector"]))
        text = json.dumps(made)
        save_file(arrays, here, {"vector": text.encode(
            "utf-8", "replace").decode()})
    answered(["check", "vectors", here, "--port", "torch"])


@tries(40)
@given(st.data())
def test_pairs_and_curves(run_folder, data):
    here = run_folder.parent
    pairs = here / "pairs.tsv"
    pairs.write_bytes(mangled(data.draw, b"a b\tc d\ne\tf\n" * 9))
    from transformer_contract.tokenizer import read_pairs
    read_or_refused(read_pairs, pairs)
    curve = here / "crafted-curve" / training.CURVE
    curve.parent.mkdir(exist_ok=True)
    curve.write_bytes(mangled(data.draw, (
        run_folder / training.CURVE).read_bytes()))
    answered(["train", "curves", curve.parent, "--out", here / "c.png"])


DEEP = ["[" * 100_000, '{"a":' * 100_000, "a = " + "[" * 100_000]


@pytest.mark.parametrize("text", DEEP)
def test_deep_nests(dumps, tmp_path, text):
    shutil.copytree(dumps / "a", tmp_path / "a")
    (tmp_path / "a" / folder.MANIFEST).write_text(text)
    answered(["compare", tmp_path / "a", dumps / "b"])
    (tmp_path / "map.toml").write_text(text)
    answered(["compare", dumps / "a", dumps / "b", "--map",
              tmp_path / "map.toml"])
    (tmp_path / "t.json").write_text(text)
    answered(["translate", "x", "--tokenizer", tmp_path / "t.json"])
    from safetensors.numpy import save_file
    save_file({"a": np.ones(2)}, tmp_path / "w", {"parity": text,
                                                  "vector": text})
    answered(["translate", "x", "--weights", tmp_path / "w"])
    answered(["check", "vectors", tmp_path / "w", "--port", "torch"])
    assert hashlib.sha256((dumps / "b" / folder.MANIFEST).read_bytes())


@pytest.mark.parametrize("field", [
    "n_encoder_layers", "d_model", "source_vocab", "max_length", "d_ff"])
@pytest.mark.parametrize("value", [10**6, 10**9, 10**18, 10**40])
def test_tables_that_ask_for_too_much(tmp_path, field, value):
    arrays, metadata = weights.load(golden.FOLDER / "dates.safetensors")
    made = weights.described(metadata)
    made.pop(weights.CHECKSUM)
    made["config"][field] = value
    weights.save(tmp_path / "w.safetensors", arrays, **made)
    shutil.copy(golden.FOLDER / "dates.tokenizer.json",
                tmp_path / "tokenizer.json")
    found = answered(["translate", "x", "--weights",
                      tmp_path / "w.safetensors"])
    if (field, value) != ("max_length", 10**6):
        assert found.exit_code == 2
