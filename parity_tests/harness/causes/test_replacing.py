"""``parity compare --replace``: every fault, one behind the other."""

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import parity
from parity_io.errors import InputError
from transformer_contract.weights import probe_weights
from parity.causes.replacing import replace
from parity.check import cases
from parity.commands import compare as commands
from parity.tracing import folder
from parity.tracing.trace import WHOLE
from parity_tests.support.engines import usable
from parity_tests.support.explaining import Y, drawn, port


def three_faults():
    """A port with three faults, its original, and their input."""
    usable("torch")
    import torch
    a, b = drawn(port()), drawn(port(act=torch.nn.functional.gelu))
    b.layers[0].ln1.eps = 1e-3
    kernel = b.layers[1].attention.k.weight
    kernel.data = kernel.data.T.contiguous()
    return a, b, torch.from_numpy(Y)


def test_three_faults_are_told_each_with_its_place():
    a, b, x = three_faults()
    a, b = parity.trace(a, x), parity.trace(b, x)
    comparison = parity.compare(a, b)
    told = replace(comparison, a, b)
    assert [(each.a, each.cause, each.in_b) for each in told] == [
        ("layers.0.ln1", "epsilon", "0.001"),
        ("layers.0.outer", "activation", "gelu"),
        ("layers.1.attention.k", "kernel", "transposed")]
    assert told[1].also == [["layers.1.outer", "layers.1.outer"]]
    assert comparison.notes[-1].endswith("then the models' outputs agree.")
    assert [one for one, _, _ in comparison.replaced] == [
        "layers.0.ln1", "layers.0.outer", "layers.1.attention.k",
        "layers.1.outer"]
    assert comparison.as_json()["replaced"] == comparison.replaced


def test_a_fault_that_no_output_shows_is_told_where_it_is_asked_for():
    """It shows in a local error alone: in float32's outputs it is rounding."""
    usable("torch")
    import torch
    models = drawn(port()).float(), drawn(port()).float()
    models[1].layers[0].ln1.eps = 6e-5
    x = torch.from_numpy(Y).float()
    a, b = (parity.trace(model, x) for model in models)
    comparison = parity.compare(a, b)
    assert any(row.diverges and row.a == "layers.0.ln1"
               for row in comparison.rows)
    assert comparison.verdict == "match"
    assert replace(comparison, a, b) == [] == comparison.replaced
    assert comparison.notes[-1] == (
        "No output differs, so that b was not run on.")
    exact = parity.diff(*models, x, exact=True)
    assert exact.verdict == "divergence"
    assert [(each.cause, each.in_b) for each in exact.explanations] == [
        ("epsilon", "6e-05")]


def test_a_model_is_run_on_with_other_numbers():
    a, b, x = three_faults()
    a, b = parity.trace(a, x), parity.trace(b, x)
    end = b.steps[-2].path
    number = np.full_like(b.step(end).outputs["output"], 2.0)
    again = b.run_on({(end, "output"): number})
    assert (again.steps[-1].outputs["output"] == 2).all()
    assert again.content_hash != b.content_hash
    assert b.run_on({}).content_hash == b.content_hash
    with pytest.raises(InputError, match="has no output 'output' of shape"):
        b.run_on({(end, "output"): number[:1]})
    with pytest.raises(InputError, match="no step"):
        b.run_on({("nowhere", "output"): number})


@pytest.mark.parametrize("outer", [False, True])
def test_an_input_that_no_step_made_is_told_once(outer):
    """Also where residual connections outside of modules hand it on."""
    usable("torch")
    import torch

    class Model(torch.nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.scale, self.tok = scale, torch.nn.Embedding(20, 16)
            self.pos = torch.nn.Embedding(12, 16)
            self.enc = torch.nn.TransformerEncoder(
                torch.nn.TransformerEncoderLayer(
                    16, 4, 24, 0.0, batch_first=True), 2,
                enable_nested_tensor=False)

        def forward(self, ids):
            x = self.tok(ids) * self.scale + self.pos(
                torch.arange(ids.shape[1])[None])
            if not outer:
                return self.enc(x)
            for layer in self.enc.layers:
                x = x + layer.linear2(torch.relu(layer.linear1(
                    layer.norm1(x))))
            return x
    a, b = drawn(Model(1.0)), drawn(Model(4.0))
    b.enc.layers[1].norm1.eps = 1e-3
    ids = torch.arange(18).reshape(2, 9)
    a, b = parity.trace(a, ids), parity.trace(b, ids)
    comparison = parity.compare(a, b)
    told = replace(comparison, a, b)
    assert [(each.cause, each.in_b) for each in told] == [
        ("factor", "4"), ("epsilon", "0.001")]
    assert comparison.replaced[0][2] == "input src" if not outer else (
        comparison.replaced[0][2] == "input input")


@pytest.mark.parametrize("port", ["torch", "keras", "jax"])
def test_an_input_is_replaced_in_every_framework(port):
    engine = usable(port)
    config = cases.test_size("lesson")
    prefix = "encoder.layers.0.feed_forward."
    model = engine.build("feed_forward", config, {
        name.removeprefix(prefix): array for name, array
        in probe_weights(config).items() if name.startswith(prefix)})
    x = engine.to_native(Y[:, :, :1] + np.zeros(config.d_model), "cpu")
    trace = parity.trace(model, x)
    step = next(each for each in trace.steps if each.source == "module"
                and each.path != WHOLE)
    name, array = next(iter(step.inputs.items()))
    other = trace.run_on({(step.path, name, "input"): 2 * array})
    assert np.array_equal(other.step(step.path).inputs[name], 2 * array)
    assert other.content_hash != trace.content_hash
    with pytest.raises(InputError, match="has no input 'nothing' of shape"):
        trace.run_on({(step.path, "nothing", "input"): array})


def test_equal_models_are_not_run_on(tmp_path):
    a, _, x = three_faults()
    a, b = parity.trace(a, x), parity.trace(a, x)
    comparison = parity.compare(a, b)
    assert replace(comparison, a, b) == [] == comparison.replaced
    folder.dump(b, tmp_path / "b")
    with pytest.raises(InputError, match="read from a file"):
        replace(comparison, a, folder.load(tmp_path / "b"))


SCRIPT = """
from parity_tests.harness.causes.test_replacing import three_faults

def right():
    a, _, x = three_faults()
    return a, x

def wrong():
    _, b, x = three_faults()
    return b, x
"""


def test_the_command(tmp_path):
    (tmp_path / "s.py").write_text(SCRIPT)
    app = typer.Typer()
    app.command()(commands.compare)
    right, wrong = (f"{tmp_path}/s.py:{name}" for name in ("right", "wrong"))
    done = CliRunner().invoke(app, [right, wrong, "--replace"])
    assert done.exit_code == 1, done.output
    assert done.output.startswith("DIVERGENCE   3 causes, proved")
    done = CliRunner().invoke(app, [wrong, str(tmp_path), "--replace"])
    assert done.exit_code == 2 and "is no SCRIPT.py:FUNCTION" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", [
    pytest.param("jax", marks=pytest.mark.long),
    pytest.param("keras", marks=pytest.mark.long)])
def test_each_framework_is_run_on(name):
    usable(name)
    from benchmarks.porting.across import encoder_of, of_nn
    from benchmarks.porting.kits import kit
    _, _, (x,), arrays = of_nn()
    kind = {"jax": "nnx"}.get(name, name)
    a, b = (parity.trace(encoder_of(kind, arrays, {"eps": eps, "act": "gelu"}),
                         kit(kind).array(x)) for eps in (1e-5, 1e-3))
    comparison = parity.compare(a, b)
    each, = replace(comparison, a, b)
    assert (each.cause, each.in_b) == ("epsilon", "0.001")
    assert len(comparison.replaced) == 4
