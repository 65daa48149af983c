"""ONNX graphs as operations, and files that cannot be compared."""

import importlib.util

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.exported import onnx_file, opening
from parity.exported.model import NotInstalled, fitted

onnx = pytest.importorskip(
    "onnx", reason="not checked: onnx is not installed")


def graph(kind, inputs, attributes, opset=21, **initial):
    """A model of one node, and its inputs by name."""
    names = [*inputs, *initial]
    node = onnx.helper.make_node(kind, names, ["y"], name="one", **attributes)
    made = onnx.helper.make_model(onnx.helper.make_graph(
        [node], "g", [onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype),
            array.shape) for name, array in inputs.items()],
        [onnx.helper.make_tensor_value_info(
            "y", onnx.TensorProto.FLOAT, X.shape)],
        [onnx.numpy_helper.from_array(array, name)
         for name, array in initial.items()]),
        opset_imports=[onnx.helper.make_opsetid("", opset)])
    return made


X = np.random.default_rng(0).normal(size=(2, 4, 6)).astype(np.float32)


@pytest.mark.parametrize("kind, attributes, initial", [
    ("Gelu", {"approximate": "tanh"}, {}), ("Gelu", {}, {}),
    ("Softmax", {"axis": 1}, {}), ("LogSoftmax", {}, {}),
    ("LayerNormalization", {"epsilon": 1e-3}, {
        "s": X[0, 0], "b": X[0, 1]}),
    ("LeakyRelu", {"alpha": 0.2}, {}), ("Transpose", {}, {}),
    ("Flatten", {"axis": 2}, {}), ("Erf", {}, {}), ("Sigmoid", {}, {}),
    ("ReduceMean", {"keepdims": 0}, {"a": np.array([1])}),
    ("Slice", {}, {"s": np.array([5]), "e": np.array([-8]),
                   "a": np.array([2]), "t": np.array([-2])}),
    ("Reshape", {}, {"s": np.array([0, -1])}),
    ("Gather", {"axis": 1}, {"i": np.array([2, -1])}),
    ("Clip", {}, {"l": np.float32(-0.5), "h": np.float32(0.5)}),
    ("Expand", {}, {"s": np.array([3, 1, 1, 6])}),
    ("TopK", {}, {"k": np.array([2])}), ("Unsqueeze", {}, {
        "a": np.array([0, -1])})])
def test_a_node_is_what_the_standard_says(kind, attributes, initial):
    from onnx.reference import ReferenceEvaluator

    from parity.exported.onnx_program import OnnxRunner
    model = graph(kind, {"x": X}, attributes, **initial)
    if kind == "TopK":
        model.graph.node[0].output.append("z")
    program = OnnxRunner(model, {"x": X}, "m.onnx").run(exact=True)
    truth, = ReferenceEvaluator(model).run(None, {"x": X})
    made = program.values[program.outputs["output"]].array
    np.testing.assert_allclose(made, truth, rtol=2e-6, atol=2e-6)
    assert all(str(each.place) == "m.onnx:1" for each in program.operations)


def test_an_edit_is_put_in():
    from parity.exported.onnx_program import OnnxRunner
    from parity.operations.program import LEAF
    model = graph("Add", {"x": X}, {}, b=X[0, 0])
    program = OnnxRunner(model, {"x": X}, "m.onnx").run(
        exact=True, edits={(LEAF, "b"): 0 * X[0, 0]})
    np.testing.assert_array_equal(
        program.values[program.outputs["output"]].array, X)


def test_files_that_cannot_be_compared(tmp_path):
    file = tmp_path / "m.onnx"
    with pytest.raises(InputError, match="there is no file"):
        opening.read(file, (), {})
    file.write_bytes(b"no model")
    with pytest.raises(InputError, match="is no ONNX model"):
        opening.read(file, (), {})
    if importlib.util.find_spec("onnxruntime") is None:
        onnx.save(graph("Gelu", {"x": X}, {}), str(file))
        with pytest.raises(NotInstalled, match="onnxruntime is not installed"):
            opening.read(file, (X,), {})


def test_inputs_that_do_not_fit():
    asked = [("x", np.float32, [2, "n", 6]), ("ids", np.int64, [2, "n"])]
    ids = np.zeros((2, 4), np.int32)
    assert [*fitted(asked, (X,), {"ids": ids}, "m")] == ["x", "ids"]
    with pytest.raises(InputError, match="nothing is given for ids"):
        fitted(asked, (X,), {}, "m")
    with pytest.raises(InputError, match=r"\[2 n 6\], and was given \[2 4\]"):
        fitted(asked, (ids, ids), {}, "m")
    with pytest.raises(InputError, match="takes 'ids' in int64"):
        fitted(asked, (X, X[..., 0]), {}, "m")


def test_where_a_node_was_written():
    from parity.exported.onnx_program import shortest, source
    place = source('  File "a.py", line 3, in f\n    x\n'
                   '  File "b.py", line 44, in forward\n    y')
    assert str(place) == "b.py:44" and source("") is None
    assert shortest(float(np.float32(1e-5))) == 1e-5
    assert shortest(0.1) == 0.1 and onnx_file.unlike(X, X + 0) == 0
