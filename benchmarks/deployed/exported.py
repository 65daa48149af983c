"""ONNX files: exported right, with a fault, or with a file that was edited."""

import functools
import pathlib
import tempfile

from benchmarks.deployed.case import DeployedCase
from benchmarks.deployed.sides import asked
from benchmarks.deployed.torch_net import FAULTS, SOUND, inputs, net

KIND = "exported"

#: An attribute of an operator that is put in: name -> (operator, attribute,
#: value, how the model is set, words of the cause).
ATTRIBUTES = {
    "Gelu's approximate": ("Gelu", "approximate", "tanh", {}, "gelu"),
    "LayerNormalization's epsilon": (
        "LayerNormalization", "epsilon", 1e-3, {}, "epsilon"),
    "BatchNormalization's epsilon": (
        "BatchNormalization", "epsilon", 1e-2, {}, "epsilon"),
    "Softmax's axis": ("Softmax", "axis", 1, {}, "softmax|axis|order|max"),
    "Resize's coordinates": (
        "Resize", "coordinate_transformation_mode", "asymmetric",
        {"resize": "bilinear"}, "Resize"),
    "Resize's corners": (
        "Resize", "coordinate_transformation_mode", "align_corners",
        {"resize": "bilinear"}, "Resize"),
    "AveragePool's padding": (
        "AveragePool", "count_include_pad", 0, {"pool": "pad"},
        "AveragePool|pool"),
    "LeakyRelu's alpha": ("LeakyRelu", "alpha", 0.2,
                          {"activation": "leaky"}, "slope|leaky|where"),
}


def eager(**s):
    """The model as it is."""
    return net(**s), inputs(**s), {}


def exported(edit=None, optimize=True, **s):
    """The path of a model's ONNX file, edited if that is asked for."""
    import onnx
    import torch
    folder = pathlib.Path(tempfile.mkdtemp())
    path = folder / "model.onnx"
    torch.onnx.export(net(**s), inputs(**s), str(path), dynamo=True,
                      verbose=False, opset_version=20, optimize=optimize)
    if edit is not None:
        model = onnx.load(str(path))
        edit(model)
        onnx.save(model, str(path))
    return path


def put(kind, name, value):
    """What sets an attribute of every node of an operator."""
    def edit(model):
        import onnx
        nodes = [each for each in model.graph.node if each.op_type == kind]
        if not nodes:
            raise ValueError(f"the file has no {kind}")
        for node in nodes:
            kept = [each for each in node.attribute if each.name != name]
            del node.attribute[:]
            node.attribute.extend(kept)
            node.attribute.append(onnx.helper.make_attribute(name, value))
    return edit


def cases():
    """Every DeployedCase."""
    for name, (kind, attribute, value, s, says) in ATTRIBUTES.items():
        yield DeployedCase(KIND, name, functools.partial(
            asked, functools.partial(eager, **s), functools.partial(
                exported, put(kind, attribute, value), optimize=kind !=
                "BatchNormalization", **s), True), says, r"model\.onnx:")
    for name, (s, says) in FAULTS.items():
        yield DeployedCase(KIND, name, functools.partial(
            asked, eager, functools.partial(exported, **s), True), says,
            r"model\.onnx:")
    for name, s in SOUND.items():
        yield DeployedCase(KIND, name, functools.partial(
            asked, functools.partial(eager, **s), functools.partial(
                exported, **s), True))
