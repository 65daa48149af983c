"""Other people's files: read as their own libraries read them, or refused."""

import io
import json
import os
import pathlib
import pickle
import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from parity_io.checkpoints import (
    npz_file, safetensors_file, torch_archive)
from parity_io.checkpoints.folder import read
from parity_io.errors import InputError

ARRAYS = {
    "a.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.arange(5, dtype=np.float64) / 7,
    "c": np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3),
    "ids": np.arange(3), "one": np.array(2.5, np.float16),
}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


def mapped(array):
    """Whether an array is a view of a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def of_safetensors(path):
    save_file(ARRAYS, path)


def of_npz(path):
    np.savez(path, **{name: array for name, array in ARRAYS.items()
                      if name != "c"})


def of_torch(path, old=False):
    torch = pytest.importorskip("torch")
    tensors = {name: torch.from_numpy(np.array(array)) for name, array
               in ARRAYS.items() if name != "c"}
    tensors["c"] = torch.arange(6).reshape(2, 3).to(torch.bfloat16)
    torch.save(tensors, path, _use_new_zipfile_serialization=not old)


def of_old_torch(path):
    of_torch(path, old=True)


def of_ctranslate2(path):
    def text(words):
        return struct.pack("<H", len(words) + 1) + words.encode() + b"\0"
    kinds = {"float32": 0, "float16": 4, "bfloat16": 5}
    arrays = {name: array for name, array in ARRAYS.items()
              if array.dtype.name in kinds}
    content = struct.pack("<I", 6) + text("TransformerSpec") + struct.pack(
        "<II", 7, len(arrays))
    for name, array in arrays.items():
        content += text(name) + struct.pack(
            f"<B{array.ndim}IBI", array.ndim, *array.shape,
            kinds[array.dtype.name], array.nbytes) + array.tobytes()
    path.write_bytes(content + struct.pack("<I", 1) + text("d") + text("one"))


FORMATS = {
    "safetensors": of_safetensors, "npz": of_npz, "torch": of_torch,
    "old torch": of_old_torch, "ctranslate2": of_ctranslate2,
}


@pytest.fixture(params=FORMATS)
def file(request, tmp_path):
    """A file of each format, without an ending that would tell."""
    path = tmp_path / "file.npz"
    FORMATS[request.param](path)
    return path.rename(tmp_path / "file"), request.param


def test_a_file_is_read_as_it_is(file):
    path, kind = file
    checkpoint = read(path)
    assert checkpoint.format == kind.split()[-1]
    assert checkpoint.config is None
    expected = {name: array for name, array in ARRAYS.items()
                if name in checkpoint.arrays}
    if kind == "ctranslate2":
        assert checkpoint.metadata == {
            "model": "TransformerSpec", "revision": 7}
        expected["d"] = ARRAYS["one"]
    assert len(expected) >= 4
    assert_same(checkpoint.arrays, expected)
    assert kind == "npz" or all(map(mapped, checkpoint.arrays.values()))


def test_a_file_that_is_cut_short_is_refused(file):
    path, _ = file
    whole = path.read_bytes()
    for end in {0, 1, 5, 9, 40, 100, len(whole) // 2, len(whole) - 1}:
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match="file"):
            read(path)


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_refused_or_changes_numbers_alone(file, seed):
    path, _ = file
    content = bytearray(path.read_bytes())
    places = np.random.default_rng(seed).integers(0, len(content), 3)
    for place in places:
        content[place] ^= 1 << seed % 8
    path.write_bytes(content)
    try:
        for array in read(path).arrays.values():
            array.tobytes()
    except InputError:
        pass


def test_parts_of_a_storage_are_told_apart(tmp_path):
    """Views of one storage: transposed, a slice, in steps, a parameter."""
    torch = pytest.importorskip("torch")
    whole = torch.arange(24.0).reshape(4, 6)
    parts = {"all": whole, "turned": whole.T, "rows": whole[1:3],
             "steps": whole[::2, 1::3], "again": whole}
    path = tmp_path / "views.pt"
    for old in (False, True):
        torch.save({"model": parts, "epoch": 3}, path,
                   _use_new_zipfile_serialization=not old)
        found = read(path).arrays
        assert_same(found, {name: part.numpy()
                            for name, part in parts.items()})


class Named:
    """What a pickle has called when it is loaded."""

    def __reduce__(self):
        return os.system, ("touch executed",)


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_that_names_anything_else_is_refused(
        tmp_path, monkeypatch, old):
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps({"w": Named()}, protocol=2)
    if old:
        pickles = [torch_archive.MAGIC, 1001, {}]
        (tmp_path / "evil").write_bytes(b"".join(
            pickle.dumps(each, protocol=2) for each in pickles) + content)
    else:
        with zipfile.ZipFile(tmp_path / "evil", "w") as archive:
            archive.writestr("archive/data.pkl", content)
    with pytest.raises(InputError, match=r"names (posix|nt)\.system"):
        read(tmp_path / "evil")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", [
    "os.system", "builtins.eval", "torch.load", "torch.nn.Linear",
    "argparse.Namespace", "torch._utils._rebuild_tensor", "numpy.ndarray"])
def test_names_that_a_pickle_may_not_have(name):
    with pytest.raises(InputError, match=name):
        torch_archive._Unpickler(io.BytesIO(), None).find_class(
            *name.rsplit(".", 1))


def test_a_compressed_archive_of_torch_is_refused(tmp_path):
    of_torch(tmp_path / "plain")
    with (zipfile.ZipFile(tmp_path / "plain") as plain,
          zipfile.ZipFile(tmp_path / "packed", "w",
                          zipfile.ZIP_DEFLATED) as packed):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(InputError, match="compressed"):
        read(tmp_path / "packed")


def test_objects_in_an_npz_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([Named()], dtype=object))
    with pytest.raises(InputError, match="cannot be read as npz"):
        read(tmp_path / "a.npz")


def test_an_npz_is_read_when_it_is_asked_for(tmp_path, monkeypatch):
    """What lacks an array is refused before numbers are unpacked."""
    of_npz(tmp_path / "a.npz")
    arrays = read(tmp_path / "a.npz").arrays
    monkeypatch.setattr(
        npz_file.npy, "read_array", lambda *_, **__: pytest.fail("was read"))
    assert {*arrays} == {*ARRAYS} - {"c"} and len(arrays) == len(ARRAYS) - 1
    with pytest.raises(KeyError):
        arrays["c"]


def test_an_npz_larger_than_memory_is_refused(tmp_path, monkeypatch):
    of_npz(tmp_path / "a.npz")
    monkeypatch.setattr(os, "sysconf", lambda name: 10)
    with pytest.raises(InputError, match="GiB"):
        read(tmp_path / "a.npz")


def test_a_file_larger_than_memory_is_not_mapped(tmp_path):
    """A system may refuse to map it, or may not."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 41],
                               "data_offsets": [0, 1 << 43]}}).encode()
    with open(tmp_path / "file", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        try:
            file.truncate(8 + len(header) + (1 << 43))
        except OSError:
            pytest.skip("not checked: there are no such sparse files here")
    with pytest.raises(InputError, match="needs 8192.0 GiB"):
        read(tmp_path / "file")


# Folders

@pytest.fixture
def shards(tmp_path):
    """A folder of two shards with their index, and a config.json."""
    homes = {}
    for number, names in enumerate((("a.weight", "b"), ("c", "ids", "one"))):
        shard = f"model-0000{number + 1}-of-00002.safetensors"
        save_file({name: ARRAYS[name] for name in names}, tmp_path / shard)
        homes |= {name: shard for name in names}
    rewrite(tmp_path, homes)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    return tmp_path, homes


def rewrite(folder, homes):
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": homes}))


def test_shards_are_read_as_one(shards):
    checkpoint = read(shards[0])
    assert checkpoint.config == {"model_type": "bert"}
    assert_same(checkpoint.arrays, ARRAYS)


def test_shards_of_torch_are_read_as_one(tmp_path):
    torch = pytest.importorskip("torch")
    homes = {}
    for number, names in enumerate((("a.weight",), ("b", "ids"))):
        shard = f"pytorch_model-0000{number + 1}-of-00002.bin"
        torch.save({name: torch.from_numpy(ARRAYS[name]) for name in names},
                   tmp_path / shard)
        homes |= {name: shard for name in names}
    path = tmp_path / "pytorch_model.bin.index.json"
    path.write_text(json.dumps({"weight_map": homes}))
    checkpoint = read(tmp_path)
    assert checkpoint.format == "torch"
    assert_same(checkpoint.arrays, {name: ARRAYS[name] for name in homes})
    for wrong in ({}, {"a": path.name}):
        path.write_text(json.dumps({"weight_map": wrong}))
        with pytest.raises(InputError, match="weight_map"):
            read(tmp_path)


def test_a_shard_that_is_absent_is_named(shards):
    folder, homes = shards
    (folder / homes["c"]).unlink()
    with pytest.raises(InputError, match="00002-of-00002"):
        read(folder)


def test_an_index_that_differs_from_its_shards_is_refused(shards):
    folder, homes = shards
    for wrong, name in (({**homes, "more": homes["c"]}, "more"),
                        ({n: h for n, h in homes.items() if n != "ids"},
                         "ids")):
        rewrite(folder, wrong)
        with pytest.raises(InputError, match=name):
            read(folder)
    for wrong in ({"a": "../b.safetensors"}, {"a": 3}, ["a"]):
        rewrite(folder, wrong)
        with pytest.raises(InputError, match="weight_map"):
            read(folder)


def test_the_file_that_transformers_would_read(tmp_path):
    """One whole file before shards, which may be older; or the one named."""
    for n, name in enumerate(("model.safetensors", "other.safetensors",
                              "shard.safetensors")):
        save_file({"a": np.full(1, n)}, tmp_path / name)
    rewrite(tmp_path, {"a": "shard.safetensors"})
    config = tmp_path / "config.json"
    for named, n in ((None, 0), ("other.safetensors", 1),
                     ("model.safetensors.index.json", 2)):
        config.write_text(json.dumps({"transformers_weights": named}))
        assert read(tmp_path).arrays["a"] == n
    for named in ("none.safetensors", "../a.safetensors", 3):
        config.write_text(json.dumps({"transformers_weights": named}))
        with pytest.raises(InputError, match=str(named)):
            read(tmp_path)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(InputError, match="holds none of"):
        read(tmp_path)
    with pytest.raises(InputError, match="there is no"):
        read(tmp_path / "nowhere")
    of_safetensors(tmp_path / "model.safetensors")
    for content in ("[1]", "{", "\x00"):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(InputError, match="config.json"):
            read(tmp_path)


def test_other_files_are_refused(tmp_path):
    for content in (b"", b"text", b"PK\x03\x04nothing", bytes(600)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(InputError, match="file"):
            read(tmp_path / "file")


@pytest.mark.skipif(not pathlib.Path("/proc/self/mem").exists(),
                    reason="there is no file here that fails when it is read")
def test_a_file_that_fails_when_it_is_read_is_named():
    with pytest.raises(InputError, match="'/proc/self/mem' cannot be read"):
        read(pathlib.Path("/proc/self/mem"))


def test_what_is_written_is_what_the_library_writes(tmp_path):
    """To the bit; arrays in any layout, one after another."""
    turned = {**ARRAYS, "t": ARRAYS["a.weight"].T, "e": np.zeros((0, 3))}
    safetensors_file.write(tmp_path / "ours", turned, {"format": "pt"})
    save_file({name: np.ascontiguousarray(array)
               if array.ndim else array for name, array in turned.items()},
              tmp_path / "theirs", metadata={"format": "pt"})
    assert ((tmp_path / "ours").read_bytes()
            == (tmp_path / "theirs").read_bytes())
    assert_same(load_file(tmp_path / "ours"), turned)
