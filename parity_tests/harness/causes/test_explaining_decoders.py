"""Keras Hub's decoder against PyTorch's: the cause, or none, never a wrong one.
"""

import numpy as np
import pytest

from parity.causes.explain import explain
from parity.causes.explanation import UNIDENTIFIED
from parity.comparison.compare import compare
from parity.comparison.result import OUTPUT
from parity.numerics.comparator import MATCH
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import drawn, known

D, H, F = 12, 3, 20
RNG = np.random.default_rng(7)
X, MEMORY = RNG.normal(size=(2, 7, D)), RNG.normal(size=(2, 5, D))
SEEN = np.ones((2, 5), bool)
SEEN[0, 3:] = False


def torch_decoder(**settings):
    """PyTorch's own layer, every number drawn."""
    usable("torch")
    from torch import nn
    return drawn(nn.TransformerDecoderLayer(
        D, H, F, 0.0, batch_first=True, **settings))


def hub_decoder(theirs, **settings):
    """Keras Hub's layer, with the numbers of PyTorch's."""
    hub = pytest.importorskip(
        "keras_hub", reason="not checked: keras_hub is not installed")
    give = usable("keras").to_native
    held = {name: array.numpy() for name, array in theirs.state_dict().items()}
    layer = hub.layers.TransformerDecoder(F, H, dtype="float64", **settings)
    layer(give(X, "cpu"), give(MEMORY, "cpu"))
    for mine, other, norm, n in (
            ("self", "self_attn", "self_attention", 1),
            ("cross", "multihead_attn", "cross_attention", 2),
            (None, None, "feedforward", 3)):
        norm = getattr(layer, f"_{norm}_layer_norm")
        norm.gamma.assign(held[f"norm{n}.weight"])
        norm.beta.assign(held[f"norm{n}.bias"])
        if mine is None:
            continue
        inner = getattr(layer, f"_{mine}_attention_layer")
        for name, kernel, bias in zip(("query", "key", "value"), *(
                np.split(held[f"{other}.in_proj_{leaf}"], 3)
                for leaf in ("weight", "bias"))):
            dense = getattr(inner, f"_{name}_dense")
            dense.kernel.assign(kernel.T.reshape(D, H, -1))
            dense.bias.assign(bias.reshape(H, -1))
        inner._output_dense.kernel.assign(
            held[f"{other}.out_proj.weight"].T.reshape(H, -1, D))
        inner._output_dense.bias.assign(held[f"{other}.out_proj.bias"])
    for name, other in (("intermediate", "linear1"), ("output", "linear2")):
        dense = getattr(layer, f"_feedforward_{name}_dense")
        dense.kernel.assign(held[f"{other}.weight"].T)
        dense.bias.assign(held[f"{other}.bias"])
    return layer


def told(theirs, mine, padded=(True, True), causal=(True, True)):
    """(comparison, step of a where they part, [(step, cause, what in b)]).

    Args:
        theirs, mine: PyTorch's layer, and Keras Hub's.
        padded: whether each is given the padding mask of the memory.
        causal: whether each hides the future.
    """
    import torch
    keywords = {}
    if padded[0]:
        keywords["memory_key_padding_mask"] = torch.from_numpy(~SEEN)
    if causal[0]:
        keywords["tgt_mask"] = torch.ones(7, 7, dtype=torch.bool).triu(1)
    a = trace(theirs, torch.from_numpy(X), torch.from_numpy(MEMORY),
              **keywords)
    give = usable("keras").to_native
    keywords = {"use_causal_mask": causal[1]}
    if padded[1]:
        keywords["encoder_padding_mask"] = give(SEEN, "cpu")
    b = trace(mine, give(X, "cpu"), give(MEMORY, "cpu"), **keywords)
    found = compare(a, b)
    return found, found.first and found.first.a, [
        (each.a, each.cause, each.in_b)
        for each in known(explain(found, a, b))]


PRE = {"normalize_first": True}


@pytest.mark.parametrize("first, padded", [
    (False, (True, True)), (True, (True, True)), (False, (False, False))])
def test_they_agree_where_their_settings_do(first, padded):
    """Every sub-layer, and the whole; keras_hub's epsilon is torch's."""
    theirs = torch_decoder(norm_first=first)
    mine = hub_decoder(theirs, normalize_first=first)
    found, step, causes = told(theirs, mine, padded)
    assert (found.verdict, step, causes) == (MATCH, None, [])
    errors = {row.a: row.error for row in found.rows if row.part == OUTPUT}
    assert {"(model)", "self_attn", "multihead_attn", "linear2", "norm1",
            "norm2", "norm3"} <= errors.keys()
    assert max(errors.values()) < 1e-13


@pytest.mark.parametrize("first, eps", [
    (False, 1e-6), (False, 1e-12), (True, 1e-3)])
def test_epsilons(first, eps):
    """Changed in one, or left as keras_hub has it while the other's is."""
    theirs = torch_decoder(norm_first=first)
    found, step, causes = told(theirs, hub_decoder(
        theirs, normalize_first=first, layer_norm_epsilon=eps))
    assert (step, causes) == ("norm1", [("norm1", "epsilon", f"{eps:g}")])
    assert [a for a, _ in found.explanations[0].also] == ["norm2", "norm3"]
    theirs = torch_decoder(norm_first=first, layer_norm_eps=eps)
    _, step, causes = told(theirs, hub_decoder(theirs, normalize_first=first))
    assert (step, causes) == ("norm1", [("norm1", "epsilon", "1e-05")])


def test_one_norms_epsilon():
    theirs = torch_decoder()
    mine = hub_decoder(theirs)
    mine._cross_attention_layer_norm.epsilon = 1e-6
    found, step, causes = told(theirs, mine)
    assert (step, causes) == ("norm2", [("norm2", "epsilon", "1e-06")])
    assert found.explanations[0].also == []


PLACE = ("norm1", "norm's place", "before the sub-layer")
MASK = ("multihead_attn", "mask", "ignored in b")


def test_a_norms_place():
    """Alone, and with another fault, which is named or not told."""
    theirs = torch_decoder()
    assert told(theirs, hub_decoder(theirs, **PRE))[1:] == ("norm1", [PLACE])
    _, step, causes = told(theirs, hub_decoder(
        theirs, layer_norm_epsilon=1e-6, **PRE))
    assert (step, causes) == (
        "norm1", [PLACE, ("norm1", "epsilon", "1e-06")])
    _, step, causes = told(theirs, hub_decoder(theirs, **PRE), (True, False))
    assert step == "norm1" and PLACE in causes and {*causes} <= {
        PLACE, MASK, ("multihead_attn", UNIDENTIFIED, "")}
    theirs = torch_decoder(norm_first=True)
    assert told(theirs, hub_decoder(theirs))[1:] == (
        "norm1", [(*PLACE[:2], "after the sum")])


@pytest.mark.parametrize("first", [False, True])
def test_masks(first):
    """Cross-attention's padding, the future, and both at once."""
    theirs = torch_decoder(norm_first=first)
    mine = hub_decoder(theirs, normalize_first=first)
    future = ("self_attn", "mask", "the future is seen in b")
    assert told(theirs, mine, (True, False))[1:] == ("multihead_attn", [MASK])
    assert told(theirs, mine, (False, True))[1:] == ("multihead_attn", [
        (*MASK[:2], "something is hidden in b, and nothing in a")])
    assert told(theirs, mine, causal=(True, False))[1:] == (
        "self_attn", [future])
    assert told(theirs, mine, (True, False), (True, False))[1:] == (
        "self_attn", [future, MASK])
    mine = hub_decoder(theirs, layer_norm_epsilon=1e-6, normalize_first=first)
    _, step, causes = told(theirs, mine, (True, False))
    assert (step, causes) == ("norm1", [("norm1", "epsilon", "1e-06"), MASK])


def swapped(inner):
    """Key and value, their biases left as they are."""
    kernels = [inner._key_dense.kernel, inner._value_dense.kernel]
    for kernel, array in zip(kernels, [each + 0 for each in kernels][::-1]):
        kernel.assign(array)


def swapped_and_empty(inner):
    swapped(inner)
    inner._value_dense.bias.assign(np.zeros((H, D // H)))


def scaled(factor):
    def change(inner):
        # A Python number would pass through float32.
        inner._inverse_sqrt_key_dim = np.float64(factor)
    return change


SWAPPED = ("key and value", "swapped")


@pytest.mark.parametrize("layer, step", [
    ("self_attention", "self_attn"), ("cross_attention", "multihead_attn")])
@pytest.mark.parametrize("change, expected", [
    (swapped, [SWAPPED]),
    (swapped_and_empty, [SWAPPED, ("value bias", "zero in b")]),
    (scaled(1.0), [("scale", "1")]),
    (scaled(D**-0.5), [("scale", "1/√d_model")]),
    (scaled(0.3), [(UNIDENTIFIED, "")])])
def test_faults_of_one_attention(change, expected, layer, step):
    """Named at this attention, and not at the other."""
    theirs = torch_decoder()
    mine = hub_decoder(theirs)
    change(getattr(mine, f"_{layer}_layer"))
    _, first, causes = told(theirs, mine)
    assert (first, causes) == (step, [(step, *each) for each in expected])


def test_activations():
    """TensorFlow's GELU rounds √½ to float32, and is given no other name."""
    theirs = torch_decoder()
    assert told(theirs, hub_decoder(theirs, activation="silu"))[2] == [
        ("linear1", "activation", "silu")]
    theirs = torch_decoder(activation="gelu")
    mine = hub_decoder(theirs, activation="gelu")
    import keras
    found, _, causes = told(theirs, mine)
    if keras.backend.backend() == "tensorflow":
        assert 1e-12 < found.first.error < 1e-7
        assert {cause for _, cause, _ in causes} == {UNIDENTIFIED}
    else:
        assert (found.verdict, causes) == (MATCH, [])
