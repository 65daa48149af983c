"""Some layers compared at a time."""

import pytest

from parity_io.errors import InputError
from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.comparison.layers import chosen
from parity.comparison.result import INCOMPLETE, INPUT
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.tracing.trace import WHOLE, trace

torch = pytest.importorskip(
    "torch", reason="not checked: torch is not installed")

LAYERS = 5


class TwoStacks(torch.nn.Module):
    """A table, layers, a norm and a head; a stack of another name behind."""

    def __init__(self, names=("encoder", "decoder")):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(7, 4)
        self.names = names
        for name, count in zip(names, (3, LAYERS - 3)):
            setattr(self, name, torch.nn.ModuleList(
                torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
                for _ in range(count)))
        self.between = torch.nn.LayerNorm(4)
        self.head = torch.nn.Linear(4, 7)

    def forward(self, ids):
        """Numbers for each id."""
        x = self.table(ids)
        for layer in getattr(self, self.names[0]):
            x = layer(x)
        x = self.between(x)
        for layer in getattr(self, self.names[1]):
            x = layer(x)
        return self.head(x)


def traced(change=lambda model: None, names=("encoder", "decoder")):
    """The Trace of a model that was changed."""
    model = TwoStacks(names).double().eval()
    change(model)
    return trace(model, torch.arange(6).reshape(2, 3) % 5)


def paths(comparison):
    """The steps and parameters of a that were compared."""
    return {row.a for row in comparison.rows}


def test_ranges_side_by_side_leave_nothing_out():
    a, b = traced(), traced(names=("first", "second"))
    whole = compare(a, b)
    assert whole.verdict == MATCH
    parts = [compare(a, b, layers=text) for text in (":2", "2:4", "4:")]
    assert set.union(*map(paths, parts)) == paths(whole)
    assert sum(len(part.rows) for part in parts) == len(whole.rows)
    assert "table" in paths(parts[0]) and "between" in paths(parts[1])
    assert {"head", "head.weight", WHOLE} <= paths(parts[2])
    assert [part.verdict for part in parts] == [INCOMPLETE] * 3
    assert parts[1].sentence().endswith(
        "Only layers 2 to 3 of 5 (encoder.2 to decoder.0) were compared, by "
        "pairs that were sought in the whole models.")
    assert compare(a, b, layers="0:5").verdict == MATCH
    assert compare(a, b, layers="1:2").as_json()["layers"] == (
        "layer 1 of 5 (encoder.1)")


def test_a_fault_is_seen_in_its_layers_and_told_as_brought_in_behind():
    def wrong(model):
        model.encoder[1][0].weight.data *= -1
    a, b = traced(), traced(wrong)
    names = [compare(a, b, layers=text).verdict for text in ("0:1", "1:2")]
    assert names == [INCOMPLETE, DIVERGENCE]
    behind = compare(a, b, layers="3:")
    explain(behind, a, b)
    assert behind.first.part == INPUT and behind.first.a == "between"
    assert "compared before it matches" not in behind.sentence()
    assert "come from before these layers" in str(behind)


@pytest.mark.parametrize("text, words", [
    ("a", "are no range"), ("3", "are no range"), (3, "are no range"),
    ("2:2", "a has no layers 2:2"), ("4:2", "within 0:5"),
    ("0:6", "5 layers, encoder.0 to decoder.1"), ("9:", "within 0:5"),
    ("-1:2", "are no range")])
def test_ranges_that_a_lacks_are_told(text, words):
    with pytest.raises(InputError, match=words):
        chosen(text, traced())


def test_models_without_layers_or_partners_are_told():
    plain = trace(torch.nn.Linear(2, 2), torch.ones(1, 2))
    with pytest.raises(InputError, match="no step of a is in a numbered"):
        chosen("0:1", plain)
    names = compare(traced(), traced()).names
    names.steps = [pair for pair in names.steps if "encoder.1" not in pair.a]
    names.parameters = []
    with pytest.raises(InputError, match="layer 1 of 5 .* has a partner in b"):
        compare(traced(), traced(), names, layers="1:2")


def test_numbers_behind_a_word_name_layers_as_well():
    model = torch.nn.Sequential()
    for name in ("block_0", "block_1"):
        model.add_module(name, torch.nn.Linear(2, 2))
    assert chosen("1:", trace(model, torch.ones(1, 2))).names == [
        "block_0", "block_1"]
