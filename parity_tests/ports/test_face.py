"""What an engine is asked beside models: each answer is right, or is told."""

import types

import numpy as np
import pytest

from parity import ports
from parity.check import face, surroundings
from parity.numerics.comparator import DIVERGENCE


def wrong(engine, name):
    """The answers that are not as they should be."""
    answers = face.answers(types.SimpleNamespace(engine=engine), name)
    assert answers
    return [what for what, difference in answers.items()
            if difference.verdict == DIVERGENCE]


@pytest.mark.long
@pytest.mark.parametrize("name", face.ASKED)
def test_every_answer_is_right(port, name):
    assert wrong(port, name) == []


@pytest.mark.long(24)
def test_native_dropout_differs_in_every_step(engine_of_each_form):
    assert all(right for _, right in face.native_steps(engine_of_each_form))


def test_a_wrong_answer_is_told(port, monkeypatch):
    product = port.matmul
    monkeypatch.setattr(port, "matmul", lambda *inputs: product(*inputs) + 1)
    assert wrong(port, "borders") == ["product"]


def test_weights_that_change_after_they_were_handed_out_are_told(monkeypatch):
    """As views of a model do while it is trained."""
    engine, handed = ports.engine("numpy"), {}
    step = engine.train_step

    def train_step(*given):
        handed.update({name: array + 1 for name, array in handed.items()})
        return step(*given)

    assert all(right for _, right in surroundings.kept(engine))
    export = engine.export
    monkeypatch.setattr(engine, "train_step", train_step)
    monkeypatch.setattr(engine, "export", lambda model: (
        handed.update(export(model)) or handed))
    assert [what for what, right in surroundings.kept(engine)
            if not right] == ["weights out stay"]


@pytest.mark.long
def test_a_search_that_reads_too_much_is_told(port, monkeypatch):
    """Its answer is the same; what the decoder is given is not."""
    generate = port.generate
    monkeypatch.setattr(
        port, "generate", lambda model, source, settings, rows=None: generate(
            model, source, settings.replace(cached=False), rows))
    assert any(what.startswith("tokens read") and "True" in what
               for what in wrong(port, "steps of searches"))


def test_numbers_above_32_bits_are_folded_in(port):
    """By their low word, in each of the four."""
    theirs = __import__(f"{port.__package__}.random", fromlist=["key"])
    one, other = (np.asarray(port.to_numpy(theirs.fold_in(
        theirs.key(1), number))) for number in (6, 2**33 + 6))
    np.testing.assert_array_equal(one, other)
