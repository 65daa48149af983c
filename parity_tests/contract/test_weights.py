"""Weights: names, files, and the round trip through every port."""

import json

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.config import PRESETS
from parity_io.errors import InputError
from transformer_contract.schema import schema
from parity.check import cases, golden


@pytest.mark.long(24)
@pytest.mark.parametrize("preset", ["lesson", "vaswani2017_base"])
def test_load_and_export_is_byte_equal(engine, preset):
    """Every array comes back under its name, as it went in."""
    config = cases.test_size(preset)
    given = golden.shipped(preset)
    found = engine.export(engine.build("transformer", config, given))
    assert found.keys() == given.keys()
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes(), name


def test_kernels_stand_as_the_paper_writes_them(engine):
    """Square kernels hide a transpose, so one value is followed through."""
    config = cases.test_size("complete")
    given = golden.shipped("complete")
    part = weights.select(given, "encoder.layers.0.feed_forward.")
    x = cases.values("x", 2, 3, config.d_model)
    module = engine.build("feed_forward", config, part)
    expected = x @ part["inner.kernel"] + part["inner.bias"]
    found = engine.run(module, x)["inner"]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_tied_weights_stand_once():
    config = cases.test_size("vaswani2017_base")
    names = schema(config)
    assert "source_embedding.table" in names
    assert not any(name.startswith(("target_embedding", "projection"))
                   for name in names)


def test_schema_counts_the_paper_model():
    """Parameters of the base model with one table of 37 000 rows."""
    shapes = schema(PRESETS["vaswani2017_base"])
    total = sum(int(np.prod(shape)) for shape in shapes.values())
    d, f = 512, 2048
    attention = 4 * (d * d + d)
    feed_forward = d * f + f + f * d + d
    encoder = attention + feed_forward + 2 * 2 * d
    decoder = 2 * attention + feed_forward + 3 * 2 * d
    assert total == 37_000 * d + 6 * (encoder + decoder) == 63_082_496


def test_save_keeps_arrays_that_are_not_contiguous(tmp_path):
    """The writer underneath scrambles them without a word."""
    kernel = np.arange(12.0).reshape(3, 4)
    weights.save(tmp_path / "w.safetensors", {"t": kernel.T, "s": kernel[:, 1]})
    found, _ = weights.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(found["t"], kernel.T)
    np.testing.assert_array_equal(found["s"], kernel[:, 1])


def test_equal_contents_are_equal_files(tmp_path):
    arrays = {name: np.ones((2, 3)) for name in "zyxwvut"}
    for name in ("a", "b"):
        weights.save(tmp_path / name, arrays, b=1, a=[2], c="x")
    first, second = (tmp_path / name for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    _, metadata = weights.load(first)
    assert json.loads(metadata[weights.METADATA_KEY]) == {
        "a": [2], "b": 1, "c": "x", "crc32": weights.checksum(
            arrays, {"a": [2], "b": 1, "c": "x"})}


def test_a_failed_save_leaves_nothing(tmp_path):
    path = tmp_path / "w.safetensors"
    weights.save(path, {"a": np.ones(2)})
    before = path.read_bytes()
    with pytest.raises(Exception):  # noqa: B017  safetensors' own
        weights.save(path, {"a": np.array(["text"])})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["w.safetensors"]


def broken(given, how):
    """The weights with one thing wrong."""
    name = "encoder.layers.0.self_attention.query.kernel"
    match how:
        case "missing":
            del given[name]
        case "surplus":
            given["encoder.layers.0.extra"] = np.ones(3)
            name = "encoder.layers.0.extra"
        case "misshapen":
            name = "encoder.layers.0.feed_forward.inner.kernel"
            given[name] = given[name].T
        case "nan":
            given[name] = np.where(given[name] == given[name][1, 2], np.nan,
                                   given[name])
        case "infinite":
            given[name] = given[name] * np.inf
        case "integer":
            given[name] = np.ones(given[name].shape, np.int64)
    return given, name


HOW = ("missing", "surplus", "misshapen", "nan", "infinite", "integer")


@pytest.mark.long(24)
@pytest.mark.parametrize("how", HOW)
def test_every_engine_refuses_wrong_weights(engine, how):
    config = cases.test_size("complete")
    given, name = broken(golden.shipped("complete"), how)
    with pytest.raises(InputError, match=name):
        engine.build("transformer", config, given)


@pytest.mark.parametrize("how", HOW)
def test_files_with_wrong_weights_are_refused(tmp_path, how):
    config = cases.test_size("complete")
    given, name = broken(golden.shipped("complete"), how)
    weights.save(tmp_path / "w.safetensors", given)
    with pytest.raises(InputError, match=name) as caught:
        weights.load_weights(tmp_path / "w.safetensors", config)
    assert str(tmp_path / "w.safetensors") in str(caught.value)


@pytest.mark.parametrize("content", [
    b"", b"not safetensors at all", b"\xff" * 64,
    "truncated"], ids=["empty", "text", "noise", "truncated"])
def test_files_that_are_not_safetensors_are_refused(tmp_path, content):
    path = tmp_path / "w.safetensors"
    if content == "truncated":
        content = (golden.FOLDER / "lesson.safetensors").read_bytes()[:-9]
    path.write_bytes(content)
    with pytest.raises(InputError, match="w.safetensors"):
        weights.load(path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(InputError, match="no file"):
        weights.load(tmp_path / "nowhere.safetensors")
    with pytest.raises(InputError):
        weights.load(tmp_path)


def handmade(path, dtype, data):
    """A safetensors file of one array of two elements, byte by byte."""
    header = json.dumps({"a": {
        "dtype": dtype, "shape": [2], "data_offsets": [0, len(data)]}})
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + data)
    return path


def test_bfloat16_files_are_read(tmp_path):
    """safetensors' NumPy reader can do so once NumPy knows the dtype."""
    path = handmade(tmp_path / "w.safetensors", "BF16", b"\x80\x3f\x40\xc0")
    found, _ = weights.load(path)
    assert found["a"].dtype.name == "bfloat16"
    assert found["a"].tolist() == [1.0, -3.0]


def test_eight_bit_files_are_no_weights(tmp_path):
    path = handmade(tmp_path / "w.safetensors", "F8_E5M2", b"\x3f\x40")
    with pytest.raises(InputError):
        weights.check(weights.load(path)[0], {"a": (2,)})


def test_shipped_files_are_what_the_command_makes():
    assert list(golden.problems()) == []


def test_a_changed_shipped_file_is_noticed(tmp_path):
    golden.make(tmp_path)
    arrays, _ = weights.load(tmp_path / "lesson.safetensors")
    arrays["projection.bias"][3] += 1e-15
    weights.save(tmp_path / "lesson.safetensors", arrays)
    found = list(golden.problems(tmp_path))
    assert any("projection.bias differs" in text for text in found)
    assert any("hash" in text for text in found)


@pytest.mark.parametrize("array", [
    np.array(3.0), np.arange(6.0, dtype=">f8").reshape(2, 3).T])
def test_shape_and_byte_order_are_kept(tmp_path, array):
    """A scalar stays one, and numbers are the same from any machine."""
    weights.save(tmp_path / "w.safetensors", {"a": array})
    loaded = weights.load(tmp_path / "w.safetensors")[0]["a"]
    assert loaded.shape == array.shape
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("array", [
    np.array([1j]), np.array(["a"]), np.array([None]),
    np.array(["2026-01-01"], dtype="datetime64[D]"),
    np.zeros(1, np.longdouble)])
def test_dtypes_that_no_file_holds(tmp_path, array):
    """They are named, and nothing is written."""
    with pytest.raises(InputError, match="which no safetensors file holds"):
        weights.save(tmp_path / "w.safetensors", {"a": array})
    assert not list(tmp_path.iterdir())
