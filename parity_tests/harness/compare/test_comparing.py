"""Two models are paired and compared, and the first difference is named."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from contract.errors import InputError
from parity.check import cases, golden
from parity.commands import compare as commands
from parity.comparison.arrays import compare_values
from parity.comparison.compare import compare
from parity.comparison.result import (
    INCOMPLETE, INHERITED, INPUT, NEW, NOTHING, OUTPUT, PARAMETER, WITHIN)
from parity.matching.rearrangement import (
    SAME, best, candidates, parts, rearranged, shapes)
from parity.matching.steps import read, suggest, write
from parity.numerics.comparator import DIVERGENCE, MATCH, ZERO
from parity.numerics.tolerances import model_limits
from parity.render import terminal
from parity.render.comparison import as_html, print_comparison
from parity.tracing.folder import dump, load
from parity.tracing.trace import WHOLE, trace
from parity_tests.support.engines import usable
from parity_tests.support.layers import (
    D, RNG, X, keras_layer, nnx_layer, torch_layer, traced, weights_of)


def outputs(comparison):
    return {row.a: row for row in comparison.rows if row.part == OUTPUT}


@pytest.fixture
def layer():
    return torch_layer()


def test_torchs_own_layer_against_nnx(layer):
    """Packed, split and transposed parameters; every layout is named."""
    import jax.numpy as jnp
    a = traced(layer, "torch", gradients=lambda y: y.sin().sum())
    b = traced(nnx_layer(weights_of(layer)), "jax",
               gradients=lambda y: jnp.sin(y).sum())
    found = compare(a, b)
    assert found.verdict == MATCH and found.first is None
    assert found.local and found.status == 0
    how = {(p.a, p.b): (p.a_layout, p.b_layout)
           for p in found.names.parameters}
    assert len(how) == 16
    assert how["linear1.weight", "mlp.0.kernel"] == (SAME, "transpose 1 0")
    assert how["self_attn.out_proj.weight", "attention.out.kernel"][1] == (
        "transpose 2 0 1, reshape 12 12")
    for i, name in enumerate(("query", "key", "value"), start=1):
        mine, _ = how["self_attn.in_proj_weight", f"attention.{name}.kernel"]
        assert mine.startswith(f"part {i} of 3 along 0")
    assert not found.names.only_a["parameters"]
    assert not found.names.only_b["parameters"]
    rows = outputs(found)
    assert rows["norm1"].b == "norms.0" and rows["norm1"].local < 1e-12
    assert rows["linear2"].b == "mlp.1" and rows[WHOLE].b == WHOLE
    # A key's bias has no gradient but rounding, and is not divided by it.
    zeros = [row for row in found.rows if row.verdict == ZERO]
    assert {row.b for row in zeros} == {"attention.key.bias"}
    # What a layout says is what makes the one the other.
    for pair in found.names.parameters:
        np.testing.assert_array_equal(
            rearranged(pair.a_layout, a.parameters[pair.a]),
            rearranged(pair.b_layout, b.parameters[pair.b]))


def test_the_other_way_round_and_keras(layer):
    weights = weights_of(layer)
    a = traced(nnx_layer(weights), "jax")
    assert compare(a, traced(layer, "torch")).verdict == MATCH
    b = traced(keras_layer(weights), "keras")
    found = compare(a, b)
    assert found.verdict == MATCH, found.sentence()
    assert outputs(found)["attention.query"].b == "mha.query_dense"
    # A Dense with an activation inside is no partner of one without.
    assert "ffn.layers.0" in found.names.only_b["steps"]
    assert "mlp.0" in found.names.only_a["steps"]


def test_one_wrong_eps_is_named_and_the_rest_inherited(layer):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer), eps=(1e-6, 1e-5)), "jax")
    found = compare(a, b)
    first, rows = found.first, outputs(found)
    assert found.verdict == DIVERGENCE and found.status == 1
    assert (first.part, first.a, first.b, first.origin) == (
        OUTPUT, "norm1", "norms.0", NEW)
    assert first.local > 1e-8 and first.inherited < 1e-12
    assert rows["self_attn"].verdict == MATCH
    for name in ("linear1", "linear2", "norm2"):
        assert rows[name].verdict == DIVERGENCE
        assert rows[name].origin == INHERITED, name
        assert rows[name].local < 1e-12 < rows[name].inherited
    assert rows[WHOLE].origin == WITHIN
    assert "norm1 (norms.0 in b)" in found.sentence()
    assert not any(row.diverges for row in found.rows
                   if row.part == PARAMETER)


def test_a_wrong_second_norm_is_the_only_one(layer):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer), eps=(1e-5, 1e-6)), "jax")
    found = compare(a, b)
    assert found.first.a == "norm2" and found.first.origin == NEW
    assert {row.a for row in found.rows if row.diverges} == {"norm2", WHOLE}


def test_from_files_what_is_new_is_told_by_the_inputs(layer, tmp_path):
    dump(traced(layer, "torch"), tmp_path / "a")
    dump(traced(nnx_layer(weights_of(layer), eps=(1e-6, 1e-5)), "jax"),
         tmp_path / "b")
    a, b = load(tmp_path / "a"), load(tmp_path / "b")
    found = compare(a, b)
    assert not found.local and found.first.a == "norm1"
    assert found.first.origin == NEW and found.first.local is None
    assert outputs(found)["norm2"].origin == "unknown"
    with pytest.raises(InputError, match="need a live b"):
        compare(a, b, local=True)


def test_a_wrong_parameter_is_named_with_its_step(layer):
    weights = {name: value.copy()
               for name, value in weights_of(layer).items()}
    weights["linear2.weight"][3, 4] += 1e-6
    found = compare(traced(layer, "torch"),
                    traced(nnx_layer(weights), "jax"))
    assert found.first.a == "linear2" and found.first.origin == NEW
    assert "linear2.weight differs too" in found.sentence()
    assert [row.a for row in found.rows if row.part == PARAMETER
            and row.diverges] == ["linear2.weight"]


def test_keys_and_values_swapped(layer):
    """Paired by their values, but said; and the attention differs."""
    weights = {name: value.copy()
               for name, value in weights_of(layer).items()}
    for name in ("weight", "bias"):
        query, key, value = np.split(weights[f"self_attn.in_proj_{name}"], 3)
        weights[f"self_attn.in_proj_{name}"] = np.concatenate(
            [query, value, key])
    a = traced(nnx_layer(weights_of(layer)), "jax")
    b = traced(nnx_layer(weights), "jax")
    found = compare(a, b)
    assert found.verdict == DIVERGENCE
    assert any("swapped" in note for note in found.notes)


def test_what_differs_between_modules_is_seen_at_the_next(layer):
    """A residual that is left out is in no module's own call."""
    usable("torch")
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.inner, self.outer = nn.Linear(D, D), nn.Linear(D, D)
            self.factor = factor

        def forward(self, x):
            return self.outer(x * self.factor + self.inner(x))
    right, wrong = Block(1.0).double(), Block(0.5).double()
    wrong.load_state_dict(right.state_dict())
    found = compare(traced(right, "torch"), traced(wrong, "torch"))
    assert (found.first.part, found.first.a) == (INPUT, "outer")
    assert "stands between" in found.sentence()
    assert outputs(found)["outer"].origin == INHERITED
    assert torch.is_grad_enabled()


def test_our_ports_match_and_a_fault_in_one_is_named():
    """torch against JAX, with every tap; then one with a wrong epsilon."""
    config = cases.test_size("vaswani2017_base")
    batch = cases.padded_batch(config)

    def of(name, changed=None):
        port = usable(name)
        model = port.build("transformer", config,
                           golden.shipped("vaswani2017_base"))
        if changed:
            changed(model)
        return trace(model, *(port.to_native(a, "cpu") for a in batch))

    def wrong(model):
        model.decoder.layers[1].cross_attention_residual.norm.eps = 1e-5
    a = of("torch")
    found = compare(a, of("jax"))
    assert found.verdict == MATCH
    assert not any(found.names.only_a.values())
    assert not any(found.names.only_b.values())
    found = compare(a, of("jax", wrong))
    norm = "decoder.layers.1.cross_attention_residual.norm"
    assert found.first.a == f"{norm}.normalized()"
    news = {row.a for row in found.rows
            if row.part == OUTPUT and row.origin == NEW}
    assert news == {norm}
    assert found.first.order < outputs(found)[norm].order


def test_a_tied_parameter_against_two():
    """The gradient of the one is the sum of the two; it is said."""
    usable("torch")
    import torch
    from torch import nn

    class Tied(nn.Module):
        def __init__(self, tied):
            super().__init__()
            self.table, self.head = nn.Embedding(9, D), nn.Linear(
                D, 9, bias=False)
            if tied:
                self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(self.table(ids))
    one, two = Tied(True).double(), Tied(False).double()
    with torch.no_grad():
        two.table.weight.copy_(one.table.weight)
        two.head.weight.copy_(one.table.weight)
    ids = np.arange(6).reshape(2, 3)
    a, b = (traced(model, "torch", ids, gradients=lambda y: y.sin().sum())
            for model in (one, two))
    for found in (compare(a, b), compare(b, a)):
        assert found.verdict == MATCH, found.sentence()
        assert sum("training would part them" in n for n in found.notes) == 1
        assert sum(row.part == "gradient" and not row.a_name
                   for row in found.rows) == 1
    assert "head.weight" not in a.parameters


# What would say nothing

def test_a_run_with_itself(layer, tmp_path):
    a = traced(layer, "torch")
    with pytest.raises(InputError, match="are one trace"):
        compare(a, a)
    with pytest.raises(InputError, match="are one run"):
        compare(a, traced(layer, "torch"))
    dump(a, tmp_path / "a")
    with pytest.raises(InputError, match="are one folder"):
        compare(load(tmp_path / "a"), load(tmp_path / "a"))
    with pytest.raises(InputError, match="are one run"):
        compare(a, load(tmp_path / "a"))
    again = compare(a, traced(layer, "torch"), allow_same=True)
    assert again.verdict == MATCH


def test_different_inputs(layer):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer)), "jax", X + 1e-9)
    with pytest.raises(InputError, match="'src' of a and 'x' of b differ"):
        compare(a, b)


def test_different_precision(layer):
    weights = weights_of(layer)
    a = traced(nnx_layer(weights), "jax")
    b = traced(layer.float(), "torch", X.astype(np.float32))
    with pytest.raises(InputError, match="a was computed in float64 and b in "
                                         "float32"):
        compare(a, b)
    found = compare(a, b, dtype="float32")
    assert found.verdict == MATCH
    assert any("cannot tell a small fault" in note for note in found.notes)
    assert outputs(found)[WHOLE].limit == model_limits("float32")[0]
    with pytest.raises(InputError, match="dtype 'float8'"):
        compare(a, b, dtype="float8")
    other = compare(a, b, dtype="bfloat16")
    assert other.verdict == DIVERGENCE and "dtype" in other.first.reason


class Plain:
    """What a trace of one step is, made by hand."""

    def __new__(cls, name, inputs, made):
        from parity.tracing.trace import MODULE, Step, Trace
        step = Step(WHOLE, WHOLE, "Model", MODULE, 1, 2, inputs, made)
        return Trace(name, {}, {}, "float64", [step], {}, [])


def test_nothing_or_not_the_outputs_compared():
    x = {"x": X}
    zeros = {"output": np.zeros((2, 3))}
    found = compare(Plain("torch", x, zeros), Plain("jax", x, dict(zeros)))
    assert found.verdict == NOTHING and found.status == 4
    assert found.first is None and "Nothing was compared" in found.sentence()
    found = compare(Plain("torch", x, {}), Plain("jax", x, {}))
    assert found.verdict == NOTHING
    found = compare(Plain("torch", {}, {}), Plain("jax", {}, {}))
    assert found.verdict == NOTHING
    assert json.dumps(found.as_json(), allow_nan=False)


def test_outputs_of_other_sizes_diverge():
    found = compare(Plain("torch", {"x": X}, {"output": X}),
                    Plain("jax", {"x": X}, {"output": X[:, :3]}))
    assert found.verdict == DIVERGENCE
    assert "no output of the one" in found.first.reason


def test_nan_on_one_side_or_both():
    holes = X.copy()
    holes[0, 1, 2] = np.nan
    both = compare(Plain("torch", {"x": X}, {"output": holes}),
                   Plain("jax", {"x": X}, {"output": holes.copy()}))
    assert both.verdict == MATCH
    assert outputs(both)[WHOLE].note == "NaN on both sides, 1 of 168 in a"
    one = compare(Plain("torch", {"x": X}, {"output": X}),
                  Plain("jax", {"x": X}, {"output": holes}))
    assert one.verdict == DIVERGENCE and "NaN" in one.first.reason
    full = compare(Plain("torch", {"x": X}, {"output": np.full(4, np.nan)}),
                   Plain("jax", {"x": X}, {"output": np.full(4, np.nan)}))
    assert full.verdict == DIVERGENCE


def test_zero_on_one_side():
    found, _ = compare_values(X, 0 * X, 1e-12, "float64")
    assert found.verdict == DIVERGENCE
    found, _ = compare_values(0 * X, X, 1e-12, "float64")
    assert found.verdict == DIVERGENCE and found.error == 1


def test_large_arrays_are_measured_as_small_ones(monkeypatch):
    from parity.comparison import arrays
    from parity.numerics.comparator import relative_error
    expected = RNG.normal(size=(50, 8, 16)).astype(np.float32)
    actual = expected + RNG.normal(size=expected.shape).astype(
        np.float32) * np.float32(1e-4)
    actual[7, 3] *= 3
    truth = relative_error(actual, expected)[0]
    monkeypatch.setattr(arrays, "CHUNK", 100)
    found, _ = compare_values(actual, expected, 1e-12, "float32")
    assert found.verdict == DIVERGENCE
    assert found.error == pytest.approx(truth, rel=1e-12)


def test_a_limit_that_is_none():
    plain = Plain("torch", {"x": X}, {"output": X})
    for limit in (-1.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="is none"):
            compare(plain, Plain("jax", {"x": X}, {"output": X}), limit=limit)
    near = Plain("jax", {"x": X}, {"output": X * (1 + 1e-6)})
    assert compare(plain, near).verdict == DIVERGENCE
    assert compare(plain, near, limit=1e-5).verdict == MATCH


# Layouts

@pytest.mark.parametrize("layout, shape", [
    ("transpose 2 0 1, reshape 12 20", (4, 20, 3)),
    ("part 2 of 3 along 0, transpose 1 0", (36, 12)),
    ("reshape 3 3 4 12, part 3 of 3 along 1, reshape 12 12", (36, 12)),
    (SAME, (3, 4))])
def test_layouts_are_found_by_values(layout, shape):
    array = RNG.normal(size=shape)
    target = np.ascontiguousarray(rearranged(layout, array))
    tried = [*candidates(shape, target.shape), *parts(shape, target.shape)]
    found, far = best(array, target, tried)
    assert far == 0
    np.testing.assert_array_equal(rearranged(found, array), target)
    assert shapes(layout, shape)[-1] == target.shape


@pytest.mark.parametrize("layout", [
    "turn 1 0", "transpose", "transpose a b", "part 1 of 3", "", "reshape -1"])
def test_layouts_that_are_none(layout):
    with pytest.raises(InputError, match="is unknown"):
        rearranged(layout, X)


@pytest.mark.parametrize("layout", [
    "transpose 1 0", "reshape 5 5", "part 4 of 3 along 0",
    "part 1 of 5 along 1", "part 1 of 2 along 9"])
def test_layouts_that_do_not_fit(layout):
    with pytest.raises(InputError, match="does not fit"):
        rearranged(layout, X)


def test_equal_shapes_are_never_rearranged():
    """Even where another order of the axes would make them equal."""
    square = RNG.normal(size=(4, 4))
    found = compare(Plain("torch", {"x": X}, {"output": square}),
                    Plain("jax", {"x": X}, {"output": square.T.copy()}))
    assert found.verdict == DIVERGENCE
    assert outputs(found)[WHOLE].b_layout == SAME


def test_a_square_kernel_that_was_not_transposed():
    """It has the same values in the same places, and that is said."""
    usable("torch"), usable("jax")
    import jax.numpy as jnp
    import torch
    from flax import nnx
    mine = torch.nn.Linear(D, D).double()
    other = nnx.Linear(D, D, param_dtype=jnp.float64, rngs=nnx.Rngs(0))
    other.kernel.set_value(jnp.array(mine.weight.detach().numpy()))
    other.bias.set_value(jnp.array(mine.bias.detach().numpy()))
    found = compare(traced(mine, "torch"), traced(other, "jax"))
    assert found.verdict == DIVERGENCE and found.first.part == OUTPUT
    assert any("transposition may be missing" in n for n in found.notes)


# The map

def test_a_map_is_written_corrected_and_read(layer, tmp_path):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer)), "jax")
    names, path = suggest(a, b), tmp_path / "names.toml"
    write(names, path)
    again = read(path, a, b)
    assert again.steps == names.steps
    assert again.parameters == names.parameters
    assert (again.only_a, again.only_b) == (names.only_a, names.only_b)
    path.write_text(path.read_text().replace(
        'a = "norm1"', 'a = "norm2"', 1))
    wrong = compare(a, b, read(path, a, b))
    assert wrong.verdict == DIVERGENCE
    path.write_text('[[step]]\na = "norm1"\nb = "norms.0"\n')
    found = compare(a, b, read(path, a, b))
    assert found.verdict == INCOMPLETE and found.compared == 2
    assert "linear1" in found.names.only_a["steps"]


@pytest.mark.parametrize("text, words", [
    ('[[step]]\na = "norms.0"\nb = "norm1"\n', "swap the two"),
    ('[[step]]\na = "norm7"\nb = "norms.0"\n', "'norm7' that a does not"),
    ('[[step]]\na = "norm1"\nb = "nope"\n', "'nope' that b does not"),
    ('[[step]]\nb = "norms.0"\n', "without a or b"),
    ("[[step]\n", "cannot be read"), ("steps = 3\n", "entry 'steps'"),
    ('[[parameter]]\na = "norm1.bias"\nb = "norms.0.bias"\nlayout = "x"\n',
     "a_layout and b_layout"),
    ('[[parameter]]\na = "norm1.bias"\nb = "norms.0.bias"\n'
     'b_layout = "turn"\n', "is unknown"),
    (None, "there is no map")])
def test_a_map_that_is_wrong(layer, tmp_path, text, words):
    path = tmp_path / "names.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=words):
        read(path, traced(layer, "torch"),
             traced(nnx_layer(weights_of(layer)), "jax"))


# Reports and commands

def test_reports(layer, tmp_path):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer), eps=(1e-6, 1e-5)), "jax")
    found = compare(a, b)
    data = found.as_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["verdict"] == DIVERGENCE and data["first"]["a"] == "norm1"
    page = as_html(found)
    assert "norms.0" in page and "class=off" in page
    assert "http" not in page and "<script" not in page
    out = terminal.console()
    with out.capture() as text:
        print_comparison(out, found)
    assert "DIVERGENCE" in text.get() and "norms.0" in text.get()


APP = typer.Typer()
APP.command()(commands.dump)
APP.command()(commands.compare)

SCRIPT = """
import torch
from torch import nn

def model(eps=1e-5):
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8, eps=eps),
                         nn.Linear(8, 3)).double()
    return made, torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(2, 6)

def renamed(eps):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            (self.inner, self.norm, self.outer), self.x = *(model(eps)[:1]), 0
        def forward(self, x):
            return self.outer(self.norm(self.inner(x)))
    return Other(), (model()[1],), {}

def same():
    return renamed(1e-5)

def wrong():
    return renamed(1e-6)

def fails():
    return 1 / 0

def bad_input():
    return model()[0], torch.ones(2, 5)

def none():
    return None

def text():
    return "text", ()
"""


def run(*words):
    return CliRunner().invoke(APP, list(map(str, words)))


@pytest.fixture
def script(tmp_path):
    usable("torch")
    (tmp_path / "s.py").write_text(SCRIPT)
    return tmp_path / "s.py"


def test_dump_and_compare(script, tmp_path):
    for name in ("model", "same", "wrong"):
        done = run("dump", f"{script}:{name}", "--framework", "torch",
                   "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
    done = run("compare", tmp_path / "model", tmp_path / "same")
    assert done.exit_code == 0 and "verdict: match" in done.output
    done = run("compare", tmp_path / "model", tmp_path / "wrong",
               "--html", tmp_path / "r.html", "--json", tmp_path / "r.json",
               "--write-map", tmp_path / "names.toml")
    assert done.exit_code == 1
    data = json.loads((tmp_path / "r.json").read_text())
    assert (data["first"]["a"], data["first"]["b"]) == ("1", "norm")
    assert "norm" in (tmp_path / "r.html").read_text()
    done = run("compare", tmp_path / "model", tmp_path / "wrong", "--map",
               tmp_path / "names.toml")
    assert done.exit_code == 1
    (tmp_path / "names.toml").write_text("")
    done = run("compare", tmp_path / "model", tmp_path / "wrong", "--map",
               tmp_path / "names.toml")
    assert done.exit_code == 4 and "Nothing was compared" in done.output
    run("dump", f"{script}:model", "--out", tmp_path / "again")
    done = run("compare", tmp_path / "model", tmp_path / "again")
    assert done.exit_code == 2 and "are one run" in done.stderr
    done = run("compare", tmp_path / "model", tmp_path / "again",
               "--allow-same")
    assert done.exit_code == 0
    done = run("compare", tmp_path / "model", tmp_path / "model")
    assert done.exit_code == 2 and "one folder" in done.stderr


@pytest.mark.parametrize("target, words", [
    ("s.py", "SCRIPT.py:FUNCTION"), ("no.py:model", "there is no script"),
    ("s.py:nope", "no function 'nope'"), ("s.py:none", "must return (model"),
    ("s.py:fails", "ZeroDivisionError"), ("s.py:text", "a str is no model"),
    ("s.py:bad_input", "RuntimeError")])
def test_scripts_that_cannot_be_dumped(script, tmp_path, target, words):
    done = run("dump", script.parent / target, "--out", tmp_path / "d")
    assert done.exit_code == 2, done.output
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "d").exists()


def test_a_dump_of_another_framework_or_place(script, tmp_path):
    done = run("dump", f"{script}:model", "--framework", "jax", "--out",
               tmp_path / "d")
    assert done.exit_code == 2 and "--framework torch" in done.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for out in ("full", "s.py", "no/where"):
        done = run("dump", f"{script}:model", "--out", tmp_path / out)
        assert done.exit_code == 2, out
    done = run("compare", tmp_path / "full", tmp_path / "no")
    assert done.exit_code == 2 and "is no dump" in done.stderr


def test_the_commands_need_no_framework():
    code = ("import sys, parity.commands.compare, parity.comparison.compare, "
            "parity.matching.steps, parity.tracing.folder, "
            "parity.tracing.trace; "
            "print({'torch', 'jax', 'keras', 'tensorflow', 'flax'} "
            "& set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], text=True,
                          capture_output=True, check=True)
    assert done.stdout == "set()\n"


LARGE = """
    import resource, sys, time, torch
    from torch import nn
    from parity.tracing.trace import trace
    from parity.comparison.compare import compare
    from parity.tracing.folder import dump, load
    torch.set_num_threads(1)
    torch.manual_seed(0)

    def model():
        return nn.Sequential(nn.Embedding(32000, 512), *(
            nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
            for _ in range(8)), nn.Linear(512, 37000)).eval()

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    right, wrong = model(), model()
    wrong.load_state_dict(right.state_dict())
    wrong[5].norm1.eps = 1e-2
    with torch.no_grad():
        for parameter in wrong.parameters():
            parameter.mul_(1 + 1e-8)
    size = sum(p.numel() for p in right.parameters())
    x = torch.randint(0, 32000, (2, 16))
    before, start = peak(), time.perf_counter()
    dump(trace(right, x), sys.argv[1] + "/a")
    dump(trace(wrong, x), sys.argv[1] + "/b")
    found = compare(load(sys.argv[1] + "/a"), load(sys.argv[1] + "/b"))
    print(size, peak() - before, time.perf_counter() - start,
          found.verdict, found.first.a)
"""


def test_a_large_model_takes_little_time_and_memory(tmp_path):
    """60 M parameters: dumped, both, and compared."""
    usable("torch")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LARGE), str(tmp_path)],
        text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    size, extra, seconds, verdict, first = done.stdout.split()
    assert int(size) > 60e6 and verdict == DIVERGENCE
    assert first == "5.norm1"
    print(f"{extra} GiB, {seconds} s")
    assert float(extra) < 2, f"{extra} GiB"
    assert float(seconds) < 60, f"{seconds} s"
