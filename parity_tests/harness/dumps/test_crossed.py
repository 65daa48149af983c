"""Two dumps of which one has a gate and its partner exchanged."""

import numpy as np

from parity.comparison.compare import compare
from parity.dumps.read import load
from parity.matching.crossed import uncrossed
from parity.matching.steps import suggest
from parity.numerics.comparator import DIVERGENCE

DRAW = np.random.default_rng(0)
X, GATE, UP, DOWN = (DRAW.normal(size=shape) for shape in (
    (3, 6), (6, 8), (6, 8), (8, 6)))


def dumped(folder, gate, up):
    """The Trace of a dump of a gated layer."""
    one, two = X @ gate, X @ up
    act = one / (1 + np.exp(-one)) * two
    folder.mkdir()
    np.savez(folder / "all.npz", **{
        "inputs/x": X, "parameters/mlp.gate.weight": gate,
        "parameters/mlp.up.weight": up, "parameters/mlp.down.weight": DOWN,
        "mlp.gate": one, "mlp.up": two, "mlp.act": act,
        "mlp.down": act @ DOWN, "outputs/y": act @ DOWN})
    return load(folder)


def test_exchanged_steps_are_those_that_differ(tmp_path):
    a, b = dumped(tmp_path / "a", GATE, UP), dumped(tmp_path / "b", UP, GATE)
    names = suggest(a, b)
    first = compare(a, b, names).first
    names = uncrossed(names, a, b, first.a)
    made = compare(a, b, names)
    assert made.verdict == DIVERGENCE
    assert {row.a for row in made.rows if row.diverges} >= {
        "mlp.gate", "mlp.up", "mlp.gate.weight", "mlp.up.weight"}
    assert any(note.startswith(
        "mlp.gate of a has the values of mlp.up of b") for note in made.notes)


def test_equal_dumps_are_not_uncrossed(tmp_path):
    a, b = dumped(tmp_path / "a", GATE, UP), dumped(tmp_path / "b", GATE, UP)
    assert uncrossed(suggest(a, b), a, b, "mlp.act") is None
