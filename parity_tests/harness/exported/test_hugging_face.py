"""A file that was exported from a Hugging Face model, and edited."""

import pytest

import parity
from parity_tests.support.engines import usable

onnx = pytest.importorskip(
    "onnx", reason="not checked: onnx is not installed")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A small BERT, its inputs, and the path of its file."""
    usable("torch")
    for name in ("transformers", "onnxruntime", "onnxscript"):
        pytest.importorskip(
            name, reason=f"not checked: {name} is not installed")
    import torch
    from transformers import BertConfig, BertModel
    torch.manual_seed(0)
    model = BertModel(BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=12, attn_implementation="eager")).eval()
    for each in model.parameters():
        if each.ndim > 1:
            torch.nn.init.normal_(each, std=0.3)
    ids = torch.tensor([[3, 5, 7, 9, 11, 13], [2, 4, 6, 8, 0, 0]])
    path = tmp_path_factory.mktemp("bert") / "model.onnx"
    torch.onnx.export(model, (ids, (ids > 0).long()), str(path), dynamo=True,
                      verbose=False, opset_version=20)
    return model, (ids, (ids > 0).long()), path


def edited(exported, kind, name, value):
    """What is told once an attribute of every node of a kind is another."""
    model, inputs, path = exported
    graph = onnx.load(str(path))
    nodes = [node for node in graph.graph.node if node.op_type == kind]
    for node in nodes:
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.attribute.append(onnx.helper.make_attribute(name, value))
    assert nodes
    return parity.diff(model, graph, *inputs)


def test_the_file_as_it_is(exported):
    model, inputs, path = exported
    comparison = parity.diff(model, path, *inputs)
    assert comparison.status == 0 and not comparison.explanations


@pytest.mark.parametrize("kind, name, value, cause", [
    ("LayerNormalization", "epsilon", 1e-3, "epsilon: 0.001 in b, 1e-12 in a"),
    ("Gelu", "approximate", "tanh", "gelu by tanh in b, gelu in a"),
    ("Softmax", "axis", 1, "axis of the softmax: (1,) in b, (-1,) in a")])
def test_another_attribute(exported, kind, name, value, cause):
    comparison = edited(exported, kind, name, value)
    assert comparison.status == 1
    assert comparison.explanations
    for told in comparison.explanations:
        assert cause in told.text()
        assert f"of the file is {kind}" in " ".join(told.known)
