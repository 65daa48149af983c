"""What the sight of operations costs: time, memory, lines on the screen."""

import os

import numpy as np
import pytest

from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402

from parity.commands.scripts import call_script  # noqa: E402
from parity.operations.keeping import put_down  # noqa: E402
from parity.operations.program import (  # noqa: E402
    CONSTANT, MADE, PARAMETER, RESULT, Program)
from parity.operations import torch_built, torch_twins  # noqa: E402
from parity.operations.signature import BLOCK, signature  # noqa: E402
from parity.operations.torch import Runner  # noqa: E402
from parity.tracing.storage import is_stored  # noqa: E402


@pytest.mark.parametrize("size", [BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 5])
def test_a_long_array_is_summed_block_by_block(size):
    numbers = np.random.default_rng(0).normal(size=size)
    numbers[7] = np.nan
    large, shuffled = signature(numbers), signature(numbers[::-1])
    assert large.special == (1, 0, 0) and large.telling
    np.testing.assert_allclose(large.moments, shuffled.moments, rtol=1e-12)
    sizes = np.abs(numbers[~np.isnan(numbers)])
    assert large.moments[-1] == np.median(sizes)
    np.testing.assert_allclose(
        large.moments[3], np.mean(1 / (1 + (sizes / np.median(sizes)) ** 2)),
        rtol=1e-12)


def test_a_long_array_of_few_numbers_has_a_signature():
    made = signature(np.arange(2 * BLOCK) % 2 == 0)
    assert (made.kind, made.moments[-1], made.telling) == ("b", 1.0, False)
    assert signature(np.zeros(2 * BLOCK)).moments == (0.0,) * 6


def test_a_large_value_lies_in_a_file_and_once():
    programs = Program("numpy", True), Program("numpy", True)
    array = np.random.default_rng(0).normal(size=BLOCK)
    for program in programs:
        put_down(program, True, array.copy(), MADE, "", "float64")
    first, second = (program.values[0].array for program in programs)
    assert is_stored(first) and first is second
    np.testing.assert_array_equal(first, array)


def test_what_is_the_same_in_a_second_run_is_not_computed_anew():
    before, program = Program("numpy", True), Program("numpy", True)
    array = np.linspace(0, 1, 12)
    put_down(before, True, array, MADE, "", "float64")
    put_down(program, True, array.copy(), MADE, "", "float64", before=before)
    put_down(program, True, array, MADE, "", "float64", before=before)
    assert program.values[0].signature is before.values[0].signature
    assert program.values[1].signature == before.values[0].signature


def test_equal_bytes_of_another_kind_are_no_known_array():
    numbers = np.zeros(4)
    known = signature(numbers)
    assert signature(numbers.astype(np.int64), known).kind == "i"


def test_libraries_do_not_tell_of_themselves(tmp_path, capfd):
    script = tmp_path / "model.py"
    script.write_text("""
import os
os.write(2, b"WARNING: All log messages before absl::InitializeLog() is\\n"
            b"I0000 00:00:1795.747 27705 port.cc:153] oneDNN is on.\\n"
            b"E0000 00:00:1795.747 27705 port.cc:153] it fails\\n"
            b"a word of the user's\\n")
def make():
    return 1, ()
""")
    call_script(f"{script}:make")
    assert capfd.readouterr().err == (
        "E0000 00:00:1795.747 27705 port.cc:153] it fails\n"
        "a word of the user's\n")
    os.write(2, b"and afterwards\n")
    assert capfd.readouterr().err == "and afterwards\n"


class WideTable(torch.nn.Module):
    """A long weight, a short one, a table that is computed, and a norm."""

    def __init__(self, read=False):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(1 << 15, 64)
        self.inner = torch.nn.Linear(64, 64)
        if read:  # the weights' own numbers are asked for
            self.embed.weight.data /= float(self.embed.weight.data.max())
        self.register_buffer("table", torch.cos(torch.arange(64.0) / 7),
                             persistent=False)

    def forward(self, ids):
        return self.inner(self.embed(ids) * self.table)


def truth_of(model, ids):
    """WideTable's output in float64, as it would be with exact tables."""
    weight = model.embed.weight.detach().double().numpy()[ids.numpy()]
    table = np.cos(np.arange(64.0) / 7)
    inner, bias = (each.detach().double().numpy()
                   for each in model.inner.parameters())
    return (weight * table) @ inner.T + bias


@pytest.mark.parametrize("read", [False, True])
def test_a_large_model_is_made_anew_without_its_weights(monkeypatch, read):
    monkeypatch.setattr(torch_built, "LARGE", 1000)
    ids = torch.arange(6).reshape(2, 3)
    model = WideTable(read)
    runner = Runner(model, (ids,), {}, lambda: (WideTable(read), (ids,)))
    program = runner.run(exact=True)
    made = runner.exact_model()
    assert made.embed.weight is model.embed.weight
    assert made.table.dtype == torch.float64
    np.testing.assert_allclose(
        program.values[program.outputs["output"]].array, truth_of(model, ids),
        rtol=1e-12, atol=1e-13)


def test_twins_of_weights_that_were_only_read_go(monkeypatch):
    monkeypatch.setattr(torch_twins, "ROOM", 0)
    layers = [torch.nn.Linear(600, 600, bias=False) for _ in range(3)]
    model = torch.nn.Sequential(*layers, *layers)
    x = torch.linspace(-1, 1, 600)[None]
    program = Runner(model, (x,), {}).run(exact=True)
    names = [value.name for value in program.values
             if value.kind == PARAMETER]
    assert names == ["0.weight", "1.weight", "2.weight"]  # each once
    y = x.double().numpy()
    for layer in model:
        y = y @ layer.weight.detach().double().numpy().T
    np.testing.assert_allclose(
        program.values[program.outputs["output"]].array, y, rtol=1e-11,
        atol=1e-13)


def test_an_edited_run_reads_only_what_follows_from_the_edit():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(),
                                torch.nn.Linear(4, 4))
    runner = Runner(model, (torch.linspace(-1, 1, 8).reshape(2, 4),), {})
    first, again = runner.run(exact=True), runner.run(exact=True)
    assert all(one.signature is two.signature and one.array is two.array
               for one, two in zip(first.values, again.values)
               if one.kind != CONSTANT)
    tanh = next(each for each in first.operations if each.name == "tanh")
    edited = runner.run(exact=True, edits={
        (RESULT, tanh.number, 0): np.zeros((2, 4))})
    for one, two in zip(first.values, edited.values):
        after = one.number >= tanh.results[0] and one.kind == MADE and (
            one.shape == (2, 4))
        assert (one.signature is two.signature) != after
    np.testing.assert_array_equal(
        edited.values[edited.outputs["output"]].array,
        np.tile(model[2].bias.detach().double().numpy(), (2, 1)))
