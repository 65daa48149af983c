"""Two models are paired and compared, and the first difference is named."""

import json

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.check import cases, golden
from parity.comparison.compare import compare
from parity.comparison.result import (
    INHERITED, INPUT, NEW, OUTPUT, PARAMETER, WITHIN, PairRow)
from parity.matching.rearrangement import SAME, rearranged
from parity.numerics.comparator import DIVERGENCE, MATCH, ZERO
from parity.render import terminal
from parity.render.comparison import cells_of, print_comparison
from parity.render.comparison_page import as_html
from parity.tracing.folder import dump, load
from parity.tracing.trace import WHOLE, trace
from parity_tests.support.engines import usable
from parity_tests.support.layers import (
    D, keras_layer, nnx_layer, outputs, traced, weights_of)


@pytest.mark.long(8)
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
    assert first.reason.startswith("worst at row")  # it stands in the table
    assert first.reason not in found.sentence()
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
    assert "differ between those steps" in found.sentence()
    assert outputs(found)["outer"].origin == INHERITED
    assert torch.is_grad_enabled()


@pytest.mark.long(8)
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
        assert sum("training will make them differ" in note
                   for note in found.notes) == 1
        assert sum(row.part == "gradient" and not row.a_name
                   for row in found.rows) == 1
    assert "head.weight" not in a.parameters



def a_row(error, verdict, local, local_reason):
    return PairRow(
        "output", "norm", "norm", "output", "output", SAME, SAME, "name",
        "LayerNorm", (2, 3), "float32", error, 7.6e-6, verdict,
        "worst at row [1]" if verdict == DIVERGENCE else "", local=local,
        local_limit=1.2e-6, local_verdict=DIVERGENCE,
        local_reason=local_reason)


def test_a_row_shows_the_limit_that_decided_and_each_reason_once():
    *_, limit, _, also = cells_of(
        a_row(2e-6, "match", 3e-6, "worst at row [0]"))
    assert (limit, also) == ("1.2e-06", "local: worst at row [0]")
    *_, limit, _, also = cells_of(
        a_row(2e-5, DIVERGENCE, 3e-5, "worst at row [1]"))
    assert (limit, also) == ("7.6e-06", "worst at row [1]")
    *_, also = cells_of(
        a_row(2e-5, DIVERGENCE, 3e-5, "worst at row [2]"))
    assert also == "worst at row [1]"


def test_reports(layer, tmp_path):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer), eps=(1e-6, 1e-5)), "jax")
    found = compare(a, b)
    data = found.as_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["verdict"] == DIVERGENCE and data["first"]["a"] == "norm1"
    page = as_html(found)
    assert "norms.0" in page and 'class="off"' in page
    assert "http" not in page and "<script" not in page
    out = terminal.console()
    with out.capture() as text:
        print_comparison(out, found, steps=True)
    assert "DIVERGENCE" in text.get() and "norms.0" in text.get()
    assert max(map(len, text.get().splitlines())) <= out.width
