"""PyTorch's encoder against ports of it: the cause is named, or none."""

import warnings

import pytest

from benchmarks.porting.across import encoder_of, of_nn, ported
from benchmarks.porting.kits import kit
from parity.causes import catalogue
from parity.causes.explain import explain
from parity.causes.explanation import UNIDENTIFIED
from parity.comparison.compare import compare
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import F, H, W, Y, drawn, told


def traces(wrong):
    """Of PyTorch's own, and of a port with something wrong."""
    usable("torch")
    return [trace(model, *given, **named) for model, given, named in ported(
        of_nn, encoder_of, "torch", wrong, None, None)]


@pytest.mark.long(8)
@pytest.mark.parametrize("function, expected", [
    (lambda x: x, ("activation", "none")),
    (lambda x: x.relu().float().double(), (UNIDENTIFIED, "")),
    (lambda x: x.clamp(0, 0.5), (UNIDENTIFIED, ""))],
    ids=["none", "in float32", "clipped"])
def test_an_activation_that_is_none_of_the_known(
        function, expected, monkeypatch):
    usable("torch")
    monkeypatch.setitem(kit("torch").act, "odd", function)
    a, b = traces({"act": "odd"})
    found = explain(compare(a, b), a, b)
    assert found[0].a == "layers.0.linear2"
    assert {(each.cause, each.in_b) for each in found} == {expected}


@pytest.mark.long(24)
@pytest.mark.parametrize("wrong, name", [
    ({"eps": 1e-6}, "layer norm's ε is 1e-06"),
    ({"act": "gelu"}, "gelu, not relu"),
    ({"scale": 1.0}, "scores not divided"),
    ({"grouping": "cut"}, "heads cut out of time and features"),
    ({"over": -2}, "softmax over queries"),
    ({"causal": True}, "a causal mask where none belongs"),
    ({"pre": True}, "pre-norm, not post-norm"),
    ({"residual": False}, "no residual connection")])
def test_names_are_the_catalogues(wrong, name):
    a, b = traces(wrong)
    first = explain(compare(a, b), a, b)[0]
    assert first.names == {name: "b"}
    cause = catalogue.by_name(name)
    assert f"b has “{cause.name}”: {cause.sentence}" in first.text()
    other = explain(compare(b, a), b, a)[0]  # the other way round
    assert set(other.names.values()) <= {"a", "b"}
    if {"act", "over"} & wrong.keys():
        assert other.names == {name: "a"}
    if "scale" in wrong:  # which has a name of its own
        assert other.names == {"scores divided that are not": "b"}


def test_torchs_transformer_always_ends_in_norms():
    """nn.Transformer adds two final norms; hand-made stacks need none."""
    usable("torch")
    import torch
    from torch import nn

    def transformer(**more):
        return nn.Transformer(W, H, 1, 1, F, 0.0, batch_first=True, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd number of heads
        right = drawn(transformer())

    def without():
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(
            W, H, F, 0.0, batch_first=True), 1, enable_nested_tensor=False)
        made = transformer(custom_encoder=encoder).double().eval()
        made.load_state_dict({
            name: array for name, array in right.state_dict().items()
            if not name.startswith("encoder.norm")})
        return made
    x = torch.from_numpy(Y)
    first, found = told(right, without(), [x, x[:, :5] + 1])
    assert (first, found[0][1:]) == ("encoder", ("norm", "missing"))
    assert len(found) == 1
    wrong = without()
    wrong.decoder.layers[0].norm2.eps = 1e-6
    _, found = told(without(), wrong, [x, x[:, :5] + 1])
    assert found == [("decoder.layers.0.norm2", "epsilon", "1e-06")]
