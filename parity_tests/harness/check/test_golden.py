"""Golden files: the shipped answers, reproduced by all four."""

import pytest

from contract import weights
from contract.config import PRESETS
from parity.check import cases, golden
from parity.numerics.comparator import MATCH, compare
from parity.numerics.tolerances import FLOAT64_LIMIT


@pytest.mark.parametrize("preset", PRESETS)
def test_golden_outputs(engine, preset):
    config = cases.test_size(preset)
    stored, _ = weights.load(golden.FOLDER / "golden" / f"{preset}.safetensors")
    inputs = [stored[f"in.{name}"] for name in golden.INPUTS]
    model = engine.build("transformer", config, golden.shipped(preset))
    steps = engine.forward(model, *inputs)
    for name in golden.KEPT:
        found = compare(steps[name], stored[f"out.{name}"], FLOAT64_LIMIT)
        assert found.verdict == MATCH, (name, found)
