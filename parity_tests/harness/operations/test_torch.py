"""A torch.nn.Module as operations: as it is, exact, and edited."""

import threading

import numpy as np
import pytest

from parity_io.errors import InputError
from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from parity.operations.program import (  # noqa: E402
    CONSTANT, INPUT, LEAF, OPERAND, PARAMETER, RESULT)
from parity.operations.torch import Runner  # noqa: E402

X = torch.linspace(-2, 2, 60, dtype=torch.float64).reshape(2, 5, 6).sin()


class ShortNorm(nn.Module):
    """A norm in float32 inside, as libraries have it."""

    def __init__(self, short=True):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 6).double())
        self.short = short

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32) if self.short else x
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * x.to(dtype)


class NormedMixer(nn.Module):
    """A norm, attention of torch's own and a gate, with a residual."""

    def __init__(self, short=True):
        super().__init__()
        torch.manual_seed(3)
        self.norm = ShortNorm(short)
        self.inner = nn.Linear(6, 18).double()
        self.outer = nn.Linear(6, 6).double()

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (2, 3)).transpose(1, 2)
                   for each in self.inner(self.norm(x)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return x + self.outer(functional.gelu(mixed))


class Calling(nn.Module):
    """A function as a module, with a weight."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.linspace(1, 2, 6).double())

    def forward(self, x):
        return self.function(self, x)


def made(program, name="output"):
    """The array of an output."""
    return program.values[program.outputs[name]].array


def called(program, name):
    """The operations of a name."""
    return [each for each in program.operations if each.name == name]


def apart(one, two):
    """How far two arrays are apart, as a share of the second."""
    one, two = (np.asarray(each.detach() if isinstance(
        each, torch.Tensor) else each) for each in (one, two))
    return np.linalg.norm(one - two) / np.linalg.norm(two)


def frozen(model):
    """Copies of all weights, to be compared later."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def untouched(model, before):
    return all(torch.equal(value, before[name])
               for name, value in model.state_dict().items())


@pytest.mark.parametrize("make, x", [
    (NormedMixer, X), (lambda: nn.TransformerEncoderLayer(
        6, 2, 7, 0.0, batch_first=True).double().eval(), X),
    (lambda: nn.Sequential(nn.Conv1d(5, 4, 3), nn.BatchNorm1d(4)).double()
     .eval(), X), (lambda: nn.Embedding(9, 4), torch.arange(7)),
    (lambda: nn.LSTM(6, 4, batch_first=True).double(), X)])
def test_a_run_as_it_is_equals_the_call(make, x):
    model = make()
    program = Runner(model, (x,), {}).run()
    wanted = model(x)
    wanted = wanted if isinstance(wanted, torch.Tensor) else wanted[0]
    name = "output" if "output" in program.outputs else "output.0"
    assert apart(made(program, name), wanted) < 1e-14
    assert not program.exact and program.roundings == []


def test_an_exact_run_is_that_of_a_model_in_float64():
    model, twin = NormedMixer(), NormedMixer(short=False)
    before, x = frozen(model), X.clone()
    exact = Runner(model, (x,), {}).run(exact=True)
    assert apart(model(x), twin(x)) > 1e-9
    assert apart(made(exact), twin(x)) < 1e-14
    assert untouched(model, before) and torch.equal(x, X)
    rounding, = exact.roundings
    assert (rounding.dtype, rounding.count) == ("float32", 60)
    assert str(rounding.place).startswith("test_torch.py:")
    assert {value.dtype for value in exact.values if value.array is not None
            and value.array.dtype == np.float64} >= {"float32", "float64"}


def test_tables_are_built_in_float64_where_it_is_known_how():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3).double())
            self.register_buffer("table", 10000 ** (
                -torch.arange(0, 6, 2, dtype=torch.float32) / 6), False)

        def forward(self, x):
            return self.weight * torch.cos(30 * x[..., :3] * self.table)
    model = Turned()
    with torch.no_grad():
        model.weight.fill_(2.0)  # was trained since it was made
    truth = 2 * torch.cos(30 * X[..., :3] * 10000 ** (
        -torch.arange(0, 6, 2, dtype=torch.float64) / 6))
    alone = Runner(model, (X,), {}).run(exact=True)
    anew = Runner(model, (X,), {}, lambda: (Turned(), (X,), {})).run(
        exact=True)
    assert apart(made(alone), truth) > 1e-10
    assert apart(made(anew), truth) < 1e-15


def test_numbers_stay_under_edits_and_edits_do_as_they_say():
    model = NormedMixer()
    runner, before = Runner(model, (X,), {}), frozen(model)
    plain = runner.run(exact=True)

    epsilon = next(each for each in called(plain, "add") if any(
        plain.values[value].signature.size == 1 for value in each.operands))
    place = next(i for i, value in enumerate(epsilon.operands)
                 if plain.values[value].kind == CONSTANT)
    edited = runner.run(True, {(OPERAND, epsilon.number, place): np.array(.5)})
    read, root = (edited.values[value].array for value in (
        epsilon.operands[1 - place], epsilon.results[0]))
    assert np.allclose(root, read + 0.5, rtol=1e-15)

    product = called(plain, "matmul")[0]
    ones = np.ones(plain.values[product.operands[0]].shape)
    edited = runner.run(True, {(OPERAND, product.number, 0): ones})
    kernel = plain.values[product.operands[1]].array
    assert np.allclose(edited.values[product.results[0]].array,
                       ones @ kernel, rtol=1e-14)

    edited = runner.run(True, {(RESULT, product.number, 0): np.array(3.0)})
    assert (edited.values[product.results[0]].array == 3).all()
    assert apart(made(edited), made(plain)) > 1e-3

    wide = np.linspace(2, 3, 6)
    edited = runner.run(True, {(LEAF, "norm.weight"): wide})
    twin = NormedMixer(short=False)
    with torch.no_grad():
        twin.norm.weight.copy_(torch.from_numpy(wide))
    assert apart(made(edited), twin(X)) < 1e-14

    assert untouched(model, before)
    again = runner.run(exact=True)
    assert np.array_equal(made(again), made(plain))
    for program in edited, again:
        assert [(each.name, each.operands, each.results)
                for each in program.operations] == [
            (each.name, each.operands, each.results)
            for each in plain.operations]


def in_place(self, x):
    """x + 1 in rows 0 and 1, twice the rest; written through views."""
    y = x * 1
    head, tail = y[:, :2], y[:, 2:]
    head.add_(1)
    tail.mul_(2)
    y[..., 0] = 7
    return y * self.weight


def test_what_is_written_in_place_is_seen_through_views():
    model, x = Calling(in_place), X.clone()
    wanted = model(x)
    for exact in False, True:
        program = Runner(model, (x,), {}).run(exact)
        assert apart(made(program), wanted) == 0
        last = program.maker(program.outputs["output"])
        read = program.values[last.operands[0]]
        assert apart(read.array, wanted / model.weight) < 1e-15
    assert torch.equal(x, X)
    runner = Runner(model, (x,), {})
    program = runner.run(True)
    write = next(each for each in program.operations
                 if each.native == "aten.add_.Tensor")
    edited = runner.run(True, {(RESULT, write.number, 0): np.array(0.25)})
    assert np.allclose(made(edited)[:, :2, 1:], 0.25 * np.asarray(
        model.weight.detach())[1:])
    assert np.array_equal(made(edited)[:, 2:], made(program)[:, 2:])


def test_what_a_model_writes_into_its_input_stays_in_the_run():
    model, x = Calling(lambda self, x: x.add_(1) * self.weight), X.clone()
    wanted = (X + 1) * model.weight
    program = Runner(model, (x.clone(),), {}).run(exact=True)
    assert apart(made(program), wanted) < 1e-15


def test_shared_weights_are_one_value():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(6, 6, bias=False).double()
            self.two = nn.Linear(6, 6, bias=False).double()
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.two(self.one(x))
    model = Tied()
    runner = Runner(model, (X,), {})
    program = runner.run(exact=True)
    kernel, = (value for value in program.values if value.kind == PARAMETER)
    assert kernel.name == "one.weight"
    twice = runner.run(True, {(LEAF, "one.weight"): 2 * kernel.array})
    assert apart(made(twice), 4 * made(program)) < 1e-15
    given, = (value for value in program.values if value.kind == INPUT)
    assert given.name == "x" and np.array_equal(given.array, X)


def test_what_is_drawn_is_the_same_exact_or_not():
    model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.4))
    x, found = X.float(), []
    for exact in None, False, True:
        torch.manual_seed(11)
        found.append(model(x).detach().numpy() if exact is None else made(
            Runner(model, (x,), {}).run(exact)))
    call, plain, exact = found
    assert np.array_equal(call, plain)
    assert np.array_equal(exact == 0, plain == 0) and (plain == 0).any()
    assert 0 < apart(exact, plain) < 1e-6
    state = torch.get_rng_state()
    Runner(model, (x,), {}).run(True)
    assert torch.equal(state, torch.get_rng_state())


def test_two_threads_do_not_see_each_other():
    models = [NormedMixer(), nn.Linear(6, 4).double()]
    wanted = [[(each.name, each.native) for each in Runner(
        model, (X,), {}).run(True).operations] for model in models]
    seen, gate = {}, threading.Barrier(2)

    def work(i):
        gate.wait()
        for turn in range(4):
            program = Runner(models[i], (X,), {}).run(bool(turn % 2))
            seen[i, turn] = [(each.name, each.native)
                             for each in program.operations]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert len(seen) == 8
    for (i, turn), operations in seen.items():
        if turn % 2:
            assert operations == wanted[i]
        else:
            assert [name for name, _ in operations if name != "cast"] == [
                name for name, _ in wanted[i] if name != "cast"]


def test_lines_and_modules():
    program = Runner(NormedMixer(), (X,), {}).run()
    lines = open(__file__, encoding="utf-8").read().splitlines()

    def line(operation):
        assert operation.place.file == __file__
        return lines[operation.place.line - 1]
    root, = called(program, "rsqrt")
    assert "torch.rsqrt" in line(root) and root.module == "norm"
    assert root.place.function == "forward"
    first, *_, last = called(program, "matmul")
    assert "self.inner(" in line(first) and first.module == "inner"
    assert "self.outer(" in line(last) and last.module == "outer"
    ends = program.maker(program.outputs["output"])
    assert ends.name == "add" and "x + self.outer" in line(ends)


def test_where_no_line_is_a_users_the_layers_own_is_told():
    model = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6)).double()
    program = Runner(model, (X,), {}).run()
    assert [each.place.file.rpartition("/torch/")[2]
            for each in program.operations] == [
        "nn/modules/linear.py" if each.module == "0"
        else "nn/functional.py" for each in program.operations]


def test_only_what_is_asked_for_is_kept():
    runner = Runner(NormedMixer(), (X,), {})
    whole = runner.run(True)
    for program in (runner.run(True, keep=False), runner.run(
            True, keep=lambda value: value.kind == PARAMETER)):
        assert {value.kind for value in program.values
                if value.array is not None} <= {PARAMETER}
        assert [value.signature for value in program.values] == [
            value.signature for value in whole.values]


def test_what_is_compiled_or_scripted_is_refused():
    model = nn.Linear(6, 4)
    with pytest.raises(InputError, match="the module that was given"):
        Runner(torch.compile(model), (X,), {})
    with pytest.warns(DeprecationWarning):
        scripted = torch.jit.script(model)
    with pytest.raises(InputError, match="that it was made of"):
        Runner(scripted, (X,), {})


def test_a_number_made_into_a_tensor_is_not_rounded():
    """2π is no number of float32, which torch.tensor makes of it first."""
    class Logarithm(torch.nn.Module):
        """Adds ln 2π."""

        def forward(self, x):
            return x + torch.log(torch.tensor(2 * torch.pi))
    x = torch.zeros(3, dtype=torch.float64)
    program = Runner(Logarithm(), (x,), {}).run(exact=True)
    value = program.values[program.outputs["output"]].array
    assert np.abs(value - np.log(2 * np.pi)).max() < 1e-15
    assert torch.tensor(2 * torch.pi).dtype == torch.float32


def test_what_was_never_written_is_the_same_in_every_run():
    def keys(_, x):
        made = x.new_empty(2, 6)
        made[:, :3], made[:, 3:] = x[:, 3:], x[:, :3]
        return made * 2
    x = torch.linspace(0, 1, 12).double().reshape(2, 6)
    programs = [Runner(Calling(keys), (x,), {}).run() for _ in range(3)]
    full = [each.name for each in programs[0].operations].index("full")
    for program in programs:
        made = program.values[program.operations[full].results[0]]
        np.testing.assert_array_equal(made.array, np.zeros((2, 6)))


def test_groups_of_rows_meet_kernels_of_their_own_in_float64():
    rows, kernels = torch.randn(9, 8), torch.randn(3, 8, 16)
    ends = torch.tensor([4, 4, 9], dtype=torch.int32)
    program = Runner(Calling(lambda _, x: torch._grouped_mm(
        x, kernels, offs=ends)), (rows,), {}).run(exact=True)
    np.testing.assert_allclose(
        program.values[program.outputs["output"]].array, np.concatenate([
            rows[:4].double() @ kernels[0].double(),
            rows[4:].double() @ kernels[2].double()]), rtol=1e-12)
    assert [each.name for each in program.operations].count("matmul") == 2
    assert not program.notes


def test_what_has_no_float64_is_done_in_its_own_dtype_and_noted():
    @torch.library.custom_op("parity_tests::short", mutates_args=())
    def short(x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float64:
            raise RuntimeError("of float32 alone")
        return x.sin()
    program = Runner(Calling(lambda _, x: short(x * 2) + 1), (
        X.float(),), {}).run(exact=True)
    made = program.values[program.outputs["output"]].array
    np.testing.assert_allclose(made, np.sin(2 * X.numpy()) + 1, atol=1e-6)
    assert made.dtype == np.float64
    assert "no float64; it was done in float32" in program.notes[0]
