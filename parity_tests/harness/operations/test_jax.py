"""nnx models are seen as operations: as they are, exact, and edited."""

import threading

import numpy as np
import pytest

from parity_io.errors import InputError

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")
jnp, lax = jax.numpy, jax.lax

from parity.operations.jax import Runner  # noqa: E402
from parity.operations.program import (  # noqa: E402
    CONSTANT, INPUT, LEAF, MADE, OPERAND, PARAMETER, RESULT)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 6))


class Of(nnx.Module):
    """A model of a function and what it uses."""

    def __init__(self, function, **parts):
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def __call__(self, x):
        return self.function(self, x)


class NormedAttention(nnx.Module):
    """Attention behind a norm, beside a residual."""

    def __init__(self, dtype, epsilon=1e-6):
        kind = {"dtype": dtype, "param_dtype": dtype, "rngs": nnx.Rngs(0)}
        self.norm = nnx.LayerNorm(6, epsilon=epsilon, **kind)
        self.attention = nnx.MultiHeadAttention(2, 6, decode=False, **kind)

    def __call__(self, x):
        return x + self.attention(self.norm(x))


def block_by_hand(model, x, epsilon=1e-6):
    """What a NormedAttention computes, in float64 throughout."""
    weights = {path: np.asarray(variable[...], np.float64)
               for path, variable in nnx.to_flat_state(
                   nnx.state(model, nnx.Param))}

    def linear(name, x, axes):
        return np.tensordot(x, weights["attention", name, "kernel"], axes) + (
            weights["attention", name, "bias"])
    centred = x - x.mean(-1, keepdims=True)
    h = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + epsilon)
    h = h * weights["norm", "scale"] + weights["norm", "bias"]
    q, k, v = (linear(name, h, 1) for name in ("query", "key", "value"))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(3)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("hqk,khd->qhd",
                      scores / scores.sum(-1, keepdims=True), v)
    return x + linear("out", mixed, 2)


def output(program, name="output"):
    """An output's numbers."""
    return program.values[program.outputs[name]].array


def error(left, right):
    """How far two arrays are apart, of their size."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    return np.linalg.norm(left - right) / np.linalg.norm(right)


def scanned(model, x):
    """A scan, a loop and a condition."""
    def step(carry, row):
        return carry * 0.5 + row, carry - row
    carry, rows = lax.scan(step, x[0], x, reverse=True)
    _, looped = lax.while_loop(lambda c: c[0] < 3,
                               lambda c: (c[0] + 1, c[1] * 0.5), (0, rows))
    return lax.cond(x.sum() > 0, lambda a: a * 0.5, lambda a: a + 2, carry), (
        looped)


def batched_loop(model, x):
    """A loop that ends elsewhere in each row."""
    def halve(row):
        return lax.while_loop(lambda a: jnp.abs(a).max() > 0.25,
                              lambda a: a * 0.5, row)
    return jax.vmap(halve)(x)


MODELS = {
    "linear": lambda: Of(lambda m, x: m.part(x),
                         part=nnx.Linear(6, 3, rngs=nnx.Rngs(0))),
    "batch norm": lambda: Of(lambda m, x: m.part(x),
                             part=nnx.BatchNorm(
                                 6, use_fast_variance=False,
                                 rngs=nnx.Rngs(0))),
    "embedding": lambda: Of(
        lambda m, x: m.part(jnp.array([[1, 2], [3, 0]])) * 0.1,
        part=nnx.Embed(5, 4, rngs=nnx.Rngs(0))),
    "functions": lambda: Of(lambda m, x: (
        jax.nn.gelu(x), jax.nn.gelu(x, approximate=False), jax.nn.silu(x),
        jax.nn.softmax(x), jax.nn.log_softmax(x, 0), jnp.mean(x, 1))),
    "rows": lambda: Of(lambda m, x: (
        x[jnp.array([2, 0])], jnp.split(x, 2, 1), jnp.cumsum(x, 1),
        jnp.clip(x, -0.5, 0.5), x.at[0].set(0.1), lax.top_k(x, 2))),
    "convolution": lambda: Of(lambda m, x: m.part(x[None]), part=nnx.Conv(
        6, 8, (3,), rngs=nnx.Rngs(0))),
    "control flow": lambda: Of(scanned),
    "a batched loop": lambda: Of(batched_loop),
    "gradient": lambda: Of(lambda m, x: jax.grad(
        lambda a: (jnp.sin(a) * a).sum())(x)),
    "dropout": lambda: Of(lambda m, x: m.part(x) * 1.5, part=nnx.Dropout(
        0.5, rngs=nnx.Rngs(0))),
    "Python": lambda: Of(lambda m, x: x * 2 if x.sum() > 0 else x - 1),
}


def state_of(model):
    """Every array of a model, random states too."""
    return [np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(
        leaf.dtype, jax.dtypes.prng_key) else leaf)
        for leaf in jax.tree.leaves(nnx.split(model)[1])]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("wide", [False, True])
def test_as_it_is_to_the_bit_and_the_model_stays(name, wide):
    with jax.enable_x64(wide):
        model, x = MODELS[name](), jnp.asarray(X)
        before = state_of(model)
        plain, again = (Runner(model, (x,), {}).run() for _ in range(2))
        exact = Runner(model, (x,), {}).run(exact=True)
        assert all(map(np.array_equal, before, state_of(model)))
        called = jax.tree.leaves(model(x))
    assert [o.name for o in plain.operations] == [
        o.name for o in again.operations]
    assert len(plain.outputs) == len(called)
    for name, array in zip(plain.outputs, called):
        np.testing.assert_array_equal(output(plain, name), array)
        assert output(exact, name).dtype.itemsize >= 8 or (
            output(exact, name).dtype.kind == "i")
        assert error(output(exact, name), array) < 1e-6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_is_the_truth(dtype):
    with jax.enable_x64(dtype == "float64"):
        model = NormedAttention(jnp.dtype(dtype))
        x = jnp.asarray(X, dtype)
        plain = Runner(model, (x,), {}).run()
        exact = Runner(model, (x,), {}).run(exact=True)
        truth = block_by_hand(model, np.asarray(x, np.float64))
    assert jax.config.jax_enable_x64 is jax.config.read("jax_enable_x64")
    assert error(output(plain), truth) > 1e-9
    assert error(output(exact), truth) < 1e-15
    assert any(r.dtype == "float32" for r in exact.roundings)
    assert all(v.array.dtype != np.float32 for v in exact.values)


def test_operations_say_of_what_where_and_in_which_module():
    model, x = NormedAttention(jnp.float32), jnp.asarray(X, jnp.float32)
    program = Runner(model, (x,), {}).run()
    leaves = {(v.kind, v.name) for v in program.values if v.kind != MADE}
    assert {(INPUT, "x"), (PARAMETER, "norm.scale"),
            (PARAMETER, "attention.out.kernel"), (CONSTANT, "")} <= leaves
    modules = [o.module for o in program.operations]
    assert {"norm", "attention", "attention.query", "(model)"} == (
        set(modules) - {"attention.key", "attention.value", "attention.out"})
    assert {str(o.place) for o in program.operations} == {
        f"test_jax.py:{NormedAttention.__call__.__code__.co_firstlineno + 1}"}
    last = program.operations[-1]
    assert last.name == "add" and last.results == (
        program.outputs["output"],)
    assert program.values[last.operands[0]].name == "x"
    alone = Runner(model.norm, (x,), {}).run()
    assert {o.place.file.split("/")[-1] for o in alone.operations} == {
        "normalization.py"}


def test_jitted_functions_are_seen_with_their_own_lines():
    def inner(x):
        y = jnp.sin(x)
        return y * 3
    jitted = jax.jit(inner)
    model = Of(lambda m, x: jitted(x))
    program = Runner(model, (jnp.asarray(X),), {}).run()
    first = inner.__code__.co_firstlineno
    assert [(o.name, o.place.line) for o in program.operations] == [
        ("sin", first + 1), ("multiply", first + 2)]
    compiled = jitted.lower(jnp.asarray(X)).compile()
    with pytest.raises(InputError, match="before it is compiled"):
        Runner(Of(lambda m, x: compiled(x)), (jnp.asarray(X),), {}).run()


def test_edits_give_what_a_model_with_them_gives():
    with jax.enable_x64(True):
        x = jnp.asarray(X)
        model = NormedAttention(jnp.float64)
        other = NormedAttention(jnp.float64, epsilon=1e-3)
        runner = Runner(model, (x,), {})
        plain = runner.run(exact=True)
        added, place = next(
            (o, i) for o in plain.operations for i, v in enumerate(o.operands)
            if plain.values[v].kind == CONSTANT
            and plain.values[v].array == 1e-6)
        assert added.name == "add" and added.module == "norm"
        edited = runner.run(exact=True, edits={
            (OPERAND, added.number, place): np.float64(1e-3)})
        wanted = Runner(other, (x,), {}).run(exact=True)
        np.testing.assert_array_equal(output(edited), output(wanted))
        assert [(o.name, o.operands) for o in edited.operations] == [
            (o.name, o.operands) for o in plain.operations]
        scale = np.full(6, 2.0)
        leaf = runner.run(exact=True, edits={(LEAF, "norm.scale"): scale})
        model.norm.scale[...] = jnp.asarray(scale)
        np.testing.assert_array_equal(
            output(leaf), output(runner.run(exact=True)))
        last = plain.operations[-1].number
        result = runner.run(True, edits={(RESULT, last, 0): np.ones(())})
        np.testing.assert_array_equal(output(result), np.ones((4, 6)))


def test_an_exponent_is_an_operand():
    model, x = Of(lambda m, x: x ** 3), jnp.asarray(X, jnp.float32)
    runner = Runner(model, (x,), {})
    operation, = runner.run().operations
    assert operation.name == "power"
    edited = runner.run(edits={(OPERAND, 0, 1): np.asarray(2)})
    np.testing.assert_allclose(output(edited), np.asarray(x) ** 2, rtol=1e-6)


def test_what_is_drawn_is_drawn_alike():
    def draw(model, x):
        keep = jax.random.bernoulli(model.rngs.dropout(), 0.5, x.shape)
        return jnp.where(keep, x + jax.random.normal(
            model.rngs.dropout(), x.shape), 0)
    model = Of(draw, rngs=nnx.Rngs(dropout=1))
    x = jnp.asarray(X, jnp.float32)
    runner = Runner(model, (x,), {})
    plain, exact = runner.run(), runner.run(exact=True)
    assert [o.name for o in plain.operations].count("random") >= 2
    assert error(output(exact), output(plain)) < 1e-7
    np.testing.assert_array_equal(output(plain), model(x))


class CompiledScan(nnx.Module):
    """A compiled scan, whose carry is of the parameters' dtype."""

    def __init__(self):
        self.cells = nnx.RNN(nnx.LSTMCell(6, 5, rngs=nnx.Rngs(0)))

    @nnx.jit
    def __call__(self, x):
        return self.cells(x)


def test_a_compiled_scan_is_exact_too():
    model, x = CompiledScan(), jnp.asarray(X[None], jnp.float32)
    runner = Runner(model, (x,), {})
    plain, exact = runner.run(), runner.run(exact=True)
    assert len(plain.operations) == len(exact.operations) > 100
    assert 1e-9 < error(output(plain), output(exact)) < 1e-6
    assert output(exact).dtype == np.float64


def test_numpy_inputs_and_tables_are_known():
    with jax.enable_x64(False):
        table = np.linspace(0, 1, 6)
        model = Of(lambda m, x: jnp.multiply(x, m.table) + 1e-3, table=table)
        for exact in (False, True):
            program = Runner(model, (X,), {}).run(exact)
            read = [program.values[v] for o in program.operations
                    for v in o.operands]
            assert [(v.kind, v.name) for v in read if v.kind != MADE] == [
                (PARAMETER, "table"), (INPUT, "x"), (CONSTANT, "")]
            assert read[-1].array == 1e-3
        np.testing.assert_allclose(output(program), X * table + 1e-3,
                                   rtol=1e-15)


class Tabled(nnx.Module):
    """A table in float32, a weight, and a statistic."""

    def __init__(self):
        angles = jnp.arange(8, dtype=jnp.float32)[:, None] * (
            jnp.float32(1e4) ** (-jnp.arange(3, dtype=jnp.float32) / 3))
        self.table = jnp.cos(angles)
        self.weight = nnx.Param(jnp.ones(3, jnp.float32))
        self.mean = nnx.BatchStat(jnp.zeros(3, jnp.float32))

    def __call__(self, x):
        return (x - self.mean) * self.table[:4] * self.weight


def test_tables_are_made_anew_and_weights_are_kept():
    model, x = Tabled(), jnp.asarray(X[:, :3], jnp.float32)
    model.weight[...] = jnp.array([0.1, 0.2, 0.3], jnp.float32)
    model.mean[...] = jnp.array([1, 2, 3], jnp.float32)
    angles = np.arange(4)[:, None] * 1e4 ** (-np.arange(3) / 3)
    wide = [np.asarray(each, np.float64) for each in (
        x, model.mean[...], model.weight[...])]
    truth = (wide[0] - wide[1]) * np.cos(angles) * wide[2]
    exact = Runner(model, (x,), {}, lambda: (Tabled(), (x,), {})).run(
        exact=True)
    assert error(output(exact), truth) < 1e-15
    kept = Runner(model, (x,), {}).run(exact=True)
    assert 1e-9 < error(output(kept), truth) < 1e-6
    assert model.table.dtype == jnp.float32


def test_two_threads_do_not_see_each_other():
    model, x = NormedAttention(jnp.float32), jnp.asarray(X, jnp.float32)
    wanted = len(Runner(model, (x,), {}).run().operations)
    start, found, called = threading.Barrier(3), [], []

    def run(exact):
        start.wait()
        for _ in range(3):
            found.append(len(Runner(model, (x,), {}).run(exact).operations))

    def call():
        start.wait()
        called.extend(model(x).dtype for _ in range(10))
    threads = [threading.Thread(target=run, args=(exact,))
               for exact in (False, True)] + [threading.Thread(target=call)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 6
    assert called == [jnp.float32] * 10
    assert not hasattr(nnx.LayerNorm.__call__, "__wrapped__")


def test_arrays_are_kept_where_that_is_asked():
    model, x = NormedAttention(jnp.float32), jnp.asarray(X, jnp.float32)
    program = Runner(model, (x,), {}).run(
        keep=lambda value: value.kind == PARAMETER)
    assert all((v.array is not None) == (v.kind == PARAMETER)
               and v.signature is not None for v in program.values)


def test_what_raises_raises_that():
    def fail(model, x):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        Runner(Of(fail), (jnp.asarray(X),), {}).run()
    with pytest.raises(InputError, match=r"nnx\.Module"):
        Runner(lambda x: x, (X,), {})


def test_foreign_functions_are_one_operation():
    def foreign(model, x):
        return 2 * jax.pure_callback(
            np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    exact = Runner(Of(foreign), (jnp.asarray(X, jnp.float32),), {}).run(
        exact=True)
    assert [o.name for o in exact.operations] == ["pure_callback", "multiply"]
    assert exact.notes == ["nothing inside pure_callback can be seen."]


def test_a_model_that_cannot_be_made_anew_is_run_with_its_own_tables():
    rngs = nnx.Rngs(0)  # of the file, so that no trace may draw of it

    def make():
        model = nnx.Linear(6, 3, rngs=rngs)
        model.table = nnx.Variable(jnp.ones(3))
        return Of(lambda self, x: self.inner(x) + self.inner.table[...],
                  inner=model), (X,), {}
    program = Runner(*make(), make).run(exact=True)
    assert program.notes == ["the model was not made anew in float64: "
                             "TraceContextError."]
    assert program.values[program.outputs["output"]].array.dtype == np.float64
