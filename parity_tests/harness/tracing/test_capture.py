"""A model is looked into without being changed."""

import numpy as np
import pytest

from parity_io.errors import InputError
from parity import ports
from parity.tracing.trace import WHOLE, framework_of, trace
from parity_tests.support.engines import usable
from parity_tests.support.models import C, MODELS, ORDER, X, total


@pytest.fixture(params=MODELS)
def made(request):
    """An engine, a model and its input."""
    if request.param not in ports.known_ports():
        pytest.skip(f"not checked: no port {request.param}")
    port = usable(request.param)
    return port, MODELS[request.param](), port.to_native(X, "cpu")


def test_every_number_is_what_it_is_untraced(made):
    port, model, x = made
    before = port.to_numpy(model(x, scale=2.0)["y"])
    found = trace(model, x, scale=2.0)
    graded = trace(model, x, scale=2.0,
                   gradients=lambda output: total(port, output))
    after = port.to_numpy(model(x, scale=2.0)["y"])
    for y in (found.step(WHOLE).outputs["output.y"],
              graded.step(WHOLE).outputs["output.y"], after):
        assert y.dtype == before.dtype and y.tobytes() == before.tobytes()


def test_every_call_by_path_in_order(made):
    port, model, x = made
    found = trace(model, x, scale=2.0)
    assert [step.path for step in found.steps] == ORDER
    assert found.framework == port.NAME == framework_of(model)
    assert found.dtype == "float64" and found.live
    assert found.versions == port.versions() and found.precision
    assert found.never_called == ["unused"] and not found.notes
    whole, twice = found.step(WHOLE), found.step("layers.0#2")
    assert twice.module == "layers.0" and twice.kind in ("Linear", "Dense")
    assert sorted(twice.parameters) == sorted(found.step(
        "layers.0").parameters) and len(twice.parameters) == 2
    assert whole.inputs.keys() == {"x"}
    assert whole.inputs["x"].tobytes() == X.tobytes()
    assert whole.others == {
        "inputs.scale": "2.0", "outputs.output.n": "None",
        "outputs.output.shape.0": "3"}
    assert whole.outputs["output.shape.1"].dtype == bool
    assert whole.began < min(step.began for step in found.steps[:-1])
    assert "epsilon" in found.step("by_name.norm").settings or (
        "eps" in found.step("by_name.norm").settings)


def test_what_is_kept_is_a_copy(made):
    port, model, x = made
    found = trace(model, x)
    arrays = [*found.parameters.values(), *(
        array for step in found.steps for array in step.outputs.values())]
    assert arrays and not any(a.flags.writeable for a in arrays)
    if port.NAME == "torch":
        import torch
        with torch.no_grad():
            model.layers[0].weight.fill_(7)
        assert (found.parameters["layers.0.weight"] != 7).all()


def test_gradients_are_the_frameworks_own(made):
    """By finite differences of one parameter, and by C at the end."""
    port, model, x = made
    found = trace(model, x, gradients=lambda output: total(port, output))
    used = {path for path in found.trainable if "unused" not in path}
    assert len(used) == 6
    assert used <= set(found.gradients) <= set(found.trainable)
    np.testing.assert_array_equal(
        found.step(WHOLE).gradients["output.y"], C)
    np.testing.assert_allclose(  # the dropout is at rest
        found.step("by_name.norm").gradients["output"], C, rtol=1e-15)
    for path in ORDER[:-1]:
        assert list(found.step(path).gradients) == ["output"], path
    # A residual branch's own gradient is not the sum's: the second block's
    # output bias sees the gradient by that block's output alone.
    weights = next(p for p in found.parameters if p.startswith("layers.1")
                   and p.endswith("bias"))
    both = sum(found.step(path).gradients["output"].sum(axis=(0, 1))
               for path in ("layers.1", "layers.1#2"))
    np.testing.assert_allclose(found.gradients[weights], both, rtol=1e-12)
    y = port.to_numpy(model(x)["y"])
    assert abs(found.loss - (y * C).sum()) < 1e-12


@pytest.mark.parametrize("loss", [
    lambda output: output["y"], lambda output: "text"])
def test_a_loss_that_is_none(made, loss):
    _, model, x = made
    with pytest.raises(InputError, match="must return a scalar loss"):
        trace(model, x, gradients=loss)
    with pytest.raises(InputError, match="must be a function"):
        trace(model, x, gradients=True)


def test_a_step_can_be_run_again(made):
    _, model, x = made
    found = trace(model, x, scale=2.0)
    for step in found.steps:
        again = found.rerun(step.path, {})
        assert again.keys() == step.outputs.keys()
        for name, array in step.outputs.items():
            assert again[name].tobytes() == array.tobytes()
    name = next(iter(found.step("layers.0").inputs))
    again = found.rerun("layers.0", {name: 0 * X})["output"]
    assert (again == again[0, 0]).all() and again.shape == (3, 5, 4)
    with pytest.raises(InputError, match="no step 'nowhere'"):
        found.rerun("nowhere", {})
    with pytest.raises(InputError, match="no input array 'other'"):
        found.rerun("layers.0", {"other": X})
    with pytest.raises(InputError, match=r"\[1, 5, 6\], not \[3, 5, 6\]"):
        found.rerun("layers.0", {name: X[:1]})


def hooked(port):
    """What a trace replaces."""
    if port.NAME == "keras":
        import keras
        return keras.layers.Layer.__call__
    if port.NAME == "torch":
        import torch
        return torch.nn.Module.__call__
    from flax import nnx
    return nnx.Linear.__call__, "__call__" in vars(nnx.Linear)


def test_nothing_stays_hooked_when_a_model_raises(made):
    port, model, x = made
    before = hooked(port)
    kinds = {type(model): dict(vars(type(model)))}
    with pytest.raises(Exception, match=".+") as raised:
        trace(model, x[..., :5])
    assert not isinstance(raised.value, InputError)
    assert hooked(port) == before
    for kind, attributes in kinds.items():
        assert dict(vars(kind)).keys() == attributes.keys()
    trace(model, x)
    assert hooked(port) == before


def test_what_is_no_model():
    with pytest.raises(InputError, match="a list is not a model"):
        trace([1], X)
    with pytest.raises(InputError, match=r"mean parity.trace\(\*make\(\)\)"):
        trace((None, X))


def test_a_function_is_told_where_it_may_stand():
    with pytest.raises(InputError, match="whose call may be this function"):
        framework_of(lambda x: x)
