"""Golden files: the shipped answers, reproduced by all four."""

import shutil

import pytest

from transformer_contract import weights
from transformer_contract.config import PRESETS
from parity_io.errors import InputError
from parity.check import cases, golden
from parity.numerics.comparator import MATCH, compare
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity_tests.support.commands import invoke


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.long(12)
def test_golden_outputs(engine, preset):
    config = cases.test_size(preset)
    stored, _ = weights.load(golden.FOLDER / "golden" / f"{preset}.safetensors")
    inputs = [stored[f"in.{name}"] for name in golden.INPUTS]
    model = engine.build("transformer", config, golden.shipped(preset))
    steps = engine.forward(model, *inputs)
    for name in golden.KEPT:
        found = compare(steps[name], stored[f"out.{name}"], FLOAT64_LIMIT)
        assert found.verdict == MATCH, (name, found)


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """A copy of the shipped files, whose every use is of the copy."""
    folder = tmp_path / "weights"
    shutil.copytree(golden.FOLDER, folder)
    monkeypatch.setattr(golden, "sound", lambda name, _=None, sound=(
        golden.sound): sound(name, folder))
    return folder


USES = {
    "lesson.safetensors": ["check", "--preset", "lesson", "--port", "torch",
                           "--dtype", "float64", "--no-full-size"],
    "dates.safetensors": ["translate", "1 May 2026"],
    "dates.tokenizer.json": ["translate", "1 May 2026"],
    "phrases.safetensors": ["translate", "--task", "phrases", "3 Tage"],
}


@pytest.mark.parametrize("name", USES)
def test_a_flipped_bit_of_a_shipped_file_is_seen(damaged, name):
    path = damaged / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = invoke(*USES[name])
    assert found.exit_code == 2 and found.stderr.count("\n") == 1
    assert f"{name}' is damaged" in found.output
    path.unlink()
    found = invoke(*USES[name])
    assert found.exit_code == 2 and "No such file" in found.output


def test_every_shipped_file_is_listed(damaged):
    for path in damaged.rglob("*"):
        name = str(path.relative_to(damaged))
        if path.is_file() and name not in ("README.md", golden.SUMS):
            assert golden.sound(name) == path
    (damaged / golden.SUMS).write_text("")
    with pytest.raises(InputError, match="hash"):
        golden.trained.__wrapped__(damaged)
