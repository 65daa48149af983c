"""A trace is stored without loss, or not at all."""

import json

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.tracing.folder import dump, load
from parity.tracing.trace import MODULE, WHOLE, Step, Trace, trace
from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable
from parity_tests.support.models import X, torch_model, total


#: Colours a terminal, rings, returns, clears and turns the direction.
FOREIGN = "\x1b[31mred\x07\r\x9b2J\u202e"


def test_control_characters_of_names_are_shown_as_words(tmp_path):
    """In a terminal and on a page, of names, notes and versions."""
    for folder, scale in (("a", 1), ("b", 2)):
        x = {f"x{FOREIGN}": np.ones((2, 3))}
        y = {f"y{FOREIGN}": np.full((2, 3), float(scale))}
        steps = [Step(f"layer{FOREIGN}", f"layer{FOREIGN}", "Linear", MODULE,
                      1, 2, x, y, {"inputs.k": FOREIGN}, [f"w{FOREIGN}"]),
                 Step(WHOLE, WHOLE, "Model", MODULE, 0, 3, x, y)]
        dump(Trace("torch", {"torch": FOREIGN}, {}, "float64", steps,
                   {f"w{FOREIGN}": np.ones(3)}, [], never_called=[FOREIGN],
                   notes=[FOREIGN]), tmp_path / folder)
    found = invoke(
        "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--all", "--html",
        str(tmp_path / "page.html"))
    assert found.exit_code == 1 and "\\x1b[31mred" in found.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not set(FOREIGN) & set(found.output + page) - set("[31mred2J")


@pytest.fixture
def dumped(tmp_path):
    """A trace with gradients, and where it was dumped."""
    port = usable("torch")
    model = torch_model()
    found = trace(model, port.to_native(X, "cpu"),
                  gradients=lambda output: total(port, output))
    dump(found, tmp_path / "d")
    return found, tmp_path / "d"


def test_a_dump_is_the_trace(dumped):
    found, folder = dumped
    again = load(folder)
    assert not again.live and again.origin == str(folder)
    for field in ("framework", "versions", "precision", "dtype", "trainable",
                  "aliases", "loss", "never_called", "notes", "inputs_hash",
                  "parameters_hash", "content_hash"):
        assert getattr(again, field) == getattr(found, field), field
    for mine, other in zip(again.steps, found.steps, strict=True):
        for field in ("path", "module", "kind", "source", "began", "ended",
                      "others", "parameters", "settings"):
            assert getattr(mine, field) == getattr(other, field), field
        for field in ("inputs", "outputs", "gradients"):
            for name, array in getattr(other, field).items():
                read = getattr(mine, field)[name]
                assert read.shape == array.shape
                assert read.dtype == array.dtype
                assert read.tobytes() == array.tobytes()
    with pytest.raises(InputError, match="read from a file"):
        again.rerun("layers.0", {})
    with pytest.raises(InputError, match="is not empty"):
        dump(found, folder)


def test_odd_arrays_survive(tmp_path):
    """Scalars, empty ones, and dtypes that the file format lacks."""
    usable("torch")
    import torch

    class Odd(torch.nn.Module):
        def forward(self, x):
            return (x.sum(), x[:0], x.T, torch.complex(x, x).to(
                torch.complex128), x > 0, x.to(torch.uint8))
    found = trace(Odd(), torch.ones(2, 3))
    dump(found, tmp_path / "d")
    again = load(tmp_path / "d").steps[-1].outputs
    for name, array in found.steps[-1].outputs.items():
        assert again[name].dtype == array.dtype
        assert again[name].shape == array.shape
        assert again[name].tobytes() == array.tobytes()


def spoil(folder, how):
    """Damage a dump."""
    manifest, arrays = folder / "manifest.json", folder / "arrays.safetensors"
    match how:
        case "no manifest":
            manifest.unlink()
        case "no arrays":
            arrays.unlink()
        case "cut manifest":
            manifest.write_text(manifest.read_text()[:-40])
        case "edited manifest":
            manifest.write_text(manifest.read_text().replace(
                '"LayerNorm"', '"RMSNorm"'))
        case "cut arrays":
            arrays.write_bytes(arrays.read_bytes()[:-40])
        case "one bit":
            data = bytearray(arrays.read_bytes())
            data[-5] ^= 1
            arrays.write_bytes(bytes(data))
        case "schema":
            data = json.loads(manifest.read_text())
            manifest.write_text(json.dumps(data | {"schema": 99}))
        case "a list":
            manifest.write_text("[]")


@pytest.mark.parametrize("how", [
    "no manifest", "no arrays", "cut manifest", "edited manifest",
    "cut arrays", "one bit", "schema", "a list"])
def test_a_damaged_dump_is_refused(dumped, how):
    _, folder = dumped
    spoil(folder, how)
    with pytest.raises(InputError) as told:
        load(folder)
    assert str(folder) in str(told.value) and "\n" not in str(told.value)


def test_arrays_of_another_dump_are_refused(dumped, tmp_path):
    found, folder = dumped
    other = trace(torch_model(), 2 * usable("torch").to_native(X, "cpu"))
    dump(other, tmp_path / "e")
    name = "arrays.safetensors"
    (folder / name).write_bytes((tmp_path / "e" / name).read_bytes())
    with pytest.raises(InputError, match="another dump's"):
        load(folder)


def test_a_dump_that_fails_leaves_nothing(dumped, tmp_path, monkeypatch):
    found, _ = dumped
    from parity.tracing import folder

    def fails(*_):
        raise OSError("the disk is full")
    monkeypatch.setattr(folder.array_file, "save", fails)
    with pytest.raises(InputError, match="the disk is full"):
        dump(found, tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d"]
